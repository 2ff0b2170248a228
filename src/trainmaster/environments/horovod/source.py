"""Fetches Horovod's source distribution from the user's package sources, verifies, unpacks and patches it."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path

from trainmaster.environments.horovod.recipes import Order
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException


def prepare(order: Order, scratch: Path, python: Path, variables: Mapping[str, str], tools: Tools) -> Path:
    """Prepare the source for the build and return its folder. With `variables`, `python` has pip."""
    archive = _fetch(order, scratch / "download", python, variables, tools)
    with tarfile.open(archive) as opened:
        # Python 3.11 has the filter since 3.11.4. The hash of the archive is verified, so its paths are known.
        opened.extraction_filter = getattr(tarfile, "data_filter", None)
        opened.extractall(scratch / "source")
    source = scratch / "source" / f"horovod-{order.horovod}"
    for edit in order.edits:
        edit.apply(source)
    return source


def _fetch(order: Order, folder: Path, python: Path, variables: Mapping[str, str], tools: Tools) -> Path:
    """Download with pip, which supports every kind of index and login, and verifies the hash before running code."""
    folder.mkdir()
    wanted = folder / "wanted.txt"
    wanted.write_text(f"horovod=={order.horovod} --hash=sha256:{order.sha256}\n")
    options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--disable-pip-version-check"]
    tools.run(
        [str(python), "-m", "pip", "download", *options, "--dest", str(folder), "--requirement", str(wanted)],
        f"pip download horovod=={order.horovod}",
        {**variables, **_pip_variables(tools.settings), **order.variables},
        hint=f"pip's configured package sources must have the source of Horovod {order.horovod}.",
    )
    archive = folder / f"horovod-{order.horovod}.tar.gz"
    if not archive.is_file() or hashlib.sha256(archive.read_bytes()).hexdigest() != order.sha256:
        raise EnvironmentException(
            f"pip downloaded something else than the source of Horovod {order.horovod}",
            hint="Check pip's configured package sources.",
        )
    return archive


def _pip_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Pass pip's settings, which our own Python read, to the pip of another Python."""
    names = ("index-url", "extra-index-url", "find-links", "trusted-host", "no-index", "cert", "proxy")
    return {
        f"PIP_{name.upper().replace('-', '_')}": " ".join(settings[name].split())
        for name in names
        if settings.get(name)
    }
