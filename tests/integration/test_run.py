"""A run seen from outside: states, details, errors, labels."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import warnings
from pathlib import Path

import pytest
from tests.backends import folder_of
from tests.conftest import ended, stop_dispatcher, until

from trainmaster import Environment, Estimator, Experiment, Run, ScriptRun, ScriptRunConfig
from trainmaster.job.errors import ActivityFailedException, RunNotFoundException, UserErrorException
from trainmaster.shared.folders import WorkspaceFolder

BACKENDS = ("local", "server")


def test_submit_to_completed(launch):
    run = launch("print('hello')\n")
    assert isinstance(run, ScriptRun)
    details = run.wait_for_completion()
    assert details["status"] == run.get_status() == run.status == "Completed"
    assert "error" not in details
    assert run.get_details_with_logs()["logFiles"] == {"azureml-logs/70_driver_log.txt": "hello\n"}


def test_details_have_the_keys_of_v1(launch):
    run = launch("", script_params={"--lr": 0.1, "--name": "a b"}, environment_variables={"MINE": "1"})
    details = ended(run)
    keys = "runId target status startTimeUtc endTimeUtc warnings properties inputDatasets outputDatasets runDefinition"
    assert {*keys.split(), "logFiles", "submittedBy"} <= details.keys()
    assert details["runId"] == run.id
    assert details["target"] == "local"
    definition = details["runDefinition"]
    assert definition["script"] == "train.py"
    assert definition["arguments"] == definition["Arguments"] == ["--lr", "0.1", "--name", "a b"]
    assert definition["nodeCount"] == 1
    assert definition["environmentVariables"]["MINE"] == "1"
    assert details["startTimeUtc"] <= details["endTimeUtc"]
    assert details["properties"]["ContentSnapshotId"] == run.get_snapshot_id()
    assert json.loads(json.dumps(details)) == details


def test_script_sees_its_run(launch):
    names = [
        *("AZUREML_RUN_ID", "AZUREML_ARM_WORKSPACE_NAME", "AZUREML_ARM_PROJECT_NAME", "AZUREML_FRAMEWORK"),
        *("AZUREML_OUTPUT_DIRECTORY", "TRAINMASTER_RUN_ID", "MINE"),
    ]
    run = launch(
        "import json, os, sys\n"
        f"print(json.dumps([os.getcwd(), sys.argv[1:], {{n: os.environ.get(n) for n in {names}}}]))",
        script_params={"--flag": "", "--path": "$MINE/x ${MINE} $UNKNOWN"},
        environment_variables={"MINE": "a value"},
    )
    ended(run)
    folder, arguments, seen = json.loads(run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"])
    assert folder == str(folder_of(run.experiment.workspace) / "runs" / run.id / "code")
    assert arguments == ["--flag", "--path", "a value/x a value $UNKNOWN"]
    assert seen == {
        "AZUREML_RUN_ID": run.id,
        "AZUREML_ARM_WORKSPACE_NAME": run.experiment.workspace.name,
        "AZUREML_ARM_PROJECT_NAME": "spine",
        "AZUREML_FRAMEWORK": "Python",
        "AZUREML_OUTPUT_DIRECTORY": "./outputs",
        "TRAINMASTER_RUN_ID": run.id,
        "MINE": "a value",
    }


def test_failed_script_says_why(launch):
    run = launch("import sys\nprint('before')\nraise RuntimeError('no luck today')\n")
    details = ended(run)
    assert details["status"] == "Failed"
    error = details["error"]
    assert error["code"] == error["error"]["code"] == "ScriptFailed"
    assert "rank 0" in error["message"]
    assert "exit code 1" in error["message"]
    assert "RuntimeError: no luck today" in error["message"]
    assert (error["rank"], error["exit_code"], error["signal"]) == (0, 1, None)
    assert error["message"].startswith("RuntimeError: no luck today\n")


def test_missing_module_says_how_to_get_it(launch):
    error = ended(launch("import absent_module\n"))["error"]
    assert error["message"].startswith("ModuleNotFoundError: No module named 'absent_module'\n")
    assert error["hint"] in error["message"] and "absent_module" in error["hint"]


def test_killed_script_says_by_what(launch):
    error = ended(launch("import os\nprint('last words', flush=True)\nos.kill(os.getpid(), 9)\n"))["error"]
    assert error["code"] == "ScriptKilled"
    assert error["signal"] == "SIGKILL"
    assert "last words" in error["message"]


def test_exit_code_of_the_script_counts(launch):
    assert ended(launch("import sys; sys.exit(0)"))["status"] == "Completed"
    assert ended(launch("import sys; sys.exit(3)"))["error"]["exit_code"] == 3


def test_output_that_is_not_text(launch):
    run = launch("import sys\nsys.stdout.buffer.write(b'\\xff\\xfe ok\\n')\nsys.exit(1)")
    assert "ok" in ended(run)["error"]["message"]
    assert "ok" in run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]


def test_states_on_the_way(launch, gate):
    here = gate("here")
    run = launch(here.wait)
    here.await_arrival()
    assert until(lambda: run.get_status() == "Running")
    assert run.get_details()["startTimeUtc"] is not None
    assert run.get_details()["endTimeUtc"] is None
    with pytest.raises(UserErrorException, match="has not ended"):
        run.clean()
    here.open()
    ended(run)
    run.clean()
    assert run.get_status() == "Completed"
    assert "azureml-logs/70_driver_log.txt" in run.get_file_names()


def test_fail_from_outside_marks_a_submitted_run(launch, gate):
    here = gate("here")
    run = launch(here.wait)
    here.await_arrival()
    listed = next(each for each in run.experiment.get_runs() if each.id == run.id)
    listed.fail(error_details="the data was wrong", error_code="BadData")
    details = run.get_details()
    assert details["status"] in ("Starting", "Running")
    assert "marked as Failed from outside" in details["warnings"][0]["message"]
    # The first mark stands, as a terminal state does.
    run.complete()
    here.open()
    details = ended(run)
    assert details["status"] == "Failed"
    assert details["error"]["error"] == {"code": "BadData", "message": "the data was wrong"}
    assert [each["message"] for each in details["warnings"][1:]] == ["without the mark it would be Completed"]
    with pytest.raises(ActivityFailedException, match="the data was wrong"):
        run.wait_for_completion()
    # What many notebooks do at their end says nothing.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.complete()
    assert run.get_status() == "Failed"


def test_complete_from_outside_marks_a_run_whose_script_fails(launch, gate):
    here = gate("here")
    run = launch(f"{here.wait}\nraise SystemExit(3)", max_retries=1)
    here.await_arrival()
    run.complete()
    here.open()
    details = ended(run)
    assert details["status"] == "Completed" and "error" not in details
    assert "without the mark it would be Failed: rank 0" in details["warnings"][1]["message"]
    assert len(details["attempts"]) == 1


@pytest.mark.parametrize("first", ["fail", "cancel"])
def test_mark_and_cancel(launch, gate, first):
    """What comes first decides the state; the cancel ends the script either way."""
    here = gate("here")
    run = launch(here.wait)
    here.await_arrival()
    for method in (first, "cancel", "fail"):
        getattr(run, method)()
    assert ended(run)["status"] == {"fail": "Failed", "cancel": "Canceled"}[first]


def test_mark_survives_the_dispatcher(workspace, submit, gate):
    here = gate("here")
    run = submit(here.wait)
    here.await_arrival()
    run.fail("no")
    stop_dispatcher(WorkspaceFolder(folder_of(workspace)))
    here.open()
    details = ended(run)
    assert (details["status"], details["error"]["message"]) == ("Failed", "no")


def test_labels(launch):
    run = launch("", tags={"kind": "test", "count": 3})
    assert run.get_tags() == {"kind": "test", "count": "3"}
    run.tag("bare")
    run.set_tags({"kind": "other"})
    assert run.tags == {"kind": "other", "count": "3", "bare": None}
    run.remove_tags(["kind", "never there"])
    run.remove_tags("count")
    assert run.get_tags() == {"bare": None}
    with pytest.raises(UserErrorException, match="properties"):
        run.add_properties(["once"])
    run.add_properties({"once": 1})
    run.add_properties({"once": 1})
    with pytest.raises(UserErrorException, match="once"):
        run.add_properties({"once": 2})
    assert run.get_properties()["once"] == "1"
    run.display_name, run.description = "nice", "a text\nof two lines"
    again = run.experiment.workspace.get_run(run.id)
    assert (again.display_name, again.name, again.description) == ("nice", "nice", "a text\nof two lines")
    ended(run)


@pytest.mark.parametrize("tags", [{"": "x"}, {3: "x"}, {"x" * 300: "y"}, ["x"]])
def test_labels_that_cannot_be(launch, tags):
    with pytest.raises(UserErrorException, match="tag"):
        launch("", tags=tags)


def test_labels_set_by_the_script(launch):
    run = launch("from azureml.core import Run\nrun = Run.get_context()\nrun.tag('from', 'inside')\n")
    ended(run)
    assert run.get_tags()["from"] == "inside"


def test_found_again(launch, shared):
    run = launch("")
    ended(run)
    for again in (shared.get_run(run.id), Run.get(shared, run.id), Run(run.experiment, run.id)):
        assert (again.id, again.number, again.status) == (run.id, run.number, "Completed")
        assert again.experiment.name == "spine"
    assert str(again) == f"Run(Experiment: spine, Id: {run.id}, Type: azureml.scriptrun, Status: Completed)"


@pytest.mark.parametrize("name", ["no-such-run", "../../etc", "a\nb", "x" * 10_000, "", None, 3, "a\ud800"])
def test_not_found(shared, name):
    with pytest.raises(RunNotFoundException) as caught:
        shared.get_run(name)
    assert len(str(caught.value)) < 1000


def test_run_of_another_experiment(launch, shared):
    run = launch("")
    with pytest.raises(RunNotFoundException, match="'spine'"):
        Run(Experiment(shared, "elsewhere"), run.id)
    ended(run)


def test_snapshot_comes_back(launch, tmp_path):
    import zipfile

    run = launch("print('this very script')\n")
    ended(run)
    archive = run.restore_snapshot(path=tmp_path / "there")
    with zipfile.ZipFile(archive) as opened:
        assert opened.read("train.py") == b"print('this very script')\n"


def test_folder_may_change_after_submit(launch, project, gate):
    here = gate("here")
    run = launch(f"{here.wait}\nprint('old' in open('train.py').read())  # old")
    here.await_arrival()
    project(train="new")
    here.open()
    ended(run)
    assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"] == "True\n"


def test_environment_of_a_run_serves_another(launch, shared, project):
    run = launch("")
    environment = run.get_environment()
    assert isinstance(environment, Environment)
    again = ScriptRunConfig(str(project(train="")), script="train.py", compute_target="local", environment=environment)
    second = Experiment(shared, "spine").submit(again)
    assert ended(second)["runDefinition"]["environment"]["interpreter"] == sys.executable
    ended(run)


@pytest.mark.local_only("MLflow's database of earlier releases was a file of this machine")
def test_what_mlflow_logged_with_an_earlier_release_is_not_lost(shared, monkeypatch):
    with monkeypatch.context() as job:
        job.setenv("TRAINMASTER_RUN_ID", "some_run")
        assert shared.get_mlflow_tracking_uri() == "trainmaster:run"
    assert shared.get_mlflow_tracking_uri() == f"trainmaster://{shared.path}"
    old = Path(shared.path) / "mlflow" / "mlflow.db"
    old.parent.mkdir()
    with contextlib.closing(sqlite3.connect(old)) as database:
        database.execute("create table experiments (experiment_id, name)")
        database.execute("create table runs (run_uuid, experiment_id)")
        database.execute("insert into experiments values (1, 'of mlflow')")
        database.execute("insert into runs values ('0123abcd', 1)")
        database.commit()
    with pytest.raises(KeyError, match=r"^MLflow created an experiment 'of mlflow' with .*trainmaster import mlflow"):
        shared.experiments["of mlflow"]
    assert "of mlflow" not in shared.experiments and shared.experiments.get("of mlflow") is None
    with pytest.raises(RunNotFoundException, match=r"0123abcd(.|\n)*MLflow created it with an earlier"):
        shared.get_run("0123abcd")
    Experiment(shared, "spine")
    with pytest.raises(KeyError, match=r"^there is no experiment 'spin' in workspace 'shared'\. Did you mean spine\?$"):
        shared.experiments["spin"]
    with pytest.raises(RunNotFoundException) as caught:
        shared.get_run("absent")
    assert "MLflow" not in caught.value.message


def test_runs_by_compute_and_by_own_class(launch, shared):
    run = launch("", experiment="first")
    other = launch("", experiment="second")
    ended(run), ended(other)
    found = {each.id: each for each in Run.list_by_compute(shared.compute_targets["local"], status="Completed")}
    assert found[run.id].experiment.name == "first"
    assert found[other.id].experiment.name == "second"

    class Mine(Run):
        pass

    from trainmaster.sdk.run.run import _PROVIDERS

    Run.add_type_provider("azureml.scriptrun", lambda experiment, run_dto, **_: Mine(experiment, run_dto["id"]))
    try:
        assert isinstance(shared.get_run(run.id), Mine)
    finally:
        _PROVIDERS.clear()


def test_submitting_something_else(shared):
    with pytest.raises(UserErrorException, match="a dict cannot be submitted"):
        Experiment(shared, "spine").submit({})


def test_script_that_is_not_there(shared, tmp_path):
    from trainmaster.job.errors import TrainmasterError

    (tmp_path / "empty").mkdir()
    with pytest.raises(TrainmasterError, match=r"nothing\.py"):
        Experiment(shared, "spine").submit(
            Estimator(str(tmp_path / "empty"), entry_script="nothing.py", compute_target="local", user_managed=True)
        )


def test_command_instead_of_script(shared, project):
    config = ScriptRunConfig(
        str(project(train="")), command=["echo", "$AZUREML_RUN_ID", "|", "cat"], compute_target="local"
    )
    config.run_config.environment.python.user_managed_dependencies = True
    run = Experiment(shared, "spine").submit(config)
    ended(run)
    assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"] == f"{run.id}\n"


def test_portal_url_is_a_place(launch, shared):
    run = launch("")
    ended(run)
    place = Path(run.get_portal_url().removeprefix("file://"))
    assert place.is_file() or run.get_portal_url() == f"{shared.backend.address}/runs/{run.id}"
