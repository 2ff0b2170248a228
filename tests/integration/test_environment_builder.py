"""The builder with real uv and wheels made on the spot: locks, CPU and CUDA, refreshing, tampering, bad sources."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.builder_process import start_builder
from tests.chaos.wheels import make_library, make_source, make_wheel
from tests.conftest import ended, until

from trainmaster import (
    Estimator,
    Experiment,
    HyperDriveConfig,
    PrimaryMetricGoal,
    RandomParameterSampling,
    uniform,
)
from trainmaster.environments import build_record, cleanup, lock, prefix, pythons
from trainmaster.environments.accelerator import on_this_machine
from trainmaster.environments.build import build
from trainmaster.environments.pythons import all_pythons, newer_than, older_than, running_version
from trainmaster.job.errors import EnvironmentException, PythonNotFoundException
from trainmaster.shared.job_spec import EnvironmentSpec
from trainmaster.shared.serialization import to_plain

BUILD_LOG = "azureml-logs/20_image_build_log.txt"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder of wheels that stay as they are, and one of two torches: for CPU, and for CUDA."""
    folder = tmp_path_factory.mktemp("wheels")
    for name in ("tinypackage", "otherpackage", "lastpackage"):
        make_wheel(folder, name)
    make_wheel(folder, "needsother", requires=["otherpackage==1.0"])
    make_wheel(folder, "hatesother", requires=["otherpackage>=2"])
    make_wheel(folder, "foreign", tag="cp31-cp31m-manylinux_2_17_x86_64")
    make_wheel(folder, "torch", "2.13.0", requires=["nvidia-fake"])
    make_wheel(folder, "torch", "1.4.0")
    make_wheel(folder, "nvidia-fake")
    return folder


@pytest.fixture(scope="module")
def cpu_wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpu")
    make_wheel(folder, "torch", "2.13.0+cpu")
    return folder


