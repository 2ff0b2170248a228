"""SlurmCompute: the machines of a Slurm cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import ComputeTargetException
from trainmaster.sdk.compute.configurations import ComputeTargetProvisioningConfiguration
from trainmaster.sdk.compute.slurm_machines import QUESTION, SlurmMachine, parse
from trainmaster.sdk.compute.ssh import absolute, check_way, check_words
from trainmaster.sdk.compute.status import Occupancy
from trainmaster.sdk.compute.target import ComputeTarget
from trainmaster.shared.records import TargetCheck, TargetRecord
from trainmaster.shared.serialization import to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.workspace.workspace import Workspace

_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")


@dataclass
class SlurmConfiguration(ComputeTargetProvisioningConfiguration):
    """What runs on this target request from Slurm."""

    kind = "SlurmCompute"
    engine = "slurm"
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    max_nodes: int = 1
    cpus_per_node: int | None = None
    gpus_per_node: int = 0
    time_limit: int | str | None = None
    constraint: str | None = None
    extra_sbatch: Sequence[str] = ()
    shared_folder: str | None = None
    python: str | None = None
    setup: Sequence[str] = ()
    max_jobs: int | None = None
    login: str | None = None
    username: str = ""
    port: int | None = None
    private_key_file: str = ""
    config_file: str = ""
    lost_after_seconds: float = 60.0
    machine_cpus: int = 0
    """How many CPUs a whole machine has, if known. It is not part of a request."""
    tags: Mapping[str, str] = field(default_factory=dict)
    description: str = ""

    _is_seen: bool = field(default=False, init=False, repr=False)
    """Whether the login node was found to be a Slurm login node."""

    def __post_init__(self) -> None:
        self.validate_configuration()

    def validate_configuration(self) -> None:
        _check_numbers(self)
        seconds_of(self.time_limit)
        for name in ("partition", "account", "qos", "constraint", "shared_folder", "python"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, str | os.PathLike) or not str(value) or "\n" in str(value)):
                raise ComputeTargetException(f"{name} must be a text, not {value!r}")
        for name in ("extra_sbatch", "setup"):
            value = getattr(self, name)
            if isinstance(value, str) or not all(isinstance(each, str) for each in value or ()):
                raise ComputeTargetException(f"{name} must be a list of texts, not {value!r}")
        _check_extra(self)
        _check_login(self)

    def record(self, name: str, workspace: Workspace) -> TargetRecord:
        self.validate_configuration()
        if self.login is not None and not self._is_seen:
            self.look(workspace)
        return self._record(name)

    def look(self, workspace: Workspace, *options: str) -> str:
        """Runs sinfo here or on the login node. The error says why the cluster cannot be used."""
        said = _ask(self._record(""), workspace, options or ("--noheader", "--format=%P"))
        self._is_seen = True
        return said

    def _record(self, name: str) -> TargetRecord:
        given = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
            "cpus": self.cpus_per_node,
            "time_limit_seconds": seconds_of(self.time_limit),
            "extra_sbatch": list(self.extra_sbatch or ()),
            "shared_folder": None if self.shared_folder is None else str(self.shared_folder),
            "python": self.python,
            "setup": list(self.setup or ()),
            "max_jobs": self.max_jobs,
            **self._way(),
        }
        kept = {key: value for key, value in given.items() if value not in (None, [])}
        words = {"tags": dict(self.tags or {}), "description": self.description or ""}
        return TargetRecord(
            name=name,
            engine=self.engine if self.login is None else "slurm-ssh",
            nodes=self.max_nodes,
            cpus_per_node=self.cpus_per_node or self.machine_cpus,
            gpus_per_node=self.gpus_per_node,
            options={"class": self.kind, **kept, **words},
        )

    def _way(self) -> dict[str, Any]:
        """The connection to the login node."""
        if self.login is None:
            return {}
        return {
            "login": self.login,
            "username": self.username or None,
            "port": self.port,
            "private_key_file": absolute(self.private_key_file) or None,
            "config_file": absolute(self.config_file) or None,
            "lost_after_seconds": self.lost_after_seconds,
        }


class SlurmCompute(ComputeTarget):
    """Machines of a Slurm cluster. Each run is a Slurm job: Slurm decides when and where (docs/guide/slurm.md)."""

    _type = "slurm"

    @staticmethod
    def configuration(
        partition: str | None = None,
        account: str | None = None,
        qos: str | None = None,
        max_nodes: int = 1,
        gpus_per_node: int = 0,
        time_limit: int | str | None = None,
        constraint: str | None = None,
        extra_sbatch: Sequence[str] = (),
        shared_folder: str | None = None,
        *,
        cpus_per_node: int | None = None,
        python: str | None = None,
        setup: Sequence[str] = (),
        max_jobs: int | None = None,
        login: str | None = None,
        username: str = "",
        port: int | None = None,
        private_key_file: str = "",
        config_file: str = "",
        lost_after_seconds: float = 60.0,
    ) -> SlurmConfiguration:
        """What runs request from Slurm. Without a value, the cluster's own default applies.

        `max_nodes` is the most nodes that one run may have. Without `cpus_per_node`, a node is a whole machine.
        `time_limit` is in minutes, or a text as sbatch has it ("1-12:00:00"). `extra_sbatch` are options for sbatch,
        `setup` are shell lines that run first in a job ("module load cuda"). `python` is the Python for Trainmaster's
        agent on the nodes (3.6 or newer). `shared_folder` is a folder that all nodes see under the same path; the
        workspace must be in it. `max_jobs` limits how many runs are submitted to Slurm at a time.

        With `login` (`[user@]name[:port]`, or an alias of ~/.ssh/config) the cluster is used from here through that
        login node, over SSH. Then `shared_folder` is a folder there, to which all files are copied; the other
        parameters are those of `SshCompute`.
        """
        return SlurmConfiguration(
            partition=partition,
            account=account,
            qos=qos,
            max_nodes=max_nodes,
            cpus_per_node=cpus_per_node,
            gpus_per_node=gpus_per_node,
            time_limit=time_limit,
            constraint=constraint,
            extra_sbatch=extra_sbatch,
            shared_folder=shared_folder,
            python=python,
            setup=setup,
            max_jobs=max_jobs,
            login=login,
            username=username,
            port=port,
            private_key_file=private_key_file,
            config_file=config_file,
            lost_after_seconds=lost_after_seconds,
        )

    def get_status(self) -> Occupancy:
        """How many nodes its runs have or wait for."""
        return self.occupancy()

    def machines(self) -> list[SlurmMachine]:
        """The machines of its partition (or of all partitions) and their states now, from sinfo."""
        partition = self._option("partition")
        options = (*QUESTION, *([f"--partition={partition}"] if partition else []))
        return parse(_ask(self._record, self.workspace, options))

    def test(self) -> list[TargetCheck]:
        """Whether Slurm answers, and which machines it has."""
        found = self.machines()
        states = ", ".join(sorted({each.state for each in found}))
        return [TargetCheck("sinfo", bool(found), f"{len(found)} machines ({states})" if found else "no machines")]


def _ask(target: TargetRecord, workspace: Workspace, options: Sequence[str]) -> str:
    """The output of `sinfo` with these options, run where the target's jobs are submitted."""
    with workspace.backend.open_connection() as connection:
        found: str = connection.call("targets.ask_slurm", target=to_plain(target), options=list(options))
    return found


