"""A trial of the storm's sweep: proves outside of the workspace that it began, and how far it came."""

import os
import sys
import time

from azureml.core import Run

proofs, value = sys.argv[sys.argv.index("--proofs") + 1], int(sys.argv[sys.argv.index("--value") + 1])
run = Run.get_context()
proof = os.open(os.path.join(proofs, run.id), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(proof, b"begun\n")
# On a fast machine the sweep would end before the first kills.
while not os.path.exists(os.path.join(proofs, "go")):
    time.sleep(0.01)
# Every third one is far behind, and slow enough to be cut for it.
behind = value % 3 == 0
for report in range(3):
    run.log("score", -1000 if behind else value)
    os.write(proof, b"%d\n" % report)
    time.sleep(1.0 if behind and report else 0.02)
os.write(proof, b"done\n")
