"""What a page about a run needs over REST: running it again, why it failed, where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import until
from tests.server_people import add_user, grant
from tests.server_process import ServerProcess

from trainmaster import (
    Estimator,
    Experiment,
    GridParameterSampling,
    HyperDriveConfig,
    PrimaryMetricGoal,
    Run,
    Workspace,
    choice,
)

BASE = "/api/v1/workspaces/vision"
SCRIPT = """
import argparse, os
from trainmaster import Run
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--fail", action="store_true")
given = parser.parse_args()
run = Run.get_context()
run.log("loss", given.lr)
os.makedirs("outputs", exist_ok=True)
with open("outputs/model.txt", "w") as file:
    file.write(str(given.lr))
print("about to end")
if given.fail:
    try:
        {}["lr"]
    except KeyError as error:
        raise ValueError("lr is too large") from error
"""


class Studio:
    """A server with a workspace, and runs that were submitted to it."""

    def __init__(self, server: ServerProcess, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.workspace = Workspace(path=server.root / "workspaces" / "vision")

    def ask(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        answer = self.server.request(method, BASE + path, body, token=token)
        assert answer.status == 200, answer
        return answer.json()

    def submit(self, *flags: str, **parameters: Any) -> Run:
        given = {f"--{name}": value for name, value in parameters.items()} | {f"--{flag}": "" for flag in flags}
        estimator = Estimator(
            str(self.folder),
            entry_script="train.py",
            script_params=given,
            compute_target="local",
            user_managed=True,
        )
        return Experiment(self.workspace, "page").submit(estimator, tags={"kind": "base"})

    def wait(self, run_id: str) -> dict[str, Any]:
        ended = ("Completed", "Failed", "Canceled")
        until(lambda: self.ask("GET", f"/runs/{run_id}")["status"] in ended)
        found: dict[str, Any] = self.ask("GET", f"/runs/{run_id}")
        return found


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("code")
    (folder / "train.py").write_text(SCRIPT)
    server = ServerProcess(tmp_path_factory.mktemp("server") / "root")
    try:
        server.create_workspace("vision")
        yield Studio(server, folder)
    finally:
        server.end()


@pytest.fixture(scope="module")
def good(studio: Studio) -> dict[str, Any]:
    return studio.wait(studio.submit(lr=0.1).id)


@pytest.fixture(scope="module")
def failed(studio: Studio) -> dict[str, Any]:
    return studio.wait(studio.submit("fail", lr=3.0).id)


def test_a_run_is_run_again_by_another_user_with_other_arguments(studio: Studio, good: dict[str, Any]) -> None:
    token = add_user(studio.server, "bob")
    grant(studio.server, "vision", "bob", "contributor")
    again = studio.ask("POST", f"/runs/{good['id']}/rerun", {"arguments": ["--lr", "0.5"]}, token=token)
    done = studio.wait(again["id"])
    assert (done["status"], done["submitted_by"], done["tags"]) == ("Completed", "bob", {"kind": "base"})
    assert done["properties"]["origin"] == good["id"] and done["snapshot_id"] == good["snapshot_id"]
    (loss,) = studio.ask("GET", f"/runs/{done['id']}/metric-summaries")["metrics"]
    assert loss["last"] == 0.5
    # A retry is a rerun without changes.
    retried = studio.wait(studio.ask("POST", f"/runs/{done['id']}/rerun", {"display_name": "again"})["id"])
    assert (retried["status"], retried["display_name"]) == ("Completed", "again")
    lineage = studio.ask("GET", f"/runs/{done['id']}/lineage")
    assert lineage["origin"]["run_id"] == lineage["origin_id"] == good["id"]
    assert [each["run_id"] for each in lineage["reruns"]] == [retried["id"]]


def test_a_rerun_is_a_submit_like_any_other(studio: Studio, good: dict[str, Any]) -> None:
    path = f"/runs/{good['id']}/rerun"
    # The same request with the same key is one run.
    headers = {"Idempotency-Key": "once"}
    first, second = (studio.server.request("POST", BASE + path, {}, headers=headers).json() for _ in range(2))
    assert first["id"] == second["id"]
    studio.ask("PATCH", "/quotas", {"owner": "admin", "nodes": 0})
    try:
        assert studio.server.request("POST", BASE + path, {}).status == 400
    finally:
        studio.ask("PATCH", "/quotas", {"owner": "admin", "nodes": None})
    logged = studio.server.call("vision", "runs.get", run_id=first["id"])
    assert studio.server.request("POST", f"{BASE}/runs/nothing/rerun", {}).status == 404
    assert studio.server.request("POST", BASE + path, {"command": ["ls"]}).status == 400
    assert logged["properties"]["origin"] == good["id"]


def test_a_sweep_is_run_again_with_all_its_trials(studio: Studio) -> None:
    estimator = Estimator(str(studio.folder), entry_script="train.py", compute_target="local", user_managed=True)
    sampling = GridParameterSampling({"--lr": choice(0.1, 0.2)})
    config = HyperDriveConfig(
        estimator=estimator,
        hyperparameter_sampling=sampling,
        primary_metric_name="loss",
        primary_metric_goal=PrimaryMetricGoal.MINIMIZE,
        max_total_runs=2,
    )
    sweep = Experiment(studio.workspace, "swept").submit(config)
    assert studio.wait(sweep.id)["status"] == "Completed"
    again = studio.wait(studio.ask("POST", f"/runs/{sweep.id}/rerun", {})["id"])
    assert again["status"] == "Completed" and again["properties"]["origin"] == sweep.id
    assert len(studio.ask("GET", f"/sweeps/{again['id']}")["trials"]) == 2
    assert studio.ask("GET", f"/runs/{again['id']}/lineage")["children"] == 2
    assert studio.server.request("POST", f"{BASE}/runs/{sweep.id}/rerun", {"arguments": []}).status == 400
    assert studio.ask("GET", f"/sweeps/{again['id']}/changes")["whole"] is True
    importance = studio.ask("GET", f"/sweeps/{sweep.id}/importance")
    assert importance["trials"] == 2 and importance["notice"]
    assert studio.ask("GET", f"/sweeps/{sweep.id}/decisions") == {"decisions": [], "total": 0}
    assert studio.server.request("GET", f"{BASE}/sweeps/nothing/importance").status == 404
    # A trial is run again on its own.
    trial = studio.ask("GET", f"/runs/{sweep.id}/children")["runs"][0]["id"]
    alone = studio.wait(studio.ask("POST", f"/runs/{trial}/rerun", {})["id"])
    assert alone["status"] == "Completed" and alone["parent_id"] is None


def test_why_a_run_failed(studio: Studio, failed: dict[str, Any]) -> None:
    found = studio.ask("GET", f"/runs/{failed['id']}/explanation")
    assert found["status"] == "Failed" and "lr is too large" in found["reason"]
    assert (found["exception_type"], found["exception_message"]) == ("ValueError", "lr is too large")
    assert found["causes"] == ["KeyError: 'lr'"]
    assert (found["rank"], found["node"], found["exit_code"], found["code"]) == (0, 0, 1, "ScriptFailed")
    assert "about to end" in found["last_lines"] and found["stacks"] == found["attempts"] == []


def test_what_a_run_waits_for(studio: Studio, good: dict[str, Any]) -> None:
    assert studio.ask("GET", f"/runs/{good['id']}/explanation")["reason"] == "It completed."
    size = {"engine": "local", "nodes": 1, "cpus_per_node": 1, "gpus_per_node": 0}
    studio.ask("PUT", "/targets/single", size)
    script = studio.folder / "sleep.py"
    script.write_text("import time\ntime.sleep(600)\n")
    estimator = Estimator(str(studio.folder), entry_script="sleep.py", compute_target="single", user_managed=True)
    first, second = (Experiment(studio.workspace, "page").submit(estimator) for _ in range(2))
    until(lambda: first.get_status() == "Running")
    until(lambda: studio.ask("GET", f"/runs/{second.id}")["waiting_for"])
    reason = studio.ask("GET", f"/runs/{second.id}/explanation")["reason"]
    assert "single" in reason and first.id in reason
    (use,) = studio.ask("GET", "/machine-use")["runs"]
    assert use["run_id"] == first.id and use["processes"] >= 2 and use["memory"] > 0
    for run in (second, first):
        studio.ask("POST", f"/runs/{run.id}/cancel")
        studio.wait(run.id)
    script.unlink()


def test_where_a_run_and_a_model_come_from(studio: Studio, good: dict[str, Any]) -> None:
    run = Experiment(studio.workspace, "page").get_runs  # the SDK finds it as well
    assert any(each.id == good["id"] for each in run())
    record = Run.get(studio.workspace, good["id"])
    model = record.register_model("digits", model_path="outputs/model.txt")
    lineage = studio.ask("GET", f"/runs/{good['id']}/lineage")
    assert [(each["name"], each["version"], each["services"]) for each in lineage["models"]] == [("digits", 1, [])]
    assert lineage["snapshot_id"] == good["snapshot_id"] and lineage["parent"] is None and lineage["children"] == 0
    back = studio.ask("GET", f"/models/digits/versions/{model.version}/lineage")
    assert back["run"]["run_id"] == good["id"] and back["snapshot_id"] == good["snapshot_id"]
    assert back["versions"] == [1] and back["services"] == []
    assert studio.server.request("GET", f"{BASE}/models/digits/versions/9/lineage").status == 404


def test_what_differs_between_two_runs(studio: Studio, good: dict[str, Any]) -> None:
    script = studio.folder / "train.py"
    before = script.read_text()
    try:
        script.write_text(before + "print('more')\n")
        (studio.folder / "data.bin").write_bytes(b"\0\1")
        other = studio.wait(studio.submit(lr=0.7).id)
    finally:
        script.write_text(before)
        (studio.folder / "data.bin").unlink()
    lock = studio.server.root / "workspaces" / "vision" / "runs"
    (lock / good["id"] / "environment.lock").write_text("torch==2.1\nnumpy==1.0\n")
    (lock / other["id"] / "environment.lock").write_text("torch==2.2\nnumpy==1.0\npandas==2.0\n")
    found = studio.ask("GET", f"/runs/{good['id']}/differences/{other['id']}")
    assert found["arguments"] == [{"name": "lr", "left": "0.1", "right": "0.7"}]
    assert found["metrics"] == [{"name": "loss", "left": "0.1", "right": "0.7"}]
    assert [(each["name"], each["left"], each["right"]) for each in found["packages"]] == [
        ("pandas", None, "2.0"),
        ("torch", "2.1", "2.2"),
    ]
    files = {each["path"]: each for each in found["files"]}
    assert "+print('more')\n" in files["train.py"]["diff"] and files["train.py"]["added"] == 1
    assert files["data.bin"]["kind"] == "added" and files["data.bin"]["notice"]
    assert [each["name"] for each in found["settings"]] == ["snapshot_id"] and found["notices"] == []
    same = studio.ask("GET", f"/runs/{good['id']}/differences/{good['id']}")
    assert not any(same[part] for part in ("arguments", "settings", "packages", "metrics", "files", "notices"))
    environment = studio.ask("GET", f"/runs/{good['id']}/environment")
    assert [(each["name"], each["version"]) for each in environment["packages"]] == [("torch", "2.1"), ("numpy", "1.0")]
    assert environment["definition"]["user_managed"] is True
    assert studio.server.request("GET", f"{BASE}/runs/{good['id']}/differences/nothing").status == 404
    assert studio.ask("GET", "/environment-builds") == {"builds": []}
    assert studio.server.request("GET", f"{BASE}/environment-builds/abcdef").status == 404
