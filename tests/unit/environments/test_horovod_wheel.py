"""Compiling Horovod, with a source of our own in its place: kept once whole, by one of those who need it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from trainmaster.environments.horovod import compiling, recipes, wheel
from trainmaster.environments.horovod.compiling import compile_wheel
from trainmaster.environments.horovod.progress import Progress, first_error
from trainmaster.environments.open_mpi import OpenMpi
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException

ORDER = recipes.plan_build("0.28.1", {"torch": "2.13.0"}, "3.11")
BUILDS = """
import os, sys
print(open("say.txt").read())
place = sys.argv[sys.argv.index("--dist-dir") + 1]
os.makedirs(place)
open(os.path.join(place, "horovod-0.28.1-py3-none-any.whl"), "w").close()
"""


@pytest.fixture
def tools(tmp_path):
    return Tools({"TRAINMASTER_CACHE": str(tmp_path / "cache"), "PATH": os.defpath})


@pytest.fixture
def target(tmp_path):
    return wheel.Target(tmp_path / "environment", ("torch 2.13.0 cp311",), "cpython-311", OpenMpi("5.0.11", "/mpi"))


@pytest.fixture
def compiled(monkeypatch):
    """Counts compilations; what they make is the order's title."""
    made = []

    def compile_it(order, target, scratch, log, tools):
        made.append(scratch)
        file = scratch / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
        file.write_text(order.title)
        return file

    monkeypatch.setattr(wheel, "_compile", compile_it)
    return made


def test_compiled_once(tools, target, compiled, tmp_path):
    made, fresh = wheel.provide(ORDER, target, tools)
    assert fresh and made.read_text() == ORDER.title
    assert wheel.provide(ORDER, target, tools) == (made, False)
    assert len(compiled) == 1
    assert wheel.any_kept("0.28.1", tools.environ) and not wheel.any_kept("0.18.1", tools.environ)
    assert not list((tmp_path / "cache" / "wheels").glob(".building-*"))


def test_what_a_wheel_depends_on(target):
    others = [
        wheel.Target(target.folder, ("torch 2.13.0+cu130 cp311",), target.python_abi, target.open_mpi),
        wheel.Target(target.folder, target.frameworks, "cpython-312", target.open_mpi),
        wheel.Target(target.folder, target.frameworks, target.python_abi, OpenMpi("4.1.4", "/usr/bin")),
    ]
    other_order = recipes.plan_build("0.28.1", {"tensorflow": "2.21.0"}, "3.11")
    keys = {wheel.key(ORDER, each) for each in (target, *others)} | {wheel.key(other_order, target)}
    assert len(keys) == 5
    elsewhere = wheel.Target(target.folder / "moved", target.frameworks, target.python_abi, target.open_mpi)
    assert wheel.key(ORDER, elsewhere) == wheel.key(ORDER, target)


def test_one_compiles_while_the_other_waits(tools, target, monkeypatch, capsys):
    begun, go_on = threading.Event(), threading.Event()
    calls = []

    def compile_it(order, target, scratch, log, tools):
        calls.append(scratch)
        begun.set()
        assert go_on.wait(30)
        file = scratch / "horovod.whl"
        file.touch()
        return file

    monkeypatch.setattr(wheel, "_compile", compile_it)
    real, results = wheel.fcntl.flock, []

    def flock(handle, how):
        # The second one waits from here on: now the first may finish.
        if how == wheel.fcntl.LOCK_EX:
            go_on.set()
        real(handle, how)

    monkeypatch.setattr(wheel.fcntl, "flock", flock)
    first = threading.Thread(target=lambda: results.append(wheel.provide(ORDER, target, tools)))
    first.start()
    assert begun.wait(30)
    results.append(wheel.provide(ORDER, target, tools))
    first.join(30)
    assert len(calls) == 1
    assert sorted(fresh for _, fresh in results) == [False, True]
    assert "waiting for another" in capsys.readouterr().out


def test_what_killed_builders_left_is_removed(tools, target, compiled, tmp_path):
    folder = tmp_path / "cache" / "wheels"
    own, dead, alive = (
        folder / f".building-{name}-12345" for name in (wheel.key(ORDER, target), "horovod-1-a", "horovod-1-b")
    )
    for each in (own, dead, alive):
        each.mkdir(parents=True)
    (folder / "horovod-1-a.lock").touch()
    with open(folder / "horovod-1-b.lock", "w") as lock:
        wheel.fcntl.flock(lock, wheel.fcntl.LOCK_EX)
        wheel.provide(ORDER, target, tools)
    assert list(folder.glob(".building-*")) == [alive]


def test_a_wheel_that_is_not_whole_is_compiled_again(tools, target, compiled):
    made, _ = wheel.provide(ORDER, target, tools)
    made.write_text("cut")
    assert wheel.provide(ORDER, target, tools) == (made, True)
    assert made.read_text() == ORDER.title
    wheel.discard(made)
    assert wheel.provide(ORDER, target, tools) == (made, True)


def test_a_failure_leaves_nothing(tools, target, monkeypatch, tmp_path):
    def fail(order, target, scratch, log, tools):
        (scratch / "half").touch()
        raise EnvironmentException("it does not compile")

    monkeypatch.setattr(wheel, "_compile", fail)
    with pytest.raises(EnvironmentException, match="does not compile"):
        wheel.provide(ORDER, target, tools)
    assert [path.suffix for path in (tmp_path / "cache" / "wheels").iterdir()] == [".lock"]


