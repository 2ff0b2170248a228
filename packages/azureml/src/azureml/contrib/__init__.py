"""Of v1's previews the TensorBoard and raw requests to services are here."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(__name__, {})
