"""Rows of Parquet files, read by a process of its own (`parquet_reading.py`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

_SECONDS = 40.0
# Each takes some hundred megabytes.
_turns = asyncio.Semaphore(2)


class UnreadableTableError(Exception):
    """The text says why a table cannot be shown."""


async def read_parquet(handle: int, start: int, count: int) -> dict[str, Any]:
    """Columns, rows and the number of all rows of an open file. Raises UnreadableTableError."""
    command = (sys.executable, "-m", "trainmaster.server.files.parquet_reading", str(start), str(count))
    # Arrow's own allocators reserve more than they use, which the limit on memory counts.
    variables = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    async with _turns:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=handle, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env=variables
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_SECONDS):
                said = await process.stdout.read()
                await process.wait()
        except TimeoutError:
            raise UnreadableTableError("Reading it takes too long.") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
    try:
        found: dict[str, Any] = json.loads(said)
    except ValueError:
        raise UnreadableTableError("It cannot be read: it is damaged, or takes too much memory.") from None
    if "error" in found:
        raise UnreadableTableError(str(found["error"]))
    return found
