"""Runs the integration tests, several at a time, and those few that failed once more: one at a time.

Beside others on a small machine a test can be too slow for its own deadline. That is worth a repair, so it is printed
and never silent, but not worth a refused change. A test that fails twice has failed, and more than a few failures are
no accident.
"""

import json
import subprocess
import sys
from pathlib import Path

MOST = 3
SOME_FAILED = 1
FAILED = Path(".pytest_cache/v/cache/lastfailed")


def read_failed() -> list[str]:
    """The tests that failed when they last ran."""
    found: dict[str, bool] = json.loads(FAILED.read_text()) if FAILED.exists() else {}
    return sorted(name for name in found if name.startswith("tests/integration/"))


def run(words: list[str]) -> int:
    """Run pytest, and return its exit code."""
    return subprocess.run([sys.executable, "-m", "pytest", *words]).returncode


def main(words: list[str]) -> int:
    """Run the tests with these arguments for pytest."""
    FAILED.unlink(missing_ok=True)
    code = run(["tests/integration", *words])
    failed = read_failed()
    if code != SOME_FAILED or not 0 < len(failed) <= MOST:
        return code
    print(f"\nOnce more, one at a time: {', '.join(failed)}", flush=True)
    code = run(failed)
    if code == 0:
        print("\nFAILED BESIDE OTHERS, PASSED ALONE (please repair):", *failed, sep="\n  ", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
