"""Notebooks as entry scripts: `python -m trainmaster.job.notebook train.ipynb [ARGUMENTS]`."""

# What the job's Python needs. nbclient brings nbformat and jupyter_client.
PACKAGES = ("nbclient", "ipykernel")
