"""Tiny wheels made on the spot: environments to build without asking anybody."""

from __future__ import annotations

import io
import subprocess
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path


def make_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    requires: Iterable[str] = (),
    tag: str = "py3-none-any",
    files: Mapping[str, str | bytes] | None = None,
) -> Path:
    """A wheel of one module, or of `files`."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {each}\n" for each in requires)
    contents: dict[str, str | bytes] = {
        **({f"{module}.py": f"NAME = {name!r}\n"} if files is None else files),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    contents[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    wheel = folder / f"{module}-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in contents.items():
            archive.writestr(path, content)
    return wheel


def make_library(folder: Path, needs: Iterable[str]) -> bytes:
    """A shared library that is linked against others, which need not exist where it is used."""
    folder.mkdir(parents=True, exist_ok=True)
    empty = folder / "empty.c"
    empty.write_text("")
    for name in needs:
        _link(empty, folder / name, f"-Wl,-soname,{name}")
    _link(empty, folder / "made.so", "-Wl,--no-as-needed", *(str(folder / name) for name in needs))
    return (folder / "made.so").read_bytes()


def _link(source: Path, library: Path, *options: str) -> None:
    subprocess.run(["cc", "-shared", "-nostdlib", "-o", library, source, *options], check=True)


def make_source(folder: Path, name: str, program: str, version: str = "1.0") -> Path:
    """A release that has to be compiled, which is what `program` does."""
    folder.mkdir(parents=True, exist_ok=True)
    build = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    described = f'[project]\nname = "{name}"\nversion = "{version}"\n'
    contents = {
        "PKG-INFO": f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": build + described,
        "own.py": program + "\n",
    }
    source = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(source, "w:gz") as archive:
        for path, text in contents.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return source
