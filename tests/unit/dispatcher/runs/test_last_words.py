"""What is quoted from the last lines of a failed script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.dispatcher.runs.last_words import exception_in, exceptions_in, last_line, message_in
from trainmaster.job.agent.tail import tail

MULTI = 'raise RuntimeError("Error(s) in loading state_dict for Net:\\n\\tMissing key(s): a\\n\\tmore")'
CHAINED = "try:\n    import absent_module\nexcept ImportError as error:\n    raise RuntimeError('no data') from error"
LATE = "import atexit\natexit.register(lambda: {}['late'])\n"
DELETED = "class A:\n    def __del__(self): raise KeyError('late')\na = A()\n"
THREAD = "import sys, threading\nthread = threading.Thread(target=lambda: {}['own'])\nthread.start(); thread.join()\n"
POOL = """
from concurrent.futures import ProcessPoolExecutor
def divide(x): return 1 / x
if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool: list(pool.map(divide, [0]))
"""
DEEP = "\n".join(f"def f{n}(): f{n + 1}()" for n in range(60)) + "\ndef f60(): raise ValueError('deep')\nf0()"


@pytest.mark.parametrize(
    ("script", "line"),
    [
        pytest.param("raise ValueError('x')", "ValueError: x", id="plain"),
        pytest.param("import absent_module", "ModuleNotFoundError: No module named 'absent_module'", id="module"),
        pytest.param("assert 1 == 2", "AssertionError", id="no message"),
        pytest.param("x = 1\nif x\n    pass", "SyntaxError: expected ':' (train.py, line 2)", id="syntax"),
        pytest.param(MULTI, "RuntimeError: Error(s) in loading state_dict for Net: Missing key(s): a", id="lines"),
        pytest.param("raise ValueError('\\nbelow')", "ValueError: below", id="message below"),
        pytest.param("raise ValueError('above\\n' + 'x\\n' * 20)", "ValueError: above", id="many lines"),
        pytest.param(CHAINED, "RuntimeError: no data", id="chained"),
        pytest.param("class MyError(Exception): pass\nraise MyError('é')", "MyError: é", id="of the script"),
        pytest.param(LATE + "raise ValueError('first')", "ValueError: first", id="fails again at the end"),
        pytest.param(DELETED + "raise ValueError('first')", "ValueError: first", id="fails in __del__"),
        pytest.param(THREAD + "sys.exit(1)", "KeyError: 'own'", id="thread"),
        pytest.param(THREAD + "raise ValueError('main')", "ValueError: main", id="thread and main"),
        pytest.param(POOL, "ZeroDivisionError: division by zero", id="pool"),
        pytest.param(DEEP, "ValueError: deep", id="traceback longer than what is kept"),
        pytest.param("import logging\ntry: 1 / 0\nexcept Exception: logging.exception('no'); raise SystemExit(3)",
                     "ZeroDivisionError: division by zero", id="logged"),
        pytest.param("print('so far')\nraise SystemExit('bad configuration')", "", id="sys.exit"),
        pytest.param("raise SystemExit(7)", "", id="nothing said"),
    ],
)  # fmt: skip
def test_what_python_writes(tmp_path: Path, script: str, line: str) -> None:
    (tmp_path / "train.py").write_text(script)
    with open(tmp_path / "log.txt", "wb") as log:
        subprocess.run([sys.executable, "train.py"], cwd=tmp_path, stdout=log, stderr=log, check=False)
    assert exception_in(tail(tmp_path / "log.txt")) == line


FRAME = '  File "a.py", line 1, in <module>\n    x()\n'
HEADER = "Traceback (most recent call last):\n"
OF_TENSORFLOW = """
tensorflow.InvalidArgumentError: Graph execution error:

Detected at node 'x' defined at (most recent call last):
    File "a.py", line 1, in <module>
      x()
Node: 'x'
"""
GROUP = """  + Exception Group Traceback (most recent call last):
  |   File "a.py", line 1, in <module>
  |     raise ExceptionGroup("many", [ValueError("a")])
  | ExceptionGroup: many (1 sub-exception)
  +-+---------------- 1 ----------------
    | ValueError: a
    +------------------------------------
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        ("epoch 3\nloss: 0.5\n", ""),
        (HEADER, ""),
        (HEADER + FRAME, ""),
        (f"\x1b[31m{HEADER}\x1b[0m{FRAME}\x1b[1mValueError\x1b[0m: \x1b[31mx\x1b[0m\x07\n", "ValueError: x"),
        (HEADER + FRAME + OF_TENSORFLOW.lstrip(), "tensorflow.InvalidArgumentError: Graph execution error: "
         "Detected at node 'x' defined at (most recent call last):"),
        (GROUP, "ExceptionGroup: many (1 sub-exception)"),
        (HEADER + FRAME + "KeyError: 'x'\nwandb: waiting for the upload\n", "KeyError: 'x'"),
        ("╭──── Traceback (most recent call last) ────╮\n│ a.py:1 │\n╰────╯\nValueError: x\n", "ValueError: x"),
        (HEADER + FRAME + "this is no exception at all\n", ""),
    ],
)  # fmt: skip
def test_what_others_write(text: str, line: str) -> None:
    assert exception_in(text) == line


def test_the_exceptions_that_led_to_it_follow() -> None:
    text = f"{HEADER}{FRAME}KeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert exceptions_in(f"{text}{HEADER}{FRAME}ValueError: 2\n") == ["ValueError: 2", "KeyError: 1"]
    # Printed on the way, and got over.
    assert exceptions_in(f"{HEADER}{FRAME}KeyError: 1\nonwards\n{HEADER}{FRAME}ValueError: 2\n") == ["ValueError: 2"]


def test_long_lines_are_shortened() -> None:
    line = exception_in(f"{HEADER}{FRAME}ValueError: {'x' * 5000}\n")
    assert len(line) == 300 and line.endswith("x...")
    assert len(last_line("y" * 5000)) == 300


def test_messages_and_last_lines() -> None:
    assert message_in("usage: a.py\na.py: error: argument --lr: invalid float value: 'x'\n", 2) == (
        "a.py: error: argument --lr: invalid float value: 'x'"
    )
    assert message_in("epoch 3\n", 2) == ""
    assert last_line("one\n\x1b[1mtwo\x1b[0m\n-----\n\n") == "two"
