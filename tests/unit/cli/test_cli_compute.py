"""What `compute create` refuses before it asks anybody; nothing is made then."""

from __future__ import annotations

import pytest

from trainmaster.cli.compute import create
from trainmaster.cli.parsing import parse
from trainmaster.job.errors import UserErrorException


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ssh"], "a host is missing"),
        (["ssh", "lab"], "a host is missing"),
        (["ssh", "lab", "one", "--nodes", "2"], "Every SSH host is one node"),
        (["ssh", "lab", "one", "--vm-size", "STANDARD_NC6"], "--vm-size applies only to nodes of this machine"),
        (["ssh", "lab", "one", "--partition", "gpu"], "--partition applies only to Slurm"),
        (["slurm", "a", "b"], "unexpected argument 'b'"),
        (["slurm", "--vm-size", "STANDARD_NC6"], "--vm-size applies only to nodes of this machine"),
        (["slurm", "--lost-after", "9"], "--lost-after applies only to hosts over SSH"),
        (["small", "--user", "me"], "--user applies only to hosts over SSH"),
        (["small", "--python", "python3"], "--python applies only to hosts over SSH"),
        (["small", "--qos", "high"], "--qos applies only to Slurm"),
        (["lsf", "cluster"], "compute create slurm NAME"),
        (["kubernets", "gpu"], "Did you mean kubernetes?"),
        (["kubernetes", "a", "b"], "unexpected argument 'b'"),
        (["kubernetes", "gpu", "--partition", "main"], "--partition applies only to Slurm"),
        (["kubernetes", "gpu", "--user", "me"], "--user applies only to hosts over SSH"),
        (["small", "--image", "python:3.11"], "--image applies only to Kubernetes"),
        (["ssh", "lab", "one", "--spread"], "--spread applies only to Kubernetes"),
        (["kubernetes", "gpu", "--pod-patch", "/does/not/exist"], "the pod patch /does/not/exist cannot be read"),
    ],
)
def test_what_means_nothing_for_a_target_is_refused(words: list[str], says: str) -> None:
    _, options = parse(["compute", "create", *words])
    with pytest.raises(UserErrorException) as raised:
        create(options)
    assert says in str(raised.value)
