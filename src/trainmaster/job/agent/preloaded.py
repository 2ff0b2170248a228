"""Runs scripts by fork in a Python that has imported their modules, for runs that ask for it.

docs/internals/sweeps.md describes it.

An agent pool that was asked to import modules calls `preload`. Its agents then run a script of the same Python in a
fork of themselves instead of in a new interpreter.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping, NoReturn, Sequence

    from trainmaster.job.agent.spawn import Startable

VARIABLE = "TRAINMASTER_WARM_IMPORTS"
# This name distinguishes such a script from an agent: both have the same command line.
NAME = b"warm-script"

_python: "str | None" = None  # the command that starts this Python in runs, once the modules are imported
_path: "list[str]" = []


def preload(python: str, names: "Sequence[str]", path: "list[str]") -> None:
    """Imports `names`, so that scripts of `python` can run here. `path` is their sys.path without their own folder."""
    global _python, _path
    import importlib

    for name in names:
        importlib.import_module(name)
    _python, _path = python, path


def can_run(process: "Startable") -> bool:
    """Whether the planned process can be a fork of this one: a script of the same Python, without options."""
    argv = process.argv
    return _python is not None and len(argv) > 1 and argv[0] == _python and argv[1].endswith(".py")


def become(process: "Startable", environment: "Mapping[str, str]") -> "NoReturn":
    """Runs the script in this process and exits. The log is open and the working folder set."""
    script = process.argv[1]
    _set_name()
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(process.argv[1:])
    sys.path[:] = [os.path.dirname(os.path.abspath(script)), *_path]
    _seed_again()
    os._exit(_finish(_run(script)))


def _seed_again() -> None:
    """Unlike `random`, numpy and torch would give every fork the same numbers, and all trials the same weights."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def _set_name() -> None:
    try:
        handle = os.open("/proc/self/comm", os.O_WRONLY)
        os.write(handle, NAME)
        os.close(handle)
    except OSError:
        # Without the name, only the kernel ends the script, together with its agent.
        pass


def _run(script: str) -> int:
    import types

    # Python 3.9 and later know the main script by its absolute path; sys.argv keeps the argument.
    path = os.path.abspath(script) if sys.version_info >= (3, 9) else script
    main = types.ModuleType("__main__")
    main.__file__ = path
    sys.modules["__main__"] = main
    try:
        with open(script, "rb") as file:
            text = file.read()
        exec(compile(text, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as stop:
        return _exit_code(stop.code)
    except BaseException as error:  # noqa: BLE001 - Python does the same with an uncaught exception
        # The first frame is the one here, which is not part of the script.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _exit_code(code: object) -> int:
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    sys.stderr.write("{}\n".format(code))
    return 1


def _finish(code: int) -> int:
    """Does what an interpreter does at exit: waits for threads, calls exit functions, and flushes the output."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        import atexit

        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException as error:  # noqa: BLE001 - the script is over: report the error and exit
        sys.excepthook(type(error), error, error.__traceback__)
        return code or 1
    return code
