"""A conda channel made on the spot: a small tool, and a Python that is the running one, packed."""

from __future__ import annotations

import asyncio
import bz2
import hashlib
import io
import json
import platform
import shutil
import struct
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.left_out import leave_out

SUBDIR = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}.get(platform.machine(), "linux-64")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
RELEASE = platform.python_version()
# As conda builds have it: long, so that a binary file has room for any real prefix.
PLACEHOLDER = "/placeholder".ljust(255, "_")
# Parts of a standard library that no test needs.
_LEFT_OUT = ("site-packages", "dist-packages", "test", "tests", "idlelib", "tkinter", "lib2to3", "ensurepip")
_LEFT_OUT += ("turtledemo", "pydoc_data", "__pycache__", "config-*", "_test*", "_ctypes_test*", "xxlimited*")


@dataclass(frozen=True)
class File:
    """A file of a package; `mode` says how the prefix in it is replaced."""

    content: bytes | Path
    mode: str = ""
    executable: bool = False


@dataclass(frozen=True)
class Package:
    """What conda knows of a package."""

    name: str
    version: str = "1.0"
    depends: tuple[str, ...] = ()
    files: Mapping[str, File] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    noarch: bool = True
    entry_points: tuple[str, ...] = ()

    @property
    def subdir(self) -> str:
        return "noarch" if self.noarch else SUBDIR

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}-0"


def make_channel(folder: Path, *packages: Package) -> str:
    """A channel with these packages; returns its address."""
    from rattler.index import index_fs

    for subdir in (SUBDIR, "noarch"):
        (folder / subdir).mkdir(parents=True, exist_ok=True)
    for package in packages:
        if package.name == "python":
            write_conda(folder / package.subdir, package)
        else:
            write_tar_bz2(folder / package.subdir, package)
    asyncio.run(index_fs(folder))
    return folder.as_uri()


def tinytool(version: str = "1.0") -> Package:
    """A module, a program by entry point, a script with a shebang, a text and a binary file with the prefix inside."""
    module = f"VERSION = {version!r}\ndef say():\n    print('said', VERSION)\n"
    metadata = f"Metadata-Version: 2.1\nName: tinytool\nVersion: {version}\n"
    about = f"site-packages/tinytool-{version}.dist-info"
    return Package(
        "tinytool",
        version,
        depends=("python",),
        entry_points=("tinytool-say = tinytool:say",),
        files={
            "site-packages/tinytool.py": File(module.encode()),
            f"{about}/METADATA": File(metadata.encode()),
            f"{about}/INSTALLER": File(b"conda"),
            f"{about}/RECORD": File(f"tinytool.py,,\n{about[14:]}/METADATA,,\n".encode()),
            "bin/tinytool-script": File(
                f"#!{PLACEHOLDER}/bin/python\nimport sys, tinytool\nprint('script', sys.prefix)\n".encode(),
                "text",
                executable=True,
            ),
            "share/tinytool/where.txt": File(f"prefix={PLACEHOLDER}\n".encode(), "text"),
            "share/tinytool/where.bin": File(b"\x7fBIN\0" + PLACEHOLDER.encode() + b"/lib\0end", "binary"),
        },
    )


def running_python() -> Package:
    """The running interpreter and its standard library as a conda package."""
    library = Path(sysconfig.get_path("stdlib"))
    if (library / "EXTERNALLY-MANAGED").exists():
        leave_out(f"needs a Python in a folder of its own; {sys.executable} is that of the system")
    files = {f"lib/python{VERSION}/{path.relative_to(library)}": File(path) for path in _walk(library)}
    files[f"bin/python{VERSION}"] = File(Path(sys.executable).resolve(), executable=True)
    files[f"lib/python{VERSION}/site-packages/README.txt"] = File(b"Packages go here.\n")
    links = {"bin/python": f"python{VERSION}", "bin/python3": f"python{VERSION}"}
    return Package("python", RELEASE, files=files, links=links, noarch=False)


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if any(path.match(pattern) for pattern in _LEFT_OUT):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file():
            yield path


def write_tar_bz2(folder: Path, package: Package) -> None:
    """The older of conda's two formats."""
    content = _tar({**_information(package), **package.files}, package.links)
    with bz2.open(folder / f"{package.file_name}.tar.bz2", "wb", compresslevel=1) as out:
        out.write(content)


def write_conda(folder: Path, package: Package) -> None:
    """The newer one: a zip with two archives in zstd, here stored without compressing."""
    with zipfile.ZipFile(folder / f"{package.file_name}.conda", "w") as archive:
        archive.writestr("metadata.json", json.dumps({"conda_pkg_format_version": 2}))
        archive.writestr(f"pkg-{package.file_name}.tar.zst", _stored_zstd(_tar(package.files, package.links)))
        archive.writestr(f"info-{package.file_name}.tar.zst", _stored_zstd(_tar(_information(package), {})))


def _information(package: Package) -> dict[str, File]:
    index: dict[str, object] = {
        "name": package.name,
        "version": package.version,
        "build": "0",
        "build_number": 0,
        "depends": list(package.depends),
        "subdir": package.subdir,
        "timestamp": 1_600_000_000_000,
    }
    paths: list[dict[str, object]] = [_path_entry(name, each) for name, each in package.files.items()]
    paths += [{"_path": name, "path_type": "softlink"} for name in package.links]
    found = {"info/paths.json": _json({"paths": paths, "paths_version": 1}), "info/index.json": _json(index)}
    if package.noarch:
        index["noarch"] = "python"
        found["info/index.json"] = _json(index)
        link = {"noarch": {"type": "python", "entry_points": list(package.entry_points)}, "package_metadata_version": 1}
        found["info/link.json"] = _json(link)
    return found


def _path_entry(name: str, file: File) -> dict[str, object]:
    content = _bytes(file)
    entry: dict[str, object] = {
        "_path": name,
        "path_type": "hardlink",
        "sha256": hashlib.sha256(content).hexdigest(),
        "size_in_bytes": len(content),
    }
    if file.mode:
        entry |= {"file_mode": file.mode, "prefix_placeholder": PLACEHOLDER}
    return entry


def _json(value: object) -> File:
    return File(json.dumps(value).encode())


def _bytes(file: File) -> bytes:
    return file.content.read_bytes() if isinstance(file.content, Path) else file.content


def _tar(files: Mapping[str, File], links: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, file in files.items():
            content = _bytes(file)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if file.executable else 0o644
            archive.addfile(member, io.BytesIO(content))
        for name, target in links.items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return out.getvalue()


def _stored_zstd(content: bytes) -> bytes:
    """A zstd frame of raw blocks: the standard library has no compressor for it yet."""
    limit = 1 << 17
    out = io.BytesIO()
    # The magic number; 8 bytes of content size, one segment.
    out.write(struct.pack("<IBQ", 0xFD2FB528, 0xE0, len(content)))
    for start in range(0, max(len(content), 1), limit):
        block = content[start : start + limit]
        last = start + limit >= len(content)
        out.write(struct.pack("<I", len(block) << 3 | last)[:3])
        out.write(block)
    return out.getvalue()


def remove_package(folder: Path, name: str) -> None:
    """Takes a package's file away, and leaves the index as it is."""
    for path in folder.glob(f"*/{name}-*"):
        path.unlink()


def copy_channel(source: Path, target: Path) -> str:
    """A channel of its own for a test that damages it."""
    shutil.copytree(source, target)
    return target.as_uri()
