"""The secrets of a workspace: stored encrypted, given to jobs on request, and masked in the logs of those jobs.

The key is a file of the user's own folder (`TRAINMASTER_HOME/keys/<workspace id>.key`, mode 600), not of the workspace:
a copy of the workspace alone reveals nothing. Only the dispatcher reads the key.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.dispatcher.store import Store
from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException, WorkspaceException
from trainmaster.shared.folders import RunFolder, WorkspaceFolder, key_file
from trainmaster.shared.private import make_home
from trainmaster.shared.redaction import Mask

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

log = logging.getLogger("trainmaster.dispatch")

_FACT = "secrets"
_KEY_FACT = "secrets.key"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,126}", re.ASCII)
_LONGEST = 25_000


class Secrets:
    """Reads and writes secrets. No method awaits, so each is one step of the dispatcher."""

    def __init__(self, folder: WorkspaceFolder, store: Store) -> None:
        self._folder = folder
        self._store = store

    def put(self, secrets: Mapping[str, Mapping[str, str]]) -> None:
        """Store `{name: {"value", "content_type"}}`, all or none."""
        for name, secret in secrets.items():
            check_secret(name, secret.get("value"))
        cipher = self._cipher(make=True)
        kept = self._read_secrets()
        for name, secret in secrets.items():
            token = cipher.encrypt(secret["value"].encode("utf-8", "surrogatepass")).decode("ascii")
            kept[name] = {"token": token, "content_type": str(secret.get("content_type") or ""), "at": time.time()}
        self._store.facts.put(_FACT, kept)

    def get(self, names: Sequence[str]) -> dict[str, dict[str, str] | None]:
        """`{name: {"value", "content_type"}}`, with None for an unknown name."""
        kept = self._read_secrets()
        found: dict[str, dict[str, str] | None] = dict.fromkeys(names)
        known = [name for name in found if name in kept]
        cipher = self._cipher() if known else None
        for name in known:
            assert cipher is not None
            value = self._decrypt(cipher, kept[name]["token"], f"secret '{name}'")
            found[name] = {"value": value, "content_type": kept[name]["content_type"]}
        return found

    def value(self, name: str) -> str | None:
        """The value of one secret, or None."""
        found = self.get([name])[name]
        return found["value"] if found else None

    def delete(self, names: Sequence[str]) -> None:
        """Delete secrets; unknown names are ignored."""
        kept = self._read_secrets()
        self._store.facts.put(_FACT, {name: secret for name, secret in kept.items() if name not in names})

    def names(self) -> list[str]:
        """The names of all secrets, sorted."""
        return sorted(self._read_secrets())

    def seal(self, text: str) -> str:
        """`text`, encrypted with the workspace's key."""
        return self._cipher(make=True).encrypt(text.encode("utf-8", "surrogatepass")).decode("ascii")

    def unseal(self, token: str, what: str) -> str:
        """The text that was given to `seal`; `what` names it in errors."""
        return self._decrypt(self._cipher(), token, what)

    # Jobs

    def fetch(self, run: RunFolder, names: Sequence[str]) -> dict[str, str | None]:
        """The values for a job of this run. They are noted first, so that they can be masked in its logs."""
        found = self.get(names)
        values = {name: secret["value"] if secret else None for name, secret in found.items()}
        self._note(run, {name: value for name, value in values.items() if value is not None})
        return values

    def masks(self, run: RunFolder) -> list[str]:
        """The values that this run received."""
        noted = self._read_note(run)
        if not noted:
            return []
        cipher = self._cipher()
        return [self._decrypt(cipher, each["token"], f"a secret of run {run.path.name}") for each in noted]

    def scrub(self, run: RunFolder) -> None:
        """Mask the values that the run received in its logs and results. Its processes have ended."""
        if not run.secrets.exists():
            return
        try:
            mask = Mask(self.masks(run))
        except WorkspaceException as error:
            # The run has to end nevertheless. Showing its logs is refused for the same reason.
            log.warning("run %s: its logs cannot be masked: %s", run.path.name, error.headline)
            return
        # Also the last lines in results, and the output that mpirun repeats.
        for path in [*run.logs.rglob("*"), *run.node(0).parent.rglob("*")]:
            if path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(run.path.resolve()):
                _hide(mask, path)

    def _note(self, run: RunFolder, values: Mapping[str, str]) -> None:
        noted = self._read_note(run)
        known = {each["name"]: each["token"] for each in noted}
        cipher = self._cipher() if values else None
        for name, value in values.items():
            assert cipher is not None
            if name in known and self._decrypt(cipher, known[name], name) == value:
                continue
            token = cipher.encrypt(value.encode("utf-8", "surrogatepass")).decode("ascii")
            noted.append({"name": name, "token": token})
        if len(noted) != len(known):
            _write_private(run.secrets, json.dumps({"version": 1, "given": noted}))

    def _read_note(self, run: RunFolder) -> list[dict[str, str]]:
        try:
            given: list[dict[str, str]] = json.loads(run.secrets.read_text())["given"]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WorkspaceException(f"{run.secrets} cannot be read", cause=str(error)) from None
        return given

    # The key

    def _cipher(self, make: bool = False) -> Fernet:
        # The import takes a tenth of a second, and most dispatchers do not need it.
        from cryptography.fernet import Fernet

        path = self._key_file(make)
        try:
            if path.stat().st_mode & 0o077:
                raise WorkspaceException(f"the key {path} can be read by others", hint=f"Do 'chmod 600 {path}'.")
            return Fernet(path.read_bytes())
        except FileNotFoundError:
            raise WorkspaceException(
                f"the key of this workspace's secrets is missing: {path}",
                hint="Put it back, or delete the secrets and set them again.",
            ) from None
        except (OSError, ValueError) as error:
            raise WorkspaceException(f"the key {path} cannot be used", cause=str(error)) from None

    def _key_file(self, make: bool) -> Path:
        noted = self._store.facts.get(_KEY_FACT)
        path = Path(noted) if noted else self._own_key_file()
        if make and not path.exists() and not self._read_secrets():
            path = self._own_key_file()
            _make_key(path)
            self._store.facts.put(_KEY_FACT, str(path))
        return path

    def _own_key_file(self) -> Path:
        return key_file(self._folder.read_identity()["id"])

    def _read_secrets(self) -> dict[str, dict[str, Any]]:
        return dict(self._store.facts.get(_FACT) or {})

    def _decrypt(self, cipher: Fernet, token: str, what: str) -> str:
        from cryptography.fernet import InvalidToken

        try:
            return cipher.decrypt(token.encode("ascii")).decode("utf-8", "surrogatepass")
        except InvalidToken:
            raise WorkspaceException(
                f"{what} cannot be decrypted",
                cause=f"the key {self._key_file(make=False)} is not the one it was encrypted with",
                hint="Put the right key back, or set the secret again.",
            ) from None


def _hide(mask: Mask, path: Path) -> None:
    try:
        mask.hide_in_file(path)
    except OSError as error:
        log.warning("%s cannot be masked: %s", path, error)


def check_secret(name: Any, value: Any) -> None:
    """Refuse what cannot be a secret. No message contains the value."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UserErrorException(
            f"{str(name)[:60]!r} cannot be the name of a secret",
            hint="Use 1 to 127 letters, digits, dashes or underscores, a letter or digit first.",
        )
    if not isinstance(value, str):
        raise UserErrorException(f"the value of secret '{name}' must be a text, not {type(value).__name__}")
    if len(value) > _LONGEST:
        raise UserErrorException(f"the value of secret '{name}' is longer than {_LONGEST} characters")


def _make_key(path: Path) -> None:
    from cryptography.fernet import Fernet

    make_home()
    durable.make_folder(path.parent, mode=0o700)
    if not path.exists():
        _write_private(path, Fernet.generate_key().decode("ascii"))


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read. It is complete or absent."""
    durable.write(path, text.encode(), mode=0o600)
