"""`python -m trainmaster.dispatcher.database_command move|drop <workspace folder>`, for the command line and the SDK.

They never open a database themselves. The address of the new database comes by standard input, because others can see
the arguments of a process. Progress, the result or an error are written as lines of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from trainmaster.dispatcher.relocation import check_folder, drop_schema, move
from trainmaster.job.errors import ServiceException, TrainmasterError
from trainmaster.shared.database_address import check_url

_TELL_SECONDS = 0.2


def main(words: list[str]) -> int:
    """Do what the arguments say."""
    command, path = words
    try:
        folder = check_folder(Path(path))
        if command == "drop":
            drop_schema(folder)
            _say({"result": None})
        else:
            to = sys.stdin.readline().strip()
            _say({"result": move(folder, to if to == "sqlite" else check_url(to), _Progress().tell)})
    except TrainmasterError as error:
        _say({"error": error.to_wire()})
        return 1
    except Exception as error:  # noqa: BLE001 (the caller gets one clear error, whatever happened)
        _say({"error": ServiceException(f"the database could not be changed: {error!r}").to_wire()})
        return 1
    return 0


class _Progress:
    """Says how far each table is, a few times a second."""

    def __init__(self) -> None:
        self._told_at = 0.0

    def tell(self, table: str, done: int, total: int) -> None:
        if done == total or time.monotonic() - self._told_at > _TELL_SECONDS:
            self._told_at = time.monotonic()
            _say({"table": table, "done": done, "total": total})


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
