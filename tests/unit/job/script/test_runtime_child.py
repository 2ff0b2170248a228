import io
import os
import uuid

import pytest

from trainmaster.job.errors import UserErrorException


def test_a_child_is_a_run_in_the_same_journal(run, records):
    with run.child_run("fold 1") as child:
        child.log("m", 0.5)
        child.log_row("r", x=1)
        child.tag("k", "v")
        assert child.status == "Running"
    assert uuid.UUID(child.id).version == 4
    assert (child.parent, child.display_name, child.status) == (run, "fold 1", "Completed")
    begin, *rest = records()
    assert (begin["k"], begin["id"], begin["name"]) == ("child", child.id, "fold 1")
    assert "r" not in begin
    assert {r["r"] for r in rest} == {child.id}
    assert [r["k"] for r in rest] == ["metric", "row", "tags", "state"]
    assert rest[-1]["v"] == "Completed"
    assert child.tags == {"k": "v"} and "k" not in run.tags


def test_metrics_of_children(run):
    run.log("m", 1)
    child = run.child_run()
    child.log("m", 2)
    assert run.get_metrics() == {"m": 1}
    assert child.get_metrics() == {"m": 2}
    assert run.get_metrics(recursive=True) == {"run_1": {"m": 1}, child.id: {"m": 2}}


def test_a_child_fails_on_an_exception(run, records):
    with pytest.raises(ZeroDivisionError), run.child_run() as child:
        _ = 1 / 0
    assert child.status == child.get_status() == "Failed"
    assert records("state")[0]["error"] == {
        "code": "ZeroDivisionError",
        "message": "ZeroDivisionError: division by zero",
    }


@pytest.mark.parametrize(("code", "status"), [(None, "Completed"), (0, "Completed"), (3, "Failed")])
def test_a_script_may_exit_within_a_child(run, code, status):
    with pytest.raises(SystemExit), run.child_run() as child:
        raise SystemExit(code)
    assert child.status == status


def test_a_terminal_state_never_changes(run, records):
    child = run.child_run()
    child.fail("broken", error_code="Mine")
    child.complete()
    child.cancel()
    assert child.status == "Failed"
    assert [(r["v"], r["error"]) for r in records("state")] == [("Failed", {"code": "Mine", "message": "broken"})]
    other = run.child_run()
    other.cancel()
    assert other.status == "Canceled"


def test_children_of_children(run, records):
    child = run.child_run("one")
    grandchild = child.child_run("two")
    grandchild.log("m", 1)
    begun = records("child")
    assert (begun[1]["r"], begun[1]["id"]) == (child.id, grandchild.id)
    assert [c.id for c in run.get_children()] == [child.id]
    assert [c.id for c in run.get_children(recursive=True)] == [child.id, grandchild.id]
    assert set(run.get_metrics(recursive=True)) == {"run_1", child.id, grandchild.id}


def test_many_children(run):
    assert len(run.create_children(count=100)) == 100
    tagged = run.create_children(tag_key="fold", tag_values=[1, 2])
    assert [c.tags for c in tagged] == [{"fold": "1"}, {"fold": "2"}]
    assert [c.id for c in run.get_children(tags={"fold": "2"})] == [tagged[1].id]
    assert [c.id for c in run.get_children(tags="fold")] == [c.id for c in tagged]
    tagged[0].complete()
    assert [c.id for c in run.get_children(status="Completed")] == [tagged[0].id]
    assert list(run.get_children(properties="none")) == list(run.get_children(type="hyperdrive")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"count": 0},
        {"count": 101},
        {"count": 1, "tag_key": "a", "tag_values": [1]},
        {"tag_key": "a"},
        {"tag_values": [1]},
        {"tag_key": "a", "tag_values": range(101)},
    ],
)
def test_how_many_children(run, records, arguments):
    with pytest.raises(UserErrorException, match="create_children"):
        run.create_children(**arguments)
    assert records() == []


@pytest.mark.parametrize("run_id", ["", "../x", "a/b", ".hidden", "x" * 129, 5, "a b"])
def test_ids_are_checked(run, records, run_id):
    with pytest.raises(UserErrorException, match="id"):
        run.child_run(run_id=run_id)
    assert records() == []


def test_names_are_checked(run):
    with pytest.raises(UserErrorException, match="name"):
        run.child_run(name=5)
    assert run.child_run(run_id="fold-1").id == "fold-1"


def test_files_of_a_child_are_its_own(run, job):
    child = run.child_run(run_id="fold-1")
    child.upload_file("outputs/m.pkl", io.BytesIO(b"m"))
    assert child.get_file_names() == ["outputs/m.pkl"]
    assert run.get_file_names() == []
    assert (job.parent / "fold-1" / "files" / "outputs" / "m.pkl").read_bytes() == b"m"


def test_each_journal_names_the_child_first(run, records, job):
    """A journal of a forked process may be read before that of the process which began the child."""
    child = run.child_run("shared")
    pid = os.fork()
    if pid == 0:
        try:
            child.log("m", 2)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    child.log("m", 1)
    begun = records("child")
    assert len(list((job / "journals").iterdir())) == 2
    assert len(begun) == 2 and begun[0] == begun[1]
