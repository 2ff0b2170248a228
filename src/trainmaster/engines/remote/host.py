"""One host, and the command line that reaches it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster.engines.remote import ssh_errors
from trainmaster.engines.remote.channel import BOOTSTRAP, Channel, Host
from trainmaster.engines.remote.connection import CONNECT_SECONDS, DEFAULT_SILENCE
from trainmaster.engines.remote.ssh_channel import SshChannel
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import TargetRecord

DEFAULT_FOLDER = "~/.trainmaster"
DEFAULT_PORT = 22


@dataclass(frozen=True)
class SshHost:
    """A host as `ssh` knows it: a name, an address, or an alias of ~/.ssh/config."""

    name: str
    username: str = ""
    port: int | None = None
    private_key_file: str = ""
    config_file: str = ""
    """Used instead of ~/.ssh/config."""
    python: str = "python3"
    folder: str = DEFAULT_FOLDER
    """The folder on the host that holds all of our files."""
    secret: str = ""
    """The name of the secret with the password or passphrase; empty if there is none."""
    variables: Callable[[], Mapping[str, str]] = field(default=dict, compare=False)
    """Returns the variables that ssh needs to log in."""

    @property
    def label(self) -> str:
        """The host as a person would write it.

        >>> SshHost("gpu1", "me", 2222).label
        'me@gpu1:2222'
        """
        user = f"{self.username}@" if self.username else ""
        return f"{user}{self.name}" + (f":{self.port}" if self.port else "")

    @property
    def title(self) -> str:
        return f"host {self.label}"

    @property
    def cache(self) -> str:
        return ""

    @property
    def shell_command(self) -> str:
        """The command that a person would type.

        >>> SshHost("gpu1", "me", 2222).shell_command
        'ssh -p 2222 me@gpu1'
        """
        words = ["ssh"]
        if self.config_file:
            words += ["-F", self.config_file]
        if self.private_key_file:
            words += ["-i", self.private_key_file]
        if self.port:
            words += ["-p", str(self.port)]
        return " ".join([*words, f"{self.username}@{self.name}" if self.username else self.name])

    async def open_channel(self, silence: float) -> Channel:
        return await SshChannel.open(command(self, silence), self.variables())

    def explain_loss(self, code: int | None, stderr: str) -> ComputeTargetException:
        return ssh_errors.explain(self, code, stderr)

    def explain_start(self, code: int | None, stderr: str, output: str) -> ComputeTargetException:
        return ssh_errors.explain_start(self, code, stderr, output)


def hosts_of(target: TargetRecord) -> tuple[SshHost, ...]:
    """The hosts of a target, in the order of its nodes."""
    options = target.options
    names = options.get("hosts") or [options.get("address")]
    return tuple(_host(str(name), options) for name in names if name)


def login_of(target: TargetRecord) -> SshHost:
    """The login node of a cluster."""
    return _host(str(target.options["login"]), target.options)


def root_of(host: Host, workspace: WorkspaceFolder) -> str:
    """The folder of a workspace on a host."""
    return f"{host.folder}/hosts/{workspace.read_identity()['id']}"


def _host(name: str, options: Mapping[str, Any]) -> SshHost:
    user, address, port = split_address(name)
    given = options.get("port") or options.get("ssh_port")
    if given == DEFAULT_PORT:
        # The default of ssh, which the user's configuration may change.
        given = None
    return SshHost(
        name=address,
        username=user or str(options.get("username") or ""),
        port=port or (int(given) if given else None),
        private_key_file=str(options.get("private_key_file") or ""),
        config_file=str(options.get("config_file") or ""),
        python=str(options.get("python") or "python3"),
        folder=str(options.get("shared_folder") or options.get("folder") or DEFAULT_FOLDER),
        secret=str(options.get("secret") or ""),
    )


def split_address(text: str) -> tuple[str, str, int | None]:
    """Splits `[user@]name[:port]` into its parts; an IPv6 address with a port has brackets.

    >>> split_address("me@gpu1:2222"), split_address("::1"), split_address("[::1]:22")
    (('me', 'gpu1', 2222), ('', '::1', None), ('', '::1', 22))
    """
    user, _, rest = text.rpartition("@")
    if rest.startswith("["):
        name, _, port = rest[1:].partition("]")
        return user, name, int(port[1:]) if port[1:].isdecimal() else None
    name, _, port = rest.partition(":")
    if port.isdecimal():
        return user, name, int(port)
    return user, rest, None


def is_shared(target: TargetRecord) -> bool:
    """Whether all hosts of a target see one folder."""
    return bool(target.options.get("shared_folder"))


def silence_limit(target: TargetRecord) -> float:
    """The number of seconds after which a silent host counts as lost."""
    return float(target.options.get("lost_after_seconds") or DEFAULT_SILENCE)


def command(host: SshHost, silence: float = DEFAULT_SILENCE) -> list[str]:
    """The command line that connects to `host` and notices within `silence` seconds that the host is silent.

    >>> " ".join(command(SshHost("gpu1", "me", 2222)))[:60]
    'ssh -T -o BatchMode=yes -o StrictHostKeyChecking=yes -o Conn'
    """
    interval = max(1, int(silence / 6))
    options = {
        "BatchMode": "no" if host.secret else "yes",
        # Whatever the user's configuration says: we never connect to an unknown host.
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": str(max(2, min(CONNECT_SECONDS, int(silence / 2)))),
        "ServerAliveInterval": str(interval),
        "ServerAliveCountMax": "3",
        "ClearAllForwardings": "yes",
        # A connection that the user shares is used; none of ours is shared, because it may be closed at any time.
        "ControlMaster": "no",
        "LogLevel": "ERROR",
    }
    words = ["ssh", "-T"]
    for name, value in options.items():
        words += ["-o", f"{name}={value}"]
    if host.secret:
        words += ["-o", "NumberOfPasswordPrompts=1"]
    if host.config_file:
        words += ["-F", host.config_file]
    if host.private_key_file:
        words += ["-i", host.private_key_file, "-o", "IdentitiesOnly=yes"]
    if host.port:
        words += ["-p", str(host.port)]
    if host.username:
        words += ["-l", host.username]
    return [*words, "--", host.name, f"exec {host.python} -c '{BOOTSTRAP}'"]


def check_ssh() -> None:
    """Raises an error if this machine has no ssh."""
    if shutil.which("ssh", path=os.environ.get("PATH", os.defpath)) is None:
        raise ComputeTargetException(
            "this machine has no 'ssh'", hint="Install the OpenSSH client (Debian: apt install openssh-client)."
        )
