"""How a failed cell is reported in the log: as Python reports an exception of a script. Pure."""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_HEADER = re.compile(r"\S+ +Traceback \(most recent call last\)|-{20,}")


def describe_failure(notebook: str, number: int, failed: "Mapping[str, Any]") -> str:
    """The text about the exception of a cell.

    >>> print(describe_failure("a.ipynb", 2, {"ename": "KeyError", "evalue": "1", "traceback": [
    ...     "----------------------------", "KeyError   Traceback (most recent call last)",
    ...     "Cell In[2], line 1\\n----> 1 {}[1]", "KeyError: 1"]}), end="")
    Cell 2 of a.ipynb failed.
    Traceback (most recent call last):
      Cell In[2], line 1
      ----> 1 {}[1]
    KeyError: 1
    """
    last = "{}: {}".format(failed["ename"], failed["evalue"]) if failed.get("evalue") else str(failed["ename"])
    body = _COLOURS.sub("", "\n".join(failed.get("traceback") or ())).rstrip()
    if body.endswith(last):
        body = body[: -len(last)]
    lines = [line.rstrip() for line in body.splitlines() if not _HEADER.fullmatch(line.strip())]
    frames = "".join("  {}\n".format(line) for line in lines if line)
    return "Cell {} of {} failed.\nTraceback (most recent call last):\n{}{}\n".format(number, notebook, frames, last)


def is_exit(failed: "Mapping[str, Any]") -> bool:
    """Whether the cell ended the notebook by sys.exit without an error.

    >>> is_exit({"ename": "SystemExit", "evalue": "0"}), is_exit({"ename": "SystemExit", "evalue": "1"})
    (True, False)
    """
    return failed["ename"] == "SystemExit" and failed.get("evalue", "") in ("", "0", "None")
