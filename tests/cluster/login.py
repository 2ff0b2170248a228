"""A login node for the mini cluster: a real sshd, and a view of the disks in which some of this machine's folders are
hidden, so that nothing works only because both sides are one machine.

    with View(folder, hidden=[laptop]) as view, MiniSlurm(cluster, nodes=2, inside=view.words) as slurm:
        with LoginNode(folder, view, slurm.environment) as login:
            subprocess.run(["ssh", "-F", login.ssh_config, "login", "sinfo"])
            login.cut()         # connections break, and no new one is to be had
            login.mend()

It needs root, `unshare`, `nsenter`, `setpriv` and `sshd`. All of it dies with us.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.hosts import SSHD, _make_key, holder, require_tools, until

_SSHD_CONFIG = """
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UseDNS no
{variables}
"""
_SSH_CONFIG = """
Host login
  HostName 127.0.0.1
  Port {port}
  User root
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
"""


class View:
    """What programs see of the disks that are started with its `words`: the `hidden` folders are empty."""

    def __init__(self, folder: Path, hidden: Sequence[Path]) -> None:
        self._folder = folder
        self._hidden = hidden
        self._ends = contextlib.ExitStack()
        self.words: list[str] = []

    def __enter__(self) -> View:
        require_tools()
        self._folder.mkdir(parents=True, exist_ok=True)
        ready = self._folder / "hidden"
        mounts = [f"mount -t tmpfs tmpfs {shlex.quote(str(path))}" for path in self._hidden]
        lines = [
            "set -e",
            "mount --make-rprivate /",
            *mounts,
            f"touch {shlex.quote(str(ready))}",
            "exec sleep infinity",
        ]
        process = self._ends.enter_context(holder(["unshare", "--mount", "--", "bash", "-c", "\n".join(lines)]))
        until(ready.exists, "the view of the disks")
        self.words = ["nsenter", "-t", str(process.pid), "-m", "--"]
        return self

    def __exit__(self, *error: object) -> None:
        self._ends.close()


class LoginNode:
    """sshd for one connection each, so that its port is ours from the first moment to the last."""

    def __init__(self, folder: Path, view: View, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self._view = view
        self._variables = variables
        self._open: list[subprocess.Popen[bytes]] = []
        self._is_cut = False
        # None is let in while all are thrown out.
        self._door = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        """How many there have been."""
        self.refused = 0
        """How many were not to be had."""

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def ssh_config(self) -> str:
        """For `ssh -F`: in it the node is called `login`."""
        return str(self.folder / "ssh_config")

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def user_key(self) -> str:
        return str(self.folder / "user_key")

    def __enter__(self) -> LoginNode:
        self.folder.mkdir(parents=True, exist_ok=True)
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for name in ("host_key", "user_key"):
            _make_key(self.folder / name)
        given = " ".join(f'"{name}={value}"' for name, value in self._variables.items())
        text = _SSHD_CONFIG.format(folder=self.folder, variables=f"SetEnv {given}" if given else "")
        (self.folder / "sshd_config").write_text(text)
        (self.folder / "ssh_config").write_text(_SSH_CONFIG.format(folder=self.folder, port=self.port))
        key = (self.folder / "host_key.pub").read_text().rsplit(" ", 1)[0]
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {key}\n")
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.cut()
        # Wakes the one who waits for the next connection.
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def cut(self) -> None:
        """Its connections break, and no new one is to be had."""
        with self._door:
            self._is_cut = True
            self._signal(signal.SIGKILL)
            for process in self._open:
                process.wait()
            self._open.clear()

    def fall_silent(self) -> None:
        """As if a cable were pulled: connections stall, nobody is told, and no new one is to be had."""
        with self._door:
            self._is_cut = True
            self._signal(signal.SIGSTOP)

    def refuse_more(self) -> None:
        """Those that are there stay, and no new one is to be had."""
        self._is_cut = True

    def mend(self) -> None:
        """New connections are to be had; those that were there do not come back."""
        self._is_cut = False

    def _signal(self, number: signal.Signals) -> None:
        for process in self._open:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = self._socket.accept()
                with line, self._door:
                    if self._is_cut:
                        self.refused += 1
                    else:
                        self.connections += 1
                        self._open.append(self._serve(line))

    def _serve(self, line: socket.socket) -> subprocess.Popen[bytes]:
        words = [SSHD, "-i", "-f", str(self.folder / "sshd_config"), "-E", str(self.folder / "log")]
        return subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *self._view.words, *words],
            stdin=line,
            stdout=line,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