def seconds_of(limit: Any) -> int | None:
    """The seconds of a time limit in any form that sbatch accepts.

    >>> seconds_of(90), seconds_of("1-12"), seconds_of("02:30"), seconds_of("1:00:00")
    (5400, 129600, 150, 3600)
    """
    if limit is None:
        return None
    found = _TIME.fullmatch(str(limit)) if not isinstance(limit, bool) else None
    if found is None:
        raise ComputeTargetException(
            f"time_limit must be a number of minutes or a text such as '1-12:00:00', not {limit!r}"
        )
    parts = [int(part) for part in found["clock"].split(":")]
    if found["days"] is not None:
        parts = [int(found["days"]) * 24 + parts[0], *parts[1:], *([0] * (3 - len(parts)))]
    elif len(parts) == 1:
        parts = [0, parts[0], 0]
    elif len(parts) == 2:
        parts = [0, *parts]
    total = parts[0] * 3600 + parts[1] * 60 + parts[2]
    if total <= 0:
        raise ComputeTargetException(f"time_limit must be greater than 0, not {limit!r}")
    return total


def _check_numbers(given: SlurmConfiguration) -> None:
    least = {"max_nodes": 1, "cpus_per_node": 1, "gpus_per_node": 0, "max_jobs": 1}
    for name, bound in least.items():
        value = getattr(given, name)
        if value is None and name in ("cpus_per_node", "max_jobs"):
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < bound:
            raise ComputeTargetException(f"{name} must be a whole number of at least {bound}, not {value!r}")


