"""Job requests: which operations they may call, for which run they act, and what happens to their files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from trainmaster.dispatcher.api.operations import answer_error
from trainmaster.dispatcher.runs.job_requests import JobRequests
from trainmaster.engines import JobRequest
from trainmaster.shared.folders import WorkspaceFolder


class CommandChannel:
    """Answers job requests; notes the operations that are called, and returns `results`."""

    def __init__(self, folder: Path, **results: Any) -> None:
        self.requests = JobRequests(WorkspaceFolder(folder))
        self.requests.answer_with(self._call, answer_error)
        self.called: list[tuple[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.open = asyncio.Event()
        self._results = results

    async def _call(self, op: str, args: Any) -> Any:
        self.called.append((op, args))
        await self.open.wait()
        return self._results.get(op.replace(".", "_"), {})

    def request(self, text: Any, name: str = "l") -> JobRequest:
        async def answer(data: bytes) -> None:
            self.answers.append(json.loads(data))

        async def bring(paths: Sequence[str]) -> list[str]:
            return [f"/there{path}" for path in paths]

        return JobRequest("r", name, text if isinstance(text, bytes) else json.dumps(text).encode(), answer, bring)

    async def answered(self, *requests: JobRequest) -> dict[str, Any]:
        for request in requests:
            self.requests.receive(request)
        self.open.set()
        async with asyncio.timeout(60):
            while not self.answers:
                await asyncio.sleep(0)
        return self.answers[-1]


@pytest.mark.parametrize("name", ["../../victim", "/victim", "..", "a/b", "", 7])
def test_a_request_is_named_by_a_file_name(tmp_path: Path, name: Any) -> None:
    victim = tmp_path / "runs" / "victim"
    victim.mkdir(parents=True)

    async def exchange() -> None:
        channel = CommandChannel(tmp_path)
        model = {"op": "models.keep", "args": {"model": {}, "path": "kept/x", "files": True}}
        channel.requests.receive(channel.request(model, name))
        await channel.answered(channel.request({"op": "models.get", "args": {}}, "good"))
        assert channel.called == [("models.get", {})]

    asyncio.run(exchange())
    assert victim.exists()


def test_files_of_a_request_are_not_removed_through_a_link(tmp_path: Path) -> None:
    """A host may have put a link there."""
    victim = tmp_path / "victim" / "l"
    victim.mkdir(parents=True)
    (tmp_path / "runs" / "r").mkdir(parents=True)
    (tmp_path / "runs" / "r" / "kept").symlink_to(victim.parent)
    ask(tmp_path, {"op": "models.keep", "args": {"model": {}, "path": "kept/l/x"}})
    assert victim.exists()


def ask(folder: Path, text: Any, **results: Any) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    async def exchange() -> tuple[dict[str, Any], list[tuple[str, Any]]]:
        channel = CommandChannel(folder, **results)
        return await channel.answered(channel.request(text)), channel.called

    return asyncio.run(exchange())


@pytest.mark.parametrize(
    "op", ["secrets.get", "secrets.put", "runs.submit", "shutdown", "targets.list", "", None, 3, []]
)
def test_what_only_clients_may_ask_is_refused(tmp_path: Path, op: Any) -> None:
    answer, called = ask(tmp_path, {"op": op, "args": {}})
    assert "cannot call" in answer["error"]["headline"]
    assert called == []


@pytest.mark.parametrize(
    "text", [b"", b"no JSON", b"[]", b'{"op": "models.list"}', b'{"op": "models.list", "args": 3}']
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, text: bytes) -> None:
    answer, called = ask(tmp_path, text)
    assert answer["error"]["headline"] == "the job request cannot be read"
    assert called == []


def test_it_speaks_for_its_own_run_alone(tmp_path: Path) -> None:
    answer, called = ask(tmp_path, {"op": "secrets.fetch", "args": {"run_id": "another", "names": ["token"]}})
    assert answer == {"result": {}}
    assert called == [("secrets.fetch", {"run_id": "r", "names": ["token"]})]


def test_one_that_is_passed_on_again_is_answered_once(tmp_path: Path) -> None:
    async def exchange() -> list[tuple[str, Any]]:
        channel = CommandChannel(tmp_path)
        request = channel.request({"op": "models.list", "args": {}})
        await channel.answered(request, request, request)
        await channel.requests.close()
        return channel.called

    assert len(asyncio.run(exchange())) == 1


def test_files_are_brought_and_the_web_is_everywhere(tmp_path: Path) -> None:
    found = {"definition": {"sources": [{"path": "/d/*.csv"}, {"path": "https://example.com/a"}, {"path": "/e"}]}}
    answer, _ = ask(tmp_path, {"op": "datasets.locate", "args": {}}, datasets_locate=found)
    paths = [source["path"] for source in answer["result"]["definition"]["sources"]]
    assert paths == ["/there/d/*.csv", "https://example.com/a", "/there/e"]
    answer, _ = ask(tmp_path, {"op": "models.locate", "args": {}}, models_locate={"path": "/m"})
    assert answer["result"] == {"path": "/there/m"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/code/x", "code/../../x", ""])
def test_only_files_of_its_run_are_registered(tmp_path: Path, path: str) -> None:
    answer, called = ask(tmp_path, {"op": "models.keep", "args": {"path": path, "of_run": False}})
    assert "is not in the folder of the run" in answer["error"]["headline"]
    assert called == []


def test_what_was_sent_along_is_removed(tmp_path: Path) -> None:
    kept = tmp_path / "runs" / "r" / "kept" / "l"
    kept.mkdir(parents=True)
    answer, called = ask(tmp_path, {"op": "models.keep", "args": {"path": "kept/l/m", "of_run": False}})
    assert answer == {"result": {}}
    assert called == [("models.keep", {"path": str(kept / "m"), "of_run": False})]
    assert not kept.exists()
