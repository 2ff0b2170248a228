"""The lock of a package, with the hash of every file that may be installed."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from trainmaster.environments import lock
from trainmaster.environments.sources import mask_passwords
from trainmaster.environments.tools import Tools
from trainmaster.job.errors import WebserviceException
from trainmaster.shared.job_spec import EnvironmentSpec


@dataclass(frozen=True)
class Requirements:
    """The text of `requirements.lock`, and its packages that came from a folder of this machine."""

    text: str
    local: tuple[str, ...]


def hash_requirements(folder: Path, spec: EnvironmentSpec, variables: Mapping[str, str]) -> Requirements:
    """The lock of a built environment with the hashes of all files that may be installed from it."""
    kept = (folder / lock.LOCK_NAME).read_text()
    pins = lock.pins(kept)
    tools = Tools(dict(variables))
    sources = lock.sources_of(spec, tools)
    # Nothing is resolved again: every release is given, and no package is added.
    command = ["pip", "compile", "--python", f"{folder}/bin/python", "--no-header", "--no-annotate", "--no-deps"]
    asked = subprocess.run(
        tools.uv_command([*command, "--generate-hashes", *sources.options, "/dev/stdin"]),
        input="\n".join(_requirement(pin) for pin in pins) + "\n",
        env=dict(sources.variables),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if asked.returncode:
        raise WebserviceException(
            "the packages of the service cannot be locked with their hashes",
            cause=mask_passwords("\n".join(asked.stderr.splitlines()[-20:])),
            hint="They were installed before. Check that their package index is still available.",
        )
    return with_hashes_of_files(mask_passwords(asked.stdout), pins)


def with_hashes_of_files(text: str, pins: Sequence[lock.Pin]) -> Requirements:
    """Adds the hashes that no index reports: those of files in folders of this machine."""
    lines, local = [], []
    sources = {_requirement(pin): pin for pin in pins}
    for line in text.splitlines():
        pin = sources.get(line.strip())
        if pin is None:
            lines.append(line)
            continue
        hashes = _hashes_in_folder(pin)
        if not hashes:
            raise WebserviceException(
                f"{line.strip()} cannot be locked: its source reports no hashes",
                cause=f"It comes from {mask_passwords(pin.source) or 'an unknown source'}.",
                hint="Use packages from an index, or from a folder of this machine.",
            )
        local.append(line.strip())
        lines += [" \\\n".join([line, *(f"    --hash=sha256:{each}" for each in hashes)])]
    return Requirements("\n".join(lines) + "\n", tuple(local))


def _hashes_in_folder(pin: lock.Pin) -> list[str]:
    folder = Path(unquote(pin.source.removeprefix("file://")))
    if not folder.is_dir():
        return []
    found = [
        path for path in folder.iterdir() if path.name.endswith((".whl", ".tar.gz", ".zip")) and _names(path.name, pin)
    ]
    return sorted({_sha256(path) for path in found})


def _names(file: str, pin: lock.Pin) -> bool:
    """Whether a file such as `torch-2.13.0+cpu-cp311-...whl` belongs to that release."""
    stem = re.sub(r"[-_.]+", "-", unquote(file)).lower()
    return stem.startswith(re.sub(r"[-_.]+", "-", f"{pin.name}-{pin.version}").lower() + "-")


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _requirement(pin: lock.Pin) -> str:
    return f"{pin.name}=={pin.version}" if pin.version else f"{pin.name} @ {pin.source}"
