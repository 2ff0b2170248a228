"""What ssh prints when it fails, as errors that say what to do. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainmaster.engines.remote.channel import Unreachable
from trainmaster.job.errors import ComputeTargetException

if TYPE_CHECKING:
    from trainmaster.engines.remote.host import SshHost

_NO_ROUTE = re.compile(
    r"Connection timed out|No route to host|Network is unreachable|Connection refused|Operation timed out"
    r"|Connection closed by|Connection reset|Host is down|banner exchange|kex_exchange_identification"
    r"|not responding|Broken pipe|client_loop|Timeout, server"
)
_UNKNOWN_NAME = re.compile(r"Could not resolve hostname|Name or service not known")
_LAST = 600
# The exit code of ssh itself; any other code is that of the program on the host.
_NOT_CONNECTED = 255


def explain(host: SshHost, code: int | None, stderr: str) -> ComputeTargetException:
    """Why a connection could not be made, or was lost; `stderr` is what ssh printed."""
    stderr = stderr.strip()
    where = host.title
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in stderr:
        return ComputeTargetException(
            f"the key of {where} has changed",
            cause=_last_lines(stderr),
            hint=f"If the machine was set up again, remove the old with 'ssh-keygen -R {_name_in_known_hosts(host)}' "
            "and log in once by hand. If not, somebody may be intercepting the connection.",
        )
    if "Host key verification failed" in stderr or "host key is known for" in stderr:
        return ComputeTargetException(
            f"the key of {where} is unknown",
            cause=_last_lines(stderr),
            hint=f"Log in once by hand with '{host.shell_command}' and compare the fingerprint that it shows.",
        )
    if re.search(r"[Bb]ad configuration option|Bad owner or permissions on", stderr):
        return ComputeTargetException(
            f"ssh does not accept its configuration for {where}",
            cause=_last_lines(stderr),
            hint=f"Correct the file that it names; '{host.shell_command}' must work.",
        )
    if re.search(r"UNPROTECTED PRIVATE KEY|bad permissions", stderr):
        return ComputeTargetException(
            f"ssh does not use the key for {where}",
            cause=_last_lines(stderr),
            hint="Restrict the access to the key file with 'chmod 600'.",
        )
    if "Permission denied" in stderr or "Too many authentication failures" in stderr:
        return ComputeTargetException(
            f"{where} refuses the login",
            cause=_last_lines(stderr),
            hint=_login_hint(host),
        )
    if _UNKNOWN_NAME.search(stderr):
        return Unreachable(
            f"the name of {where} is unknown",
            cause=_last_lines(stderr),
            hint="Check the name, or add it to ~/.ssh/config with its HostName.",
        )
    if code == 127 or re.search(r"(command )?not found|No such file or directory", stderr):
        return ComputeTargetException(
            f"{where} has no '{host.python}'",
            cause=_last_lines(stderr),
            hint="Install Python 3.6 or newer there, or give its path with python='/path/to/python3'.",
        )
    if _NO_ROUTE.search(stderr):
        return Unreachable(
            f"{where} cannot be reached",
            cause=_last_lines(stderr),
            hint=f"Check that it is switched on and that the SSH port is right. Try '{host.shell_command}'.",
        )
    if re.search(r"SyntaxError|ImportError|ModuleNotFoundError|AttributeError", stderr):
        return ComputeTargetException(
            f"the Python of {where} cannot be used",
            cause=_last_lines(stderr),
            hint="Python 3.6 or newer is required there; give its path with python='/path/to/python3'.",
        )
    if stderr:
        return Unreachable(f"the connection to {where} was lost", cause=_last_lines(stderr))
    return Unreachable(f"the connection to {where} was lost", cause=f"ssh ended with {code} and printed nothing.")


def explain_start(host: SshHost, code: int | None, stderr: str, output: str) -> ComputeTargetException:
    """Why the helper did not start on a host that was reached; `output` is what came in its place."""
    where = host.title
    if "invalid literal for int()" in stderr:
        return ComputeTargetException(
            f"a start-up file of the login shell on {where} reads from its input",
            cause="It consumed the input of the program that it should start.",
            hint="Let it read only in interactive shells (in .bashrc: '[[ $- == *i* ]] || return').",
        )
    if code in (None, _NOT_CONNECTED) or stderr.strip():
        return explain(host, code, stderr)
    return ComputeTargetException(
        f"the login shell of {where} ended without starting '{host.python}'",
        cause=_last_lines(output) or f"It ended with {code} and printed nothing.",
        hint=f"Check that this user may run programs there. Try '{host.shell_command} {host.python} -V'.",
    )


def _name_in_known_hosts(host: SshHost) -> str:
    return f"[{host.name}]:{host.port}" if host.port and host.port != 22 else host.name


def _login_hint(host: SshHost) -> str:
    if host.secret:
        return "Check the password, and attach the machine again with the right one."
    if host.private_key_file:
        return (
            f"Check the user name, and that ~/.ssh/authorized_keys there has the key of {host.private_key_file}. "
            "A key with a passphrase must be in an agent (ssh-add) that ran when the dispatcher was started."
        )
    return (
        f"'{host.shell_command}' must work without a prompt: give private_key_file=, name the key in ~/.ssh/config, "
        "or add it to an agent (ssh-add); a key with a passphrase needs an agent. A dispatcher that was started before "
        "the agent cannot use it: 'trainmaster down' ends the dispatcher."
    )


def _last_lines(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip() and set(line.strip()) != {"@"}]
    return "\n".join(lines)[-_LAST:]
