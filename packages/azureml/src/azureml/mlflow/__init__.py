"""`azureml.mlflow` of v1, which scripts import beside `mlflow` and never use.

It taught MLflow the addresses of Azure; the one that `workspace.get_mlflow_tracking_uri()` gives here needs no help.
"""

from azureml._lazy import names

__getattr__, __dir__, __all__ = names(__name__, {})
