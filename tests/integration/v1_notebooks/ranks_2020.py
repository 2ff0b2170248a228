import os

from azureml.core import Run

run = Run.get_context()
run.log("rank", int(os.environ["OMPI_COMM_WORLD_RANK"]))
