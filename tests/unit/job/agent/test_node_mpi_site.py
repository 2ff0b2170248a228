"""The sitecustomize of MPI ranks: it has no effect until a rank with mpi4py raises an exception."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.node_run import interpreters

import trainmaster.job.agent

SITE = Path(trainmaster.job.agent.__file__).parent / "mpi_site"
PYTHONS = interpreters()
# Replaces mpi4py: records the calls, and answers them.
MPI = """
import sys, types
module = types.ModuleType("mpi4py.MPI")
module.Is_initialized = lambda: {initialized}
module.Is_finalized = lambda: False
class World:
    def Get_size(self): return {size}
    def Abort(self, code): sys.stderr.write("aborted %d\\n" % code)
module.COMM_WORLD = World()
sys.modules["mpi4py.MPI"] = module
"""


def run(text, *path, python=sys.executable):
    environment = {"PYTHONPATH": ":".join(map(str, (SITE, *path)))}
    command = [python, "-c", text]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr.splitlines()


def test_the_path_is_as_without_it(tmp_path):
    code, shown, errors = run("import sys; print([p for p in sys.path if 'mpi_site' in p])", tmp_path)
    assert (code, shown, errors) == (0, "[]\n", [])


def test_the_sitecustomize_of_the_environment_is_loaded(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine'); THERE = 1")
    assert run("import sitecustomize; print(sitecustomize.THERE)", tmp_path) == (0, "mine\n1\n", [])


def test_a_sitecustomize_that_lacks_something_says_so(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import no_such_module")
    code, _, errors = run("print('goes on')", tmp_path)
    assert code == 0
    assert "No module named 'no_such_module'" in "\n".join(errors)


@pytest.mark.parametrize(("initialized", "size", "aborted"), [(True, 2, True), (False, 2, False), (True, 1, False)])
def test_only_an_exception_of_one_among_several_ranks_aborts(initialized, size, aborted):
    text = MPI.format(initialized=initialized, size=size)
    code, _, errors = run(text + "\nraise ValueError('mine')")
    assert code == 1
    assert errors[:1] == ["Traceback (most recent call last):"]
    assert errors[-1] == ("aborted 1" if aborted else "ValueError: mine")


@pytest.mark.parametrize(
    ("call", "code", "errors"),
    [
        ("sys.exit(3)", 3, ["aborted 3"]),
        ("sys.exit('the reason')", 1, ["the reason", "aborted 1"]),
        (
            "import argparse; argparse.ArgumentParser('p', 'u').error('no')",
            2,
            ["usage: u", "p: error: no", "aborted 2"],
        ),
        ("sys.exit()", 0, []),
        ("sys.exit(0)", 0, []),
        ("sys.exit(False)", 0, []),
        ("pass", 0, []),
        ("import os; os._exit(4)", 4, []),
    ],
)
@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.split("/")[-3])
def test_leaving(python, call, code, errors):
    """Abort does not end this stand-in, so Python's own exit code is seen after it."""
    found = run(MPI.format(initialized=True, size=2) + "\n" + call, python=python)
    # Python shows the reason once more: the stand-in lets it live on.
    assert (found[0], found[2][: len(errors)]) == (code, errors)


CAUGHT = """
import threading
try:
    sys.exit('caught')
except SystemExit as error:
    assert type(error).__name__ == 'SystemExit' and error.args == ('caught',)
    print(error.code)
    error.code = 5
    assert error.code == 5
thread = threading.Thread(target=lambda: sys.exit(3))
thread.start()
thread.join()
"""


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.split("/")[-3])
def test_an_exit_that_is_caught_or_of_a_thread_is_none(python):
    assert run(MPI.format(initialized=True, size=2) + CAUGHT, python=python) == (0, "caught\n", [])


def test_a_forked_child_is_no_rank():
    text = "import os\npid = os.fork()\nif pid == 0: sys.exit(3)\nprint(os.waitpid(pid, 0)[1] >> 8)"
    assert run(MPI.format(initialized=True, size=2) + text) == (0, "3\n", [])
