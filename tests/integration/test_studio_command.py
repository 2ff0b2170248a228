"""`trainmaster studio`: a real process, from its start to its end, however it ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.conftest import PATIENCE, end_workspace, until

from trainmaster import Experiment, Workspace
from trainmaster.shared.own_studio import find_studio, find_studio_folder

TRAINMASTER = str(Path(sys.executable).with_name("trainmaster"))


class StudioProcess:
    """A studio that was started in a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [TRAINMASTER, "studio", "--json", "--no-browser", *options]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        self.link: str = json.loads(line)["url"]

    @property
    def url(self) -> str:
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.link))

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit code, and what it has written to standard error."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors.decode()


class Browser:
    """Just enough of one to use the API."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cookie = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE)
        own = {"Origin": self.url, "Content-Type": "application/json", **headers}
        if self.cookie:
            own["Cookie"] = self.cookie
        connection.request(method, path, json.dumps(body) if body is not None else None, own)
        answer = connection.getresponse()
        self.cookie = answer.getheader("set-cookie", self.cookie).partition(";")[0]
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text[:1] in b"{[n" else text

    def sign_in(self, link: str) -> int:
        return self.ask("POST", "/login/link", {"code": parse_qs(urlsplit(link).fragment)["code"][0]})[0]


@contextmanager
def run_studio(folder: Path, *options: str) -> Iterator[StudioProcess]:
    studio = StudioProcess(folder, *options)
    try:
        yield studio
    finally:
        studio.process.kill()
        studio.process.communicate()


def run_again(folder: Path, *options: str) -> str:
    """The link that a second start prints."""
    command = [TRAINMASTER, "studio", "--json", "--no-browser", *options]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE)
    url: str = json.loads(done.stdout)["url"]
    return url


@pytest.fixture
def default(home: Path) -> Iterator[Workspace]:
    """The default workspace of this user, with one run."""
    workspace = Workspace.create("default", show_output=False)
    Experiment(workspace, "first").start_logging(snapshot_directory=None).complete()
    yield workspace
    workspace.connection.close()
    end_workspace(workspace.path)


def list_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "trainmaster.db" not in path.name}


def test_it_shows_the_own_workspaces_and_leaves_nothing(default: Workspace, home: Path, tmp_path: Path) -> None:
    before = list_files(home)
    with run_studio(tmp_path) as studio:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login#code=[\w-]+&next=/w/default/runs", studio.link)
        assert find_studio() == studio.url
        folder = find_studio_folder()
        assert all(path.stat().st_mode & 0o077 == 0 for path in (folder.path, folder.record, folder.root))
        browser = Browser(studio.url)
        assert browser.ask("GET", "/api/v1/workspaces")[0] == 401
        assert browser.sign_in(studio.link) == 200
        assert [each["name"] for each in browser.ask("GET", "/api/v1/workspaces")[1]["workspaces"]] == ["default"]
        status, runs = browser.ask("GET", "/api/v1/workspaces/default/runs?limit=10")
        assert status == 200 and "first" in json.dumps(runs)
        # A link works once, also in another browser.
        assert Browser(studio.url).sign_in(studio.link) == 401
        # Workspaces that are created meanwhile are there, and deleted ones are not.
        second = Workspace.create("second", show_output=False)
        assert len(browser.ask("GET", "/api/v1/workspaces")[1]["workspaces"]) == 2
        second.delete(delete_dependent_resources=True)
        assert browser.ask("GET", "/api/v1/workspaces/second/runs?limit=1")[0] == 404
        assert studio.end() == (0, "")
    assert find_studio() == ""
    assert list_files(home) - before <= {"keys", "workspaces/default/dispatcher.sock"}
    # Jobs must not believe that a server is there.
    assert not (default.path / "served.json").exists()
    assert default.get_run(next(iter(Experiment(default, "first").get_runs())).id).get_status() == "Completed"


def test_other_names_are_refused(default: Workspace, tmp_path: Path) -> None:
    """DNS rebinding: a page of another site talks to 127.0.0.1 under its own name."""
    with run_studio(tmp_path) as studio:
        browser = Browser(studio.url)
        assert browser.sign_in(studio.link) == 200
        for path in ("/api/v1/me", "/login", "/api/v1/workspaces"):
            assert browser.ask("GET", path, Host="evil.example.org")[0] == 421
        # Without the token of the page nothing is changed.
        assert browser.ask("POST", "/api/v1/workspaces/default/operations/experiments.ensure", {"name": "x"})[0] == 403


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it(home: Path, tmp_path: Path, number: int) -> None:
    with run_studio(tmp_path) as studio:
        assert studio.link.endswith("&next=/")
        assert studio.end(number) == (0, "")
    assert not (home / "studio").exists()


def test_it_ends_when_it_is_not_used(home: Path, tmp_path: Path) -> None:
    with run_studio(tmp_path, "--idle-minutes", "0.01") as studio:
        assert studio.wait() == (0, "")
    assert not (home / "studio").exists()


def test_an_open_stream_keeps_it(default: Workspace, tmp_path: Path) -> None:
    with run_studio(tmp_path, "--idle-minutes", "0.1") as studio:
        browser = Browser(studio.url)
        assert browser.sign_in(studio.link) == 200
        connection = http.client.HTTPConnection(urlsplit(studio.url).netloc, timeout=PATIENCE)
        connection.request("GET", "/api/v1/workspaces/default/changes", headers={"Cookie": browser.cookie})
        stream = connection.getresponse()
        assert stream.status == 200
        with pytest.raises(subprocess.TimeoutExpired):
            studio.process.wait(8)
        connection.close()
        assert studio.wait() == (0, "")


def test_a_second_start_finds_the_first(default: Workspace, tmp_path: Path) -> None:
    elsewhere = Workspace.create("default", path=tmp_path / "project" / "mine", show_output=False)
    elsewhere.write_config(tmp_path / "project")
    with run_studio(tmp_path) as studio:
        link = run_again(tmp_path / "project")
        # Another workspace of the same name has another one here.
        assert link.startswith(f"{studio.url}/login#") and link.endswith("&next=/w/default-2/runs")
        browser = Browser(studio.url)
        assert browser.sign_in(link) == 200
        assert browser.ask("GET", "/api/v1/workspaces/default-2/runs?limit=1")[0] == 200
        assert run_again(tmp_path / "project").endswith("&next=/w/default-2/runs")
        assert run_again(tmp_path, "--workspace", "default").endswith("&next=/w/default/runs")
        assert studio.end() == (0, "")
    end_workspace(elsewhere.path)
    assert not (elsewhere.path / "served.json").exists()


def test_studios_of_two_folders_do_not_sign_each_other_out(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers have one set of cookies for all ports of a machine."""
    with run_studio(tmp_path) as first:
        monkeypatch.setenv("TRAINMASTER_HOME", str(tmp_path / "other"))
        with run_studio(tmp_path) as second:
            browsers = [Browser(studio.url) for studio in (first, second)]
            assert [browser.sign_in(studio.link) for browser, studio in zip(browsers, (first, second), strict=True)]
            jar = {browser.cookie.partition("=")[0]: browser.cookie for browser in browsers}
            for browser in browsers:
                browser.cookie = "; ".join(jar.values())
                assert browser.ask("GET", "/api/v1/workspaces")[0] == 200
            assert second.end() == (0, "")


