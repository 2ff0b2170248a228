"""Builders that are killed at any moment, disks that are full: the next builder builds, nothing half-made is used."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builder_process import start_builder
from tests.chaos.wheels import make_wheel
from tests.left_out import require_root
from trainmaster.environments import prefix
from trainmaster.environments.build import build
from trainmaster.environments.prefix import digest
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec

KILLS = 20
PACKAGES = tuple(f"package{letter}" for letter in "abcdefgh")
SPEC = EnvironmentSpec(pip_packages=PACKAGES)
IMPORT_ALL = f"import {', '.join(PACKAGES)}; print('all')"


@pytest.fixture(autouse=True)
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages come from wheels alone."""
    for name in PACKAGES:
        make_wheel(tmp_path / "wheels", name)
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))


def start(folder: Path, refresh: bool = False) -> subprocess.Popen[bytes]:
    return start_builder(folder, SPEC, refresh, stderr=subprocess.STDOUT, start_new_session=True)


def imports_all(folder: Path) -> bool:
    done = subprocess.run([folder / "bin/python", "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    return done.stdout == "all\n"


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """Each time the builder is killed somewhere on its way; what is ready afterwards is whole, or nothing is."""
    chance = random.Random(4711)
    place = tmp_path / "environments"
    killed = 0
    # As long as the last one took that came to its end: how busy the machine is changes.
    limit = float("inf")
    for number in range(KILLS):
        begun = time.monotonic()
        # Once there is a whole one, it is built anew beside it.
        builder = start(place, refresh=True)
        try:
            builder.wait(timeout=chance.uniform(0.0, limit) if number else None)
            limit = time.monotonic() - begun
            assert builder.returncode == 0
        except subprocess.TimeoutExpired:
            os.kill(builder.pid, signal.SIGKILL)
            killed += 1
        builder.communicate()
        ready = prefix.find_ready(place, digest(SPEC))
        assert ready is None or imports_all(ready), f"half an environment after kill {number}"
    assert killed >= KILLS // 3, "hardly any builder was killed on its way"
    final = build(place, SPEC)
    assert imports_all(final)
    build(place, SPEC, refresh=True)
    assert not list(place.glob(".building-*")) and not list(place.glob(".pointing-*"))


def test_a_killed_builder_frees_those_who_wait(tmp_path: Path) -> None:
    # pip's settings from a pipe into which nobody writes: the first builder stays where it is, with the lock.
    os.mkfifo(tmp_path / "pip.conf")
    place = tmp_path / "environments"
    first = start_builder(place, SPEC, variables={**os.environ, "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")})
    assert first.stdout is not None
    assert b"building environment" in first.stdout.readline(), "the first builder holds the lock once it speaks"
    others = [start(place) for _ in range(3)]
    for other in others:
        assert other.stdout is not None
        assert b"waiting for another run" in other.stdout.readline()
    first.kill()
    first.communicate()
    logs = [other.communicate(timeout=120)[0] for other in others]
    assert [other.returncode for other in others] == [0] * 3
    assert sum(b"is ready after" in log for log in logs) == 1


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    require_root("to mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, leave: int) -> None:
    with open(place / "ballast", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            file.truncate(max(0, file.tell() - leave))


@pytest.mark.parametrize("leave", [0, 8192, 40_960, 81_920])
def test_a_full_disk(small: Path, leave: int) -> None:
    place = small / "environments"
    place.mkdir()
    fill(small, leave)
    with pytest.raises(EnvironmentException) as failed:
        build(place, SPEC)
    assert "no space left" in failed.value.message.lower()
    assert "env prune" in failed.value.hint
    assert not [path for path in place.iterdir() if path.is_dir()]
    (small / "ballast").unlink()
    assert imports_all(build(place, SPEC))


def test_another_file_system_is_copied_to(small: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert imports_all(build(small / "environments", SPEC))
    assert capfd.readouterr().out.count("Failed to hardlink") <= 1
