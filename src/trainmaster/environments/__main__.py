"""The builder as a process: `build.order` says how it is called."""

from __future__ import annotations

import marshal
import os
import sys

from trainmaster.environments.ahead import Ahead


def run(arguments: list[str]) -> int:
    """Builds what standard input says; with the word `check`, only looks whether its packages go together."""
    folder, specification, parent, refresh, question = marshal.load(sys.stdin.buffer)
    ahead = Ahead(*question) if question else None
    # Only now, while uv is at work.
    from trainmaster.environments.build import check, main

    if arguments == ["check"]:
        return check(folder, specification, parent, ahead)
    return main(folder, specification, parent, refresh, ahead)


if __name__ == "__main__":
    code = run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of py-rattler may outlive their work, and abort an interpreter that takes itself down around them.
    os._exit(code)
