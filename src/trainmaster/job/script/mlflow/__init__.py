"""MLflow in a job: what it logs and keeps becomes part of the run. Only MLflow itself loads these modules."""
