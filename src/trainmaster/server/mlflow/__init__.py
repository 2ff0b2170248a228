"""MLflow's REST API over HTTP: `/mlflow/{workspace}` is the address for `MLFLOW_TRACKING_URI`."""
