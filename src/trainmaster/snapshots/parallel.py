"""Finding the unchanged folders of a large tree with two processes, as `recheck` explains."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Set
from pathlib import Path

from trainmaster.snapshots import recheck
from trainmaster.snapshots.recheck import Record, is_unchanged

# Starting a second Python takes some 12 ms; the check of this many bytes of signatures takes twice that.
_WORTH_A_PROCESS = 400_000


def find_unchanged(root: bytes, folders: list[Record], cache_descriptor: int) -> Set[bytes]:
    """The paths of the folders that are as they were."""
    if sum(len(record[5]) for record in folders) < _WORTH_A_PROCESS or not _can_start_a_second():
        return {record[0] for record in folders if is_unchanged(root, record)}
    with _second_process(root, cache_descriptor) as answers:
        return _share(root, folders, answers)


def _can_start_a_second() -> bool:
    # In a program with Python inside, `sys.executable` is that program: it must not be started a second time.
    return len(os.sched_getaffinity(0)) > 1 and Path(sys.executable or "").name.startswith("python")


def _share(root: bytes, folders: list[Record], answers: int) -> Set[bytes]:
    """Check from the front until the other process, which comes from the end, is met."""
    unchanged: set[bytes] = set()
    front, back = 0, len(folders)
    while front < back:
        for answer in _read_available(answers):
            back -= 1
            if answer == ord("1"):
                unchanged.add(folders[back][0])
        if front < back:
            if is_unchanged(root, folders[front]):
                unchanged.add(folders[front][0])
            front += 1
    return unchanged


def _read_available(descriptor: int) -> bytes:
    # A second process that could not start, or died, answers nothing; then this one simply does all of it.
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, 65536) if descriptor >= 0 else b""
    return b""


@contextlib.contextmanager
def _second_process(root: bytes, cache_descriptor: int) -> Iterator[int]:
    """Start `recheck` as a program; gives the descriptor of its answers, -1 if it cannot be started."""
    answers, answering = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(answering, True)
    program = "import sys; sys.path.append(sys.argv[1]); import recheck, os; recheck.main(os.fsencode(sys.argv[2]))"
    arguments = ["-I", "-S", "-c", program, str(Path(recheck.__file__).parent), os.fsdecode(root)]
    actions = [
        (os.POSIX_SPAWN_DUP2, cache_descriptor, 0),
        (os.POSIX_SPAWN_DUP2, answering, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    process = 0
    with contextlib.suppress(OSError):
        process = os.posix_spawn(sys.executable, [sys.executable, *arguments], os.environ, file_actions=actions)
    os.close(answering)
    try:
        yield answers
    finally:
        os.close(answers)
        if process:
            # Where the user's program ignores SIGCHLD, or reaps every child itself, there is nothing left to wait for.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, 0)
