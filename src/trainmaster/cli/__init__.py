"""The command line.

`entry` runs a command and turns every error into an exit code; `commands` is the list of them. A command is two
functions in a module that is loaded only when the command is called: `<name>_arguments(parser)` and `<name>(options)`.

It stands on argparse because starting is what a command line does most: typer 0.29 takes 65 ms to import and loads
pydantic, another 100 ms, for the first value it parses; argparse takes 10 ms for both.
"""

from __future__ import annotations

import sys


def main() -> int:
    """The console script."""
    try:
        from trainmaster.cli.entry import run
    except KeyboardInterrupt:
        # Nothing was begun; entry.py says the rest.
        return 130
    return run(sys.argv[1:])
