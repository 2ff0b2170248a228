"""A run folder as the node agent lays it out, and the job's variables pointing to it."""

import pytest

from trainmaster.job.script import run as run_module
from trainmaster.job.script.journal import read_records


@pytest.fixture
def job(tmp_path, monkeypatch):
    """The folder of a job's run; the current folder is its working folder."""
    folder = tmp_path / "runs" / "run_1"
    code = folder / "code"
    for place in (code / "outputs", code / "logs", folder / "files" / "azureml-logs", folder / "journals"):
        place.mkdir(parents=True)
    for name in ("outputs", "logs"):
        (folder / "files" / name).symlink_to(f"../code/{name}")
    monkeypatch.chdir(code)
    for name, value in {
        "TRAINMASTER_RUN_ID": "run_1",
        "TRAINMASTER_RUN_FOLDER": str(folder),
        "TRAINMASTER_EXPERIMENT": "digits",
        "TRAINMASTER_WORKSPACE": "lab",
        "TRAINMASTER_RANK": "3",
        "TRAINMASTER_NODE": "1",
        "TRAINMASTER_PARENT_RUN_ID": "",
        "TRAINMASTER_TAGS": '{"team": "vision"}',
        "TRAINMASTER_PROPERTIES": '{"ContentSnapshotId": "abc"}',
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(run_module, "_contexts", {})
    return folder


@pytest.fixture
def run(job):
    """The run of the job."""
    return run_module.Run.get_context()


@pytest.fixture
def no_job(monkeypatch):
    """A program started by hand."""
    monkeypatch.delenv("TRAINMASTER_RUN_ID", raising=False)
    monkeypatch.setattr(run_module, "_contexts", {})


@pytest.fixture
def records(job):
    """Reads all records of the run's journals."""

    def read(*kinds):
        found = [r for path in sorted((job / "journals").iterdir()) for r in read_records(path)]
        return [r for r in found if not kinds or r["k"] in kinds]

    return read
