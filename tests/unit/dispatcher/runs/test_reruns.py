"""What a run that is run again has of the first one, and what not."""

from __future__ import annotations

import pytest

from trainmaster.dispatcher.runs.reruns import Edits, rerun_record
from trainmaster.job.errors import UserErrorException
from trainmaster.shared.job_spec import JobSpec, dump_spec, load_spec
from trainmaster.shared.records import RunError, RunRecord, Status

SCRIPT = JobSpec(
    "/src", "gpu", script="train.py", arguments=("--lr", "0.1"), node_count=2, max_retries=3, snapshot_id="abc"
)
COMMAND = JobSpec("/src", "gpu", command=("python train.py --lr 0.1",), snapshot_id="abc")


def make_run(spec: JobSpec | None = SCRIPT) -> RunRecord:
    return RunRecord(
        "first",
        "exp",
        Status.FAILED,
        1.0,
        parent_id="sweep",
        display_name="shown",
        target="throw-away-first",
        spec=dump_spec(spec) if spec else "",
        error=RunError("ScriptFailed", "it failed"),
        warnings=("careful",),
        submitted_by="ann",
        tags={"kind": "base"},
        properties={"ContentSnapshotId": "abc", "azureml.git.commit": "123", "trainmaster.mark": "x", "mine": "y"},
        archived_at=2.0,
    )


def test_it_is_the_same_job_as_a_run_of_its_own():
    new = rerun_record(make_run(), "second", "bob", 5.0, Edits())
    assert load_spec(new.spec) == SCRIPT
    assert (new.id, new.submitted_by, new.created_at, new.status) == ("second", "bob", 5.0, Status.NOT_STARTED)
    # The target that was asked for: a cluster that was made for the first run is gone.
    assert (new.target, new.snapshot_id, new.display_name, new.tags) == ("gpu", "abc", "shown", {"kind": "base"})
    assert new.properties == {"ContentSnapshotId": "abc", "azureml.git.commit": "123", "origin": "first"}
    assert (new.parent_id, new.error, new.warnings, new.archived_at) == (None, None, (), None)


def test_what_is_edited_is_different():
    new = rerun_record(make_run(), "second", "", 5.0, Edits(("--lr", "0.2"), display_name="", tags={}))
    assert load_spec(new.spec).arguments == ("--lr", "0.2") and (new.display_name, new.tags) == ("", {})
    new = rerun_record(make_run(COMMAND), "second", "", 5.0, Edits(command=["python other.py"]))
    assert load_spec(new.spec).command == ("python other.py",)


@pytest.mark.parametrize(
    ("spec", "edits"),
    [
        (None, Edits()),
        (SCRIPT, Edits(command=["ls"])),
        (COMMAND, Edits(arguments=["--lr"])),
        (COMMAND, Edits(command=[" "])),
    ],
)
def test_what_cannot_be_run_again_is_refused(spec, edits):
    with pytest.raises(UserErrorException):
        rerun_record(make_run(spec), "second", "", 5.0, edits)
