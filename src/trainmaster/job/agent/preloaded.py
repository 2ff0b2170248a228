"""Runs scripts in a forked Python with preloaded modules, where a run asks for it (docs/internals/sweeps.md).

A nursery that was told to import calls `ready`. Its agents then run a script of the same Python in a fork of themselves
instead of in a new interpreter.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys

VARIABLE = "TRAINMASTER_WARM_IMPORTS"
# By this name such a script is told from an agent, whose command line it has.
NAME = b"warm-script"

_python = None  # the command by which this very Python is started in runs, once it is warm
_path = []  # type: list[str]


def ready(python, names, path):
    """Imports `names`; from now on scripts of `python` fit. `path` is where they look for modules beside their own."""
    global _python, _path
    import importlib

    for name in names:
        importlib.import_module(name)
    _python, _path = python, path


def fits(process):
    """Whether this process can be a fork of this one: a script of the same Python, without options."""
    argv = process.argv
    return _python is not None and len(argv) > 1 and argv[0] == _python and argv[1].endswith(".py")


def become(process, environment):
    """Runs the script in this process, which ends with it. Its log is open and its folder entered."""
    script = process.argv[1]
    _set_name()
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(process.argv[1:])
    sys.path[:] = [os.path.dirname(os.path.abspath(script)), *_path]
    _seed_anew()
    os._exit(_finish(_run(script)))


def _seed_anew():
    """Unlike `random`, these would give every script the same numbers: all trials would begin with the same weights."""
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def _set_name():
    try:
        handle = os.open("/proc/self/comm", os.O_WRONLY)
        os.write(handle, NAME)
        os.close(handle)
    except OSError:
        # Then it is ended with its agent only, by the kernel.
        pass


def _run(script):
    import types

    # Python 3.9 and later know the main script by its whole path; sys.argv keeps the word that was given.
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
    except BaseException as error:  # noqa: BLE001 - what Python itself does with an error that nobody caught
        # The first frame is the one here, which is no part of the script.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _exit_code(code):
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    sys.stderr.write("{}\n".format(code))
    return 1


def _finish(code):
    """What an interpreter does at its end: waits for threads, calls what is registered, and writes what it holds."""
    try:
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        import atexit

        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - the last thing there is to be said
        sys.excepthook(*sys.exc_info())
        return code or 1
    return code
