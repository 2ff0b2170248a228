"""Prints the unit tests of what has changed since the last commit, or since the revision given.

.venv/bin/pytest $(.venv/bin/python .ci/changed_tests.py main)
"""

import subprocess
import sys
from pathlib import Path, PurePosixPath

SOURCE, TESTS = PurePosixPath("src/trainmaster"), PurePosixPath("tests/unit")


def changed_files(revision: str) -> list[str]:
    """Files that differ from the revision, and new ones that git does not know yet."""
    commands = (["diff", "--name-only", revision], ["ls-files", "--others", "--exclude-standard"])
    return [name for words in commands for name in subprocess.check_output(["git", *words], text=True).split()]


def tests_of(name: str) -> str | None:
    """The closest folder of tests: for `src/trainmaster/sdk/run/run.py` `tests/unit/sdk/run`, else `tests/unit/sdk`."""
    path = PurePosixPath(name)
    if path.is_relative_to(TESTS) and path.name.startswith("test_"):
        return name if Path(name).exists() else None
    if not path.is_relative_to(SOURCE):
        return None
    places = [TESTS / above for above in path.relative_to(SOURCE).parents]
    return next((str(place) for place in places if Path(place).is_dir()), None)


if __name__ == "__main__":
    found = {test for name in changed_files(*(sys.argv[1:] or ["HEAD"])) if (test := tests_of(name))}
    print(*sorted(found or {"tests/unit/test_docs.py"}))
