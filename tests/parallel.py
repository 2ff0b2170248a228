"""How `pytest -n` hands out the tests: whole files to each process, the longest first.

Every test has its own folders, ports, networks and clusters, so that any two files may run at once.
"""

from __future__ import annotations

from pathlib import Path

from xdist.scheduler import LoadFileScheduling

# They use the same large environments, so one process runs them all, in this order: on a new machine each framework is
# fetched, and Horovod compiled, once. The first two look at how that goes.
FRAMEWORKS = (
    "test_frameworks",
    "test_horovod",
    "test_framework_notebooks",
    "test_distributed",
    "test_examples",
    "test_examples_on_slurm",
    "test_examples_elsewhere",
    "test_examples_on_kubernetes",
    "test_tensorflow_programs",
    "test_torch_programs",
    "test_torch_libraries",
    "test_onnx",
)
# All files whose names begin so use one cluster, and switch its nodes off: one process runs them.
KUBERNETES = "test_kubernetes"
# Minutes, which nobody should have left at the end.
LONG = ("test_kills", "test_slurm", "test_ssh", "test_limits_hold")


class WholeFiles(LoadFileScheduling):
    """Of `LoadFileScheduling`, with all of `FRAMEWORKS` as if they were one file, and so those of Kubernetes."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        name = Path(file).stem
        if name.startswith(KUBERNETES):
            return "kubernetes"
        return "frameworks" if name in FRAMEWORKS else file


def turn(file: str) -> int:
    """Where a file (its name without the ending) comes in the order of all: the same for those that are not named."""
    named = (*FRAMEWORKS, *LONG)
    return named.index(file) if file in named else len(named)