def test_a_cache_that_cannot_be_written(target, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentException, match="TRAINMASTER_CACHE"):
        wheel.provide(ORDER, target, Tools({"TRAINMASTER_CACHE": str(tmp_path / "file")}))


def test_where_wheels_are_kept():
    assert wheel.cache_folder({"TRAINMASTER_CACHE": "/c"}) == Path("/c/wheels")
    assert wheel.cache_folder({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/trainmaster/wheels")
    assert wheel.cache_folder({"HOME": "/h"}) == Path("/h/.cache/trainmaster/wheels")


def test_nothing_of_the_callers_python_reaches_the_build(target, tmp_path):
    environ = {"PATH": "/usr/bin", "PYTHONHOME": "/wrong", "PYTHONPATH": "/wrong", "VIRTUAL_ENV": "/wrong"}
    variables = wheel.build_variables(ORDER, target, tmp_path, environ)
    assert "/wrong" not in variables.values()
    assert variables["PATH"].split(":")[:2] == ["/mpi", f"{target.folder}/bin"]


def test_cmake_comes_along_where_there_is_none(target, tmp_path):
    assert "HOROVOD_CMAKE" in wheel.build_variables(ORDER, target, tmp_path, {"PATH": str(tmp_path)})
    (tmp_path / "cmake").touch(0o755)
    assert "HOROVOD_CMAKE" not in wheel.build_variables(ORDER, target, tmp_path, {"PATH": str(tmp_path)})


def test_old_releases_find_open_mpi_beside_them(target, tmp_path):
    old = recipes.plan_build("0.18.1", {"torch": "1.4.0"}, "3.7")
    own = wheel.Target(target.folder, target.frameworks, "cp37", OpenMpi("4.1.8", f"{target.folder}/bin"))
    shown = wheel.build_variables(old, own, tmp_path, {})["HOROVOD_MPICXX_SHOW"]
    assert "$ORIGIN/../../../.." in shown
    assert "HOROVOD_MPICXX_SHOW" not in wheel.build_variables(old, target, tmp_path, {})


def source(folder: Path, setup: str, says: str) -> Path:
    folder.mkdir()
    (folder / "setup.py").write_text(setup)
    (folder / "say.txt").write_text(says)
    return folder


def test_a_compilation_tells_how_long_and_keeps_its_log(tmp_path, capsys):
    folder = source(tmp_path / "source", BUILDS, "[ 50%] Building CXX object")
    made = compile_wheel(ORDER, folder, Path(sys.executable), os.environ, tmp_path / "log")
    assert made.name == "horovod-0.28.1-py3-none-any.whl"
    shown = capsys.readouterr().out
    assert shown.startswith("compiling Horovod 0.28.1 for torch 2.13.0: about ")
    assert "once per machine" in shown and "compiled Horovod" in shown
    assert "[ 50%]" in (tmp_path / "log").read_text()


def test_progress_is_shown_from_time_to_time(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(compiling, "_SHOW_EVERY_SECONDS", 0.0)
    folder = source(tmp_path / "source", BUILDS, "[ 50%] Building CXX object")
    compile_wheel(ORDER, folder, Path(sys.executable), os.environ, tmp_path / "log")
    assert "torch 2.13.0: 50 %, " in capsys.readouterr().out


def test_the_first_error_is_told(tmp_path):
    says = "checking\na.h:1:1: fatal error: cublas_v2.h: No such file\nb.cc:7:2: error: #error C++17\nmake: *** Error 2"
    folder = source(tmp_path / "source", BUILDS + "sys.exit(3)", says)
    with pytest.raises(EnvironmentException) as failed:
        compile_wheel(ORDER, folder, Path(sys.executable), os.environ, tmp_path / "log")
    assert "could not be compiled: the build exited with 3" in failed.value.headline
    assert failed.value.cause.startswith("b.cc:7:2: error: #error C++17")
    assert str(tmp_path / "log") in failed.value.cause
    assert "Gloo()" in failed.value.hint


def test_percent_by_counting():
    progress = Progress(steps=4)
    for line in ("gcc -O3 -c a.cc -o a.o", "  /usr/bin/gcc -I. -c b.cc -o b.o", "g++ -shared a.o", "x.cc: warning"):
        progress.read(line)
    assert progress.percent == 50
    for _ in range(9):
        progress.read("gcc -c more.cc")
    assert progress.percent == 99


def test_percent_never_goes_back():
    progress = Progress()
    for line in ("[ 10%] Building", "[ 60%] Linking", "[ 20%] Built target"):
        progress.read(line)
    assert progress.percent == 60


def test_what_remains_follows_the_pace():
    progress = Progress()
    assert progress.remaining(0, 180) == 180
    progress.read("[ 50%]")
    assert progress.remaining(180, 180) == pytest.approx(180)
    assert progress.remaining(90, 180) == pytest.approx(90)


def test_an_estimate_that_was_far_too_short_is_corrected():
    progress = Progress()
    # Nothing was seen yet, but much more than a minute must be left.
    assert progress.remaining(300, 160) == 300
    progress.read("[ 10%]")
    assert progress.remaining(300, 160) == pytest.approx(2700)
    progress.read("[100%]")
    assert progress.remaining(3000, 160) == 0


def test_without_an_error_the_last_lines_are_told():
    lines = [*map(str, range(20)), "error: command '/usr/bin/gcc' failed with exit code 1"]
    assert first_error("\n".join(lines)).splitlines() == lines[-8:]
