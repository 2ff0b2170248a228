"""The v1 import names inside a job. Other installed parts of `azureml` are found beside these."""

from trainmaster.job.script.absent import install_finder

install_finder()
