"""The program at the other end of a connection: the modules of `job/helper/` as one text that Python runs."""

from __future__ import annotations

from functools import cache
from importlib import resources

# In the order of their imports.
_MODULES = (
    "messages",
    "connection",
    "safe_names",
    "files",
    "machine",
    "agents",
    "job_requests",
    "reporting",
    "watching",
    "command_channel",
    "serving",
)
_PROGRAM = """\
import sys
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec

for name, text in {texts!r}:
    module = sys.modules[name] = module_from_spec(ModuleSpec(name, None))
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""


@cache
def program() -> bytes:
    """The text of the program, which never becomes a file on the host."""
    folder = resources.files("trainmaster.job.helper")
    names = {"helper": "__init__", **{f"helper.{name}": name for name in _MODULES}}
    texts = [(name, folder.joinpath(f"{file}.py").read_text("utf-8")) for name, file in names.items()]
    return _PROGRAM.format(texts=texts).encode()
