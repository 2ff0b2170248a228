"""The plan of a run: variables, shares of GPUs, one process on one node."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.launch import Launch, plan_launch
from trainmaster.launch.variables import process_variables, share_of_gpus
from trainmaster.shared.job_spec import JobSpec


def launch(**changes):
    settings = {
        "run_id": "run",
        "code_folder": "/run/code",
        "log_folder": "/run/logs",
        "python": "/env/bin/python",
        "environment_variables": {"PATH": "/env/bin:/bin", "VIRTUAL_ENV": "/env"},
        "run_variables": {"TRAINMASTER_RUN_ID": "run", "PYTHONPATH": "/kit"},
    }
    return Launch(**{**settings, **changes})


def spec(**changes):
    return JobSpec(**{"source_directory": "/src", "target": "local", "script": "train.py", **changes})


def test_single():
    (node,) = plan_launch(spec(arguments=("--id", "$TRAINMASTER_RUN_ID")), launch(gpus=(("2", "3"),)))
    (process,) = node.processes
    assert (node.node, process.rank) == (0, 0)
    assert process.argv == ("/env/bin/python", "train.py", "--id", "run")
    assert process.cwd == "/run/code"
    assert process.log == "/run/logs/70_driver_log.txt"
    assert process.env["CUDA_VISIBLE_DEVICES"] == "2,3"


def variables(gpus=(), **changes):
    return process_variables(spec(**changes), launch(), rank=1, node=2, gpus=gpus)


def test_the_later_win():
    found = variables(
        inherited_variables={"PATH": "/shell", "HOME": "/home", "LANG": "C"},
        environment_variables={"LANG": "de", "TRAINMASTER_RUN_ID": "forged", "TRAINMASTER_RANK": "7"},
    )
    assert found["PATH"] == "/env/bin:/bin"
    assert found["HOME"] == "/home"
    assert found["LANG"] == "de"
    # A user cannot change the id of the run.
    assert found["TRAINMASTER_RUN_ID"] == "run"
    assert (found["TRAINMASTER_RANK"], found["TRAINMASTER_NODE"]) == ("1", "2")


def test_output_is_not_held_back_unless_the_user_wants_it():
    assert variables()["PYTHONUNBUFFERED"] == "1"
    assert variables(environment_variables={"PYTHONUNBUFFERED": ""})["PYTHONUNBUFFERED"] == ""


def test_kit_comes_before_the_users_own_modules():
    assert variables()["PYTHONPATH"] == "/kit"
    assert variables(environment_variables={"PYTHONPATH": "/mine:/more"})["PYTHONPATH"] == "/kit:/mine:/more"


def test_gpus_of_the_engine_count():
    assert variables(gpus=("1",), environment_variables={"CUDA_VISIBLE_DEVICES": "0"})["CUDA_VISIBLE_DEVICES"] == "1"
    assert variables(environment_variables={"CUDA_VISIBLE_DEVICES": "0"})["CUDA_VISIBLE_DEVICES"] == "0"
    # GPUs that were not given must not be used.
    assert variables()["CUDA_VISIBLE_DEVICES"] == ""


@pytest.mark.parametrize(
    ("gpus", "processes", "shares"),
    [
        ("", 2, ["", ""]),
        ("0", 1, ["0"]),
        ("01", 1, ["01"]),
        ("0123", 2, ["01", "23"]),
        ("012", 2, ["0", "12"]),
        ("01", 2, ["0", "1"]),
        ("01", 4, ["0", "1", "0", "1"]),
    ],
)
def test_shares(gpus, processes, shares):
    assert ["".join(share_of_gpus(list(gpus), rank, processes)) for rank in range(processes)] == shares


@given(st.integers(1, 16), st.integers(1, 16))
def test_every_gpu_is_used_and_none_twice_while_they_last(gpus, processes):
    names = [str(n) for n in range(gpus)]
    shares = [share_of_gpus(names, rank, processes) for rank in range(processes)]
    assert all(shares)
    handed_out = [name for share in shares for name in share]
    if processes <= gpus:
        assert sorted(handed_out, key=int) == names
    else:
        assert set(handed_out) == set(names)
