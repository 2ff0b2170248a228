"""`azureml.contrib.services` of v1: scoring scripts that take raw requests."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(__name__, {})
