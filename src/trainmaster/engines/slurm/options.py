"""From the nodes of a run to the job that Slurm is asked for. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.engines.engine import Nodes

# After the time the run has: for its agents to start, to end what is left, and to say how it went.
_MARGIN_SECONDS = 120

PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "LD_LIBRARY_PATH",
    "SLURM_CONF",
    "SLURM_CLUSTERS",
)
PASSED_ON_BEGINNINGS = ("LC_", "SBATCH_")


def job_name(run_id: str, attempt: int) -> str:
    """The name by which a job is found again, whoever submitted it and whether or not they lived to note its number.

    >>> job_name("digits_1700000000_ab12", 2)
    'trainmaster.digits_1700000000_ab12.2'
    """
    return f"trainmaster.{run_id}.{attempt}"


def sbatch_options(nodes: Nodes, output: str, folder: str) -> list[str]:
    """The options of sbatch; `output` and `folder` are where the nodes find the run's folders."""
    target = nodes.target
    count = len(nodes.numbers)
    given = target.options
    options = [
        f"--job-name={job_name(nodes.run_id, nodes.folder.attempt)}",
        f"--nodes={count}",
        f"--ntasks={count}",
        "--ntasks-per-node=1",
        # A job that Slurm starts again by itself could run beside what is left of its old self. We submit a new one.
        "--no-requeue",
        "--open-mode=append",
        f"--output={output.replace('%', '%%')}/slurm-%j.log",
        f"--chdir={folder}",
    ]
    # A node is a whole machine, as in v1, unless the target says how much of one it is.
    options += [f"--cpus-per-task={given['cpus']}"] if given.get("cpus") else ["--exclusive"]
    options += [f"--gres=gpu:{target.gpus_per_node}"] if target.gpus_per_node else []
    options += [f"--{name}={given[name]}" for name in ("partition", "account", "qos", "constraint") if given.get(name)]
    minutes = time_limit_minutes(given.get("time_limit_seconds"), nodes.seconds)
    options += [f"--time={minutes}"] if minutes is not None else []
    return [*options, *given.get("extra_sbatch", ())]


def time_limit_minutes(of_target: float | None, of_run: float | None) -> int | None:
    """Slurm's limit counts in minutes. A run that says how long it takes finds a gap in the queue sooner.

    >>> time_limit_minutes(3600, 60), time_limit_minutes(90, None), time_limit_minutes(60, 7200)
    (3, 2, 1)
    """
    limits = [limit for limit in (of_target, None if of_run is None else of_run + _MARGIN_SECONDS) if limit is not None]
    return math.ceil(min(limits) / 60) if limits else None


def batch_script(python: str, kit: str, folder: str, agents: int, setup: Sequence[str] = ()) -> str:
    """What the job runs on its first node."""
    command = [python, "-I", "-S", f"{kit}/trainmaster/job/agent/slurm.py", folder, str(agents)]
    return "\n".join(["#!/bin/sh", *setup, f"exec {shlex.join(command)}", ""])


def command_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What Slurm's commands get of our variables, and with them the job: not the secrets somebody's shell may have.

    Nor those of a job that the dispatcher itself may run in.
    """
    return {
        name: value for name, value in environment.items() if name in PASSED_ON or name.startswith(PASSED_ON_BEGINNINGS)
    }


def settings(options: Mapping[str, Any]) -> Sequence[str]:
    """The lines a site wants before anything of ours: `module load ...`."""
    return tuple(options.get("setup", ()))
