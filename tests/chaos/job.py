"""The script of the storm: proves outside the workspace what it did, right after each `log` call returned."""

import os
import subprocess
import sys
import time

from azureml.core import Run

proof = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(proof, b"begun\n")
if sys.argv[3]:
    __import__(sys.argv[3])
run = Run.get_context()
subprocess.Popen(["setsid", "sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for number in range(int(sys.argv[2])):
    run.log("value", number)
    os.write(proof, b"%d\n" % number)
    time.sleep(0.01)
with open("outputs/result.txt", "w") as file:
    file.write(run.id)
os.write(proof, b"done\n")
