"""Starts the other script with two ranks, by the environment's own mpirun."""

import os
import subprocess
import sys

os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TF_CPP_MIN_LOG_LEVEL="3")
os.environ.setdefault("OMP_NUM_THREADS", "1")
options = ["-np", "2", "--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none", "--mca", "pml", "ob1"]
sys.exit(subprocess.call(["mpirun", *options, sys.executable, *sys.argv[1:]]))
