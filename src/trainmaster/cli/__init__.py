"""The command line.

`entry` runs a command and turns every error into an exit code; `commands` lists all commands. A command is a function
`<name>(options)`, with `<name>_arguments(parser)` beside it if it takes arguments. Its module is loaded only when the
command is called.

It uses argparse because start-up time matters most: typer 0.29 takes 65 ms to import and loads pydantic, another
100 ms, for the first value it parses; argparse takes 10 ms for both.
"""

from __future__ import annotations

import sys


def main() -> int:
    """The console script."""
    try:
        from trainmaster.cli.entry import run
    except KeyboardInterrupt:
        # Nothing has started yet. `entry` handles every later interrupt.
        return 130
    return run(sys.argv[1:])
