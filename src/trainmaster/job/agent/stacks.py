"""Writes the stacks of a rank's processes to the rank's log, before the agent ends a run that hangs.

faulthandler   runs with hang detection have PYTHONFAULTHANDLER set: at SIGABRT Python writes the stacks of all its
threads,
               without its lock and without code in the script, and ends
py-spy         where it is installed and the script has no such handler (any more)
/proc          for everything else: what the kernel says the process waits for
"""

import _signal  # type: ignore[import-not-found]
import os

from trainmaster.job.agent import process
from trainmaster.job.agent.clock import wait_until
from trainmaster.job.agent.spawn import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Sequence

    from trainmaster.job.agent.process import Process
    from trainmaster.job.agent.tree import Tree

_RANK = b"TRAINMASTER_RANK="
_FAULTHANDLER = b"PYTHONFAULTHANDLER="
# Writing a stack takes milliseconds, but the machine may be busy.
_PATIENCE_SECONDS = 10.0
_KEPT_BYTES = 4096
_STATES = {"R": "running", "S": "sleeping", "D": "waiting for a device or file system", "T": "stopped", "t": "traced"}


class Target(object):
    """A rank whose stacks are written: its number, its log, and the PATH of its processes."""

    __slots__ = ("log", "path", "rank")

    def __init__(self, rank: int, log: str, path: str) -> None:
        self.rank = rank
        self.log = encode(log)
        self.path = path


def dump(targets: "Sequence[Target]", whole_tree: "Tree", seconds: float) -> "dict[int, str]":
    """Writes the stacks of the processes of each target to its log, after `seconds` of silence.

    This ends Python processes. Returns what was written for each rank.
    """
    scripts, engine_programs = whole_tree.find_apart()
    by_rank, relays_by_rank = _group_by_rank(scripts), _group_by_rank(engine_programs)
    positions = {target.rank: _append(target.log, _headline(target.rank, seconds)) for target in targets}
    states = {target.rank: [_kernel_state(one) for one in by_rank.get(target.rank, ())] for target in targets}
    aborted: "list[Process]" = []
    relays: "list[Process]" = []
    for target in targets:
        processes = by_rank.get(target.rank, [])
        listening = _outermost([one for one in processes if _writes_stacks(one)])
        aborted.extend(listening)
        if listening:
            relays.extend(relays_by_rank.get(target.rank, ()))
        else:
            _run_py_spy(target, processes)
    _abort(aborted)
    _wait_for_end(relays)
    return {target.rank: _read_stacks(target, positions[target.rank], states[target.rank]) for target in targets}


def _headline(rank: int, seconds: float) -> str:
    text = "\ntrainmaster: the run was silent for {:g} s and is ended. The stacks of rank {}:\n"
    return text.format(seconds, rank)


def _group_by_rank(processes: "Iterable[Process]") -> "dict[int, list[Process]]":
    found: "dict[int, list[Process]]" = {}
    for one in processes:
        value = _variable(one, _RANK)
        if value.isdigit():
            found.setdefault(int(value), []).append(one)
    return found


def _variable(one: "Process", name: bytes) -> bytes:
    for item in (process.read("/proc/{}/environ".format(one.pid)) or b"").split(b"\0"):
        if item.startswith(name):
            return item[len(name) :]
    return b""


def _writes_stacks(one: "Process") -> bool:
    """Whether its Python writes its stacks at SIGABRT: the variable is set, and the handler is (still) installed."""
    return bool(_variable(one, _FAULTHANDLER)) and bool(_signals_with_handler(one) >> (_signal.SIGABRT - 1) & 1)


def _signals_with_handler(one: "Process") -> int:
    for line in (process.read("/proc/{}/status".format(one.pid)) or b"").splitlines():
        if line.startswith(b"SigCgt:"):
            return int(line.split()[1], 16)
    return 0


def _outermost(processes: "Sequence[Process]") -> "list[Process]":
    """Those that were not started by another of them: the workers of a script would write between its lines."""
    own = {one.pid for one in processes}
    return [one for one in processes if one.parent not in own]


def _abort(processes: "Sequence[Process]") -> None:
    """Aborts all at the same moment, so that no stack shows a reaction to the end of another process."""
    for one in processes:
        _disable_core_file(one)
    for one in processes:
        process.send(one, _signal.SIGABRT)
        process.send(one, _signal.SIGCONT)
    _wait_for_end(processes)


def _wait_for_end(processes: "Sequence[Process]") -> None:
    def have_ended() -> bool:
        return not any(process.is_alive(one.pid, one.start_time, "") for one in processes)

    # Polls, because this process is the parent of some of them only.
    wait_until(have_ended, _PATIENCE_SECONDS, pause=0.01)


def _disable_core_file(one: "Process") -> None:
    import resource

    try:
        _, hard = resource.prlimit(one.pid, resource.RLIMIT_CORE)
        resource.prlimit(one.pid, resource.RLIMIT_CORE, (0, hard))
    except OSError:
        # The process is gone, or belongs to another user.
        pass


def _run_py_spy(target: Target, processes: "Sequence[Process]") -> None:
    program = _find_py_spy(target.path)
    if program is None:
        return
    import subprocess

    for one in _outermost([one for one in processes if _is_python(one)]):
        with open(target.log, "ab") as log:
            try:
                subprocess.call(
                    [program, "dump", "--pid", str(one.pid)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.DEVNULL,
                    timeout=_PATIENCE_SECONDS,
                )
            except (OSError, subprocess.TimeoutExpired):
                # The state from the kernel has to do.
                continue


def _is_python(one: "Process") -> bool:
    try:
        return "python" in os.path.basename(os.readlink("/proc/{}/exe".format(one.pid)))
    except OSError:
        return False


def _find_py_spy(path: str) -> "str | None":
    for folder in (path + ":" + os.environ.get("PATH", "")).split(":"):
        program = os.path.join(folder, "py-spy")
        if folder and os.access(program, os.X_OK):
            return program
    return None


def _kernel_state(one: "Process") -> str:
    status = process.read("/proc/{}/status".format(one.pid)) or b""
    states = [line.split()[1].decode("ascii") for line in status.splitlines() if line.startswith(b"State:")]
    state = _STATES.get(states[0], states[0]) if states else "gone"
    where = (process.read("/proc/{}/wchan".format(one.pid)) or b"").decode("ascii", "replace").strip("0\n")
    text = "process {} ({}): {}{}".format(one.pid, one.command, state, ", in " + where if where else "")
    if _is_python(one) and _variable(one, _FAULTHANDLER) and not _writes_stacks(one):
        text += "\n  its Python does not answer: it is shutting down after the script, or faulthandler is off"
    # Readable by root only.
    stack = (process.read("/proc/{}/stack".format(one.pid)) or b"").decode("ascii", "replace")
    return "\n".join([text] + ["  " + line for line in stack.splitlines()])


def _read_stacks(target: Target, position: int, states: "Sequence[str]") -> str:
    """What was written to the log behind `position`; if nothing was, writes the states from the kernel instead."""
    text = _read_from(target.log, position)
    if not text.strip():
        text = "\n".join(states) or "its processes were not found"
        _append(target.log, text + "\n")
    return text[:_KEPT_BYTES]


def _append(path: bytes, text: str) -> int:
    """Returns the new size of the file. A log that cannot be written (the disk is full) must not stop the rest."""
    try:
        with open(path, "ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            return file.tell()
    except OSError:
        return 0


def _read_from(path: bytes, position: int) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(position)
            return file.read(_KEPT_BYTES).decode("utf-8", "replace").replace("\0", "\ufffd")
    except OSError:
        return ""
