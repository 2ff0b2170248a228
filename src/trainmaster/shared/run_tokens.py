"""Tokens of jobs on a server: for one run, checked without a table, worth nothing once the run has ended.

A workspace that is served has the file `served.json`: the server's address, the workspace's name there, and a key. The
dispatcher signs the id of each run with the key; the server checks the signature and asks whether the run is active.
Jobs run as the dispatcher's account, which can read the key: the tokens keep users apart, not the jobs of one account.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from trainmaster.job.agent import durable
from trainmaster.shared.folders import WorkspaceFolder

PREFIX = "tmr_"
SERVER_VARIABLE = "TRAINMASTER_SERVER"
TOKEN_VARIABLE = "TRAINMASTER_TOKEN"
PAGE_VARIABLE = "TRAINMASTER_PORTAL_URL"
_KEY_BYTES = 32


@dataclass(frozen=True)
class Served:
    """What a workspace knows about the server that serves it."""

    address: str
    """Where its jobs reach the server; empty if they cannot."""
    name: str
    key: bytes
    networks: tuple[str, ...] = ()
    """Private networks that notifications may be sent to."""


@lru_cache(maxsize=256)
def sign_run(run_id: str, key: bytes) -> str:
    """The token of a run."""
    return f"{PREFIX}{run_id}.{_sign(run_id, key)}"


def read_run_id(token: str) -> str:
    """The run that a token claims to be for; empty if it is not a run token."""
    return token[len(PREFIX) :].rpartition(".")[0] if token.startswith(PREFIX) else ""


def is_genuine(token: str, key: bytes) -> bool:
    """Whether the token was signed with this key; takes the same time for every wrong signature."""
    run_id = read_run_id(token)
    return bool(run_id) and hmac.compare_digest(
        sign_run(run_id, key).encode("utf-8", "surrogatepass"), token.encode("utf-8", "surrogatepass")
    )


def read_served(folder: WorkspaceFolder) -> Served | None:
    """What the workspace knows about its server; None for one that is not served."""
    try:
        found = os.stat(folder.served)
    except FileNotFoundError:
        return None
    return _read(str(folder.served), found.st_mtime_ns, found.st_ino)


def write_served(folder: WorkspaceFolder, address: str, name: str, networks: tuple[str, ...] = ()) -> Served:
    """Let the dispatcher know the server. The key stays the same, so that the tokens of running jobs do."""
    known = read_served(folder) or _create_served(folder, address, name)
    served = Served(address, name, known.key, networks)
    if served != known:
        durable.write(folder.served, _format(served), mode=0o600)
    return served


def _create_served(folder: WorkspaceFolder, address: str, name: str) -> Served:
    """Create the file with a new key. If two servers do so at the same time, both have the key of the first."""
    import secrets

    made = folder.served.with_name(f".{folder.served.name}.{secrets.token_hex(8)}")
    try:
        durable.write_new(made, _format(Served(address, name, secrets.token_bytes(_KEY_BYTES))), 0o600)
        with contextlib.suppress(FileExistsError):
            os.link(made, folder.served)
    finally:
        made.unlink(missing_ok=True)
    durable.flush_one(folder.path)
    found = read_served(folder)
    assert found is not None
    return found


def _format(served: Served) -> bytes:
    facts: dict[str, object] = {"server": served.address, "workspace": served.name, "key": served.key.hex()}
    if served.networks:
        facts["networks"] = list(served.networks)
    return (json.dumps(facts, indent=1) + "\n").encode()


@lru_cache(maxsize=64)
def _read(path: str, _changed_at: int, _inode: int) -> Served:
    facts = json.loads(Path(path).read_text())
    return Served(
        str(facts["server"]), str(facts["workspace"]), bytes.fromhex(facts["key"]), tuple(facts.get("networks", ()))
    )


def _sign(run_id: str, key: bytes) -> str:
    return hmac.new(key, b"run\0" + run_id.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
