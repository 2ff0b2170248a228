"""Horovod's source distribution: fetched from the user's package sources, verified, unpacked, changed."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path

from trainmaster.environments.horovod.recipes import Order
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import EnvironmentException


def prepare(order: Order, scratch: Path, python: Path, variables: Mapping[str, str], tools: Tools) -> Path:
    """The folder with the source, ready to be built. `python` has a pip in what `variables` add to it."""
    archive = _fetch(order, scratch / "download", python, variables, tools)
    with tarfile.open(archive) as opened:
        opened.extractall(scratch / "source", filter="data")
    source = scratch / "source" / f"horovod-{order.horovod}"
    for edit in order.edits:
        edit.apply(source)
    return source


def _fetch(order: Order, folder: Path, python: Path, variables: Mapping[str, str], tools: Tools) -> Path:
    """By pip itself: it knows every kind of index and password. Verified by pip before it runs anything of it."""
    folder.mkdir()
    wanted = folder / "wanted.txt"
    wanted.write_text(f"horovod=={order.horovod} --hash=sha256:{order.sha256}\n")
    options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--disable-pip-version-check"]
    tools.run(
        [str(python), "-m", "pip", "download", *options, "--dest", str(folder), "--requirement", str(wanted)],
        f"pip download horovod=={order.horovod}",
        {**variables, **_pip_variables(tools.settings), **order.variables},
        hint=f"The source of Horovod {order.horovod} has to be in pip's configured package sources.",
    )
    archive = folder / f"horovod-{order.horovod}.tar.gz"
    if not archive.is_file() or hashlib.sha256(archive.read_bytes()).hexdigest() != order.sha256:
        raise EnvironmentException(
            f"what pip downloaded is not the source of Horovod {order.horovod}",
            hint="Look at pip's configured package sources.",
        )
    return archive


def _pip_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """pip's settings, read with our own Python, for the pip of another."""
    names = ("index-url", "extra-index-url", "find-links", "trusted-host", "no-index", "cert", "proxy")
    return {
        f"PIP_{name.upper().replace('-', '_')}": " ".join(settings[name].split())
        for name in names
        if settings.get(name)
    }
