"""What a `vm_size` of v1 means here: a wish for CPUs and GPUs, granted from what this machine has.

The table of sizes is the one beside this module, with the entries of `vm-sizes.json` in the user's folder
(`TRAINMASTER_HOME`) and then of `vm-sizes.json` in the workspace put over it. See docs/guide/compute.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import WorkspaceFolder, home

FILE_NAME = "vm-sizes.json"
_SHIPPED = Path(__file__).with_suffix(".json")
_PREFIX = "STANDARD_"


@dataclass(frozen=True)
class VmSize:
    """One kind of machine."""

    name: str
    vcpus: int
    gpus: int
    memory_gb: float
    gpu: str = ""
    """The kind of its GPUs."""


@dataclass(frozen=True)
class VmSizes:
    """The table, and whether a wish that cannot be granted is refused."""

    sizes: Mapping[str, VmSize]
    strict: bool = False

    def find(self, name: str) -> VmSize | None:
        """The size of this name, in whatever case, with or without `Standard_`."""
        wanted = name.strip().upper()
        return self.sizes.get(wanted) or self.sizes.get(_PREFIX + wanted)


@dataclass(frozen=True)
class Grant:
    """What each node of a target gets, and how that differs from what was wished for."""

    cpus_per_node: int
    gpus_per_node: int
    doubts: tuple[str, ...] = ()


def read_sizes(workspace: WorkspaceFolder | None = None) -> VmSizes:
    """The table as this user, in this workspace, has it."""
    table = _read(_SHIPPED)
    for file in find_edited_files(workspace):
        if file.is_file():
            own = _read(file)
            table = {"strict": own.get("strict", table["strict"]), "sizes": {**table["sizes"], **own["sizes"]}}
    return VmSizes(table["sizes"], table["strict"])


def find_edited_files(workspace: WorkspaceFolder | None) -> list[Path]:
    """Where a person may put sizes; the later goes before the earlier. Neither has to be there."""
    own = [home() / FILE_NAME]
    return own if workspace is None else [*own, workspace.vm_sizes]


def grant(sizes: VmSizes, vm_size: str, nodes: int, *, cpus: int, gpus: int) -> Grant:
    """What `nodes` nodes of this size get on a machine of `cpus` and `gpus`; a strict table refuses less than that."""
    share = max(1, cpus // max(1, nodes))
    if not vm_size:
        return Grant(share, gpus // max(1, nodes))
    size = sizes.find(vm_size)
    if size is None:
        unknown = f"vm_size '{vm_size}' is not in the table of sizes"
        if sizes.strict:
            raise _refusal(unknown, f"Add it to {FILE_NAME} with its vcpus, gpus and memory_gb.")
        return Grant(share, gpus // max(1, nodes), (f"{unknown}: each node gets an equal share of this machine",))
    doubt = _gpu_doubt(size, nodes, gpus)
    if doubt and sizes.strict:
        raise _refusal(doubt, f'The sizes are strict; say "strict": false in {FILE_NAME} to run with what there is.')
    return Grant(min(size.vcpus, share), min(size.gpus, gpus), (doubt,) if doubt else ())


def _gpu_doubt(size: VmSize, nodes: int, gpus: int) -> str:
    wished = f"vm_size '{size.name}' has {size.gpus} {'GPU' if size.gpus == 1 else 'GPUs'} per node"
    if size.gpus and not gpus:
        return f"{wished}, this machine has none: scripts run on the CPU"
    if size.gpus > gpus:
        return f"{wished}, this machine has {gpus}: each node gets {gpus}"
    if size.gpus * nodes > gpus:
        return f"{wished}, this machine has {gpus} for {nodes} nodes: nodes that run at the same time share them"
    return ""


def _refusal(headline: str, hint: str) -> ComputeTargetException:
    return ComputeTargetException(headline, hint=hint)


def _read(file: Path) -> dict[str, Any]:
    """`{"strict", "sizes"}` of one file; `strict` only if the file has it."""
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(file, str(error)) from None
    if not isinstance(data, dict) or not isinstance(data.get("sizes", {}), dict):
        raise _unusable(file, 'it must be an object with the key "sizes"')
    if "strict" in data and not isinstance(data["strict"], bool):
        raise _unusable(file, '"strict" must be true or false')
    sizes = {name.upper(): _size(file, name.upper(), entry) for name, entry in data.get("sizes", {}).items()}
    return {"sizes": sizes, **({"strict": data["strict"]} if "strict" in data else {})}


def _size(file: Path, name: str, entry: Any) -> VmSize:
    facts: dict[str, Any] = entry if isinstance(entry, dict) else {}
    vcpus, gpus, memory = facts.get("vcpus", 0), facts.get("gpus", 0), facts.get("memory_gb", 0)
    if type(vcpus) is not int or type(gpus) is not int or type(memory) not in (int, float) or vcpus < 1 or gpus < 0:
        raise _unusable(file, f'{name} needs "vcpus" (1 or more), "gpus" (0 or more) and "memory_gb"')
    return VmSize(name, vcpus, gpus, float(memory), str(facts.get("gpu", "")))


def _unusable(file: Path, cause: str) -> ComputeTargetException:
    return ComputeTargetException(f"the table of sizes {file} cannot be used", cause=cause)
