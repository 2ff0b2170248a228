"""Of v1's previews only the TensorBoard is here."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(__name__, {})
