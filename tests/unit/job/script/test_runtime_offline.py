import io
import uuid

import pytest

from trainmaster.job.errors import RunEnvironmentException, TrainmasterError, UserErrorException
from trainmaster.job.script import OfflineRun, Run

pytestmark = pytest.mark.usefixtures("no_job")


def test_outside_of_a_job_there_is_a_stand_in():
    run = Run.get_context()
    assert isinstance(run, OfflineRun)
    assert run.id.startswith("OfflineRun_") and uuid.UUID(run.id[11:])
    assert Run.get_context() is run
    assert not hasattr(run, "experiment")


def test_or_an_error():
    for _ in range(2):
        for ask in (lambda: Run.get_context(allow_offline=False), Run.get_submitted_run):
            with pytest.raises(RunEnvironmentException, match="there is no run"):
                ask()
        Run.get_context()


def test_every_log_call_prints(capsys, tmp_path, monkeypatch):
    run = Run.get_context()
    run.log("loss", 0.5)
    run.log("loss", 0.5, step=2)
    run.log_list("l", range(2))
    run.log_row("r", x=1)
    run.log_table("t", {"x": [1]})
    run.log_residuals("res", {"schema_type": "residuals", "data": {}})
    (tmp_path / "a.gif").write_bytes(b"GIF89a")
    run.log_image("i", path=tmp_path / "a.gif")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7 and all(line.startswith("Attempted to log ") for line in lines)
    assert lines[0] == "Attempted to log metric 'loss': 0.5"


def test_values_are_checked_as_in_a_job():
    run = Run.get_context()
    for wrong in (
        lambda: run.log("m", [1]),
        lambda: run.log("", 1),
        lambda: run.log_table("t", {"x": [1], "y": []}),
        lambda: run.log_image("i"),
        lambda: run.upload_file("../a", io.BytesIO()),
        lambda: run.upload_file("a", "absent"),
    ):
        with pytest.raises(TrainmasterError):
            wrong()


def test_the_rest_of_the_stand_in(capsys, tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with Run.get_context() as run:
        run.tag("a", 1)
        run.set_tags({"b": None})
        run.remove_tags(["b"])
        run.add_properties({"p": "1"})
        run.upload_file("a.txt", tmp_path / "a.txt")
        run.upload_folder("all", tmp_path)
        run.fail("no")
        run.cancel()
    assert (run.tags, run.get_tags(), run.properties) == ({"a": 1}, {"a": 1}, {"p": "1"})
    out = capsys.readouterr().out
    assert out.count("Attempted to ") == 8
    assert "'all/a.txt'" in out
    assert (run.start(), run.complete(), run.flush()) == (None, None, None)
    assert (run.get_metrics(), run.get_file_names(), list(run.get_children())) == ({}, [], [])
    assert run.get_status() == run.get_details()["status"] == "Running"
    assert run.get_properties() == {"p": "1"}


def test_children_of_the_stand_in():
    run = Run.get_context()
    with run.child_run("a") as child:
        assert child.id.startswith("OfflineRun_") and child.id != run.id
        assert child.parent is run and run.parent is None
    assert len(run.create_children(3)) == 3
    assert len(run.create_children(tag_key="a", tag_values=[1, 2])) == 2


def test_what_it_cannot_do_is_told():
    with pytest.raises(AttributeError, match="outside of a job"):
        OfflineRun().register_model("m")
    with pytest.raises(UserErrorException):
        OfflineRun()._append({})
