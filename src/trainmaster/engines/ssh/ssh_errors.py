"""What ssh says when it cannot do what it should, as errors that say what to do now. Pure."""

from __future__ import annotations

import re

from trainmaster.engines.ssh.host import SshHost
from trainmaster.job.errors import ComputeTargetException

_NO_ROUTE = re.compile(
    r"Connection timed out|No route to host|Network is unreachable|Connection refused|Operation timed out"
    r"|Connection closed by|Connection reset|Host is down|banner exchange|kex_exchange_identification"
    r"|not responding|Broken pipe|client_loop|Timeout, server"
)
_UNKNOWN_NAME = re.compile(r"Could not resolve hostname|Name or service not known")
_LAST = 600
# How ssh itself ends; any other number is that of the program on the host.
_NOT_CONNECTED = 255


class Unreachable(ComputeTargetException):
    """Nobody answers there: what may be different in a minute."""


def explained(host: SshHost, code: int | None, said: str) -> ComputeTargetException:
    """Why a connection could not be had, or broke off."""
    said = said.strip()
    where = f"host {host.shown}"
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in said:
        return ComputeTargetException(
            f"the key of {where} is not the one that was known",
            cause=_last_lines(said),
            hint="If the machine was set up anew, remove the old key with "
            f"'ssh-keygen -R {_in_known_hosts(host)}' and log in once by hand; if not, somebody may be in between.",
        )
    if "Host key verification failed" in said or "host key is known for" in said:
        return ComputeTargetException(
            f"the key of {where} is not known",
            cause=_last_lines(said),
            hint=f"Log in once by hand with '{by_hand(host)}' and compare the fingerprint that is shown.",
        )
    if re.search(r"[Bb]ad configuration option|Bad owner or permissions on", said):
        return ComputeTargetException(
            f"ssh does not accept its configuration for {where}",
            cause=_last_lines(said),
            hint=f"Mend the file that it names; '{by_hand(host)}' has to work.",
        )
    if re.search(r"UNPROTECTED PRIVATE KEY|bad permissions", said):
        return ComputeTargetException(
            f"ssh does not use the key for {where}", cause=_last_lines(said), hint="chmod 600 the key file."
        )
    if "Permission denied" in said or "Too many authentication failures" in said:
        return ComputeTargetException(
            f"{where} refuses the login",
            cause=_last_lines(said),
            hint=_on_refusal(host),
        )
    if _UNKNOWN_NAME.search(said):
        return Unreachable(
            f"the name of {where} is not known",
            cause=_last_lines(said),
            hint="Check the name, or add it to ~/.ssh/config with its HostName.",
        )
    if code == 127 or re.search(r"(command )?not found|No such file or directory", said):
        return ComputeTargetException(
            f"{where} has no '{host.python}'",
            cause=_last_lines(said),
            hint="Install Python 3.6 or newer there, or say where it is with python='/path/to/python3'.",
        )
    if _NO_ROUTE.search(said):
        return Unreachable(
            f"{where} cannot be reached",
            cause=_last_lines(said),
            hint=f"Is it switched on, and is its SSH port right? Try '{by_hand(host)}'.",
        )
    if re.search(r"SyntaxError|ImportError|ModuleNotFoundError|AttributeError", said):
        return ComputeTargetException(
            f"the Python of {where} cannot be used",
            cause=_last_lines(said),
            hint="Python 3.6 or newer is needed there; say which with python='/path/to/python3'.",
        )
    if said:
        return Unreachable(f"the connection to {where} broke off", cause=_last_lines(said))
    return Unreachable(f"the connection to {where} broke off", cause=f"ssh ended with {code} and said nothing.")


def never_began(host: SshHost, code: int | None, said: str, heard: str) -> ComputeTargetException:
    """Why our program was not started, though somebody was reached; `heard` is what came in its place."""
    where = f"host {host.shown}"
    if "invalid literal for int()" in said:
        return ComputeTargetException(
            f"a start-up file of the login shell on {where} reads from its input",
            cause="What it took was meant for the program that it is to start.",
            hint="Let it ask only where somebody sits at a terminal (in .bashrc: '[[ $- == *i* ]] || return').",
        )
    if code in (None, _NOT_CONNECTED) or said.strip():
        return explained(host, code, said)
    return ComputeTargetException(
        f"the login shell of {where} ended without starting '{host.python}'",
        cause=_last_lines(heard) or f"It ended with {code} and said nothing.",
        hint=f"May this user run programs there? Try '{by_hand(host)} {host.python} -V'.",
    )


def by_hand(host: SshHost) -> str:
    """What a person would type.

    >>> by_hand(SshHost("gpu1", "me", 2222))
    'ssh -p 2222 me@gpu1'
    """
    words = ["ssh"]
    if host.config_file:
        words += ["-F", host.config_file]
    if host.private_key_file:
        words += ["-i", host.private_key_file]
    if host.port:
        words += ["-p", str(host.port)]
    return " ".join([*words, f"{host.username}@{host.name}" if host.username else host.name])


def _in_known_hosts(host: SshHost) -> str:
    return f"[{host.name}]:{host.port}" if host.port and host.port != 22 else host.name


def _on_refusal(host: SshHost) -> str:
    if host.secret:
        return "Check the password; attach the machine again with the right one."
    if host.private_key_file:
        return (
            f"Check the user name, and that ~/.ssh/authorized_keys there has the key of {host.private_key_file}. "
            "A key with a passphrase has to be in an agent (ssh-add) that was there when the dispatcher started."
        )
    return (
        f"'{by_hand(host)}' has to work without a question: give private_key_file=, or name the key in ~/.ssh/config, "
        "or add it to an agent (ssh-add), as one with a passphrase has to be. A dispatcher that was started before the "
        "agent does not know it: 'trainmaster down' ends it."
    )


def _last_lines(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip() and set(line.strip()) != {"@"}]
    return "\n".join(lines)[-_LAST:]
