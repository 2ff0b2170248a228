"""What `compute create` refuses before it asks anybody; nothing is made then."""

from __future__ import annotations

import pytest

from trainmaster.cli.compute import create
from trainmaster.cli.parsing import parse
from trainmaster.job.errors import UserErrorException


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ssh"], "no hosts are named"),
        (["ssh", "lab"], "no hosts are named"),
        (["ssh", "lab", "one", "--nodes", "2"], "every host is one node"),
        (["ssh", "lab", "one", "--vm-size", "STANDARD_NC6"], "--vm-size is for nodes of this machine"),
        (["ssh", "lab", "one", "--partition", "gpu"], "--partition is for Slurm"),
        (["slurm", "a", "b"], "'b' is one word too many"),
        (["slurm", "--vm-size", "STANDARD_NC6"], "--vm-size is for nodes of this machine"),
        (["slurm", "--lost-after", "9"], "--lost-after is for hosts over SSH"),
        (["small", "--user", "me"], "--user is for hosts over SSH"),
        (["small", "--python", "python3"], "--python is for hosts over SSH"),
        (["small", "--qos", "high"], "--qos is for Slurm"),
        (["lsf", "cluster"], "compute create slurm NAME"),
    ],
)
def test_what_means_nothing_for_a_target_is_refused(words: list[str], says: str) -> None:
    _, options = parse(["compute", "create", *words])
    with pytest.raises(UserErrorException) as raised:
        create(options)
    assert says in str(raised.value)
