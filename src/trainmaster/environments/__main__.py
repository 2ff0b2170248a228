"""The builder process: `build.order` writes what it reads from standard input."""

from __future__ import annotations

import marshal
import os
import sys

from trainmaster.environments.resolver_process import ResolverProcess


def run(arguments: list[str]) -> int:
    """Build the environment described on standard input; with `check`, only verify that its packages fit together."""
    folder, specification, parent, refresh, question = marshal.load(sys.stdin.buffer)
    early = ResolverProcess(*question) if question else None
    # Imported while uv already resolves the packages.
    from trainmaster.environments.build import check, main

    if arguments == ["check"]:
        return check(folder, specification, parent, early)
    return main(folder, specification, parent, refresh, early)


if __name__ == "__main__":
    code = run(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # py-rattler's threads may still run: a normal interpreter shutdown would abort.
    os._exit(code)
