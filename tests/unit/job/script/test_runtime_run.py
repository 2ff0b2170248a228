import copy
import os
import pickle
import subprocess
import sys

import pytest

from trainmaster.job.errors import RunEnvironmentException, ServiceException, UserErrorException
from trainmaster.job.script import Run, get_context
from trainmaster.job.script.run import JobRun


def test_one_run_per_process(run):
    assert Run.get_context() is Run.get_submitted_run() is get_context() is run
    assert isinstance(run, Run)


def test_what_a_run_knows(run):
    assert str(run) == repr(run) == "Run(Experiment: digits, Id: run_1, Type: azureml.scriptrun, Status: Running)"
    assert (run.id, run.status, run.get_status(), run.type) == ("run_1", "Running", "Running", "azureml.scriptrun")
    assert (run.experiment.name, run.experiment.workspace.name) == ("digits", "lab")
    assert (run.number, run.parent, run.get_portal_url(), run.get_snapshot_id()) == (None, None, "", "abc")
    assert run.get_detailed_status() == {"status": "Running", "details": ""}
    details = run.get_details()
    assert (details["runId"], details["status"]) == ("run_1", "Running")


def test_the_rest_of_the_workspace_is_told_to_be_outside(run):
    for thing in (run.experiment, run.experiment.workspace):
        with pytest.raises(AttributeError, match=r"inside a job the .* has no 'datasets'"):
            _ = thing.datasets
        assert "name=" in repr(thing)


def test_the_parent_is_known_by_its_id(run, monkeypatch):
    monkeypatch.setenv("TRAINMASTER_PARENT_RUN_ID", "sweep_1")
    assert run.parent.id == "sweep_1"
    assert run.parent.experiment.name == "digits"
    assert run.parent.parent is None
    for use in (lambda: run.parent.log("m", 1), lambda: run.parent.tags, lambda: run.parent.get_file_names()):
        with pytest.raises(RunEnvironmentException, match="sweep_1"):
            use()


def test_tags(run, records):
    run.tag("a")
    run.tag("b", 2)
    run.set_tags({"c": "3"})
    run.remove_tags(["team", "absent"])
    run.remove_tags("a")
    assert run.tags == run.get_tags() == {"b": "2", "c": "3"}
    assert [(r["k"], r["v"]) for r in records()] == [
        ("tags", {"a": None}),
        ("tags", {"b": "2"}),
        ("tags", {"c": "3"}),
        ("untag", ["team", "absent"]),
        ("untag", ["a"]),
    ]


def test_properties_are_written_once(run, records):
    run.add_properties({"a": "1"})
    run.add_properties({"a": "1", "b": "2"})
    for wrong in ({"a": "2"}, {"ContentSnapshotId": "x"}):
        with pytest.raises(UserErrorException, match="cannot be changed"):
            run.add_properties(wrong)
    assert run.properties == run.get_properties() == {"ContentSnapshotId": "abc", "a": "1", "b": "2"}
    assert len(records()) == 2
    run.add_properties({"none": None})
    assert run.properties["none"] == "None", "all properties are text, as the store keeps them"


@pytest.mark.parametrize("wrong", [{1: "a"}, {"": "a"}, {"x" * 256: "a"}, "text", None, {"a\n": "b"}])
def test_labels_are_checked(run, records, wrong):
    with pytest.raises(UserErrorException):
        run.set_tags(wrong)
    with pytest.raises(UserErrorException):
        run.add_properties(wrong)
    assert records() == []


def test_changed_variables_do_not_break_labels(run, monkeypatch):
    monkeypatch.setenv("TRAINMASTER_TAGS", "{broken")
    assert run.tags == {}


def test_texts(run, records):
    assert (run.name, run.display_name, run.description) == ("run_1", "run_1", "")
    run.display_name = "The best"
    run.description = "Seven layers"
    assert (run.name, run.description) == ("The best", "Seven layers")
    assert [r["v"] for r in records("set")] == [{"display_name": "The best"}, {"description": "Seven layers"}]
    with pytest.raises(UserErrorException):
        run.description = 5


def test_metrics_so_far(run):
    run.log("once", 1)
    for n in range(3):
        run.log("often", n)
    run.log_list("often", [7, 8])
    run.log_row("row", x=1)
    run.log_row("rows", x=1, y=2)
    run.log_row("rows", x=3)
    run.log_table("rows", {"z": [5]})
    run.log_residuals("res", {"schema_type": "residuals", "data": {"a": 1}})
    found = run.get_metrics()
    assert found.pop("res").startswith("aml://artifactId/res_")
    assert found == {
        "once": 1,
        "often": [0, 1, 2, 7, 8],
        "row": {"x": 1},
        "rows": {"x": [1, 3, None], "y": [2, None, None], "z": [None, None, 5]},
    }
    assert run.get_metrics("once") == {"once": 1}
    assert run.get_metrics("res", populate=True)["res"]["data"] == {"a": 1}
    assert run.get_metrics("absent") == {}


