"""A real blob server for tests: Azurite, from the npm registry, kept in a cache folder of the user."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import PATIENCE, until
from tests.node_packages import install

RELEASE = "3.35.0"
# The account that every Azurite has, published in its documents: nobody's secret.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class BlobServer:
    """Where it listens."""

    port: int

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> dict[str, str]:
        """The parameters by which a datastore finds it, but for the credential."""
        return {"account_name": ACCOUNT, "protocol": "http", "endpoint": self.endpoint}


@contextmanager
def blob_server(folder: Path) -> Iterator[BlobServer]:
    """A server that keeps its blobs in memory, until the block ends."""
    node, folder_of_package = install("azurite", RELEASE)
    program = folder_of_package / "node_modules/azurite/dist/src/blob/main.js"
    log, said = folder / "azurite.log", folder / "azurite.out"
    command = [node, str(program), "--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence"]
    # The driver may be newer than the server: what the tests use is the same in both.
    command += ["--skipApiVersionCheck", "--disableTelemetry", "--debug", str(log)]
    # A file, and no pipe, which would be full one day: it tells of every request.
    with open(said, "w") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
    try:
        until(lambda: _ports(said) or process.poll() is not None, what="the blob server")
        assert _ports(said), f"the blob server did not start: {said.read_text()}"
        yield BlobServer(_ports(said)[0])
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _ports(said: Path) -> list[int]:
    """Where it says that it listens, once the line is whole."""
    return [int(port) for port in re.findall(r"listen(?:s|ing) on http://127\.0\.0\.1:(\d+)\s", said.read_text())]
