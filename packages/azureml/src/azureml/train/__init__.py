"""Estimators, sweeps and, by its name of 2018, the widget."""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(__name__, {})
