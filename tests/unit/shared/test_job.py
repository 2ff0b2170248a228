"""JobSpec: JSON in and out, and one clear error for a file that was edited by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import (
    SPEC_VERSION,
    DataBinding,
    Distribution,
    EnvironmentSpec,
    JobSpec,
    dump_spec,
    load_spec,
)

names = st.text(max_size=20)
texts = st.lists(names, max_size=3).map(tuple)
pairs = st.dictionaries(names, names, max_size=3)
counts = st.integers(min_value=1, max_value=2**40)

distributions = st.builds(
    Distribution,
    kind=st.sampled_from(["single", "mpi", "torch", "parameter_server"]),
    process_count_per_node=counts,
    backend=names,
    process_count=st.none() | counts,
    worker_count=counts,
    parameter_server_count=counts,
)
environments = st.builds(
    EnvironmentSpec,
    user_managed=st.booleans(),
    interpreter=names,
    python_version=names,
    pip_packages=texts,
    conda_packages=texts,
)
bindings = st.builds(
    DataBinding,
    name=names,
    datastore=names,
    path=names,
    mode=st.sampled_from(["mount", "download", "upload"]),
    path_on_compute=names,
    overwrite=st.booleans(),
)
specs = st.builds(
    JobSpec,
    source_directory=names,
    target=names,
    script=st.just("train.py"),
    arguments=texts,
    node_count=counts,
    distribution=distributions,
    environment=environments,
    environment_variables=pairs,
    inherited_variables=pairs,
    data=st.lists(bindings, max_size=2).map(tuple),
    max_run_duration_seconds=st.none() | counts,
    max_retries=st.integers(0, 5),
    hang_seconds=st.none() | st.floats(0.1, 1e6),
    framework=names,
    communicator=names,
    use_gpu=st.booleans(),
    snapshot_id=names,
)


@given(specs)
def test_there_and_back(spec):
    assert load_spec(dump_spec(spec)) == spec


@given(specs)
def test_same_job_same_text(spec):
    assert dump_spec(load_spec(dump_spec(spec))) == dump_spec(spec)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | names, lambda inner: st.lists(inner) | st.dictionaries(names, inner)
    )
)
def test_anything_else_is_one_clear_error(data):
    with pytest.raises(UserErrorException):
        load_spec(json.dumps(data))


GOOD = JobSpec(source_directory="/src", target="local", script="train.py")


def edited(**changes):
    return json.dumps({**json.loads(dump_spec(GOOD)), **changes})


def test_a_file_of_before_there_were_retries_still_loads():
    old = json.loads(dump_spec(GOOD))
    del old["max_retries"], old["hang_seconds"]
    assert load_spec(json.dumps(old)) == GOOD


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "must be an object"),
        ("{}", "source_directory"),
        (edited(nodecount=2), "unknown keys: nodecount"),
        (edited(node_count="2"), "node_count must be int, not str"),
        (edited(node_count=0), "node_count=0 must be at least 1"),
        (edited(node_count=-3), "node_count=-3 must be at least 1"),
        (edited(distribution={"kind": "ring"}), "distribution.kind must be one of single, mpi"),
        (edited(distribution={"process_count_per_node": 0}), "process_count_per_node=0 must be at least 1"),
        (edited(max_run_duration_seconds=0), "max_run_duration_seconds=0 must be at least 1"),
        (edited(max_retries=-1), "max_retries=-1 must not be negative"),
        (edited(hang_seconds=0), "hang_seconds=0.0 must be a positive number"),
        (edited(script=""), "either a script or a command"),
        (edited(command=["ls"]), "either a script or a command"),
        (edited(script="/etc/passwd"), "does not lie in the source folder"),
        (edited(script="a/../../b.py"), "does not lie in the source folder"),
        (edited(arguments="--lr 1"), "arguments must be a list"),
        (edited(environment_variables={"A": 1}), "environment_variables.A must be str"),
        (edited(version=SPEC_VERSION + 1), "Install a newer Trainmaster"),
        (edited(version="1"), "version must be int"),
    ],
)
def test_edited_by_hand(text, message):
    with pytest.raises(UserErrorException) as caught:
        load_spec(text, where="spec.json")
    assert str(caught.value).startswith("spec.json")
    assert message in str(caught.value)


def test_command_instead_of_script():
    spec = replace(GOOD, script="", command=("make", "train"))
    assert load_spec(dump_spec(spec)) == spec
