"""The machine that a workspace is on: what it has, and what a `vm_size` means there."""

from __future__ import annotations

from dataclasses import dataclass

from trainmaster.job.agent.process import boot_id
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.hardware import cpus, gpus
from trainmaster.shared.vm_sizes import Grant, VmSize, VmSizes, find_edited_files, grant, read_sizes


@dataclass(frozen=True)
class Machine:
    """The CPUs and GPUs of a machine, and its table of VM sizes."""

    cpus: int
    gpus: int
    sizes: tuple[VmSize, ...] = ()
    strict: bool = False
    """Whether a VM size that the machine cannot provide is refused."""
    size_files: tuple[str, ...] = ()
    """Where a person may change the table."""
    python: str = ""
    """The Python of the dispatcher (major.minor)."""
    pythons: tuple[str, ...] = ()
    """The Pythons that environments can be built with, oldest first."""
    boot_id: str = ""
    """Tells machines apart; changes when the machine is started again."""

    @property
    def is_here(self) -> bool:
        """Whether it is the machine of this program."""
        return bool(self.boot_id) and self.boot_id == boot_id()

    def grant(self, vm_size: str, nodes: int) -> Grant:
        """What each of `nodes` nodes of this size gets."""
        table = VmSizes({size.name: size for size in self.sizes}, self.strict)
        return grant(table, vm_size, nodes, cpus=self.cpus, gpus=self.gpus)


def this_machine(workspace: WorkspaceFolder) -> Machine:
    """This machine, with the VM sizes of this user and workspace."""
    table = read_sizes(workspace)
    files = tuple(str(file) for file in find_edited_files(workspace))
    return Machine(cpus(), len(gpus()), tuple(table.sizes.values()), table.strict, files, boot_id=boot_id())
