"""The first process of a pod, as the first process of a PID namespace."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from importlib import resources

import pytest

PROGRAM = resources.files("trainmaster.job.pod").joinpath("first_process.py").read_text("utf-8")
PATIENCE = 60.0

# Stands for an agent: it has a claim, and writes down that it was told to end.
AGENT = """
import json, os, signal, sys, time
folder = sys.argv[1]
os.makedirs(folder)
def end(*_):
    open(folder + "/ended", "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
start = int(open("/proc/self/stat").read().rpartition(")")[2].split()[19])
with open(folder + "/claim", "w") as file:
    json.dump({"pid": os.getpid(), "start_time": start}, file)
os.rename(folder + "/claim", folder + "/agent.json")
while True:
    time.sleep(60)
"""


class Pod:
    """A PID namespace; further programs can be started in it, as exec does."""

    def __init__(self, process, folder):
        self.process = process
        self.folder = folder

    @property
    def inner(self):
        """The process in the namespace, as this one sees it."""
        wait_until(self._children)
        return int(self._children()[0])

    def _children(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return file.read().split()

    def run(self, *argv):
        command = ["nsenter", "--target", str(self.inner), "--user", "--preserve-credentials", "--pid", "--mount"]
        return subprocess.Popen([*command, "--", sys.executable, *argv])

    def start_agent(self, node):
        """An agent whose parent is the first process, as if a helper had started it."""
        spawn = "import subprocess, sys; subprocess.Popen([sys.executable, *sys.argv[1:]])"
        self.run("-c", spawn, "-c", AGENT, str(node)).wait()
        wait_until(lambda: (node / "agent.json").exists())

    def end(self, is_done=None):
        """Tells the first process to end, until it has. A first process that has just begun ignores the signal."""
        is_done, inner = is_done or (lambda: self.process.poll() is not None), self.inner

        def tell():
            with contextlib.suppress(ProcessLookupError):
                os.kill(inner, signal.SIGTERM)
            return is_done()

        wait_until(tell)


@contextlib.contextmanager
def first_process(folder, seconds=3600):
    command = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
    argv = [*command, sys.executable, "-c", PROGRAM, str(folder), str(seconds)]
    process = subprocess.Popen(argv)
    try:
        yield Pod(process, folder)
    finally:
        process.kill()
        process.wait()


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


@pytest.fixture
def node(tmp_path):
    return tmp_path / "runs" / "r" / "nodes" / "0"


def test_ends_when_everything_was_fetched(tmp_path):
    with first_process(tmp_path) as pod:
        assert pod.process.poll() is None
        (tmp_path / "fetched").write_text(".")
        assert pod.process.wait(PATIENCE) == 0


def test_ends_at_once_when_told_before_there_is_an_agent(tmp_path):
    with first_process(tmp_path) as pod:
        # A helper that is uploading does not keep it.
        helper = pod.run("-c", "import time; time.sleep(3600)")
        pod.end()
        assert pod.process.wait(PATIENCE) == 0
        helper.wait(PATIENCE)


def test_the_agent_is_told_and_waited_for(tmp_path, node):
    with first_process(tmp_path) as pod:
        pod.start_agent(node)
        pod.end()
        assert pod.process.wait(PATIENCE) == 0
    assert (node / "ended").exists()


def test_what_the_agent_wrote_can_be_fetched(tmp_path, node):
    """While somebody is connected, the pod stays until everything was fetched."""
    with first_process(tmp_path) as pod:
        helper = pod.run("-c", "import time; time.sleep(3600)")
        pod.start_agent(node)
        pod.end(lambda: (node / "ended").exists())
        assert pod.process.poll() is None
        (tmp_path / "fetched").write_text(".")
        assert pod.process.wait(PATIENCE) == 0
        helper.wait(PATIENCE)


def test_an_agent_of_a_later_attempt(tmp_path):
    node = tmp_path / "runs" / "r" / "attempts" / "2" / "nodes" / "0"
    with first_process(tmp_path) as pod:
        pod.start_agent(node)
        pod.end()
        assert pod.process.wait(PATIENCE) == 0
    assert (node / "ended").exists()


def test_another_process_with_the_id_of_an_agent_is_left_alone(tmp_path, node):
    with first_process(tmp_path) as pod:
        other = pod.run("-c", "import time; time.sleep(3600)")
        pod.start_agent(node)
        earlier = tmp_path / "runs" / "earlier" / "nodes" / "0"
        earlier.mkdir(parents=True)
        # That process started at another time.
        (earlier / "agent.json").write_text(json.dumps({"pid": _inner_id(other.pid), "start_time": 1}))
        pod.end(lambda: (node / "ended").exists())
        assert other.poll() is None
        (tmp_path / "fetched").write_text(".")
        assert pod.process.wait(PATIENCE) == 0
        # The end of a PID namespace ends all its processes, with SIGKILL.
        assert other.wait(PATIENCE) in (137, -9)


def test_abandoned(tmp_path):
    with first_process(tmp_path, seconds=0.5) as pod:
        assert pod.process.wait(PATIENCE) == 0


def test_orphans_are_reaped(tmp_path):
    """A process whose parent ended, and that ends itself, does not stay as a zombie."""
    with first_process(tmp_path) as pod:
        pod.run("-c", "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(0.1)").wait(PATIENCE)
        inner = pod.inner
        wait_until(lambda: not open_text(f"/proc/{inner}/task/{inner}/children").split())
        assert pod.process.poll() is None


def open_text(path):
    with open(path) as file:
        return file.read()


def _inner_id(outer):
    """The id that the program which nsenter has started has in its namespace."""

    def find():
        children = open_text(f"/proc/{outer}/task/{outer}/children").split()
        return children and open_text(f"/proc/{children[0]}/status").partition("NSpid:")[2].split("\n")[0].split()[-1]

    return int(wait_until(find))
