"""v1's import names inside a job. Other installed parts of `azureml` are found beside them."""

from trainmaster.job.script.v1_modules import install_finders

install_finders()
