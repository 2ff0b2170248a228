"""The command line of a process, as tables."""

from __future__ import annotations

import pytest

from trainmaster.launch.command import command_line, expand, log_name
from trainmaster.shared.job_spec import JobSpec

VARIABLES = {"A": "1", "A_B": "2", "EMPTY": "", "AZUREML_DATAREFERENCE_d": "/data", "LOOP": "$A"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("$A", "1"),
        ("${A}", "1"),
        ("$A_B", "2"),
        ("${A}_B", "1_B"),
        ("$A$A_B", "12"),
        ("$UNKNOWN ${UNKNOWN}", "$UNKNOWN ${UNKNOWN}"),
        ("x${EMPTY}y", "xy"),
        ("$AZUREML_DATAREFERENCE_d/train", "/data/train"),
        ("cost: 5$", "cost: 5$"),
        ("$5", "$5"),
        ("${A", "${A"),
        ("$$A", "$1"),
        # What a value holds is not expanded again.
        ("$LOOP", "$A"),
    ],
)
def test_expand(text, expected):
    assert expand(text, VARIABLES) == expected


def test_script():
    spec = JobSpec("/src", "local", script="sub/train.py", arguments=("--data", "$A", "two words", "--empty", ""))
    assert command_line(spec, "/env/bin/python", VARIABLES) == (
        *("/env/bin/python", "sub/train.py", "--data", "1", "two words", "--empty", ""),
    )


def test_command_goes_through_a_shell():
    spec = JobSpec("/src", "local", command=("python", "train.py", "|", "tee", "$A"))
    assert command_line(spec, "/env/bin/python", VARIABLES) == ("/bin/sh", "-c", "python train.py | tee $A")


@pytest.mark.parametrize(
    ("rank", "processes", "name"),
    [(0, 1, "70_driver_log.txt"), (0, 2, "70_driver_log_0.txt"), (11, 12, "70_driver_log_11.txt")],
)
def test_log_names(rank, processes, name):
    assert log_name(rank, processes) == name
