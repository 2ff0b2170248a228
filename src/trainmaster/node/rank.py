"""What mpirun starts for every rank: it becomes the process that is planned for this rank, and notes how that ended.

`python -I -S rank.py <ranks.json>`. Between mpirun and the script, so that every rank has its own log and variables,
and so that the first rank that failed is known by more than mpirun's word.
"""

import os
import sys

# Because of -I nothing of ours is on the path.
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

_FROM_LAUNCHER = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HWLOC_")


def main(path):
    """Starts the process of this rank and returns its exit code, as a shell would tell it."""
    import signal

    from trainmaster.node import jsonfile, ranks, spawn
    from trainmaster.node.plan import Process

    number = int(os.environ["OMPI_COMM_WORLD_RANK"])
    plan = Process(jsonfile.read(path)["ranks"][number], "ranks[{}]".format(number))
    environment = dict(plan.env)
    environment.update(_launcher_variables())
    before = ranks.memory_kills()
    started = spawn.start(plan, environment)
    rank = ranks.Rank(number, started.pid, plan.log)
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, lambda got, frame: _pass_on(rank.pid, got))
    started.confirm()
    folder = os.path.join(os.path.dirname(path), "ranks")
    _note(folder, number, rank.running_record())
    rank.note_end(_wait(rank.pid), ranks.memory_kills() > before)
    _note(folder, number, dict(rank.end_record(), pid=rank.pid))
    return rank.exit_code if rank.signal is None else 128 + rank.signal


def _launcher_variables():
    """What Open MPI tells its ranks, and what the agent marks them with."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_FROM_LAUNCHER)}
    for name in ("TRAINMASTER_RUN_ID", "TRAINMASTER_AGENT"):
        if name in os.environ:
            kept[name] = os.environ[name]
    return kept


def _pass_on(pid, number):
    try:
        os.killpg(pid, number)
    except OSError:
        # It has just ended.
        pass


def _wait(pid):
    while True:
        try:
            return os.waitpid(pid, 0)[1]
        except InterruptedError:
            continue


def _note(folder, number, record):
    from trainmaster.node import jsonfile

    try:
        os.makedirs(folder, exist_ok=True)
        jsonfile.write(os.path.join(folder, "{}.json".format(number)), record)
    except OSError as error:
        sys.stderr.write("rank {} cannot note how it ended: {}\n".format(number, error))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
