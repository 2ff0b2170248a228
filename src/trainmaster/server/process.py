"""The process of `trainmaster server run`: listening, TLS and the end."""

from __future__ import annotations

import ipaddress
import logging
import socket
import ssl
import sys
import time
from dataclasses import replace

import uvicorn

from trainmaster.job.errors import ServiceException, UserErrorException
from trainmaster.server.app import App
from trainmaster.server.http_protocol import LimitedProtocol, close_slow
from trainmaster.server.settings import Settings

log = logging.getLogger("trainmaster.server")


def check_address(settings: Settings) -> None:
    """Refuse to listen beyond this machine without TLS, unless that was asked for."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise UserErrorException("TLS needs a certificate and its key", hint="Give --tls-cert and --tls-key.")
    if settings.tls_cert:
        _check_certificate(settings)
    if settings.mlflow_open and not (is_loopback(settings.host) and not settings.public_url and not settings.proxies):
        raise UserErrorException(
            "MLflow's API needs a sign-in on a server that other machines reach",
            cause="Whoever reaches it could change and remove runs, models and files.",
            hint="Leave out --mlflow-open, or listen on 127.0.0.1 without a proxy.",
        )
    if is_loopback(settings.host) or settings.tls_cert or settings.insecure:
        return
    raise UserErrorException(
        f"the server does not listen on {settings.host} without TLS",
        cause="Tokens and data would be readable on the network.",
        hint="Give --tls-cert and --tls-key, or --insecure if a proxy on a private network adds TLS.",
    )


def _check_certificate(settings: Settings) -> None:
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as error:
        raise UserErrorException(
            "the certificate and its key cannot be used",
            cause=f"{settings.tls_cert}, {settings.tls_key}: {error.strerror or error}",
            hint="Both are PEM files; the key must belong to the certificate and have no passphrase.",
        ) from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("::1")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address(settings: Settings, port: int) -> str:
    """The URL of the server."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.tls_cert else 'http'}://{host}:{port}"


def find_job_address(settings: Settings, port: int) -> str:
    """The URL by which jobs reach the server; they may run on other machines."""
    if settings.host in ("0.0.0.0", "::") and not settings.public_url:
        return f"{'https' if settings.tls_cert else 'http'}://{socket.getfqdn()}:{port}"
    return address(settings, port)


class Process(uvicorn.Server):
    """Serves until SIGTERM or SIGINT. Streams are told first, so that the requests can end."""

    def __init__(self, app: App, settings: Settings) -> None:
        limits = settings.limits
        super().__init__(
            uvicorn.Config(
                app,
                settings.host,
                settings.port,
                loop="uvloop",
                http=LimitedProtocol,
                ws="none",
                interface="asgi3",
                lifespan="on",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=limits.connections,
                timeout_keep_alive=int(limits.idle_seconds),
                timeout_graceful_shutdown=int(limits.shutdown_seconds),
                ssl_certfile=settings.tls_cert or None,
                ssl_keyfile=settings.tls_key or None,
            )
        )
        self._parts = app.parts
        self._settings = settings

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        try:
            await super().startup(sockets)  # type: ignore[arg-type]
        except SystemExit:
            # uvicorn has logged the reason.
            raise ServiceException(
                f"the server cannot listen on {self._settings.host}, port {self._settings.port}",
                hint="Another program may use this port. Choose another one with --port.",
            ) from None
        if self.started:
            await self.announce(self.servers[0].sockets[0].getsockname()[1])

    async def announce(self, port: int) -> None:
        """The server listens: tell jobs, other servers and the person who has started it."""
        networks = self._settings.notification_networks
        self._parts.workspaces.announce(find_job_address(self._settings, port), networks)
        # Not the address of a proxy, which may pass requests on to either server.
        self._parts.leaders.announce(find_job_address(replace(self._settings, public_url=""), port))
        local = address(replace(self._settings, public_url=""), port)
        public = self._settings.public_url
        print(
            f"Trainmaster serves {public} (listens on {local})" if public else f"Trainmaster serves {local}",
            flush=True,
        )

    async def on_tick(self, counter: int) -> bool:
        """Once a second, close what stalls. (uvicorn calls this ten times a second.)"""
        if counter % 10 == 0:
            limits = self._settings.limits
            close_slow(self.server_state.connections, time.monotonic(), limits.header_seconds, limits.stall_seconds)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._parts.stopping.announce()
        # uvicorn would send itself the signal again, and the process would end by it instead of with code 0.
        self._captured_signals.clear()
        self._parts.leaders.withdraw()
        await super().shutdown(sockets)  # type: ignore[arg-type]


def write_logs(level: str = "INFO") -> None:
    """Logs go to standard error, as the access log does."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
