"""The settings of a server: `server.json` in its root, and the options of `trainmaster server run`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from trainmaster.job.agent import durable
from trainmaster.job.errors import UserErrorException
from trainmaster.server.identity.openid import OpenIdSettings
from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain

FILE = "server.json"
# It becomes part of a header: nothing that could end a directive.
_ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9.-]+(:(\d{1,5}|\*))?")


@dataclass(frozen=True)
class Limits:
    """What a client may ask of the server."""

    concurrent_requests: int = 1000
    """Requests above it get 503. Streams count as requests."""
    connections: int = 5000
    """Clients above it get 503, and idle ones count."""
    header_seconds: float = 20.0
    """Within which a client sends the headers of a request."""
    stall_seconds: float = 60.0
    """After which a client that reads nothing of its answer is disconnected."""
    idle_seconds: float = 75.0
    """After which a connection without a request is closed."""
    body_seconds: float = 60.0
    """Within which more of a body has to arrive."""
    shutdown_seconds: float = 20.0
    """For requests that are being answered when the server is stopped."""


@dataclass(frozen=True)
class Settings:
    """What an administrator decides."""

    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str = ""
    """How clients reach the server, if a proxy is in front of it."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies that say for whom they ask, in `X-Forwarded-For`. It is only for logs."""
    database: str = ""
    """The URL of a PostgreSQL database; empty for SQLite files."""
    tls_cert: str = ""
    tls_key: str = ""
    insecure: bool = False
    """Whether the server may listen on other addresses than loopback without TLS."""
    workspaces: dict[str, str] = field(default_factory=dict)
    """Name to folder, for workspaces that are not below the root."""
    data_folders: tuple[str, ...] = ()
    """Folders whose datastores clients may read and write through the server, beside those of each workspace."""
    notification_networks: tuple[str, ...] = ()
    """Private networks that notifications may be sent to, such as `10.1.0.0/16`. Public addresses always may."""
    hosts: tuple[str, ...] = ()
    """Further names that the server answers to. Its addresses, localhost, the machine's name and that of `public_url`
    are known."""
    session_hours: float = 12.0
    """How long a browser stays signed in."""
    audit_days: float = 400.0
    """How long the audit log keeps an entry."""
    openid: OpenIdSettings | None = None
    """The provider that users sign in with."""
    frame_ancestors: tuple[str, ...] = ()
    """Origins whose pages, such as notebooks, may show pages of the studio in a frame: `https://hub.example.org`."""
    mlflow_ui: str = ""
    """Whose pages of MLflow are shown below /mlflow/WORKSPACE/: "installed" for the package `mlflow` of the server's
    Python, or the folder of that package; empty for none."""
    mlflow_open: bool = False
    """Whether MLflow's API needs no sign-in. Only for a server that nobody reaches from another machine."""
    access_log: bool = True
    """Whether each request is written to standard error."""
    is_personal: bool = False
    """Whether this is the studio of one person (`trainmaster studio`): links sign in without a click."""
    cookie_suffix: str = ""
    """The end of the name of a personal studio's cookie. Browsers send cookies to all ports of a machine."""
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        for network in self.notification_networks:
            _check_network(network)
        for origin in self.frame_ancestors:
            if not _ORIGIN.fullmatch(origin):
                raise UserErrorException(
                    f"{origin[:100]!r} in frame_ancestors is not an origin",
                    hint="Write https://hub.example.org, or https://*.example.org for all hosts of a domain.",
                )

    @property
    def has_tls(self) -> bool:
        """Whether browsers reach the server by https, directly or through a proxy."""
        return bool(self.tls_cert) or self.public_url.startswith("https://")


def _check_network(text: str) -> None:
    import ipaddress

    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise UserErrorException(
            f"{text[:100]!r} in notification_networks is not a network", cause=str(error), hint="Write 10.1.0.0/16."
        ) from None


@dataclass(frozen=True)
class Root:
    """The folder of a server: paths only."""

    path: Path

    @property
    def settings(self) -> Path:
        return self.path / FILE

    @property
    def workspaces(self) -> Path:
        return self.path / "workspaces"

    @property
    def lock(self) -> Path:
        """Held by the one server of a root without a PostgreSQL database."""
        return self.path / "server.lock"

    @property
    def database(self) -> Path:
        return self.path / "server.db"


def read_settings(root: Root) -> Settings:
    """The settings in server.json."""
    if not root.settings.exists():
        raise UserErrorException(
            f"there is no server in {root.path}", hint=f"Create it: trainmaster server init --root {root.path}"
        )
    return read_settings_file(root.settings)


def read_settings_file(file: Path) -> Settings:
    """The settings in a file with the form of server.json."""
    try:
        return from_plain(Settings, json.loads(file.read_text()))
    except (OSError, ValueError, PlainDataError) as error:
        raise UserErrorException(f"{file} cannot be read", cause=str(error)) from None


def write_settings(root: Root, settings: Settings) -> None:
    """Write server.json, without the settings that have their default."""
    plain: dict[str, Any] = to_plain(settings)
    usual: dict[str, Any] = to_plain(Settings())
    changed = {each.name: plain[each.name] for each in fields(Settings) if plain[each.name] != usual[each.name]}
    durable.write(root.settings, (json.dumps(changed, indent=1) + "\n").encode(), 0o600)
