"""Images for the test cluster, which has no registry: folders made of what is installed on this machine."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.cluster.packages import ensure
from tests.container_engine import make_archive
from tests.postgresql import find_programs

PROJECT = Path(__file__).resolve().parents[2]


def unpack_server(folder: Path) -> None:
    """What `deploy/Containerfile` builds: Trainmaster with its extras, and this machine's Python."""
    packages = folder.with_name("packages")
    words = ["uv", "pip", "install", "--quiet", "--python", sys.executable, "--target", str(packages)]
    subprocess.run([sys.executable, "-m", *words, f"{PROJECT}[server,kubernetes]"], check=True)
    # The interpreter that pip wrote into programs is not the image's.
    for program in (packages / "bin").iterdir():
        if program.read_bytes().startswith(b"#!"):
            program.write_text("#!/usr/local/bin/python3\n" + program.read_text().partition("\n")[2])
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    _unpack(folder, make_archive(True, {f"usr/local/lib/{version}/site-packages": packages}, ["setsid"]))
    for program in (packages / "bin").iterdir():
        shutil.copy2(program, folder / "usr/local/bin" / program.name)
    # Where the loader looks without being told.
    (folder / "usr/lib").mkdir(exist_ok=True)
    for library in (folder / "usr/local/lib").glob("libpython*"):
        (folder / "usr/lib" / library.name).symlink_to(f"/usr/local/lib/{library.name}")
    _add_account(folder, "trainmaster", 8765)
    shutil.rmtree(packages)


def unpack_postgresql(folder: Path) -> None:
    """The programs of this machine's PostgreSQL, in their places, with the account of the public image."""
    fault = ensure(lambda: ["postgresql"] if find_programs() is None else [])
    assert not fault, fault
    programs = find_programs()
    assert programs is not None
    home, share = programs.parent, Path("/usr/share/postgresql") / programs.parent.name
    wanted = [str(programs / name) for name in ("postgres", "initdb", "pg_isready")]
    files = {str(home / "lib"): home / "lib", str(share): share}
    _unpack(folder, make_archive(False, files, wanted))
    for program in wanted:
        (folder / "bin" / Path(program).name).symlink_to(program)
    _add_account(folder, "postgres", 999)


def _unpack(folder: Path, archive: bytes) -> None:
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        opened.extractall(folder, filter="tar")


def _add_account(folder: Path, name: str, number: int) -> None:
    with open(folder / "etc/passwd", "a") as accounts, open(folder / "etc/group", "a") as groups:
        accounts.write(f"{name}:x:{number}:{number}::/:/bin/sh\n")
        groups.write(f"{name}:x:{number}:\n")
