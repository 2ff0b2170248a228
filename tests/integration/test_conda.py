"""Conda packages from a channel made on the spot: solved, installed and used by real runs."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import socket
import sys
import threading

import pytest
from tests.chaos.wheels import make_wheel
from tests.conda_channel import copy_channel, make_channel, remove_package, running_python, tinytool, write_tar_bz2
from tests.conftest import PATIENCE, ended

from trainmaster.environments.conda_channels import SETTING as CHANNELS
from trainmaster.environments.conda_names import SETTING as TO_PIP

BUILD_LOG = "azureml-logs/20_image_build_log.txt"
SCRIPT = """
import pathlib, subprocess, sys, tinytool
print("import", tinytool.VERSION)
print("prefix", sys.prefix)
for program in ("tinytool-say", "tinytool-script"):
    print(subprocess.run([program], check=True, capture_output=True, text=True).stdout.strip())
share = pathlib.Path(sys.prefix, "share", "tinytool")
print("text", share.joinpath("where.txt").read_text().strip())
print("binary", share.joinpath("where.bin").read_bytes() .split(b"\\0")[1].decode())
"""


@pytest.fixture(scope="module")
def channel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("channel")
    make_channel(folder, running_python(), tinytool("1.0"), tinytool("2.0"))
    return folder


@pytest.fixture(autouse=True)
def sources(channel, tmp_path_factory, monkeypatch):
    """Packages come from the channel and from one folder of wheels alone."""
    wheels = tmp_path_factory.mktemp("wheels")
    make_wheel(wheels, "tinypackage")
    make_wheel(wheels, "tqdm")
    make_wheel(wheels, "pip")
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_", "TRAINMASTER_CONDA_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv(CHANNELS, channel.as_uri())
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(channel.parent / "rattler-cache"))
    return wheels


def prefixes(workspace):
    folder = workspace.path / "environments"
    return {path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()} if folder.is_dir() else set()


def text(run, name="azureml-logs/70_driver_log.txt"):
    return run.get_details_with_logs()["logFiles"][name]


def refused(launch, shared, **settings):
    """The message of a run whose environment cannot be built, after which nothing is left behind."""
    known = prefixes(shared)
    details = ended(launch("", user_managed=False, **settings))
    assert (details["status"], details["error"]["code"]) == ("Failed", "EnvironmentError")
    assert prefixes(shared) == known
    assert "Traceback" not in details["error"]["message"]
    return details["error"]["message"]


def test_installed_used_locked_and_used_again(launch, shared):
    first = launch(SCRIPT, conda_packages=["tinytool"], user_managed=False)
    assert ended(first)["status"] == "Completed", text(first, BUILD_LOG)
    (prefix,) = prefixes(shared)
    assert text(first).splitlines() == [
        "import 2.0",
        f"prefix {prefix}",
        "said 2.0",
        f"script {prefix}",
        f"text prefix={prefix}",
        f"binary {prefix}/lib",
    ]
    log = text(first, BUILD_LOG)
    assert "2 conda packages" in log
    assert "[2/2]" in log
    lock = (prefix / "conda.lock").read_text().splitlines()
    assert lock[0] == "@EXPLICIT"
    assert [line.rpartition("/")[2].partition("#sha256:")[0] for line in lock[1:]] == [
        f"python-{'.'.join(map(str, sys.version_info[:3]))}-0.conda",
        "tinytool-2.0-0.tar.bz2",
    ]
    assert all(len(line.partition("#sha256:")[2]) == 64 for line in lock[1:])
    assert [f"# conda: {line}" for line in lock[1:]] == [
        line for line in first.get_environment().lock.splitlines() if "conda" in line.split("://")[0]
    ]
    second = launch(SCRIPT, conda_packages=["tinytool"], user_managed=False)
    assert ended(second)["status"] == "Completed"
    assert text(second) == text(first)
    assert BUILD_LOG not in second.get_file_names()
    assert ended(second).get("warnings", []) == []


def test_no_path_of_the_building_is_left(launch, shared):
    known = prefixes(shared)
    run = launch("", conda_packages=["tinytool=1.0"], pip_packages=["tinypackage"], user_managed=False)
    assert ended(run)["status"] == "Completed", text(run, BUILD_LOG)
    (prefix,) = prefixes(shared) - known
    holders = [path for path in prefix.rglob("*") if path.is_file() and b".building-" in path.read_bytes()]
    assert [path for path in holders if path.suffix != ".pyc"] == []


def test_pip_packages_come_after(launch):
    script = (
        "import tinytool, tinypackage, os, sys\n"
        "print(tinytool.VERSION, tinypackage.NAME, os.environ['CONDA_PREFIX'] == sys.prefix)"
    )
    run = launch(script, conda_packages=["tinytool=1.0"], pip_packages=["tinypackage"], user_managed=False)
    assert ended(run)["status"] == "Completed", text(run, BUILD_LOG)
    assert text(run) == "1.0 tinypackage True\n"


def test_a_package_that_no_channel_has(launch, shared):
    message = refused(launch, shared, conda_packages=["no-such-tool"])
    assert "No candidates were found for no-such-tool" in message
    assert CHANNELS in message


def test_a_release_that_does_not_exist(launch, shared):
    assert "No candidates were found for tinytool 7.*" in refused(launch, shared, conda_packages=["tinytool=7"])


def test_releases_after_a_date_are_not_taken(launch, shared, monkeypatch):
    monkeypatch.setenv("TRAINMASTER_EXCLUDE_NEWER", "2019-12-31")
    assert "tinytool" in refused(launch, shared, conda_packages=["tinytool>=1.0"])


def test_a_text_that_is_no_package(launch, shared):
    message = refused(launch, shared, conda_packages=["tinytool=1.0,,"])
    assert "conda package 'tinytool=1.0,,' has an invalid form" in message
    assert "unable to parse version spec" in message


def test_a_channel_that_is_not_there(launch, shared, monkeypatch, tmp_path):
    monkeypatch.setenv(CHANNELS, str(tmp_path / "nowhere"))
    message = refused(launch, shared, conda_packages=["numpy"])
    assert "a conda channel cannot be used" in message
    assert "nowhere" in message


def test_a_package_that_went_away(launch, shared, channel, monkeypatch, tmp_path):
    monkeypatch.setenv(CHANNELS, copy_channel(channel, tmp_path / "damaged"))
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))
    remove_package(tmp_path / "damaged", "tinytool")
    message = refused(launch, shared, conda_packages=["tinytool>=1"])
    assert "the conda packages could not be installed" in message
    assert "tinytool-2.0-0.tar.bz2" in message


def test_a_package_that_was_changed(launch, shared, channel, monkeypatch, tmp_path):
    monkeypatch.setenv(CHANNELS, copy_channel(channel, tmp_path / "damaged"))
    (package,) = (tmp_path / "damaged").glob("*/tinytool-2.0-*")
    package.write_bytes(package.read_bytes() + b"more")
    message = refused(launch, shared, conda_packages=["tinytool>1"])
    assert f"conda package {package} is not the one that its channel lists" in message


def test_a_package_that_was_changed_on_its_way(launch, shared, channel, monkeypatch, tmp_path):
    copy_channel(channel, tmp_path / "damaged")
    (package,) = (tmp_path / "damaged").glob("*/tinytool-2.0-*")
    other = tmp_path / "other"
    other.mkdir()
    write_tar_bz2(other, tinytool("2.0-other"))
    package.write_bytes(next(other.iterdir()).read_bytes())
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))
    with served(tmp_path / "damaged") as address:
        monkeypatch.setenv(CHANNELS, address)
        message = refused(launch, shared, conda_packages=["tinytool>1.5"])
    assert "hash mismatch" in message


@contextlib.contextmanager
def served(folder, held=""):
    """`folder` as a web server shows it; files whose names begin with `held` never come."""
    over = threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            if held and self.path.rpartition("/")[2].startswith(held):
                over.wait()
            else:
                super().do_GET()

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            over.set()
            server.shutdown()
            thread.join()


def test_a_download_that_stands_still(launch, shared, channel, monkeypatch, tmp_path):
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))
    # What does come may take its time on a busy machine.
    monkeypatch.setenv("TRAINMASTER_CONDA_TIMEOUT", "5")
    with served(channel, held="tinytool-") as address:
        monkeypatch.setenv(CHANNELS, address)
        message = refused(launch, shared, conda_packages=["tinytool<3"])
    assert "no progress for 5 s" in message


def test_cancel_while_a_channel_is_waited_for(launch, shared, monkeypatch):
    known = prefixes(shared)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv(CHANNELS, f"http://127.0.0.1:{silent.getsockname()[1]}/channel")
        run = launch("", conda_packages=["tinytool<4"], user_managed=False)
        silent.settimeout(PATIENCE)
        asked, _ = silent.accept()
        with asked:
            run.cancel()
            assert ended(run)["status"] == "Canceled"
    assert prefixes(shared) == known


def test_two_runs_at_once_build_once(launch, shared):
    known = prefixes(shared)
    runs = [launch("import tinytool", conda_packages=["tinytool<5"], user_managed=False) for _ in range(3)]
    assert [ended(run)["status"] for run in runs] == ["Completed"] * 3
    assert len(prefixes(shared) - known) == 1


def test_a_channel_on_the_web(launch, channel, monkeypatch, tmp_path):
    monkeypatch.setenv("RATTLER_CACHE_DIR", str(tmp_path / "cache"))
    with served(channel) as address:
        monkeypatch.setenv(CHANNELS, address)
        run = launch("import tinytool", conda_packages=["tinytool!=1.0"], user_managed=False)
        assert ended(run)["status"] == "Completed", text(run, BUILD_LOG)


class TestWithoutAChannel:
    @pytest.fixture(autouse=True)
    def unreachable(self, monkeypatch):
        # A port of this machine that nobody listens at.
        monkeypatch.setenv(CHANNELS, "http://127.0.0.1:9/channel")

    def test_known_names_come_from_pip_with_a_warning(self, launch):
        for _ in range(2):
            run = launch("import tqdm\nprint(tqdm.NAME)", conda_packages=["tqdm"], user_managed=False)
            details = ended(run)
            assert details["status"] == "Completed", details
            assert text(run) == "tqdm\n"
            assert "conda packages were installed by pip instead: tqdm" in str(details["warnings"])
        first = "\npip installs these instead of conda: tqdm\n"
        assert first in "".join(
            text(each, BUILD_LOG) for each in run.experiment.get_runs() if BUILD_LOG in each.get_file_names()
        )

    def test_other_names_do_not(self, launch, shared):
        message = refused(launch, shared, conda_packages=["tqdm", "tinypackage"])
        assert "no conda channel could be reached: http://127.0.0.1:9/channel" in message
        assert f"{TO_PIP}=1, pip installs tinypackage by the same name" in message

    def test_other_names_do_when_asked_for(self, launch, monkeypatch):
        monkeypatch.setenv(TO_PIP, "1")
        run = launch("import tinypackage", conda_packages=["tqdm", "tinypackage"], user_managed=False)
        assert ended(run)["status"] == "Completed"

    def test_pip_itself_needs_none(self, launch):
        """conda files name pip so that conda brings it; that is no reason to ask a channel."""
        details = ended(launch("import pip\nassert pip.NAME == 'pip'", conda_packages=["pip"], user_managed=False))
        assert (details["status"], details["warnings"]) == ("Completed", [])

    def test_none_when_forbidden(self, launch, shared, monkeypatch):
        monkeypatch.setenv(TO_PIP, "0")
        assert "no conda channel could be reached" in refused(launch, shared, conda_packages=["tqdm>=0"])


def test_a_channel_that_never_answers(launch, shared, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv(CHANNELS, f"http://127.0.0.1:{silent.getsockname()[1]}/channel")
        monkeypatch.setenv("TRAINMASTER_CONDA_TIMEOUT", "1")
        message = refused(launch, shared, conda_packages=["tinytool<2"])
    assert "no conda channel could be reached" in message
    assert "timed out" in message
