"""Where the processes of a rank stand, written into the rank's log: for a run that hangs and is about to be ended.

faulthandler   PYTHONFAULTHANDLER is set for runs with hang detection: Python itself writes the stacks of all its
               threads when it gets SIGABRT, without its lock and without any code in the script, and ends
py-spy         where one is found and the script has no such handler (any more)
/proc          for everything else: what the kernel says it waits for
"""

import _signal  # type: ignore[import-not-found]
import os
import time

from trainmaster.job.agent import process
from trainmaster.job.agent.spawn import encode

_RANK = b"TRAINMASTER_RANK="
_ARMED = b"PYTHONFAULTHANDLER="
# Writing a stack takes milliseconds, but the machine may be busy.
_PATIENCE_SECONDS = 10.0
_KEPT_BYTES = 4096
_STATES = {"R": "running", "S": "sleeping", "D": "waiting for a device or file system", "T": "stopped", "t": "traced"}


class Place(object):
    """A rank whose processes are asked where they stand: its number, its log, and the PATH of its processes."""

    def __init__(self, rank, log, path):
        self.rank = rank
        self.log = encode(log)
        self.path = path


def dump(places, whole_tree, seconds):
    """Writes into the log of each place where its processes stand, after so many silent seconds.

    Python processes end by this. Returns {rank: what was written}.
    """
    found, relays = map(_by_rank, whole_tree.find_apart())
    begins = {place.rank: _append(place.log, _headline(place.rank, seconds)) for place in places}
    words = {place.rank: [_kernel_words(one) for one in found.get(place.rank, ())] for place in places}
    asked, passing_on = [], []  # type: ignore[var-annotated]
    for place in places:
        armed = _outermost([one for one in found.get(place.rank, ()) if _is_armed(one)])
        asked.extend(armed)
        passing_on.extend(relays.get(place.rank, ()) if armed else ())
        if not armed:
            _spy(place, found.get(place.rank, ()))
    _abort(asked)
    _await_end(passing_on)
    return {place.rank: _written(place, begins[place.rank], words[place.rank]) for place in places}


def _headline(rank, seconds):
    words = "\ntrainmaster: nothing was heard of the run for {:g} s, it is ended. Rank {} stands here:\n"
    return words.format(seconds, rank)


def _by_rank(processes):
    found = {}  # type: dict[int, list[process.Process]]
    for one in processes:
        value = _variable(one, _RANK)
        if value.isdigit():
            found.setdefault(int(value), []).append(one)
    return found


def _variable(one, name):
    for item in (process.read("/proc/{}/environ".format(one.pid)) or b"").split(b"\0"):
        if item.startswith(name):
            return item[len(name) :]
    return b""


def _is_armed(one):
    """Whether its Python writes its stacks at SIGABRT: it was told to, and (still) listens."""
    return bool(_variable(one, _ARMED)) and bool(_caught(one) >> (_signal.SIGABRT - 1) & 1)


def _caught(one):
    for line in (process.read("/proc/{}/status".format(one.pid)) or b"").splitlines():
        if line.startswith(b"SigCgt:"):
            return int(line.split()[1], 16)
    return 0


def _outermost(processes):
    """Without what another of them has started: workers of a script would write between its lines."""
    own = {one.pid for one in processes}
    return [one for one in processes if one.parent not in own]


def _abort(processes):
    """All at the same moment: the end of one must not be what the others are seen to react to."""
    for one in processes:
        _without_core(one)
    for one in processes:
        process.send(one, _signal.SIGABRT)
        process.send(one, _signal.SIGCONT)
    _await_end(processes)


def _await_end(processes):
    until = time.monotonic() + _PATIENCE_SECONDS
    while any(process.is_alive(one.pid, one.start_time, "") for one in processes) and time.monotonic() < until:
        # As the parent of some of them this process could wait, but not for the others.
        time.sleep(0.01)


def _without_core(one):
    """A core file of every rank is not what was asked for."""
    import resource

    try:
        _, hard = resource.prlimit(one.pid, resource.RLIMIT_CORE)
        resource.prlimit(one.pid, resource.RLIMIT_CORE, (0, hard))
    except OSError:
        # Gone, or not ours to limit.
        pass


def _spy(place, processes):
    program = _find_py_spy(place.path)
    if program is None:
        return
    import subprocess

    for one in _outermost([one for one in processes if _is_python(one)]):
        with open(place.log, "ab") as log:
            try:
                subprocess.call(
                    [program, "dump", "--pid", str(one.pid)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.DEVNULL,
                    timeout=_PATIENCE_SECONDS,
                )
            except (OSError, subprocess.TimeoutExpired):
                # The kernel's words have to do.
                continue


def _is_python(one):
    try:
        return "python" in os.path.basename(os.readlink("/proc/{}/exe".format(one.pid)))
    except OSError:
        return False


def _find_py_spy(path):
    for folder in (path + ":" + os.environ.get("PATH", "")).split(":"):
        program = os.path.join(folder, "py-spy")
        if folder and os.access(program, os.X_OK):
            return program
    return None


def _kernel_words(one):
    status = process.read("/proc/{}/status".format(one.pid)) or b""
    states = [line.split()[1].decode("ascii") for line in status.splitlines() if line.startswith(b"State:")]
    state = _STATES.get(states[0], states[0]) if states else "gone"
    where = (process.read("/proc/{}/wchan".format(one.pid)) or b"").decode("ascii", "replace").strip("0\n")
    words = "process {} ({}): {}{}".format(one.pid, one.command, state, ", in " + where if where else "")
    if _is_python(one) and _variable(one, _ARMED) and not _is_armed(one):
        words += "\n  its Python does not answer: the script has ended and it closes down, or faulthandler is off"
    # For root only.
    stack = (process.read("/proc/{}/stack".format(one.pid)) or b"").decode("ascii", "replace")
    return "\n".join([words] + ["  " + line for line in stack.splitlines()])


def _written(place, begin, words):
    """What was written to the log since; the kernel's words, if nobody else had any."""
    text = _read_from(place.log, begin)
    if not text.strip():
        text = "\n".join(words) or "its processes were not found"
        _append(place.log, text + "\n")
    return text[:_KEPT_BYTES]


def _append(path, text):
    """Where the file ends afterwards. A log that cannot be written (the disk is full) must not stop the rest."""
    try:
        with open(path, "ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            return file.tell()
    except OSError:
        return 0


def _read_from(path, begin):
    try:
        with open(path, "rb") as file:
            file.seek(begin)
            return file.read(_KEPT_BYTES).decode("utf-8", "replace").replace("\0", "\ufffd")
    except OSError:
        return ""