def test_files_come_back(run, job):
    (job / "code" / "outputs" / "m.pkl").write_text("m")
    (job / "code" / "outputs" / "deep").mkdir()
    (job / "code" / "outputs" / "deep" / "n.pkl").write_text("n")
    run.download_file("outputs/m.pkl")
    run.download_file("outputs/m.pkl", "copies/a.pkl")
    run.download_file("outputs/m.pkl", "copies/")
    run.download_files("outputs/", "all")
    run.download_files("outputs/", "flat", append_prefix=False)
    run.download_files("outputs/deep", output_paths=["named.pkl"])
    for path in ("m.pkl", "copies/a.pkl", "copies/m.pkl", "all/outputs/deep/n.pkl", "flat/deep/n.pkl", "named.pkl"):
        assert (job / "code" / path).read_text() in ("m", "n")
    with pytest.raises(UserErrorException, match="absent"):
        run.download_file("absent")
    with pytest.raises(UserErrorException, match="one output path per file"):
        run.download_files("outputs/", output_paths=["one"])


def test_the_exit_code_decides_not_the_calls(run, records):
    run.start()
    run.complete()
    run.fail("no")
    with pytest.warns(UserWarning, match="does nothing"):
        run.cancel()
    with pytest.raises(KeyError), run:
        raise KeyError("goes on")
    assert records() == [] and run.status == "Running"


@pytest.mark.parametrize("method", ["wait_for_completion", "get_all_logs", "clean"])
def test_what_cannot_be_done_in_a_job(run, method):
    with pytest.raises(RunEnvironmentException, match=method) as caught:
        getattr(run, method)("x", y=1)
    assert caught.value.hint


def test_secrets_that_cannot_be_asked_for(run, monkeypatch, tmp_path):
    monkeypatch.delenv("TRAINMASTER_SOCKET", raising=False)
    with pytest.raises(RunEnvironmentException, match="secrets are not available") as caught:
        run.get_secret("x")
    assert "TRAINMASTER_" in caught.value.hint
    with pytest.raises(UserErrorException, match="list of texts"):
        run.get_secrets("x")
    monkeypatch.setenv("TRAINMASTER_SOCKET", str(tmp_path / "nobody.sock"))
    monkeypatch.setattr("trainmaster.job.script.asking._PATIENCE_SECONDS", 0)
    with pytest.raises(ServiceException, match="cannot be asked for its") as unheard:
        run.get_secret("x")
    assert "trainmaster up" in unheard.value.hint


def test_a_job_without_a_folder(job, monkeypatch):
    monkeypatch.delenv("TRAINMASTER_RUN_FOLDER")
    with pytest.raises(RunEnvironmentException, match="no folder"):
        Run.get_context()


def test_the_full_trainmaster_is_asked_where_it_is(run, monkeypatch):
    class Full:
        def __init__(self, experiment, run_id):
            self.id = run_id

        get = staticmethod(lambda workspace, run_id: ("got", run_id))
        list = staticmethod(lambda experiment, **kwargs: ["listed"])

    class Module:
        Run = Full

    monkeypatch.setitem(sys.modules, "trainmaster.sdk.run.run", Module)
    assert Run("experiment", "run_9").id == "run_9"
    assert Run.get("ws", "run_9") == ("got", "run_9")
    assert Run.list("experiment", status="Failed") == ["listed"]


def test_the_full_trainmaster_is_missed_clearly(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "trainmaster.sdk.run.run", None)
    for use in (lambda: Run("experiment", "run_9"), lambda: Run.get("ws", "r"), lambda: Run.list("e")):
        with pytest.raises(RunEnvironmentException, match="needs the full Trainmaster") as caught:
            use()
        assert "Run.get_context()" in caught.value.hint


def test_a_forked_process_has_the_same_run_and_its_own_journal(run, records, job):
    run.log("m", 1)
    pid = os.fork()
    if pid == 0:
        try:
            assert Run.get_context() is run
            run.log("m", 2)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    run.log("m", 3)
    assert sorted(r["v"] for r in records()) == [1, 2, 3]
    assert len(list((job / "journals").iterdir())) == 2
    assert run.get_metrics() == {"m": [1, 3]}


def test_a_copied_or_pickled_run_is_the_same(run, monkeypatch):
    assert copy.deepcopy({"run": run})["run"] is run
    assert pickle.loads(pickle.dumps(run)) is run
    child = run.child_run("kid")
    copied = pickle.loads(pickle.dumps(child))
    assert (copied.id, copied.display_name, copied.parent) == (child.id, "kid", run)
    monkeypatch.setenv("TRAINMASTER_PARENT_RUN_ID", "sweep_1")
    assert copy.copy(run.parent).id == "sweep_1"


def test_importing_the_runtime_is_light():
    code = (
        "import sys; before = set(sys.modules); import trainmaster.job.script; from trainmaster.job.script import Run\n"
        "heavy = {'typing', 'json', 'subprocess', 'uuid', 'threading', 'tempfile', 'shutil', 'pkgutil', 're'}\n"
        "print(sorted(heavy & (set(sys.modules) - before)))"
    )
    env = {"PYTHONPATH": os.pathsep.join(sys.path), "TRAINMASTER_RUN_ID": "r"}
    done = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_lazy_names_are_all_there():
    import trainmaster.job.script as runtime

    assert all(getattr(runtime, name) for name in runtime.__all__)
    assert set(runtime.__all__) <= set(dir(runtime))
    assert runtime.Run is JobRun.__mro__[1]
    with pytest.raises(AttributeError, match="nonsense"):
        _ = runtime.nonsense
