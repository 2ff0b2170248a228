"""Access to an API server: its address, its namespace, and the credentials of every connection and request."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainmaster.engines.kubernetes.kubeconfig import Cluster, Context, Pem, User, find_files, read_kubeconfig
from trainmaster.engines.kubernetes.plugin import Credential, run_plugin
from trainmaster.engines.kubernetes.tls import make_ssl_context
from trainmaster.job.errors import ComputeTargetException

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# How long the content of a file is used before it is read again.
_FILE_SECONDS = 10.0

Headers = list[tuple[str, str]]


class Access:
    """Where an API server is, and how this process proves who it is. Safe for many requests at once."""

    def __init__(self, cluster: Cluster, user: User, namespace: str) -> None:
        self.cluster = cluster
        self.user = user
        self.namespace = namespace
        self.server = cluster.server
        self._files = _Files()
        self._credential: Credential | None = None
        self._turn = asyncio.Lock()
        self._ssl_parts: tuple[bytes, bytes, bytes] | None = None
        self._ssl_context: ssl.SSLContext | None = None

    async def headers(self) -> Headers:
        """The headers that identify the user. Tokens that expired or changed are read again."""
        user = self.user
        headers = list(user.impersonation)
        if user.username or user.password:
            pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
            return [("Authorization", f"Basic {pair}"), *headers]
        if token := await self._token():
            headers.append(("Authorization", f"Bearer {token}"))
        return headers

    async def ssl_context(self) -> ssl.SSLContext | None:
        """The context for connections, None for plain HTTP. It is another object when a certificate has changed."""
        if not self.server.startswith("https:"):
            return None
        authority = await self._pem(self.cluster.authority)
        certificate, key = await self._pem(self.user.certificate), await self._pem(self.user.key)
        if not certificate and (credential := await self._plugin_credential()):
            certificate, key = credential.certificate, credential.key
        async with self._turn:
            parts = (authority, certificate, key)
            if self._ssl_context is None or parts != self._ssl_parts:
                self._ssl_context = await asyncio.to_thread(make_ssl_context, *parts, self.cluster.insecure)
                self._ssl_parts = parts
            return self._ssl_context

    def forget(self, refused: Headers) -> bool:
        """Drops what the server refused, given as the headers of that request. Returns whether there may be more."""
        self._files.forget()
        token = self._credential.token if self._credential else ""
        # Of many requests that were refused at once, only the first one lets the plugin run again.
        if not token or ("Authorization", f"Bearer {token}") in refused:
            self._credential = None
        return bool(self.user.token_file or self.user.plugin or self.user.certificate.file)

    async def _token(self) -> str:
        if self.user.token_file:
            try:
                token = (await self._files.read(self.user.token_file)).decode(errors="replace").strip()
            except ComputeTargetException:
                if not self.user.token:
                    raise
                token = self.user.token
            return _check_token(token, str(self.user.token_file))
        if self.user.token:
            return _check_token(self.user.token, "the token")
        credential = await self._plugin_credential()
        return _check_token(credential.token, "the answer of the credential plugin") if credential else ""

    async def _plugin_credential(self) -> Credential | None:
        plugin = self.user.plugin
        if plugin is None or self.user.token or self.user.token_file or self.user.username:
            return None
        async with self._turn:
            if self._credential is None or not self._credential.is_valid:
                self._credential = await run_plugin(plugin, self.cluster)
            return self._credential

    async def _pem(self, pem: Pem) -> bytes:
        return await self._files.read(pem.file) if pem.file else pem.data


class _Files:
    """Contents of small files, read again when they are older than a few seconds."""

    def __init__(self) -> None:
        self._contents: dict[Path, tuple[float, bytes]] = {}

    async def read(self, path: Path) -> bytes:
        read_at, content = self._contents.get(path, (0.0, b""))
        if not content or time.monotonic() - read_at > _FILE_SECONDS:
            # In a thread: the file may be on a slow or absent network folder.
            content = await asyncio.to_thread(_read_bytes, path)
            self._contents[path] = (time.monotonic(), content)
        return content

    def forget(self) -> None:
        self._contents.clear()


def read_access(options: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Access:
    """Access as the options of a target say: `kubeconfig`, `context`, `namespace`, `in_cluster`.

    Without `kubeconfig` and `in_cluster`, the files are those that kubectl reads. If there are none and this process
    runs in a pod, the service account of the pod is used.
    """
    environ = os.environ if environ is None else environ
    file, name = options.get("kubeconfig") or "", options.get("context") or ""
    namespace = options.get("namespace") or ""
    files = (Path(file).expanduser(),) if file else find_files(environ, Path.home())
    if options.get("in_cluster") or (not file and not name and _is_in_pod(environ) and not _any_exists(files)):
        return _read_service_account(environ, namespace)
    context: Context = read_kubeconfig(files, must_exist=bool(file)).choose(name)
    return Access(context.cluster, context.user, namespace or context.namespace)


def _read_service_account(environ: Mapping[str, str], namespace: str) -> Access:
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "") or "443"
    token = SERVICE_ACCOUNT / "token"
    if not host or not token.exists():
        raise ComputeTargetException(
            "this process does not run in a pod with a service account",
            cause=f"KUBERNETES_SERVICE_HOST is not set, or {token} does not exist.",
            hint="Name a kubeconfig file and a context instead; in a pod, set automountServiceAccountToken to true.",
        )
    cluster = Cluster(f"https://{f'[{host}]' if ':' in host else host}:{port}", Pem(file=SERVICE_ACCOUNT / "ca.crt"))
    if not namespace:
        namespace = _read_bytes(SERVICE_ACCOUNT / "namespace").decode().strip()
    return Access(cluster, User(token_file=token), namespace or "default")


def _is_in_pod(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT / "token").exists()


def _any_exists(files: tuple[Path, ...]) -> bool:
    return any(file.exists() for file in files)


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ComputeTargetException(
            f"{path} cannot be read: {error.strerror}", cause="It has credentials for the Kubernetes API server."
        ) from None
    if not content:
        raise ComputeTargetException(
            f"{path} is empty", cause="It should have credentials for the Kubernetes API server."
        )
    return content


def _check_token(token: str, where: str) -> str:
    """The token, if it can be a header."""
    if not token.isascii() or not token.isprintable():
        raise ComputeTargetException(f"the token in {where} has characters that no token has")
    return token
