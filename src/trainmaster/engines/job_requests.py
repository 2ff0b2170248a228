"""The letters of a run whose folder this machine sees (`job/script/requests.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial

from trainmaster.engines.engine import JobRequest, Nodes
from trainmaster.job.helper import job_requests as requests


def make_room(nodes: Nodes) -> None:
    """For those that come."""
    requests.make_folder(str(nodes.folder.path))


def waiting(nodes: Nodes) -> Iterator[JobRequest]:
    """Those that are not answered yet: costs no more than listing a folder that is empty as a rule."""
    run = str(nodes.folder.path)
    for name in requests.pending(run):
        text = requests.read(run, name)
        if text is not None:
            yield JobRequest(nodes.run_id, name, text, partial(_answer, run, name), _bring, shares_files=True)


async def _bring(paths: Sequence[str]) -> list[str]:
    """Where one folder is seen by all, so are the models in it; other data may be seen, too."""
    return list(paths)


async def _answer(run: str, name: str, text: bytes) -> None:
    await asyncio.to_thread(requests.answer, run, name, text)
