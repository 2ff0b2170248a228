"""Properties of the host."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time

from .files import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Mapping, Sequence

_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
_SHELL_SECONDS = 20


def facts(root: str) -> "dict[str, Any]":
    """What this machine is and has; `root` is the workspace's folder here."""
    folder = root
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    space = os.statvfs(folder)
    connection = os.environ.get("SSH_CONNECTION", "").split()
    return {
        "root": root,
        "python": sys.executable,
        "version": list(sys.version_info[:3]),
        "machine": os.uname().machine,
        "host": os.uname().nodename,
        "user": os.getuid(),
        "libc": list(platform.libc_ver()),
        "address": connection[2] if len(connection) == 4 else "",
        "cpus": len(os.sched_getaffinity(0)),
        "memory": memory(),
        "gpus": sum(name[6:].isdigit() for name in names("/dev") if name.startswith("nvidia")),
        "free": space.f_bavail * space.f_frsize,
        "now": time.time(),
        "variables": dict(
            {name: os.environ[name] for name in _VARIABLES if name in os.environ}, **replace_variables(root)
        ),
    }


def replace_variables(root: str) -> "dict[str, str]":
    """Variables for folders that programs expect and cannot write to here, as in a container of another user."""
    found = {}
    if not _is_usable(os.path.expanduser("~")):
        found["HOME"] = root + "/home"
    if not any(_is_usable(folder) for folder in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp")):
        found["TMPDIR"] = root + "/tmp"
    return found


def _is_usable(folder: str) -> bool:
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def memory() -> int:
    """The size of the memory in bytes; 0 if unknown."""
    try:
        with open("/proc/meminfo") as file:
            return int(file.readline().split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return 0


def pythons(version: str) -> "list[str]":
    """The paths of installed Pythons of this version (major.minor)."""
    name = "python" + version
    home = os.path.expanduser("~")
    paths = [os.path.join(folder, name) for folder in os.environ.get("PATH", os.defpath).split(":") if folder]
    paths += ["/usr/bin/" + name, "/usr/local/bin/" + name, home + "/.local/bin/" + name]
    for folder in (home + "/.pyenv/versions", home + "/.local/share/uv/python"):
        paths += [os.path.join(folder, each, "bin", name) for each in sorted(names(folder), reverse=True)]
    own = "{}.{}".format(*sys.version_info[:2])
    if own == version:
        paths.insert(0, sys.executable)
    found: "list[str]" = []
    for path in paths:
        real = os.path.realpath(path)
        if "shims" not in path and os.access(real, os.X_OK) and real not in found:
            found.append(real)
    return found


def variables_for(program: str, wanted: "Collection[str]", beginnings: "Sequence[str]") -> "dict[str, str]":
    """The variables for calling `program`: those with a name in `wanted` or with one of the `beginnings`.

    If the program is not on the PATH, a login shell is asked: some sites set the PATH only there.
    """
    known: "Mapping[str, str]" = os.environ
    if shutil.which(program) is None:
        login = login_shell_variables()
        if "PATH" in login and shutil.which(program, path=login["PATH"]) is not None:
            known = login
    return {name: value for name, value in known.items() if name in wanted or name.startswith(tuple(beginnings))}


def login_shell_variables() -> "dict[str, str]":
    """The variables of a login shell; none if it does not answer."""
    mark = "trainmaster:"
    code = "import json, os; print('{}' + json.dumps(dict(os.environ)))".format(mark)
    command = [os.environ.get("SHELL") or "/bin/sh", "-lc", 'exec "{}" -c "{}"'.format(sys.executable, code)]
    try:
        shell = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return {}
    try:
        output = shell.communicate(timeout=_SHELL_SECONDS)[0].decode("utf-8", "replace")
        variables: "dict[str, str]" = json.loads(output.rpartition(mark)[2])
        return variables
    except subprocess.TimeoutExpired:
        shell.kill()
        shell.communicate()
    except (OSError, ValueError):
        pass
    return {}
