"""Pods that see the run's folder: they meet there, and complete their plans."""

from __future__ import annotations

import json
import os
import sys
import threading

import pytest

from trainmaster.job.helper import machine
from trainmaster.job.pod import shared_folder


@pytest.fixture(autouse=True)
def address(monkeypatch):
    monkeypatch.setattr(shared_folder, "find_address", lambda: f"10.0.0.{threading.current_thread().name}")


def test_meet(tmp_path):
    """Nobody goes on before all addresses are known, and then all know the same."""
    met = []
    first = threading.Thread(name="1", target=lambda: met.append(shared_folder.meet(str(tmp_path), 0, 2)))
    first.start()
    assert not met
    second = threading.Thread(name="2", target=lambda: met.append(shared_folder.meet(str(tmp_path), 1, 2)))
    second.start()
    for thread in (first, second):
        thread.join()
    assert met == [True, True]
    assert json.loads((tmp_path / "gang.json").read_text())["hosts"] == ["10.0.0.1", "10.0.0.2"]


def test_given_up_before_all_have_met(tmp_path):
    (tmp_path / "stop.json").write_text("{}")
    assert not shared_folder.meet(str(tmp_path), 0, 2)
    assert not (tmp_path / "gang.json").exists()


def test_a_plan_gets_the_python_and_the_variables_of_the_pod(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/image/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    env = {"PATH": "/env/bin:/laptop/bin", "HOME": "/laptop/home", "OWN": "1"}
    plan = {"processes": [{"argv": ["{trainmaster:python}", "train.py"], "env": env}]}
    order = {
        "python_token": "{trainmaster:python}",
        "inherited": {"PATH": "/laptop/bin", "HOME": "/laptop/home"},
        "more": {"LD_LIBRARY_PATH": "/shared/lib"},
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "pod.json").write_text(json.dumps(order))
    for _ in range(2):
        # A pod that is created again does the same once more.
        shared_folder.complete_plan(str(tmp_path), ["plan.json", "ranks.json"], "/ours")
    (process,) = json.loads((tmp_path / "plan.json").read_text())["processes"]
    assert process["argv"] == [sys.executable, "train.py"]
    assert process["env"]["PATH"] == "/env/bin:/image/bin"
    assert process["env"]["HOME"] == str(tmp_path)
    assert process["env"]["OWN"] == "1"
    assert process["env"]["LD_LIBRARY_PATH"].split(":")[0] == "/shared/lib"
    assert not (tmp_path / "ranks.json").exists()


def test_a_plan_gets_folders_that_the_image_lacks(tmp_path, monkeypatch):
    """Unless the user has named one."""
    own = str(tmp_path / "own")
    monkeypatch.setenv("HOME", "/no/such/folder")
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(os, "access", lambda path, mode: path.startswith(own))
    env = {"HOME": "/laptop/home"}
    plan = {"processes": [{"argv": [], "env": env}, {"argv": [], "env": {**env, "TMPDIR": "/dev/shm"}}]}
    order = {"python_token": "{trainmaster:python}", "inherited": {"HOME": "/laptop/home"}, "more": {}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "pod.json").write_text(json.dumps(order))
    shared_folder.complete_plan(str(tmp_path), ["plan.json"], own)
    first, second = json.loads((tmp_path / "plan.json").read_text())["processes"]
    assert first["env"] == {"HOME": f"{own}/home", "TMPDIR": f"{own}/tmp"}
    assert second["env"] == {"HOME": f"{own}/home", "TMPDIR": "/dev/shm"}
    assert sorted(os.listdir(own)) == ["home", "tmp"]


class TestFoldersOfAContainer:
    def test_a_home_that_can_be_written_stays(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        assert machine.replace_variables("/ours") == {}

    @pytest.mark.parametrize("home", ["/proc", "/no/such/folder"])
    def test_a_home_that_cannot_be_used_is_replaced(self, home, monkeypatch):
        monkeypatch.setenv("HOME", home)
        monkeypatch.setattr(os, "access", lambda path, mode: path != "/proc")
        assert machine.replace_variables("/ours") == {"HOME": "/ours/home"}

    def test_without_a_folder_for_temporary_files(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.delenv("TMPDIR", raising=False)
        monkeypatch.setattr(os, "access", lambda path, mode: path == str(tmp_path))
        assert machine.replace_variables("/ours") == {"TMPDIR": "/ours/tmp"}
