"""The process that runs TensorBoard: `python -m trainmaster.notebook.tensorboard.process LOGDIR PORT`.

It prints `{"url"}` or `{"error"}` as one line of JSON on standard output, and serves until standard input ends. The
program that started it holds the other end, so that TensorBoard ends with that program, even if it is killed.
"""

from __future__ import annotations

import json
import sys
from typing import Any

# How many ports are tried, from the wanted one upward.
TRIES = 100


def main(logdir: str, port: int) -> int:
    """Serves until standard input ends; returns the exit code."""
    try:
        url = _serve(logdir, port)
    except Exception as error:  # noqa: BLE001 (reported to the program that waits)
        _say({"error": f"{type(error).__name__}: {error}"})
        return 1
    _say({"url": url})
    sys.stdin.buffer.read()
    return 0


def _serve(logdir: str, first: int) -> str:
    from tensorboard import program

    for port in range(first, min(first + TRIES, 65536)):
        server = program.TensorBoard()
        server.configure(logdir=logdir, port=port, reload_interval=2.0)
        try:
            return str(server.launch())
        except (program.TensorBoardPortInUseError, SystemExit):
            # TensorBoard only checks whether a process listens on the port. A port that is in use without listening
            # (every outgoing connection has one) is found by werkzeug, which prints an error and exits.
            continue
    raise OSError(f"no port from {first} to {min(first + TRIES, 65536) - 1} is free")


def _say(data: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