@pytest.fixture(autouse=True)
def sources(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages come from the wheels alone."""
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_", "TRAINMASTER_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))


def spec(*packages: str, **more: Any) -> EnvironmentSpec:
    return EnvironmentSpec(pip_packages=packages, **more)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def locked(folder: Path) -> dict[str, str]:
    return {pin.name: pin.version for pin in lock.pins((folder / "environment.lock").read_text())}


def answer(folder: Path, code: str) -> str:
    done = subprocess.run([folder / "bin/python", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


# The lock


def test_the_lock_names_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = build(tmp_path, spec("needsother"))
    assert locked(folder) == {"needsother": "1.0", "otherpackage": "1.0"}
    assert answer(folder, "import needsother, otherpackage; print('both')") == "both"
    text = (folder / "environment.lock").read_text()
    assert "# resolved on 20" in text
    assert str(tmp_path) not in text
    log = capsys.readouterr().out
    assert log.index("uv pip compile needsother") < log.index("+ otherpackage==1.0") < log.index("is ready after")


def test_no_packages_have_a_lock_too(tmp_path: Path) -> None:
    assert locked(build(tmp_path, spec())) == {}


def test_a_lock_freezes_what_was_not_pinned(tmp_path: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine"
    make_wheel(mine, "moves", "1.0")
    monkeypatch.setenv("PIP_FIND_LINKS", str(mine))
    first = build(tmp_path / "e", spec("moves"))
    make_wheel(mine, "moves", "2.0")
    assert build(tmp_path / "e", spec("moves")) == first
    second = build(tmp_path / "e", spec("moves"), refresh=True)
    assert (locked(first), locked(second)) == ({"moves": "1.0"}, {"moves": "2.0"})
    assert answer(first, "import moves; print('the old one still runs')")
    assert prefix.find_ready(tmp_path / "e", second.stem) == second
    assert build(tmp_path / "e", spec("moves")) == second


def test_options_among_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel(tmp_path / "hidden", "hiddenpackage")
    folder = build(tmp_path / "e", spec(f"--find-links {tmp_path}/hidden", "hiddenpackage", "tinypackage"))
    assert locked(folder) == {"hiddenpackage": "1.0", "tinypackage": "1.0"}


@pytest.fixture
def dated(tmp_path: Path) -> Iterator[str]:
    """The address of an index whose package `moves` has an old release, and one of yesterday."""
    days = {
        "1.0": "2020-01-01T00:00:00Z",
        "2.0": (datetime.now(UTC) - timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    files = [
        {"filename": make_wheel(tmp_path / "dated", "moves", version).name, "upload-time": day}
        for version, day in days.items()
    ]

    class Index(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            content = (tmp_path / "dated" / name).read_bytes() if name else json.dumps(page).encode()
            self.send_response(200)
            self.send_header(
                "Content-Type", "application/octet-stream" if name else "application/vnd.pypi.simple.v1+json"
            )
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

        def log_message(self, *words: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        page = {
            "meta": {"api-version": "1.1"},
            "name": "moves",
            "files": [{**file, "url": f"{address}/files/{file['filename']}", "hashes": {}} for file in files],
        }
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"{address}/simple"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("field", "variable", "taken"),
    [
        ("", "", "2.0"),
        ("7 days", "", "1.0"),
        ("2021-01-01", "", "1.0"),
        ("", "7 days", "1.0"),
        ("1 hour", "7 days", "2.0"),
    ],
)
def test_a_cool_down(
    tmp_path: Path, dated: str, field: str, variable: str, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", dated)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRAINMASTER_EXCLUDE_NEWER", variable)
    folder = build(tmp_path / "e", spec("moves", exclude_newer=field))
    assert locked(folder) == {"moves": taken}
    assert ("no release after" in (folder / "environment.lock").read_text()) == bool(field or variable)


def test_a_cool_down_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentException, match="'7 days', not 'soon'"):
        build(tmp_path, spec("tinypackage", exclude_newer="soon"))


def test_passwords_are_shown_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str], wheels: Path) -> None:
    folder = build(tmp_path, spec("--extra-index-url http://me:hunter2@127.0.0.1:9/simple", "tinypackage"))
    kept = [path for path in folder.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]
    assert kept == []
    assert "hunter2" not in "".join(capfd.readouterr())


# CPU and CUDA


def test_a_cpu_run_takes_the_cpu_build(
    tmp_path: Path, wheels: Path, cpu_wheels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheels} {cpu_wheels}")
    assert locked(build(tmp_path, spec("torch==2.13.0", accelerator="cpu"))) == {"torch": "2.13.0+cpu"}
    assert "torch 2.13.0+cpu: CPU build from" in capsys.readouterr().out


def test_a_cuda_run_takes_the_cuda_build(
    tmp_path: Path, wheels: Path, cpu_wheels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheels} {cpu_wheels}")
    folder = build(tmp_path, spec("torch==2.13.0", accelerator="cuda"))
    assert locked(folder) == {"torch": "2.13.0", "nvidia-fake": "1.0"}
    assert "torch 2.13.0: CUDA build from" in capsys.readouterr().out


def test_a_cuda_run_without_a_cuda_build(
    tmp_path: Path, cpu_wheels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(cpu_wheels))
    assert locked(build(tmp_path, spec("torch", accelerator="cuda"))) == {"torch": "2.13.0+cpu"}
    assert "no CUDA build" in capsys.readouterr().out


def test_cuda_is_refused_for_a_cpu_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentException, match=r"only a CUDA build of torch 2\.13\.0") as refused:
        build(tmp_path, spec("torch==2.13.0", accelerator="cpu"))
    assert "nvidia-fake" in refused.value.cause
    assert not [name for name in names(tmp_path) if (tmp_path / name).is_dir()]
    monkeypatch.setenv("TRAINMASTER_ALLOW_CUDA", "1")
    assert "nvidia-fake" in locked(build(tmp_path, spec("torch==2.13.0", accelerator="cpu")))


def test_packages_of_other_machines_only(tmp_path: Path) -> None:
    assert locked(build(tmp_path, spec("tinypackage; sys_platform == 'win32'"))) == {}


def test_old_releases_have_cuda_inside_and_are_taken(tmp_path: Path) -> None:
    assert locked(build(tmp_path, spec("torch==1.4.0", accelerator="cpu"))) == {"torch": "1.4.0"}


def test_any_takes_what_comes(tmp_path: Path) -> None:
    assert "nvidia-fake" in locked(build(tmp_path, spec("torch==2.13.0")))


# torch and its companions


@pytest.fixture(scope="module")
def mixed_wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A torch for the CPU, and a torchvision for CUDA whose metadata does not say so, as on PyPI."""
    folder = tmp_path_factory.mktemp("mixed")
    library = make_library(tmp_path_factory.mktemp("library"), ["libtorch.so", "libtorch_cuda.so"])
    make_wheel(folder, "torch", "2.13.0+cpu", files={"torch/version.py": "cuda = None\n"})
    make_wheel(folder, "torch", "1.4.0", files={"torch/version.py": "cuda = None\n"})
    for version, release in (("0.28.0", "2.13.0"), ("0.5.0", "1.4.0")):
        make_wheel(folder, "torchvision", version, [f"torch=={release}"], files={"torchvision/_C.so": library})
    make_wheel(folder, "needsvision", requires=["torchvision"])
    return folder


CUDA_VISION = r"torchvision 0\.28\.0 is built for CUDA .*libtorch_cuda\.so.*https://download\.pytorch\.org/whl/cpu has"


def test_a_companion_for_another_accelerator_is_refused_before_the_script(
    tmp_path: Path, mixed_wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(mixed_wheels))
    for package in ("torchvision", "needsvision"):
        with pytest.raises(EnvironmentException, match=CUDA_VISION):
            build(tmp_path, spec("torch==2.13.0", package, accelerator="cpu"))
    # The lock does not say what this torch is; what is installed does.
    with pytest.raises(EnvironmentException, match=r"torchvision 0\.5\.0 is built for CUDA"):
        build(tmp_path, spec("torch==1.4.0", "torchvision", accelerator="cpu"))
    assert not [name for name in names(tmp_path) if (tmp_path / name).is_dir()]


def test_a_companion_that_fits_is_looked_for(
    tmp_path: Path, mixed_wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = make_library(tmp_path / "library", ["libtorch.so", "libtorch_cpu.so"])
    fitting = {"torchvision/_C.so": library}
    # uv on its own takes the newest, whatever it was built for.
    make_wheel(tmp_path / "more", "torchvision", "0.28.0+cpu", ["torch==2.13.0"], files=fitting)
    make_wheel(tmp_path / "more", "torchvision", "0.28.0+cu130", ["torch==2.13.0"], files={"torchvision/_C.so": b""})
    monkeypatch.setenv("PIP_FIND_LINKS", f"{mixed_wheels} {tmp_path}/more")
    folder = build(tmp_path / "e", spec("torch==2.13.0", "torchvision", accelerator="cpu"))
    assert locked(folder) == {"torch": "2.13.0+cpu", "torchvision": "0.28.0+cpu"}


def test_an_optional_companion_comes_along_or_is_told(
    tmp_path: Path, mixed_wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = spec("torch==2.13.0", optional_packages=("torchvision",), accelerator="cpu")
    monkeypatch.setenv("PIP_FIND_LINKS", str(mixed_wheels))
    without = build(tmp_path / "without", wanted)
    assert locked(without) == {"torch": "2.13.0+cpu"}
    (warning,) = (without / prefix.WARNINGS).read_text().splitlines()
    assert warning.startswith("torchvision is not installed")
    assert "fits torch 2.13.0+cpu; to get one, add" in warning
    library = make_library(tmp_path / "library", ["libtorch.so", "libtorch_cpu.so"])
    make_wheel(tmp_path / "more", "torchvision", "0.28.0+cpu", ["torch==2.13.0"], files={"torchvision/_C.so": library})
    monkeypatch.setenv("PIP_FIND_LINKS", f"{mixed_wheels} {tmp_path}/more")
    fitting = build(tmp_path / "fitting", wanted)
    assert locked(fitting) == {"torch": "2.13.0+cpu", "torchvision": "0.28.0+cpu"}
    assert not (fitting / prefix.WARNINGS).exists()


@pytest.mark.parametrize("kind", ["run", "sweep"])
def test_a_companion_for_another_accelerator_is_refused_at_submit(
    project: Callable[..., Path], shared: Any, mixed_wheels: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(mixed_wheels))
    packages = ["torch==2.13.0", "torchvision"]
    job = Estimator(str(project(train="")), entry_script="train.py", compute_target="local", pip_packages=packages)
    sweep = HyperDriveConfig(
        RandomParameterSampling({"x": uniform(0, 1)}), "score", PrimaryMetricGoal.MAXIMIZE, 1, estimator=job
    )
    experiment = Experiment(shared, f"refused-{kind}")
    with pytest.raises(EnvironmentException, match=CUDA_VISION):
        experiment.submit(job if kind == "run" else sweep)
    assert list(experiment.get_runs()) == []


# Whole or not


@pytest.mark.parametrize(
    "what", ["module", "package information", "python", "manifest", "contents", "everything but the top"]
)
def test_what_was_tampered_with_is_built_again(tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = build(tmp_path, spec("tinypackage"))
    packages = next(first.glob("lib/python3*/site-packages"))
    if what == "module":
        (packages / "tinypackage.py").unlink()
    elif what == "package information":
        shutil.rmtree(packages / "tinypackage-1.0.dist-info")
    elif what == "python":
        (first / "bin/python").unlink()
    elif what == "manifest":
        (first / "manifest.json").unlink()
    elif what == "contents":
        # In place: the copy in uv's cache has the same change.
        with open(packages / "tinypackage.py", "a") as module:
            module.write("raise SystemExit(3)\n")
    else:
        shutil.rmtree(first / "lib")
    assert prefix.find_ready(tmp_path, first.stem) is None
    second = build(tmp_path, spec("tinypackage"))
    assert second.name == f"{first.stem}.2"
    assert "building it again" in capsys.readouterr().out
    assert answer(second, "import tinypackage; print(tinypackage.NAME)") == "tinypackage"


def test_an_import_or_an_addition_is_no_damage(tmp_path: Path) -> None:
    folder = build(tmp_path, spec("tinypackage"))
    answer(folder, "import tinypackage, sys; open(sys.prefix + '/bin/added', 'w').close()")
    assert build(tmp_path, spec("tinypackage")) == folder


def test_a_builder_killed_just_before_the_name(tmp_path: Path) -> None:
    """The folder is there, complete, but no name leads to it: it is not used, and nothing is in the way."""
    first = build(tmp_path, spec("tinypackage"))
    (tmp_path / first.stem).unlink()
    assert prefix.find_ready(tmp_path, first.stem) is None
    assert build(tmp_path, spec("tinypackage")).name == f"{first.stem}.2"


# Sources that do not answer, and packages that do not fit


@pytest.fixture
def hanging() -> Iterator[str]:
    """The address of an index that takes every question and answers none."""
    listener = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def take() -> None:
        while True:
            try:
                taken.append(listener.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=take)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/simple"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()
    for each in taken:
        each.close()


def test_an_index_that_hangs(tmp_path: Path, hanging: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", hanging)
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(EnvironmentException) as failed:
        build(tmp_path, spec("no-such-package"))
    assert "operation timed out" in failed.value.cause
    assert "UV_HTTP_TIMEOUT" in failed.value.hint


def test_an_index_that_cannot_be_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(EnvironmentException) as failed:
        build(tmp_path, spec("no-such-package"))
    assert "Connection refused" in failed.value.cause
    assert "cannot be reached" in failed.value.hint


@pytest.mark.parametrize(
    ("packages", "cause", "hint"),
    [
        (("no-such-package",), "no-such-package was not found", "spelling"),
        (("needsother", "hatesother"), "needsother", "relax"),
        (("foreign",), "cp31", "python_version"),
        (("tinypackage==7",), "tinypackage==7", "do not have this release"),
        (("tiny package!",), "tiny package!", "names and versions"),
    ],
)
def test_the_resolvers_own_words(tmp_path: Path, packages: tuple[str, ...], cause: str, hint: str) -> None:
    with pytest.raises(EnvironmentException) as failed:
        build(tmp_path, spec(*packages))
    assert cause in failed.value.cause
    assert hint in failed.value.hint
    assert not [name for name in names(tmp_path) if (tmp_path / name).is_dir()]


# An older Python than ours

OLDER = older_than(running_version(), list(all_pythons()))


@pytest.fixture
def aged_wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages come from that have builds for a Python of v1's time, and sources that ours cannot compile."""
    folder = tmp_path / "aged"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def aged(folder: Path, name: str, python: str, has_sources: bool) -> None:
    tag = "cp" + python.replace(".", "")
    make_wheel(folder, name, tag=f"{tag}-none-any", requires=["scipy"])
    for version in ("1.8.1", "1.11.0"):
        make_wheel(folder, "scipy", version)
    if has_sources:
        make_source(folder, name, "raise SystemExit('cannot be compiled')")


@pytest.mark.skipif(not OLDER, reason="there is no older Python on this machine")
@pytest.mark.parametrize("has_sources", [False, True])
def test_packages_of_another_time_get_a_python_of_that_time(
    tmp_path: Path, aged_wheels: Path, has_sources: bool
) -> None:
    aged(aged_wheels, "agedpackage", OLDER[-1], has_sources)
    made = build(tmp_path, spec("agedpackage"))
    assert answer(made, "import sys, agedpackage; print('%d.%d' % sys.version_info[:2])") == OLDER[-1]
    known = build_record.read(made)
    assert known is not None and (known.python, known.specification.python_version) == (OLDER[-1], "")
    assert f"Python {OLDER[-1]} is used" in (made / prefix.WARNINGS).read_text()
    # What comes along is of that time too, for the Pythons that v1 had.
    assert locked(made)["scipy"] == ("1.8.1" if OLDER[-1] in ("3.6", "3.7", "3.8", "3.9") else "1.11.0")
    assert build(tmp_path, spec("agedpackage")) == made


def test_a_python_that_was_asked_for_stays(tmp_path: Path, aged_wheels: Path) -> None:
    aged(aged_wheels, "agedpackage", "3.5", has_sources=True)
    for wanted, told in ((running_version(), "from source"), ("", "'uv python install 3.8'")):
        with pytest.raises(EnvironmentException, match=r"Failed to build `agedpackage==1\.0`") as failed:
            build(tmp_path, spec("agedpackage", python_version=wanted))
        assert told in failed.value.hint
    assert not [name for name in names(tmp_path) if (tmp_path / name).is_dir() and name != "aged"]


# A newer Python than the one asked for: 3.5 is found on no machine

NEWER = newer_than("3.5", list(all_pythons()))


def used_python(folder: Path) -> str:
    return answer(folder, "import sys; print('%d.%d' % sys.version_info[:2])")


@pytest.mark.parametrize("has_sources", [False, True])
def test_a_python_that_is_not_here_gives_way_to_the_nearest_newer_one(
    tmp_path: Path, aged_wheels: Path, has_sources: bool
) -> None:
    make_wheel(aged_wheels, "tinypackage")
    made = build(tmp_path, spec("tinypackage", python_version="3.5"))
    assert used_python(made) == NEWER[0]
    assert f"Python {NEWER[0]} is used: this machine has no Python 3.5" in (made / prefix.WARNINGS).read_text()
    known = build_record.read(made)
    assert known is not None and (known.python, known.specification.python_version) == (NEWER[0], "3.5")
    # Not the nearest, if that has no builds of the packages.
    aged(aged_wheels, "agedpackage", NEWER[-1], has_sources)
    assert used_python(build(tmp_path, spec("agedpackage", "tinypackage", python_version="3.5"))) == NEWER[-1]
    assert build(tmp_path, spec("tinypackage", python_version="3.5")) == made


@pytest.mark.skipif(not OLDER, reason="there is no older Python on this machine")
def test_a_python_that_came_later_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, late = spec("tinypackage", python_version=OLDER[-1]), all_pythons()
    with monkeypatch.context() as before:
        before.setattr(pythons, "all_pythons", lambda: {each: late[each] for each in late if each != OLDER[-1]})
        made = build(tmp_path, wanted)
        assert used_python(made) == newer_than(OLDER[-1], list(late))[0]
        assert build(tmp_path, wanted) == made
    again = build(tmp_path, wanted)
    assert used_python(again) == OLDER[-1] and not (again / prefix.WARNINGS).exists()
    assert build(tmp_path, wanted) == again


def test_conda_packages_of_a_python_that_is_not_here(
    tmp_path: Path, aged_wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(aged_wheels, "numpy", "1.19.5")
    monkeypatch.setenv("TRAINMASTER_CONDA_CHANNELS", "http://127.0.0.1:9")
    made = build(tmp_path, EnvironmentSpec(python_version="3.5", conda_packages=("numpy=1.19.5",)))
    assert (used_python(made), locked(made)) == (NEWER[0], {"numpy": "1.19.5"})


def test_pip_stands_in_for_conda_with_packages_of_that_time(
    tmp_path: Path, aged_wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(aged_wheels, "torch", "1.4.0", requires=["numpy"])
    for version in ("1.19.5", "1.24.0"):
        make_wheel(aged_wheels, "numpy", version)
    monkeypatch.setenv("TRAINMASTER_CONDA_CHANNELS", "http://127.0.0.1:9")
    made = build(tmp_path, EnvironmentSpec(python_version=running_version(), conda_packages=("pytorch=1.4",)))
    assert locked(made) == {"torch": "1.4.0", "numpy": "1.19.5"}


def test_packages_that_no_newer_python_has_are_named(tmp_path: Path) -> None:
    with pytest.raises(PythonNotFoundException, match=r"this machine has no Python 3\.5") as failed:
        build(tmp_path, spec("tinypackage==7", python_version="3.5"))
    assert f"With Python {NEWER[0]}:" in failed.value.cause and "tinypackage==7" in failed.value.cause
    assert f"Python {', '.join(NEWER)} either" in failed.value.hint


@pytest.mark.skipif(not OLDER, reason="there is no older Python on this machine")
def test_a_newer_python_where_that_will_do(tmp_path: Path, aged_wheels: Path) -> None:
    aged(aged_wheels, "agedpackage", running_version(), has_sources=False)
    with pytest.raises(EnvironmentException, match="agedpackage"):
        build(tmp_path, spec("agedpackage", python_version=OLDER[-1]))
    made = build(tmp_path, spec("agedpackage", python_version=OLDER[-1], newer_python=True))
    assert used_python(made) == running_version()
    assert f"no builds for Python {OLDER[-1]}" in (made / prefix.WARNINGS).read_text()


# Many at once


def start(folder: Path, wanted: EnvironmentSpec) -> subprocess.Popen[str]:
    return start_builder(folder, wanted, stderr=subprocess.PIPE, text=True)


def test_ten_builders_build_once(tmp_path: Path) -> None:
    builders = [start(tmp_path, spec("tinypackage", "otherpackage")) for _ in range(10)]
    logs = [builder.communicate(timeout=120)[0] for builder in builders]
    assert [builder.returncode for builder in builders] == [0] * 10
    assert sum("is ready after" in log for log in logs) == 1
    assert len([path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]) == 1


def test_ten_builders_of_what_cannot_be_built_ask_once(tmp_path: Path) -> None:
    # pip's settings from a pipe, so that the first one stays where it is until all others wait for it.
    settings = tmp_path / "pip.conf"
    os.mkfifo(settings)
    variables = {**os.environ, "PIP_CONFIG_FILE": str(settings)}
    wanted, streams = spec("no-such-package"), {"stderr": subprocess.PIPE, "text": True}
    builders = [start_builder(tmp_path / "e", wanted, variables=variables, **streams)]
    assert "building environment" in builders[0].stdout.readline()
    builders += [start_builder(tmp_path / "e", wanted, variables=variables, **streams) for _ in range(9)]
    for builder in builders[1:]:
        assert "waiting for another run" in builder.stdout.readline()
    with open(settings, "w"):
        # The others read the same settings, from a file.
        (tmp_path / "empty").touch()
        (tmp_path / "empty").replace(settings)
    said = [builder.communicate(timeout=120) for builder in builders]
    assert all(builder.returncode == 1 for builder in builders)
    assert all("no-such-package was not found" in errors for _, errors in said)
    assert ["the other run could not build it" in log for log, _ in said] == [False] + [True] * 9


# Shared folders


def test_a_folder_of_ready_environments(tmp_path: Path, launch: Callable[..., Any], shared: Any) -> None:
    wanted = EnvironmentSpec(pip_packages=("lastpackage", "tinypackage"))
    folder = build(tmp_path / "shared", wanted)
    assert prefix.find(wanted, _workspace(tmp_path), "", str(tmp_path / "shared")).folder == str(folder)
    assert prefix.find(wanted, _workspace(tmp_path), "") is None


def test_a_run_uses_a_read_only_folder(
    tmp_path: Path, launch: Callable[..., Any], shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = launch("import otherpackage", pip_packages=["otherpackage"], user_managed=False)
    assert ended(first)["status"] == "Completed"
    own = shared.path / "environments"
    shared_place = tmp_path / "all"
    shutil.copytree(own, shared_place, symlinks=True)
    monkeypatch.setenv("TRAINMASTER_ENVIRONMENTS", str(shared_place))
    run = launch("import sys; print(sys.prefix)", pip_packages=["otherpackage"], user_managed=False)
    assert ended(run)["status"] == "Completed"
    assert run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"].startswith(str(shared_place))


def _workspace(tmp_path: Path) -> Any:
    from trainmaster.shared.folders import WorkspaceFolder

    return WorkspaceFolder(tmp_path / "workspace")


# Runs


def test_every_run_keeps_the_lock(launch: Callable[..., Any], shared: Any) -> None:
    runs = [launch("import lastpackage", pip_packages=["lastpackage"], user_managed=False) for _ in range(2)]
    assert [ended(run)["status"] for run in runs] == ["Completed"] * 2
    again = launch("import lastpackage", pip_packages=["lastpackage"], user_managed=False)
    assert ended(again)["status"] == "Completed"
    texts = [(shared.path / "runs" / run.id / "environment.lock").read_text() for run in [*runs, again]]
    assert len(set(texts)) == 1
    assert "lastpackage==1.0" in texts[0]
    assert BUILD_LOG not in again.get_file_names()


def test_an_own_python_has_no_lock(launch: Callable[..., Any], shared: Any) -> None:
    run = launch("")
    ended(run)
    assert not (shared.path / "runs" / run.id / "environment.lock").exists()


def test_one_in_use_is_never_removed(launch: Callable[..., Any], shared: Any, gate: Callable[..., Any]) -> None:
    door = gate("door")
    run = launch(f"{door.wait}; import tinypackage", pip_packages=["tinypackage"], user_managed=False)
    door.await_arrival()
    place = shared.path / "environments"
    (folder,) = [path for path, runs in shared.connection.call("environments.in_use").items() if run.id in runs]
    wanted = on_this_machine(EnvironmentSpec(pip_packages=("tinypackage",)))
    newer = shared.connection.call("environments.build", spec=to_plain(wanted), refresh=True)["folder"]
    assert newer != folder
    assert run.id in shared.connection.call("environments.in_use")[folder]
    assert shared.connection.call("environments.remove", names=[Path(folder).name, Path(newer).name]) == []
    door.open()
    assert ended(run)["status"] == "Completed"
    assert shared.connection.call("environments.remove", names=[Path(folder).name]) == [Path(folder).name]
    assert not Path(folder).exists()
    assert prefix.find_ready(place, Path(newer).stem) == Path(newer)


def test_a_long_build_is_told_wherever_a_run_is_shown(
    launch: Callable[..., Any], shared: Any, gate: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = gate("door")
    made = make_wheel(tmp_path / "made", "slowpackage")
    program = f"""
def build_wheel(folder, *more):
    {door.wait}
    import shutil
    shutil.copy({str(made)!r}, folder)
    return {made.name!r}
"""
    make_source(tmp_path / "sources", "slowpackage", program)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "sources"))
    first = launch("", pip_packages=["slowpackage"], user_managed=False)
    door.await_arrival()
    until(lambda: first.get_details().get("waitingFor") == "Building slowpackage==1.0", what="the progress")
    # One that waits for the same environment tells it, too, and has it in its own log.
    second = launch("", pip_packages=["slowpackage"], user_managed=False)
    until(lambda: second.get_details().get("waitingFor") == "Building slowpackage==1.0", what="the other's progress")
    door.open()
    assert [ended(run)["status"] for run in (first, second)] == ["Completed", "Completed"]
    for run in (first, second):
        assert "Building slowpackage==1.0" in run.get_details_with_logs()["logFiles"][BUILD_LOG]


def test_a_failed_build_on_request_is_an_error(shared: Any) -> None:
    with pytest.raises(EnvironmentException, match="no-such-package was not found"):
        shared.connection.call("environments.build", spec=to_plain(spec("no-such-package")))


def test_the_use_is_remembered(launch: Callable[..., Any], shared: Any) -> None:
    run = launch("", pip_packages=["needsother"], user_managed=False)
    assert ended(run)["status"] == "Completed"
    note = json.loads((shared.path / "runs" / run.id / "environment.json").read_text())
    folder = Path(note["folder"])
    os.utime(folder / "environment.json", (1, 1))
    assert ended(launch("", pip_packages=["needsother"], user_managed=False))["status"] == "Completed"
    assert build_record.last_used(folder) > 1000
    assert build_record.read(folder).specification.pip_packages == ("needsother",)
    assert cleanup.describe_build(folder).current


def test_a_wheel_that_took_the_place_of_another_is_another_environment(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "own", "ownpackage")
    first = prefix.digest(spec(str(wheel)))
    assert prefix.digest(spec(f"ownpackage @ {wheel.as_uri()}")) != prefix.digest(spec("ownpackage"))
    os.utime(wheel, ns=(1, 1))
    assert prefix.digest(spec(str(wheel))) != first
    assert "ownpackage" in (build(tmp_path / "e", spec(str(wheel))) / "environment.lock").read_text()
