"""Tags by which a job tells the workspace what MLflow has no words for."""

FILES_IN_RUN = "trainmaster.files"
"""Of a logged model: where its files are among those of the run that logged it."""
