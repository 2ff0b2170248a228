"""Conda packages where there is no conda to be had, and the small decisions around py-rattler."""

from __future__ import annotations

import asyncio
import datetime
import sys
from types import SimpleNamespace

import pytest

from trainmaster.environments import conda
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException
from trainmaster.shared.job_spec import EnvironmentSpec


@pytest.fixture
def without_rattler(monkeypatch):
    monkeypatch.setitem(sys.modules, "rattler", None)


def make(tmp_path, *packages, **environ):
    spec = EnvironmentSpec(conda_packages=packages, pip_packages=("mine",), conda_channels=("file:///nowhere",))
    variables = {"HOME": str(tmp_path), **environ}
    return conda.make(spec, tmp_path / "made", tmp_path / "final", Tools(variables))


@pytest.mark.usefixtures("without_rattler")
class TestWithoutRattler:
    def test_the_error_names_the_command(self, tmp_path):
        with pytest.raises(EnvironmentException) as caught:
            make(tmp_path, "numpy", "mkl")
        assert caught.value.headline == "conda packages need py-rattler, which is not installed here"
        assert "pip install 'trainmaster[conda]'" in caught.value.hint
        assert "TRAINMASTER_CONDA_TO_PIP=1, pip installs mkl" in caught.value.hint
        assert not (tmp_path / "made").exists()

    def test_known_names_come_from_pip_and_it_is_told(self, tmp_path, capsys):
        left = make(tmp_path, "numpy=1.26", "pytorch")
        assert (left.conda_packages, left.pip_packages) == ((), ("mine", "numpy==1.26.*", "torch"))
        told = capsys.readouterr().out
        assert "pip installs these instead of conda: numpy==1.26.*, torch" in told
        assert "pip install 'trainmaster[conda]'" in told

    @pytest.mark.parametrize(("setting", "taken"), [("1", True), ("on", True), ("0", False), ("", False)])
    def test_the_setting(self, tmp_path, setting, taken):
        if taken:
            assert make(tmp_path, "mkl", TRAINMASTER_CONDA_TO_PIP=setting).pip_packages == ("mine", "mkl")
        else:
            with pytest.raises(EnvironmentException):
                make(tmp_path, "mkl", TRAINMASTER_CONDA_TO_PIP=setting)

    def test_it_can_be_forbidden(self, tmp_path):
        with pytest.raises(EnvironmentException, match="py-rattler"):
            make(tmp_path, "numpy", TRAINMASTER_CONDA_TO_PIP="0")


def test_time_limit_that_is_no_number(tmp_path):
    pytest.importorskip("rattler")
    with pytest.raises(EnvironmentException, match="TRAINMASTER_CONDA_TIMEOUT must be a number of seconds, not 'soon'"):
        make(tmp_path, "numpy", TRAINMASTER_CONDA_TIMEOUT="soon")


@pytest.mark.parametrize(("accelerator", "seen"), [("cpu", ["__glibc"]), ("cuda", ["__glibc", "__cuda"])])
def test_a_run_without_gpu_sees_no_cuda(accelerator, seen):
    def package(name):
        generic = SimpleNamespace(name=SimpleNamespace(normalized=name))
        return SimpleNamespace(into_generic=lambda: generic)

    offered = [package("__glibc"), package("__cuda")]
    found = conda._virtual_packages(offered, accelerator)
    assert [each.into_generic().name.normalized for each in found] == seen


@pytest.mark.parametrize(
    ("given", "setting", "date"),
    [
        ("", "", None),
        ("2026-10-31", "2020-01-01", datetime.datetime(2026, 10, 31)),
        ("", "2026-10-31T12:00:00+02:00", datetime.datetime(2026, 10, 31, 10, tzinfo=datetime.UTC)),
    ],
)
def test_cool_down(given, setting, date):
    assert conda._date(EnvironmentSpec(exclude_newer=given), {"TRAINMASTER_EXCLUDE_NEWER": setting}) == date


def test_cool_down_as_an_age():
    found = conda._date(EnvironmentSpec(exclude_newer="7 days"), {})
    assert datetime.timedelta(days=7) <= datetime.datetime.now(datetime.UTC) - found < datetime.timedelta(days=8)


def test_lock():
    def record(name, **hashes):
        given = {"sha256": None, "md5": None, **hashes}
        return SimpleNamespace(
            name=SimpleNamespace(normalized=name), url=f"https://me:pw@host/t/tk/{name}.conda", **given
        )

    records = [record("b", md5=b"\x01\x02"), record("a", sha256=b"\xff", md5=b"\0"), record("c")]
    assert conda.lock_text(records) == (
        "@EXPLICIT\nhttps://host/a.conda#sha256:ff\nhttps://host/b.conda#0102\nhttps://host/c.conda\n"
    )


def test_a_download_that_stands_still_is_given_up():
    async def never():
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        asyncio.run(conda._while_it_moves(never(), conda._Progress(1), 0.02))


def test_an_installation_that_moves_may_take_longer_than_the_limit(capsys):
    progress = conda._Progress(30)

    async def moving():
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while loop.time() < begun + 0.3:
            await asyncio.wait({loop.create_future()}, timeout=0.01)
            progress.on_link_complete(progress.on_link_start(0, "package"))

    asyncio.run(conda._while_it_moves(moving(), progress, 0.15))
    assert "[1/30] package" in capsys.readouterr().out
