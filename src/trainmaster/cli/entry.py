"""From the words of the command line to an exit code. Every error ends here."""

from __future__ import annotations

import os
import sys
from typing import Any

from trainmaster.cli import exits
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.sdk.display import screen
from trainmaster.shared.terminal import SafeStream, is_terminal


def run(argv: list[str]) -> int:
    """Runs a command; its errors are said in one place, and never with a traceback unless the fault is ours."""
    as_json = wants_json(argv)
    _have_streams()
    try:
        code = _dispatch(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        screen.note("interrupted", "yellow")
        return exits.INTERRUPTED
    except BrokenPipeError:
        return _leave_pipe()
    except TrainmasterError as error:
        return _failed(_in_options(error, argv), as_json)
    except OSError as error:
        return _failed(_of_system(error), as_json)
    except Exception:  # noqa: BLE001 (the last place that can say what happened)
        return _fault()
    return code


def wants_json(argv: list[str]) -> bool:
    """Whether errors are to be JSON too; what stands behind `--` is the script's.

    >>> wants_json(["runs", "--json"]), wants_json(["submit", ".", "a.py", "--", "--json"])
    (True, False)
    """
    own = argv[: argv.index("--")] if "--" in argv else argv
    return "--json" in own


def _have_streams() -> None:
    """Streams that take everything: a closed one is replaced, and letters it has no code for become `?`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (as long as the program)
        reconfigure: Any = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
        if is_terminal(getattr(sys, name)) and not isinstance(getattr(sys, name), SafeStream):
            # Whatever a command prints, of a script, a log or a service: it does not control the terminal.
            setattr(sys, name, SafeStream(getattr(sys, name)))


def _dispatch(argv: list[str]) -> int:
    if len(argv) > 1 and argv[0] == "help":
        argv = [*argv[1:], "--help"]
    if not argv or argv[0] in ("-h", "--help", "help"):
        from trainmaster.cli.manual import manual

        screen.say(manual())
        return exits.OK
    if len(argv) == 2 and argv[1] in ("-h", "--help"):
        from trainmaster.cli.manual import group

        page = group(argv[0])
        if page:
            screen.say(page)
            return exits.OK
    if argv[0] in ("-V", "--version"):
        from trainmaster import __version__

        screen.say(f"trainmaster {__version__}")
        return exits.OK
    from trainmaster.cli.parsing import parse

    function, options = parse(argv)
    code: int = function(options)
    return code


def _in_options(error: TrainmasterError, argv: list[str]) -> TrainmasterError:
    from trainmaster.cli.option_names import in_options

    return in_options(error, argv)


def _failed(error: TrainmasterError, as_json: bool) -> int:
    code = exits.exit_code(error)
    try:
        if as_json:
            screen.show_error_as_json(error, code)
        else:
            screen.show_error(error)
        sys.stdout.flush()
    except OSError:
        # Nobody takes the output (a closed pipe, a full disk); the exit code still tells.
        _leave_pipe()
    return code


def _of_system(error: OSError) -> TrainmasterError:
    place = f"{error.filename}: " if error.filename else ""
    return UserErrorException(f"{place}{error.strerror or error}")


def _leave_pipe() -> int:
    """Nobody takes our output any more. Python would complain once more when it closes standard output."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return exits.BROKEN_PIPE


def _fault() -> int:
    import traceback

    traceback.print_exc()
    screen.note("This is a fault of Trainmaster, not of your input. Please report it.", "bold red")
    return exits.FAULT
