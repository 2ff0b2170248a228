"""Operations for what clients would otherwise read from the workspace's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.inner_dispatcher import InnerDispatcher

from trainmaster.environments import build_record
from trainmaster.environments.lock import LOCK_NAME
from trainmaster.environments.pythons import all_pythons, choose_from, running_version
from trainmaster.job.errors import ComputeTargetException, UserErrorException, WebserviceException
from trainmaster.sdk.backend.operation_storage import OperationPackage
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.machine import Machine
from trainmaster.shared.records import RunRecord, Status, TargetRecord
from trainmaster.shared.serialization import from_plain, to_plain

FIRST, SECOND = "0123" + "a" * 28, "0123" + "b" * 28


@pytest.fixture
def dispatcher(tmp_path: Path) -> Iterator[InnerDispatcher]:
    made = InnerDispatcher(tmp_path)
    yield made
    made.close()


def build(dispatcher: InnerDispatcher, digest: str, number: int, *, current: bool) -> Path:
    """A folder as the builder leaves it."""
    place = dispatcher.folder.environments
    folder = place / f"{digest}.{number}"
    folder.mkdir(parents=True)
    (folder / LOCK_NAME).write_text(f"numpy==2.{number}\n")
    build_record.write(folder, EnvironmentSpec(pip_packages=("numpy",)), "3.11.7", folder.name, 1.0)
    if current:
        (place / digest).unlink(missing_ok=True)
        (place / digest).symlink_to(folder.name)
    return folder


def test_builds_are_listed_found_and_pruned(dispatcher: InnerDispatcher) -> None:
    old = build(dispatcher, FIRST, 1, current=False)
    new = build(dispatcher, FIRST, 2, current=True)
    build(dispatcher, SECOND, 1, current=True)
    found = {each["name"]: each for each in dispatcher.call("environments.builds")}
    assert {name: each["current"] for name, each in found.items()} == {
        old.name: False,
        new.name: True,
        f"{SECOND}.1": True,
    }
    assert (found[new.name]["packages"], found[new.name]["python"], found[new.name]["path"]) == (
        ["numpy"],
        "3.11.7",
        str(new),
    )
    assert dispatcher.call("environments.find_build", name=FIRST[:6])["lock"] == "numpy==2.2\n"
    assert dispatcher.call("environments.find_build", name="ffff") is None
    with pytest.raises(UserErrorException, match="3 environments begin with '0123'"):
        dispatcher.call("environments.find_build", name="0123")
    would = dispatcher.call("environments.prune", dry_run=True)
    assert [each["name"] for each in would] == [old.name] and old.is_dir()
    assert [each["name"] for each in dispatcher.call("environments.prune")] == [old.name]
    assert not old.exists() and new.is_dir()
    assert dispatcher.call("environments.prune") == []
    assert len(dispatcher.call("environments.prune", keep_bytes=0)) == 2


def test_the_build_of_a_run(dispatcher: InnerDispatcher) -> None:
    dispatcher.store.runs.add(RunRecord("r", "x", Status.COMPLETED, 1.0))
    with pytest.raises(UserErrorException, match="no environment was built for run r"):
        dispatcher.call("environments.build_of_run", run_id="r")
    folder = build(dispatcher, FIRST, 1, current=True)
    run = dispatcher.folder.run("r").path
    run.mkdir(parents=True)
    (run / LOCK_NAME).write_text("numpy==2.0\n")
    (run / "environment.json").write_text(json.dumps({"version": 1, "folder": str(folder)}))
    found = dispatcher.call("environments.build_of_run", run_id="r")
    assert (found["lock"], found["build"]["name"]) == ("numpy==2.0\n", folder.name)
    dispatcher.call("environments.prune", keep_bytes=0)
    assert dispatcher.call("environments.build_of_run", run_id="r")["build"] is None


def test_the_identity_of_the_workspace(dispatcher: InnerDispatcher) -> None:
    assert dispatcher.call("workspace.identity") == {"id": "w", "name": "w"}
    changed = dispatcher.call("workspace.change", description="ours", tags={"a": "b"})
    assert (
        changed
        == dispatcher.call("workspace.identity")
        == {
            "id": "w",
            "name": "w",
            "description": "ours",
            "tags": {"a": "b"},
        }
    )
    assert dispatcher.call("workspace.change") == changed
    with pytest.raises(UserErrorException, match="cannot be used"):
        dispatcher.call("workspace.change", id="other")


def test_the_machine_of_the_dispatcher(dispatcher: InnerDispatcher) -> None:
    dispatcher.folder.vm_sizes.write_text('{"sizes": {"mine": {"vcpus": 3, "gpus": 0, "memory_gb": 1}}}')
    machine = from_plain(Machine, dispatcher.call("workspace.machine"))
    assert machine.cpus >= 1 and running_version() in machine.pythons
    assert "MINE" in {size.name for size in machine.sizes}
    assert str(dispatcher.folder.vm_sizes) in machine.size_files
    assert machine.grant("mine", 1).cpus_per_node == min(3, machine.cpus)


def test_pythons_of_another_machine() -> None:
    own = all_pythons()
    with choose_from("3.9", ["3.10", "3.8"]):
        assert (running_version(), list(all_pythons())) == ("3.9", ["3.8", "3.9", "3.10"])
    assert all_pythons() == own


def test_a_shared_folder_is_checked_where_the_workspace_is(dispatcher: InnerDispatcher, tmp_path: Path) -> None:
    def put(shared: str) -> Any:
        record = TargetRecord("cluster", "slurm", 1, 1, 0, options={"shared_folder": shared})
        return dispatcher.call("targets.put", target=to_plain(record))

    (tmp_path / "other").mkdir()
    for wrong in ("relative", str(tmp_path / "missing"), str(tmp_path / "other")):
        with pytest.raises(ComputeTargetException):
            put(wrong)
    assert put(str(tmp_path))["name"] == "cluster"


def test_files_of_a_package(dispatcher: InnerDispatcher, tmp_path: Path) -> None:
    place = dispatcher.folder.path / "packages" / "one"
    (place / "files" / "code").mkdir(parents=True)
    (place / "files" / "code" / "score.py").write_text("pass")
    (place / "files" / "start.sh").write_text("#!/bin/sh\n")
    (place / "files" / "start.sh").chmod(0o755)
    (place / "package.json").write_text('{"image": "package:latest", "models": []}')
    (place / "log.txt").write_text("installed\n")
    package = OperationPackage(dispatcher, "one")  # type: ignore[arg-type]
    assert package.list_all() == [(("code/score.py", 4), False), (("start.sh", 10), True)]
    package.get("code/score.py", tmp_path / "copy.py")
    assert (tmp_path / "copy.py").read_text() == "pass"
    for wrong in ("../package.json", "missing"):
        with pytest.raises(Exception, match=r"leaves the datastore|cannot be read"):
            dispatcher.call("packages.read", name="one", path=wrong)
    dispatcher.call("packages.note_build", name="one", log="built\n", built=True)
    assert dispatcher.call("packages.log", name="one") == "installed\nbuilt\n"
    about = dispatcher.call("packages.get", name="one")
    assert (about["built"], about["folder"]) == (True, str(place / "files"))
    for wrong in ("two", "../packages/one", ""):
        with pytest.raises(WebserviceException, match="there is no package"):
            dispatcher.call("packages.get", name=wrong)
