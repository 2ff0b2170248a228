"""Kubeconfig files: reading, merging as kubectl does, and choosing a context.

Nothing but files is read here. Every mistake in a file is one error that names the file and the key.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trainmaster.engines.kubernetes.entries import Entry, read_document
from trainmaster.job.errors import ComputeTargetException

# The part of a cluster's `extensions` that is passed to credential plugins.
_PLUGIN_EXTENSION = "client.authentication.k8s.io/exec"
_PLUGIN_VERSIONS = tuple(f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
_PROXIES = ("http", "https", "socks5")


@dataclass(frozen=True)
class Pem:
    """A certificate or key: its text, or the file that has it."""

    data: bytes = field(default=b"", repr=False)
    file: Path | None = None

    def __bool__(self) -> bool:
        return bool(self.data or self.file)


@dataclass(frozen=True)
class Cluster:
    """Where the API server is, and how it proves who it is."""

    server: str
    authority: Pem = Pem()
    tls_server_name: str = ""
    insecure: bool = False
    proxy_url: str = field(default="", repr=False)
    plugin_config: Any = None


@dataclass(frozen=True)
class Plugin:
    """A program that prints credentials (`users[].user.exec`)."""

    command: str
    api_version: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    wants_cluster: bool = False
    place: str = ""
    """The file and key that name it, for errors."""


@dataclass(frozen=True)
class User:
    """Credentials. Nothing at all is an anonymous user."""

    certificate: Pem = Pem()
    key: Pem = Pem()
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: Plugin | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    """Headers that ask the server to act for somebody else."""


@dataclass(frozen=True)
class Context:
    """A cluster, a user and a namespace that belong together."""

    name: str
    cluster: Cluster
    user: User
    namespace: str


@dataclass
class Kubeconfig:
    """Several files as one: of two entries with the same name, the one of the first file counts."""

    files: tuple[Path, ...]
    current: str = ""
    contexts: dict[str, Entry] = field(default_factory=dict)
    clusters: dict[str, Entry] = field(default_factory=dict)
    users: dict[str, Entry] = field(default_factory=dict)

    def choose(self, name: str = "") -> Context:
        """The context with that name, or the current one."""
        name = name or self.current
        where = " and ".join(str(file) for file in self.files)
        if not name:
            raise ComputeTargetException(
                f"{where} has no current-context",
                hint=f"Name a context ({_list_names(self.contexts)}), or use 'kubectl config use-context NAME'.",
            )
        if name not in self.contexts:
            raise ComputeTargetException(
                f"the context '{name}' is not in {where}", hint=f"Contexts there: {_list_names(self.contexts)}."
            )
        context = self.contexts[name]
        user = context.text("user")
        return Context(
            name=name,
            cluster=_read_cluster(_find(self.clusters, context, "cluster", context.require_text("cluster"))),
            user=_read_user(_find(self.users, context, "user", user)) if user else User(),
            namespace=context.text("namespace") or "default",
        )


def read_kubeconfig(files: Sequence[Path], must_exist: bool = False) -> Kubeconfig:
    """The files as one. Files that do not exist are left out, unless `must_exist`."""
    merged = Kubeconfig(tuple(files))
    found = False
    for file in files:
        if not must_exist and not file.exists():
            continue
        found = True
        document = read_document(file)
        merged.current = merged.current or document.text("current-context")
        for kind, table in (("context", merged.contexts), ("cluster", merged.clusters), ("user", merged.users)):
            for item in document.entries(f"{kind}s"):
                table.setdefault(item.require_text("name"), item.entry(kind))
    if not found:
        names = " and ".join(str(file) for file in files)
        raise ComputeTargetException(
            f"there is no kubeconfig file: {names} does not exist",
            hint="Give its path with kubeconfig=, or set KUBECONFIG.",
        )
    return merged


def find_files(environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """The files that kubectl would read.

    >>> find_files({"KUBECONFIG": "/a::b"}, Path("/home/me"))
    (PosixPath('/a'), PosixPath('b'))
    >>> find_files({}, Path("/home/me"))
    (PosixPath('/home/me/.kube/config'),)
    """
    named = tuple(Path(name) for name in environ.get("KUBECONFIG", "").split(":") if name)
    return named or (home / ".kube" / "config",)


def _find(table: Mapping[str, Entry], context: Entry, key: str, name: str) -> Entry:
    if name in table:
        return table[name]
    raise context.error(key, f"names the {key} '{name}', which is in none of the files")


def _read_cluster(entry: Entry) -> Cluster:
    server = entry.require_text("server")
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise entry.error("server", f"is '{server}'; it must start with https:// or http:// and name a host")
    authority = _read_pem(entry, "certificate-authority")
    insecure = entry.flag("insecure-skip-tls-verify")
    if insecure and authority:
        raise entry.error("insecure-skip-tls-verify", "cannot be true together with a certificate-authority")
    proxy = entry.text("proxy-url")
    if proxy and (urlsplit(proxy).scheme not in _PROXIES or not urlsplit(proxy).hostname):
        raise entry.error("proxy-url", "must be the address of a proxy that begins with http://, https:// or socks5://")
    extensions = {item.text("name"): item.value.get("extension") for item in entry.entries("extensions")}
    return Cluster(
        server=server.rstrip("/"),
        authority=authority,
        tls_server_name=entry.text("tls-server-name"),
        insecure=insecure,
        proxy_url=proxy,
        plugin_config=extensions.get(_PLUGIN_EXTENSION),
    )


def _read_user(entry: Entry) -> User:
    if "auth-provider" in entry.value:
        name = entry.entry("auth-provider").text("name") or "without a name"
        raise entry.error(
            "auth-provider",
            f"({name}) is not supported: Kubernetes 1.26 removed these providers",
            "Use the credential plugin of your cloud (users[].user.exec); its command line writes it into the file.",
        )
    user = User(
        certificate=_read_pem(entry, "client-certificate"),
        key=_read_pem(entry, "client-key"),
        token=entry.text("token").strip(),
        token_file=entry.path("tokenFile"),
        username=entry.text("username"),
        password=entry.text("password"),
        plugin=_read_plugin(entry.entry("exec")) if entry.value.get("exec") is not None else None,
        impersonation=_read_impersonation(entry),
    )
    if bool(user.certificate) != bool(user.key):
        missing = "client-key" if user.certificate else "client-certificate"
        raise entry.error(missing, "is missing: a client-certificate and its client-key belong together")
    if (user.username or user.password) and (user.token or user.token_file):
        raise entry.error("username", "cannot be used together with a token")
    return user


def _read_pem(entry: Entry, key: str) -> Pem:
    """A certificate or key; its data counts before its file."""
    if encoded := entry.text(f"{key}-data"):
        try:
            data = base64.b64decode("".join(encoded.split()), validate=True)
        except (binascii.Error, ValueError):
            raise entry.error(f"{key}-data", "is not base64") from None
        if b"-----BEGIN" not in data:
            raise entry.error(f"{key}-data", "has no PEM text in it ('-----BEGIN ...')")
        return Pem(data=data)
    return Pem(file=entry.path(key))


def _read_plugin(entry: Entry) -> Plugin:
    version = entry.require_text("apiVersion")
    if version not in _PLUGIN_VERSIONS:
        raise entry.error("apiVersion", f"is '{version}'; known ones are {', '.join(_PLUGIN_VERSIONS)}")
    mode = entry.text("interactiveMode")
    if mode == "Always":
        raise entry.error(
            "interactiveMode",
            "is 'Always', but Trainmaster has no terminal to ask questions in",
            "Sign in with the plugin's own command, then set it to 'IfAvailable' or 'Never'.",
        )
    if mode not in ("", "Never", "IfAvailable"):
        raise entry.error("interactiveMode", f"is '{mode}'; it must be Never, IfAvailable or Always")
    if not mode and version.endswith("/v1"):
        raise entry.error("interactiveMode", f"is missing; {version} requires it")
    command = entry.require_text("command")
    if "/" in command:
        command = str(entry.file.absolute().parent / command)
    return Plugin(
        command=command,
        api_version=version,
        arguments=tuple(entry.texts("args")),
        variables={item.require_text("name"): item.text("value") for item in entry.entries("env")},
        install_hint=entry.text("installHint").strip(),
        wants_cluster=entry.flag("provideClusterInfo"),
        place=f"{entry.file}: {entry.path_to('command')}",
    )


def _read_impersonation(entry: Entry) -> tuple[tuple[str, str], ...]:
    headers = []
    if name := entry.text("as"):
        headers.append(("Impersonate-User", name))
    if uid := entry.text("as-uid"):
        headers.append(("Impersonate-Uid", uid))
    headers += [("Impersonate-Group", group) for group in entry.texts("as-groups")]
    extra = entry.entry("as-user-extra")
    for key in extra.value:
        headers += [(f"Impersonate-Extra-{key}", value) for value in extra.texts(key)]
    if headers and not name:
        raise entry.error("as", "is missing: the other impersonation keys need a user")
    for _, value in headers:
        if "\n" in value or "\r" in value:
            raise entry.error("as", "has a line break in it")
    return tuple(headers)


def _list_names(table: Mapping[str, Entry]) -> str:
    return ", ".join(sorted(table)) or "none"