def test_many_starts_at_once_are_one_studio(home: Path, tmp_path: Path) -> None:
    command = [TRAINMASTER, "studio", "--json", "--no-browser"]
    started = [subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) for _ in range(4)]
    try:
        links = [json.loads(each.stdout.readline())["url"] for each in started if each.stdout]
        assert len({urlsplit(link).netloc for link in links}) == 1
        until(lambda: sum(each.poll() == 0 for each in started) == 3)
        (serving,) = [each for each in started if each.poll() is None]
        serving.terminate()
        assert serving.wait(PATIENCE) == 0
    finally:
        for each in started:
            each.kill()
            each.communicate()
    assert not (home / "studio").exists()


def test_a_killed_one_is_not_found_and_does_not_disturb(default: Workspace, home: Path, tmp_path: Path) -> None:
    with run_studio(tmp_path) as first:
        first.process.kill()
        first.process.wait(PATIENCE)
    assert find_studio_folder().record.exists()
    assert find_studio() == ""
    with run_studio(tmp_path) as second:
        assert find_studio() == second.url
        # The links and sessions of the first one are worth nothing.
        assert Browser(second.url).sign_in(first.link) == 401
        assert Browser(second.url).sign_in(second.link) == 200
        assert second.end() == (0, "")
    assert not (home / "studio").exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"url": "http://127.0.0.1:1"}', '{"url": 1, "trainmaster.owner": "{}"}']
)
def test_a_damaged_file_is_no_studio(home: Path, content: str) -> None:
    folder = find_studio_folder()
    folder.path.mkdir(parents=True)
    folder.record.write_text(content)
    assert find_studio() == ""


def test_a_process_id_that_was_used_again_is_no_studio(home: Path) -> None:
    folder = find_studio_folder()
    folder.path.mkdir(parents=True)
    owner = {"host": os.uname().nodename, "pid": os.getpid(), "start_time": 1, "boot_id": "another"}
    folder.record.write_text(json.dumps({"url": "http://127.0.0.1:1", "trainmaster.owner": json.dumps(owner)}))
    assert find_studio() == ""


def run_failing(tmp_path: Path, *options: str) -> tuple[int, str]:
    command = [TRAINMASTER, "studio", "--no-browser", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    return done.returncode, done.stderr.decode()


def test_wrong_options(home: Path, tmp_path: Path) -> None:
    assert run_failing(tmp_path, "--workspace", "nothing-there")[0] == 2
    assert run_failing(tmp_path, "--idle-minutes", "0")[0] == 2
    assert run_failing(tmp_path, "--port", "1000000")[0] == 2
    assert not (home / "studio").exists()


def test_a_port_that_is_taken_is_an_error_that_leaves_nothing(home: Path, tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, errors = run_failing(tmp_path, "--port", str(taken.getsockname()[1]))
    assert code == 5 and "cannot listen" in errors and "Traceback" not in errors
    assert not (home / "studio").exists()


def test_without_the_extra_there_is_one_clear_error(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['starlette'] = None\n"
        "from trainmaster.cli.entry import run\n"
        "sys.exit(run(['studio', '--no-browser']))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert b"pip install 'trainmaster[server]'" in done.stderr and b"Traceback" not in done.stderr


def test_a_workspace_on_a_server_is_shown_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_SERVER", "https://train.example.org")
    monkeypatch.setenv("TRAINMASTER_WORKSPACE", "vision")
    assert run_again(tmp_path) == "https://train.example.org/w/vision/runs"


def test_the_browser_gets_the_link_by_a_private_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments of commands can be seen by every user of the machine."""
    seen = tmp_path / "seen"
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {seen}.new; mv {seen}.new {seen}\n')
    script.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{script} %s")
    command = [TRAINMASTER, "studio", "--json"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        link = json.loads(process.stdout.readline())["url"]
        until(seen.exists)
        address = seen.read_text().strip()
        assert address == find_studio_folder().redirect.as_uri()
        page = find_studio_folder().redirect
        assert page.stat().st_mode & 0o077 == 0
        assert link.replace("&", "&amp;") in page.read_text()
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert not (home / "studio").exists()
