"""MLflow outside of jobs: a workspace on this machine as tracking server. Only MLflow itself loads these modules."""
