"""A real Slurm on this one machine: a controller and several nodes, each a slurmd with a name and a port of its own.

    with MiniSlurm(folder, nodes=2) as slurm:
        subprocess.run(["sinfo"], env=slurm.environment)
        slurm.kill_controller()         # kill -9
        slurm.start_controller()
        slurm.kill_node("node1")        # its slurmd; what it started goes on
        slurm.start_node("node1")

It needs no root, no other user and no network but loopback. The daemons are our children and die with us: whatever
happens to the tests, nothing stays behind.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from tests.cluster.packages import ensure

PACKAGES = ("slurm-wlm", "slurmctld", "slurmd", "slurm-client", "munge")
_PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scontrol", "setpriv", "taskset")
_WHERE = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/local/sbin"

# How long a daemon may take to start or to end; of three attempts.
_PATIENCE = 90
# Quick to see things here, where a site has minutes: a job whose time is over, the next job to start. A lost node is
# not: a busy machine may keep its slurmd from answering for seconds.
_SETTINGS = """
ClusterName=mini
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=100000,sched_interval=1,bf_interval=1,batch_sched_delay=0
ReturnToService=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={spool}/%n
TmpFS=/tmp
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
SwitchType=switch/none
InactiveLimit=0
KillWait=15
OverTimeLimit=0
MinJobAge={keeps}
SlurmctldTimeout=30
SlurmdTimeout=60
MessageTimeout=10
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PropagateResourceLimits=NONE
MailProg=/bin/true
{gres}
"""
_NODE = (
    "NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={cpus} Boards=1 SocketsPerBoard=1 "
    "CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory=4000 {gres} State=UNKNOWN"
)
_PARTITIONS = """
PartitionName=main Nodes={most} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=10
PartitionName=urgent Nodes={most} MaxTime=INFINITE State=UP OverSubscribe=NO PriorityTier=100 PreemptMode=OFF
PartitionName=short Nodes={last} MaxTime=00:01:00 DefaultTime=00:01:00 State=UP OverSubscribe=NO PriorityTier=10
"""


def install() -> None:
    """Sees to it that Slurm is on this machine; says what to do where that cannot be."""
    fault = ensure(lambda: PACKAGES if any(shutil.which(name, path=_WHERE) is None for name in _PROGRAMS) else ())
    assert not fault, fault


class MiniSlurm:
    """A cluster that lives as long as its `with` block."""

    def __init__(
        self,
        folder: Path,
        nodes: int,
        cpus: int = 4,
        gpus: int = 0,
        keeps: int = 3600,
        apart: int = 0,
        inside: Sequence[str] = (),
    ) -> None:
        """`apart` of its nodes are only in the partition `short`, where a job may take a minute. `inside` are words
        before the command line of every daemon: where it is to run.
        """
        self.folder = folder
        self.nodes = [f"node{number + 1}" for number in range(nodes + apart)]
        self._main = nodes
        self._inside = inside
        self._cpus, self._gpus, self._keeps = cpus, gpus, keeps
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._ends = contextlib.ExitStack()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which its commands are found and find it."""
        return {**os.environ, "PATH": _WHERE, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def __enter__(self) -> MiniSlurm:
        install()
        # slurmd has sockets there, whose whole path may have a hundred letters: those of tests have more.
        spool = tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True)
        self._spool = self._ends.enter_context(spool)
        for attempt in range(3):
            try:
                self._start()
                return self
            except AssertionError:
                self._end_daemons()
                # Somebody may have taken one of the ports in between.
                if attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def __exit__(self, *exception: object) -> None:
        # Whatever state a failed test left it in.
        with contextlib.suppress(subprocess.SubprocessError, AssertionError):
            for job in self.run("squeue", "-h", "-o", "%i").split():
                self.run("scancel", "--full", "--signal=KILL", job, check=False)
            _until(
                lambda: not self.run("squeue", "-h", "-o", "%i", check=False).split(), _PATIENCE, "the end of all jobs"
            )
        self._end_daemons()
        self._ends.close()

    def run(self, *command: str, check: bool = True) -> str:
        """What a command of Slurm says."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=_PATIENCE)
        assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stderr}{done.stdout}"
        return done.stdout

    def jobs(self, *states: str) -> list[str]:
        """The ids of the jobs that are there: queued, running or ending, unless other states are asked for."""
        return self.run("squeue", "-h", "-o", "%i", *([f"--states={','.join(states)}"] if states else [])).split()

    def queued_seconds(self, job: str) -> float:
        """How long a job waited between its submission and its start, by slurmctld's own log."""
        log = self._log("slurmctld").read_text()
        times = re.findall(rf"^\[(\S+)\] (?:_slurm_rpc_submit|sched).*JobId={job}\b", log, re.MULTILINE)
        first, last = (datetime.fromisoformat(text) for text in (times[0], times[-1]))
        return (last - first).total_seconds()

    def start_controller(self) -> None:
        """Starts slurmctld; returns when it answers."""
        self._spawn("slurmctld", "slurmctld", "-D", "-i")
        _until(
            lambda: "is UP" in self.run("scontrol", "ping", check=False), _PATIENCE, "slurmctld", self._log("slurmctld")
        )

    def kill_controller(self) -> None:
        """kill -9 of slurmctld."""
        self._kill("slurmctld")

    def keep_state(self) -> None:
        """Has slurmctld write down all it knows, as it does every few seconds, and keeps that."""
        self._kill("slurmctld", signal.SIGTERM)
        shutil.copytree(self.folder / "state", self.folder / "kept", dirs_exist_ok=True)
        self.start_controller()

    def lose_state(self) -> None:
        """What slurmctld, which must not run, learnt since then is gone."""
        shutil.rmtree(self.folder / "state")
        (self.folder / "kept").rename(self.folder / "state")

    def start_node(self, name: str) -> None:
        """Starts the slurmd of a node; all it starts shares one core, so that nodes do not take each other's."""
        cores = sorted(os.sched_getaffinity(0))
        core = cores[self.nodes.index(name) % len(cores)]
        self._spawn(name, "taskset", "--cpu-list", str(core), "slurmd", "-D", "-N", name)

    def kill_node(self, name: str) -> None:
        """kill -9 of a slurmd. What it had started goes on, as on a machine of which only slurmd crashed."""
        self._kill(name)

    def living(self) -> set[str]:
        """The daemons that run."""
        return set(self._daemons)

    def _start(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("state", "log", "munge"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "munge").chmod(0o711)
        self._write_settings()
        key = self.folder / "munge/key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        self._spawn(
            "munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={key.with_name('socket')}",
            f"--pid-file={key.with_name('pid')}", f"--seed-file={key.with_name('seed')}",
            f"--log-file={self.folder}/log/munged.log", "--num-threads=2",
        )  # fmt: skip
        _until(lambda: key.with_name("socket").exists(), _PATIENCE, "munged")
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)
        _until(lambda: self.idle() == set(self.nodes), _PATIENCE, "nodes that are idle", self._log("slurmctld"))

    def idle(self) -> set[str]:
        """The nodes that are free and answer."""
        return set(self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N", check=False).split())

    def _write_settings(self) -> None:
        ports = _free_ports(len(self.nodes) + 1)
        gres = "GresTypes=gpu" if self._gpus else ""
        of_node = f"Gres=gpu:{self._gpus}" if self._gpus else ""
        text = _SETTINGS.format(
            port=ports[0], user=getpass.getuser(), folder=self.folder, spool=self._spool, keeps=self._keeps, gres=gres
        )
        for name, port in zip(self.nodes, ports[1:], strict=True):
            text += _NODE.format(name=name, port=port, cpus=self._cpus, gres=of_node) + "\n"
        most = ",".join(self.nodes[: self._main])
        (self.folder / "slurm.conf").write_text(text + _PARTITIONS.format(most=most, last=self.nodes[-1]))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        if self._gpus:
            # Any device will do for what is handed out.
            lines = [f"Name=gpu File=/dev/{name}\n" for name in ("null", "zero", "full", "random")[: self._gpus]]
            (self.folder / "gres.conf").write_text("".join(lines))

    def _spawn(self, name: str, *command: str) -> None:
        program = [shutil.which(command[0], path=_WHERE) or command[0], *command[1:]]
        with open(self.folder / "log" / f"{name}.out", "ab") as log:
            words = ["setpriv", "--pdeathsig", "KILL", *self._inside, *program]
            self._daemons[name] = subprocess.Popen(
                words, env=self.environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                start_new_session=True,
            )  # fmt: skip

    def _kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        daemon = self._daemons.pop(name)
        daemon.send_signal(number)
        daemon.wait(_PATIENCE)

    def _end_daemons(self) -> None:
        for name in [*self.nodes, "slurmctld", "munged"]:
            if name in self._daemons:
                self._kill(name)

    def _log(self, name: str) -> Path:
        return self.folder / "log" / f"{name}.log"


def _free_ports(count: int) -> list[int]:
    """Below the range from which systems take ports for outgoing connections."""
    found: list[int] = []
    for port in random.sample(range(10000, 20000), 10000):
        with socket.socket() as attempt, contextlib.suppress(OSError):
            attempt.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == count:
            break
    return found


def _until(condition, seconds: float, what: str, log: Path | None = None) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        told = log.read_text()[-3000:] if log is not None and log.exists() else ""
        assert time.monotonic() < deadline, f"{what} did not come within {seconds} s\n{told}"
        time.sleep(0.02)


@contextlib.contextmanager
def variables(slurm: MiniSlurm) -> Iterator[None]:
    """While the block lasts, programs of this process find the cluster."""
    kept = {name: os.environ.get(name) for name in ("PATH", "SLURM_CONF")}
    os.environ.update({name: slurm.environment[name] for name in kept})
    try:
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
