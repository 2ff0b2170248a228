"""Credential plugins: programs that print a token or a certificate (client.authentication.k8s.io)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trainmaster.engines.kubernetes.kubeconfig import Cluster, Plugin
from trainmaster.job.errors import ComputeTargetException

_SECONDS = 60.0
_OUTPUT_BYTES = 1024 * 1024
_ERROR_CHARACTERS = 600


@dataclass(frozen=True)
class Credential:
    """What a plugin answered."""

    token: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    expires: float | None = None
    """Seconds since the epoch; None if it is valid until the server refuses it."""

    @property
    def is_valid(self) -> bool:
        """Whether it has not expired."""
        return self.expires is None or time.time() < self.expires


async def run_plugin(plugin: Plugin, cluster: Cluster, seconds: float = _SECONDS) -> Credential:
    """Runs the plugin, without a terminal, and reads what it prints."""
    variables = {**os.environ, **plugin.variables, "KUBERNETES_EXEC_INFO": json.dumps(describe_call(plugin, cluster))}
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=variables,
            limit=_OUTPUT_BYTES,
        )
    except OSError as error:
        raise ComputeTargetException(
            f"the credential plugin '{plugin.command}' cannot be started: {error.strerror}",
            cause=f"{plugin.place} names it.",
            hint=plugin.install_hint or "Install it, or correct its path. It must be in the PATH of the dispatcher.",
        ) from None
    try:
        async with asyncio.timeout(seconds):
            output, errors = await process.communicate()
    except TimeoutError:
        raise ComputeTargetException(
            f"the credential plugin '{plugin.command}' did not end within {seconds:g} seconds",
            cause=f"{plugin.place} names it.",
            hint=f"Try it by hand: {_words(plugin)}",
        ) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise ComputeTargetException(
            f"the credential plugin '{plugin.command}' ended with {process.returncode}",
            cause=errors.decode(errors="replace").strip()[-_ERROR_CHARACTERS:],
            hint=f"Try it by hand: {_words(plugin)}",
        )
    return read_answer(plugin, output)


def describe_call(plugin: Plugin, cluster: Cluster) -> dict[str, Any]:
    """What the plugin learns about this call, in KUBERNETES_EXEC_INFO."""
    spec: dict[str, Any] = {"interactive": False}
    # v1alpha1 has no such field.
    if plugin.wants_cluster and not plugin.api_version.endswith("/v1alpha1"):
        spec["cluster"] = _describe_cluster(cluster)
    return {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}


def _describe_cluster(cluster: Cluster) -> dict[str, Any]:
    authority = cluster.authority.data
    if cluster.authority.file:
        try:
            authority = cluster.authority.file.read_bytes()
        except OSError as error:
            raise ComputeTargetException(f"{cluster.authority.file} cannot be read: {error.strerror}") from None
    known = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "config": cluster.plugin_config,
    }
    return {key: value for key, value in known.items() if value}


def read_answer(plugin: Plugin, output: bytes) -> Credential:
    """The credential in what the plugin printed."""
    try:
        answer = json.loads(output)
    except ValueError:
        raise _bad_answer(plugin, "it is not JSON") from None
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise _bad_answer(plugin, "it is not an ExecCredential")
    if answer.get("apiVersion") != plugin.api_version:
        raise _bad_answer(plugin, f"its apiVersion is {answer.get('apiVersion')!r}, not {plugin.api_version!r}")
    status = answer.get("status")
    if not isinstance(status, dict):
        raise _bad_answer(plugin, "it has no status")
    token = _text(plugin, status, "token")
    certificate = _text(plugin, status, "clientCertificateData")
    key = _text(plugin, status, "clientKeyData")
    if bool(certificate) != bool(key):
        raise _bad_answer(plugin, "it has only one of clientCertificateData and clientKeyData")
    if not token and not certificate:
        raise _bad_answer(plugin, "it has neither a token nor a certificate")
    expires = _text(plugin, status, "expirationTimestamp")
    return Credential(token, certificate.encode(), key.encode(), _read_time(plugin, expires) if expires else None)


def _text(plugin: Plugin, status: Mapping[str, Any], key: str) -> str:
    value = status.get(key) or ""
    if not isinstance(value, str):
        raise _bad_answer(plugin, f"its status.{key} is not text")
    return value


def _read_time(plugin: Plugin, text: str) -> float:
    try:
        time_ = datetime.fromisoformat(text)
    except ValueError:
        raise _bad_answer(plugin, f"its status.expirationTimestamp is {text!r}") from None
    return (time_ if time_.tzinfo else time_.replace(tzinfo=UTC)).timestamp()


def _bad_answer(plugin: Plugin, problem: str) -> ComputeTargetException:
    # Never with the answer itself, which may contain a token.
    return ComputeTargetException(
        f"the answer of the credential plugin '{plugin.command}' cannot be used: {problem}",
        cause=f"{plugin.place} names it.",
        hint=f"Try it by hand: {_words(plugin)}",
    )


def _words(plugin: Plugin) -> str:
    return shlex.join([plugin.command, *plugin.arguments])
