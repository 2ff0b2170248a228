"""A real nginx in front of a server, with the lines that the guide gives."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.packages import ensure
from tests.conftest import PATIENCE, until

_GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "server.md"
_PATH = "/usr/sbin:/usr/local/sbin:/sbin:/usr/bin:/bin"
_CONFIGURATION = """
daemon off;
pid {folder}/pid;
error_log {folder}/errors;
worker_processes 1;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/answers;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        {location}
    }}
}}
"""


def read_location(port: int) -> str:
    """The block of the guide, for a server on this port."""
    found = re.search(r"^ *location / \{.*?^ *\}$", _GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert found, "the guide has no lines for nginx"
    return found[0].replace("127.0.0.1:8765", f"127.0.0.1:{port}")


def find_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def nginx(folder: Path, port: int, server: int, certificate: Path, key: Path) -> Iterator[None]:
    """Listens on `port` with TLS, and passes requests on to the port `server`."""
    fault = ensure(lambda: [] if shutil.which("nginx", path=_PATH) else ["nginx-light"])
    assert not fault, fault
    folder.mkdir()
    file = folder / "nginx.conf"
    file.write_text(
        _CONFIGURATION.format(
            folder=folder, port=port, certificate=certificate, key=key, location=read_location(server)
        )
    )
    program = shutil.which("nginx", path=_PATH)
    assert program
    with open(folder / "errors", "ab") as errors:
        process = subprocess.Popen([program, "-p", str(folder), "-c", str(file)], stderr=errors)
    try:
        until(lambda: process.poll() is not None or _listens(port), what="nginx")
        assert process.poll() is None, (folder / "errors").read_text()
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _listens(port: int) -> bool:
    trusting = ssl._create_unverified_context()
    try:
        with socket.create_connection(("127.0.0.1", port)) as line, trusting.wrap_socket(line):
            return True
    except OSError:
        return False
