"""The program of a Slurm batch job. It records its hosts, then becomes the agent or starts one on each host.

`python -I -S slurm.py <folder of the nodes> <number of agents>`, by the batch script, on the first node;
`python -I -S slurm.py <folder of the nodes>`, by srun, once on every node.

`gang.json` is created once per attempt of a run, atomically. A job that finds the file of another job ends. So a job
that was submitted twice, or that Slurm requeued while its old processes still run, does no harm.
"""

import os
import sys

# Because of -I our package is not on the path.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Mapping, Sequence

GANG = "gang.json"


def main(arguments: "Sequence[str]") -> int:
    """Returns the exit code."""
    folder = os.path.abspath(arguments[0])
    if len(arguments) == 1:
        return _become_agent(folder, int(os.environ["SLURM_NODEID"]))
    return _begin(folder, int(arguments[1]), os.environ)


def _begin(folder: str, agents: int, environment: "Mapping[str, str]") -> int:
    from trainmaster.job.agent import claim
    from trainmaster.job.agent.other_nodes import STOP

    if os.path.exists(os.path.join(folder, STOP)):
        # A controller that lost its latest state may start jobs that it had already ended.
        sys.stderr.write("the run was given up: this job ends\n")
        return 0
    names = expand(environment["SLURM_JOB_NODELIST"])
    gang = {
        "version": 1,
        "job_id": environment["SLURM_JOB_ID"],
        "restarts": environment.get("SLURM_RESTART_COUNT", "0"),
        "names": names,
        "hosts": [_address(name) for name in names] if len(names) > 1 else names,
    }
    if not claim.take(os.path.join(folder, GANG), gang):
        sys.stderr.write("another job runs these nodes of the run: this job ends\n")
        return 0
    if agents > 1:
        # Its output becomes the output of the job; Slurm passes signals on to the agents.
        os.execvp("srun", srun_command(folder, agents, environment))
    return _become_agent(folder, 0)


def srun_command(folder: str, agents: int, environment: "Mapping[str, str]") -> "list[str]":
    """Starts one agent per node, with the node's whole share of the job. No agent ends because another one did."""
    cpus = environment.get("SLURM_CPUS_PER_TASK")
    return (
        ["srun", "--nodes={}".format(agents), "--ntasks={}".format(agents), "--ntasks-per-node=1"]
        + (["--cpus-per-task={}".format(cpus)] if cpus else [])
        + ["--mpi=none", "--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0", "--input=none", "--export=ALL"]
        + [sys.executable, "-I", "-S", os.path.abspath(__file__), folder]
    )


def _become_agent(folder: str, node: int) -> int:
    from trainmaster.job.agent.agent import main as execute

    folder = os.path.join(folder, str(node))
    log = os.open(os.path.join(folder, "agent.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    return execute([os.path.join(folder, "plan.json")])


def _address(name: str) -> str:
    """How other nodes reach a node: by its name or, if the network does not know it, by the address that Slurm has."""
    import socket

    try:
        socket.getaddrinfo(name, None)
        return name
    except OSError:
        return _address_in_slurm(name) or name


def _address_in_slurm(name: str) -> "str | None":
    import subprocess

    try:
        output = subprocess.check_output(["scontrol", "show", "node", "--oneliner", name], stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        return None
    for word in output.decode("utf-8", "replace").split():
        if word.startswith("NodeAddr="):
            return word.partition("=")[2]
    return None


def expand(text: str) -> "list[str]":
    """The names in Slurm's short form.

    >>> expand("node[1-2,08-10],gpu7")
    ['node1', 'node2', 'node08', 'node09', 'node10', 'gpu7']
    >>> expand("r[1-2]n[1-2]")
    ['r1n1', 'r1n2', 'r2n1', 'r2n2']
    """
    found: "list[str]" = []
    for part in _split(text):
        found.extend(_expand_part(part))
    return found


def _split(text: str) -> "list[str]":
    """Splits at the commas outside brackets."""
    parts: "list[str]" = []
    depth = begin = 0
    for position, character in enumerate(text):
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(text[begin:position])
            begin = position + 1
    return [part for part in [*parts, text[begin:]] if part]


def _expand_part(part: str) -> "list[str]":
    before, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    inside, _, after = rest.partition("]")
    return [before + number + end for number in _numbers(inside) for end in _expand_part(after)]


def _numbers(text: str) -> "Iterator[str]":
    for piece in text.split(","):
        first, dash, last = piece.partition("-")
        if not dash:
            yield first
            continue
        for number in range(int(first), int(last) + 1):
            yield str(number).zfill(len(first))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
