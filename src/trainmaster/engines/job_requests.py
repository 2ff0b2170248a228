"""The job requests of a run whose folder this machine sees (`job/script/requests.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial

from trainmaster.engines.engine import JobRequest, Nodes
from trainmaster.job.helper import job_requests as requests


def make_folder(nodes: Nodes) -> None:
    """Creates the folder for requests."""
    requests.make_folder(str(nodes.folder.path))


def waiting(nodes: Nodes) -> Iterator[JobRequest]:
    """The requests without an answer. This lists one folder, which is usually empty."""
    run = str(nodes.folder.path)
    for name in requests.pending(run):
        text = requests.read(run, name)
        if text is not None:
            yield JobRequest(nodes.run_id, name, text, partial(_answer, run, name), _bring, shares_files=True)


async def _bring(paths: Sequence[str]) -> list[str]:
    """Nothing has to be uploaded: the nodes see the workspace's folder, and may see other data too."""
    return list(paths)


async def _answer(run: str, name: str, text: bytes) -> None:
    await asyncio.to_thread(requests.answer, run, name, text)
