"""What the host is and has."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time

from .files import names

_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
_SHELL_SECONDS = 20


def facts(root):
    """What this machine is and has."""
    place = root
    while not os.path.isdir(place):
        place = os.path.dirname(place)
    room = os.statvfs(place)
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
        "free": room.f_bavail * room.f_frsize,
        "now": time.time(),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
    }


def memory():
    try:
        with open("/proc/meminfo") as file:
            return int(file.readline().split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return 0


def pythons(version):
    """Where a Python of this version may be, those that are there."""
    name = "python" + version
    home = os.path.expanduser("~")
    places = [os.path.join(folder, name) for folder in os.environ.get("PATH", os.defpath).split(":") if folder]
    places += ["/usr/bin/" + name, "/usr/local/bin/" + name, home + "/.local/bin/" + name]
    for folder in (home + "/.pyenv/versions", home + "/.local/share/uv/python"):
        places += [os.path.join(folder, each, "bin", name) for each in sorted(names(folder), reverse=True)]
    own = "{}.{}".format(*sys.version_info[:2])
    if own == version:
        places.insert(0, sys.executable)
    found = []
    for place in places:
        real = os.path.realpath(place)
        if "shims" not in place and os.access(real, os.X_OK) and real not in found:
            found.append(real)
    return found


def equipped(program, wanted, beginnings):
    """The variables to call `program` with, of those that are `wanted` by their names or how these begin.

    Where the program is not found, a login shell is asked: some sites set the PATH of such only.
    """
    known = os.environ
    if shutil.which(program) is None:
        told = of_login_shell()
        if "PATH" in told and shutil.which(program, path=told["PATH"]) is not None:
            known = told
    return {name: value for name, value in known.items() if name in wanted or name.startswith(tuple(beginnings))}


def of_login_shell():
    """The variables of one; none if it cannot be had."""
    mark = "trainmaster:"
    code = "import json, os; print('{}' + json.dumps(dict(os.environ)))".format(mark)
    words = [os.environ.get("SHELL") or "/bin/sh", "-lc", 'exec "{}" -c "{}"'.format(sys.executable, code)]
    try:
        shell = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        said = shell.communicate(timeout=_SHELL_SECONDS)[0].decode("utf-8", "replace")
        return json.loads(said.rpartition(mark)[2])
    except subprocess.TimeoutExpired:
        shell.kill()
        shell.communicate()
    except (OSError, ValueError):
        pass
    return {}