# Options that the engine sets. With other values, runs would not be found, or would be started twice.
_OURS = frozenset(
    {"--job-name", "-J", "--requeue", "--no-requeue", "--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--array"}
    | {
        "-a",
        "--wrap",
        "--output",
        "-o",
        "--open-mode",
        "--chdir",
        "-D",
        "--parsable",
        "--wait",
        "-W",
        "--clusters",
        "-M",
    }
    | {"--test-only", "--help", "-h", "--usage", "--version", "-V"}
)
# Options for which the configuration has a parameter.
_SAID = {
    "partition": ("--partition", "-p"),
    "account": ("--account", "-A"),
    "qos": ("--qos", "-q"),
    "constraint": ("--constraint", "-C"),
    "time_limit": ("--time", "-t"),
    "cpus_per_node": ("--cpus-per-task", "-c"),
}


def _check_extra(given: SlurmConfiguration) -> None:
    for option in given.extra_sbatch or ():
        if not option.startswith("-") or "\n" in option:
            raise ComputeTargetException(
                f"extra_sbatch has {option!r}, which is not an option",
                hint='Write an option and its value as one string: extra_sbatch=["--mem=16G"].',
            )
        if _is_one_of(option, _OURS):
            raise ComputeTargetException(
                f"extra_sbatch must not have {option}: Trainmaster sets it for every run",
                hint="Use node_count, max_nodes and the other parameters instead.",
            )
        twice = next((name for name, names in _SAID.items() if _is_one_of(option, names)), None)
        if twice is not None and getattr(given, twice) is not None:
            raise ComputeTargetException(
                f"extra_sbatch has {option}, and {twice} says {getattr(given, twice)!r}",
                hint="Leave one of them out.",
            )


def _is_one_of(option: str, names: Collection[str]) -> bool:
    """Whether sbatch takes `option` for one of `names`. It accepts abbreviations, and values without a space.

    >>> _is_one_of("--nodes=2", _OURS), _is_one_of("-N2", _OURS), _is_one_of("--outp=x", _OURS)
    (True, True, True)
    >>> _is_one_of("--nodelist=a", _OURS), _is_one_of("--wait-all-nodes=1", _OURS), _is_one_of("--nice", _OURS)
    (False, False, False)
    """
    if not option.startswith("--"):
        return option[:2] in names
    name = option.partition("=")[0]
    return any(each.startswith(name) for each in names if each.startswith("--"))


def _check_login(given: SlurmConfiguration) -> None:
    if given.login is None:
        for name in ("username", "port", "private_key_file", "config_file"):
            if getattr(given, name):
                raise ComputeTargetException(f"{name} has no effect without login", hint="login='me@login.example.org'")
        return
    if not isinstance(given.login, str) or not given.login.strip():
        raise ComputeTargetException(
            f"login must name a host, not {given.login!r}", hint="Write login='me@login.example.org', for example."
        )
    check_words((given.login,), given.username, given.python or "")
    check_way(given.port, given.private_key_file, given.config_file, given.lost_after_seconds)
    if not given.shared_folder or not str(given.shared_folder).startswith(("/", "~")):
        raise ComputeTargetException(
            "shared_folder must be the absolute path of a folder on the cluster that all its nodes see",
            hint="Write shared_folder='~/trainmaster', for example, if all nodes see the home folder.",
        )
