"""Slurms that know more of their jobs than the small one of the other tests, and forbid more.

`AccountedSlurm` has slurmdbd, with a MariaDB of its own; the kernel holds its jobs to the memory they asked for (by
cgroups of version 1, for which it has to be root). `WatchedSlurm` does that itself, by looking at what they use.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
from pathlib import Path

from tests.cluster.packages import ensure
from tests.cluster.slurm import _PATIENCE, _WHERE, MiniSlurm, _free_ports, _until
from tests.left_out import require_root

PACKAGES = ("slurmdbd", "mariadb-server")

_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge/socket"""
_DATABASE = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost=localhost
DbdPort={port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={storage}
StorageUser=root
StorageLoc=slurm
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""
_MEMORY = Path("/sys/fs/cgroup/memory")


class WatchedSlurm(MiniSlurm):
    """Ends jobs that it finds to use more memory than they asked for."""

    def _write_settings(self) -> None:
        super()._write_settings()
        self._set("SelectTypeParameters=CR_Core_Memory\nJobAcctGatherParams=OverMemoryKill")

    def _set(self, text: str) -> None:
        """Lines of the settings, in the place of those of the same names."""
        names = {line.partition("=")[0] for line in text.splitlines()}
        path = self.folder / "slurm.conf"
        kept = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in names]
        path.write_text("\n".join([text, *kept]) + "\n")


class AccountedSlurm(WatchedSlurm):
    """Keeps what jobs used, and lets the kernel end those that use too much memory."""

    def __init__(self, folder: Path, nodes: int) -> None:
        super().__init__(folder, nodes)
        # The names of nodes are those of cgroups, which all test runs of a machine share.
        self.nodes = [f"{name}of{os.getpid()}" for name in self.nodes]

    def __enter__(self) -> AccountedSlurm:
        require_root("for Slurm's accounting of memory in cgroups")
        programs = ("slurmdbd", "mariadbd", "sacct")
        fault = ensure(lambda: PACKAGES if any(shutil.which(each, path=_WHERE) is None for each in programs) else ())
        assert not fault, fault
        super().__enter__()
        return self

    def start_controller(self) -> None:
        """It finds its cluster in the database."""
        if "slurmdbd" not in self._daemons:
            self._start_database()
        super().start_controller()

    def _write_settings(self) -> None:
        MiniSlurm._write_settings(self)
        port, self._storage = _free_ports(2)
        facts = {"folder": self.folder, "port": port, "storage": self._storage, "user": getpass.getuser()}
        self._set(_ACCOUNTING.format(**facts))
        self._set("SelectTypeParameters=CR_Core_Memory\nTaskPlugin=task/cgroup")
        limits = f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={_MEMORY.parent}\nConstrainRAMSpace=yes\n"
        (self.folder / "cgroup.conf").write_text(limits)
        own = self.folder / "slurmdbd.conf"
        own.touch(mode=0o600)
        own.write_text(_DATABASE.format(**facts))

    def _start_database(self) -> None:
        data = self.folder / "database"
        data.mkdir()
        # Without tables of its own: nobody has to prove who he is, and nothing has to last.
        self._spawn(
            "mariadbd", "mariadbd", "--no-defaults", "--skip-grant-tables", f"--user={getpass.getuser()}",
            f"--datadir={data}", f"--socket={data}/socket", "--bind-address=127.0.0.1", f"--port={self._storage}",
            f"--pid-file={data}/pid", "--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=8M",
            "--innodb-buffer-pool-size=32M", "--innodb-doublewrite=0",
        )  # fmt: skip
        said = self.folder / "log" / "mariadbd.out"
        _until(lambda: "ready for connections" in said.read_text(), _PATIENCE, "MariaDB", said)
        self._spawn("slurmdbd", "slurmdbd", "-D")
        _until(self._knows_cluster, _PATIENCE, "slurmdbd", self._log("slurmdbd"))

    def _knows_cluster(self) -> bool:
        self.run("sacctmgr", "--immediate", "add", "cluster", "mini", check=False)
        return "mini" in self.run("sacctmgr", "--noheader", "list", "cluster", "format=cluster", check=False)

    def _end_daemons(self) -> None:
        super()._end_daemons()
        for name in ("slurmdbd", "mariadbd"):
            if name in self._daemons:
                self._kill(name)
        for name in self.nodes:
            with contextlib.suppress(OSError):
                (_MEMORY / f"slurm_{name}").rmdir()
