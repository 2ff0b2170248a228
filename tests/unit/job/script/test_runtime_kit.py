import importlib.metadata
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from trainmaster.environments import kit as kit_module
from trainmaster.environments.kit import ensure_kit


def test_a_kit_has_the_job_side_and_nothing_else(tmp_path):
    kit = ensure_kit(tmp_path)
    assert kit.parent == tmp_path / "kits"
    found = {p.relative_to(kit).as_posix() for p in kit.rglob("*") if p.is_file()}
    assert {"trainmaster/__init__.py", "trainmaster/onnx.py", "trainmaster/job/errors.py"} <= found
    assert "trainmaster/job/script/run.py" in found
    assert "azureml/__init__.py" in found
    assert {name.split("/")[1] for name in found if name.startswith("trainmaster/")} <= {
        "__init__.py",
        "onnx.py",
        "job",
    }
    # By these MLflow finds its part of the job side.
    found -= {"trainmaster_job-0.dist-info/METADATA", "trainmaster_job-0.dist-info/entry_points.txt"}
    assert not [name for name in found if not name.endswith(".py") or "/script/names/" in name]


def test_mlflow_finds_what_keeps_things_of_a_job(tmp_path):
    (found,) = importlib.metadata.distributions(path=[str(ensure_kit(tmp_path))])
    values = {(each.group, each.name): each.value for each in found.entry_points}
    assert values == {
        ("mlflow.tracking_store", "trainmaster"): "trainmaster.job.script.mlflow.store:JobStore",
        ("mlflow.artifact_repository", "trainmaster"): "trainmaster.job.script.mlflow.files:JobFiles",
        ("mlflow.artifact_repository", "trainmaster-files"): "trainmaster.job.script.mlflow.asked_files:AskedFiles",
        ("mlflow.model_registry_store", "trainmaster"): "trainmaster.job.script.mlflow.registry:JobRegistry",
    }
    for value in values.values():
        assert (ensure_kit(tmp_path) / (value.partition(":")[0].replace(".", "/") + ".py")).is_file()


def test_it_is_made_once(tmp_path):
    kit = ensure_kit(tmp_path)
    before = kit.stat().st_ino
    start = time.process_time()
    for _ in range(100):
        assert ensure_kit(tmp_path) == kit
    assert (time.process_time() - start) / 100 < 0.001
    assert kit.stat().st_ino == before


def test_other_contents_are_another_kit(tmp_path, monkeypatch):
    kit = ensure_kit(tmp_path)
    package = tmp_path / "changed"
    for path in (kit / "trainmaster").rglob("*.py"):
        target = package / path.relative_to(kit / "trainmaster")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    (package / "job" / "errors.py").write_text("changed = True")
    monkeypatch.setattr(kit_module, "_PACKAGE", package)
    kit_module._job_side.cache_clear()
    try:
        other = ensure_kit(tmp_path)
    finally:
        kit_module._job_side.cache_clear()
    assert other != kit and kit.is_dir()
    assert (other / "trainmaster" / "job" / "errors.py").read_text() == "changed = True"


def test_a_half_made_kit_is_never_used(tmp_path, monkeypatch):
    """Whatever fails while it is made: afterwards there is no folder of that name."""
    written = []

    def write_some(path, data):
        written.append(path)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        with open(path, "wb") as file:
            return file.write(data)

    monkeypatch.setattr(Path, "write_bytes", write_some)
    with pytest.raises(OSError, match="No space"):
        ensure_kit(tmp_path)
    assert list((tmp_path / "kits").iterdir()) == []
    monkeypatch.undo()
    assert ensure_kit(tmp_path).is_dir()


def test_makers_at_the_same_time(tmp_path):
    start = threading.Barrier(6)
    made = []

    def make():
        start.wait()
        made.append(ensure_kit(tmp_path))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 6 and len(set(made)) == 1
    assert os.listdir(tmp_path / "kits") == [made[0].name]


def test_a_damaged_kit_is_mended(tmp_path, monkeypatch):
    kit = ensure_kit(tmp_path)
    (kit / "trainmaster" / "job" / "errors.py").write_bytes(b"")
    (kit / "trainmaster" / "job" / "script" / "run.py").unlink()
    monkeypatch.setattr(kit_module, "_whole", set())
    assert ensure_kit(tmp_path) == kit
    assert (kit / "trainmaster" / "job" / "errors.py").read_bytes()
    assert (kit / "trainmaster" / "job" / "script" / "run.py").read_bytes()
    assert not list(kit.rglob(".making-*"))


def test_a_removed_kit_is_made_again(tmp_path):
    kit = ensure_kit(tmp_path)
    shutil.rmtree(kit)
    assert ensure_kit(tmp_path).is_dir()


def test_what_killed_makers_left_is_removed(tmp_path):
    old, new = tmp_path / "kits" / ".making-old", tmp_path / "kits" / ".making-new"
    for path in (old, new):
        path.mkdir(parents=True)
    os.utime(old, (0, 0))
    ensure_kit(tmp_path)
    assert (old.exists(), new.exists()) == (False, True)
