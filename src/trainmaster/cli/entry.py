"""From the arguments of the command line to an exit code. Every error ends here."""

from __future__ import annotations

import os
import sys
from typing import Any

from trainmaster.cli import exits
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.sdk.display import screen
from trainmaster.shared.terminal import SafeStream, is_terminal


def run(argv: list[str]) -> int:
    """Runs a command and returns its exit code. Errors are printed here, without a traceback unless they are bugs."""
    as_json = wants_json(argv)
    _prepare_streams()
    try:
        code = _dispatch(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        screen.note("interrupted", "yellow")
        return exits.INTERRUPTED
    except BrokenPipeError:
        return _leave_pipe()
    except TrainmasterError as error:
        return _show_failure(_use_option_names(error, argv), as_json)
    except OSError as error:
        return _show_failure(_convert_os_error(error), as_json)
    except Exception:  # noqa: BLE001 (nothing above can report it)
        return _report_bug()
    return code


def wants_json(argv: list[str]) -> bool:
    """Whether errors are printed as JSON too. What follows `--` belongs to the script.

    >>> wants_json(["runs", "--json"]), wants_json(["submit", ".", "a.py", "--", "--json"])
    (True, False)
    """
    own = argv[: argv.index("--")] if "--" in argv else argv
    return "--json" in own


def _prepare_streams() -> None:
    """Makes the output streams accept any text: replaces a closed one, and prints `?` for what it cannot encode."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (as long as the program)
        reconfigure: Any = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
        if is_terminal(getattr(sys, name)) and not isinstance(getattr(sys, name), SafeStream):
            # The output of a script, a log or a service must not control the terminal.
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


def _use_option_names(error: TrainmasterError, argv: list[str]) -> TrainmasterError:
    from trainmaster.cli.option_names import use_option_names

    return use_option_names(error, argv)


def _show_failure(error: TrainmasterError, as_json: bool) -> int:
    code = exits.exit_code(error)
    try:
        if as_json:
            screen.show_error_as_json(error, code)
        else:
            screen.show_error(error)
        sys.stdout.flush()
    except OSError:
        # The output cannot be written (a closed pipe, a full disk). The exit code still tells what happened.
        _leave_pipe()
    return code


def _convert_os_error(error: OSError) -> TrainmasterError:
    place = f"{error.filename}: " if error.filename else ""
    return UserErrorException(f"{place}{error.strerror or error}")


def _leave_pipe() -> int:
    """Redirects standard output to nowhere: Python would fail again when it flushes a closed pipe at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    return exits.BROKEN_PIPE


def _report_bug() -> int:
    import traceback

    traceback.print_exc()
    screen.note("This is a bug in Trainmaster, not a mistake in your input. Please report it.", "bold red")
    return exits.FAULT
