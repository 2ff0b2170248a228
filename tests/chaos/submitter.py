"""Submits runs of the storm and says each id once `submit` has returned. It may be killed at any moment."""

import sys
from pathlib import Path

from trainmaster import Estimator, Experiment, Workspace

folder, source, proofs, name = (Path(argument) for argument in sys.argv[1:5])
experiment = Experiment(Workspace(path=folder), "storm")
for number, (values, package) in enumerate(each.split(":") for each in sys.argv[5:]):
    proof = proofs / f"{name.name}-{number}"
    estimator = Estimator(
        str(source),
        entry_script="job.py",
        script_params={str(proof): [values, package or "os"]},
        compute_target="box",
        **({"pip_packages": [package]} if package else {"user_managed": True}),
    )
    run = experiment.submit(estimator, tags={"proof": str(proof)})
    print(run.id, flush=True)
