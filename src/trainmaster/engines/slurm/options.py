"""From the nodes of a run to the options and the script of its job. Pure."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.engines.engine import Nodes

# Added to the time limit of a run, for its agents to start, to end processes and to write the result.
_MARGIN_SECONDS = 120

COMMAND_VARIABLES = (
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
COMMAND_PREFIXES = ("LC_", "SBATCH_")


_NICE_PER_POINT = 100
"""What `--nice` without a number is."""


def job_name(run_id: str, attempt: int) -> str:
    """The name by which a job is found again, even if the dispatcher that submitted it did not note its number.

    >>> job_name("digits_1700000000_ab12", 2)
    'trainmaster.digits_1700000000_ab12.2'
    """
    return f"trainmaster.{run_id}.{attempt}"


def sbatch_options(nodes: Nodes, output: str, folder: str) -> list[str]:
    """The options of sbatch; `output` and `folder` are paths on the nodes."""
    target = nodes.target
    count = len(nodes.numbers)
    given = target.options
    options = [
        f"--job-name={job_name(nodes.run_id, nodes.folder.attempt)}",
        f"--nodes={count}",
        f"--ntasks={count}",
        "--ntasks-per-node=1",
        # A job that Slurm restarts could run beside what is left of its first start. We submit a new job instead.
        "--no-requeue",
        "--open-mode=append",
        f"--output={output.replace('%', '%%')}/slurm-%j.log",
        f"--chdir={folder}",
    ]
    # A node is a whole machine, as in v1, unless the target says how many CPUs it has.
    options += [f"--cpus-per-task={given['cpus']}"] if given.get("cpus") else ["--exclusive"]
    options += [f"--gres=gpu:{target.gpus_per_node}"] if target.gpus_per_node else []
    options += [f"--{name}={given[name]}" for name in ("partition", "account", "qos", "constraint") if given.get(name)]
    minutes = time_limit_minutes(given.get("time_limit_seconds"), nodes.seconds)
    options += [f"--time={minutes}"] if minutes is not None else []
    # Slurm lets everybody step back in its queue, but only administrators step forward: it ignores a negative value of
    # others, and submits the job.
    options += [f"--nice={-nodes.priority * _NICE_PER_POINT}"] if nodes.priority else []
    return [*options, *given.get("extra_sbatch", ())]


def time_limit_minutes(target_seconds: float | None, run_seconds: float | None) -> int | None:
    """The time limit for Slurm. A run with a limit fits into a gap of the queue sooner.

    >>> time_limit_minutes(3600, 60), time_limit_minutes(90, None), time_limit_minutes(60, 7200)
    (3, 2, 1)
    """
    run_limit = None if run_seconds is None else run_seconds + _MARGIN_SECONDS
    limits = [limit for limit in (target_seconds, run_limit) if limit is not None]
    return math.ceil(min(limits) / 60) if limits else None


def batch_script(python: str, kit: str, folder: str, agents: int, setup: Sequence[str] = ()) -> str:
    """The script that the job runs on its first node."""
    command = [python, "-I", "-S", f"{kit}/trainmaster/job/agent/slurm.py", folder, str(agents)]
    return "\n".join(["#!/bin/sh", *setup, f"exec {shlex.join(command)}", ""])


def command_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that Slurm's commands, and with them the job, get from ours.

    Secrets of the user's shell and variables of a job that the dispatcher itself may run in are left out.
    """
    return {
        name: value
        for name, value in environment.items()
        if name in COMMAND_VARIABLES or name.startswith(COMMAND_PREFIXES)
    }


def setup_lines(options: Mapping[str, Any]) -> Sequence[str]:
    """Lines that a site needs at the beginning of the script, such as `module load ...`."""
    return tuple(options.get("setup", ()))
