"""The driver of a run: from submitted to ended, whatever happens on the way."""

from __future__ import annotations

import asyncio
import errno
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from tests.driven_runs import SPEC, Driven, Parts

from trainmaster.dispatcher.processes import Shortage
from trainmaster.dispatcher.runs import driver as driver_module
from trainmaster.dispatcher.runs import preparing
from trainmaster.dispatcher.runs.elastic import read_members
from trainmaster.dispatcher.runs.marks import Mark
from trainmaster.dispatcher.runs.procedures import FullProcedure, Procedure, TrialProcedure
from trainmaster.dispatcher.store import Store
from trainmaster.engines import Ending, FewerNodesError
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.job_spec import Distribution, load_spec
from trainmaster.shared.records import RunError, RunRecord, Status
from trainmaster.shared.retry import Backoff

PROCEDURES = [FullProcedure(), TrialProcedure()]
by_procedure = pytest.mark.parametrize("procedure", PROCEDURES, ids=["full", "trial"])


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_RETRY_SECONDS", "0")
    monkeypatch.setattr(driver_module, "Backoff", partial(Backoff, first=0.0))


@pytest.fixture
def replace_dispatcher(workspace: tuple[WorkspaceFolder, Store], parts: Parts) -> Iterator[Callable[[], Parts]]:
    """Another dispatcher for the same workspace, in which the same agents live."""
    made: list[Parts] = []

    def make() -> Parts:
        made.append(Parts(*workspace, parts.engine))
        return made[-1]

    yield make
    for each in made:
        each.close()


def log_metric(run: Driven, name: str) -> None:
    journal = run.folder.journals / "0-1-a.jsonl"
    journal.write_text(json.dumps({"k": "metric", "n": name, "v": 1, "t": 1.0}) + "\n")


# To its end


@by_procedure
def test_completed(parts: Parts, procedure: Procedure) -> None:
    async def drive() -> tuple[Driven, RunRecord]:
        parts.add()
        run = parts.drive(procedure=procedure)
        await run.run()
        log_metric(run, "loss")
        (run.folder.code / "outputs").mkdir(parents=True)
        (run.folder.code / "outputs" / "model.txt").write_text("a model")
        parts.engine.finish(run.folder)
        return run, await run.until_ended()

    run, record = asyncio.run(drive())
    assert record.status is Status.COMPLETED and record.error is None
    assert record.started_at is not None and record.ended_at is not None and record.nodes == (0,)
    assert [metric.name for metric in parts.store.metrics.summarize("run")] == ["loss"]
    assert (run.folder.files / "outputs" / "model.txt").read_text() == "a model"
    assert parts.engine.calls == ["release"]
    assert parts.scheduler.held_nodes == {"two": {}}
    finalizing = [Status.FINALIZING] if procedure.commits_running else []
    assert run.seen == [Status.STARTING, Status.RUNNING, *finalizing, Status.COMPLETED]


@by_procedure
def test_a_start_that_nobody_reported(parts: Parts, procedure: Procedure) -> None:
    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive(procedure=procedure)
        await run.until_agents()
        parts.engine.finish(run.folder)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.COMPLETED and record.started_at is not None


@by_procedure
def test_failed(parts: Parts, procedure: Procedure) -> None:
    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive(procedure=procedure)
        await run.run()
        parts.engine.finish(run.folder, exit_code=1)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.FAILED and record.error is not None
    assert record.error.code == "ScriptFailed" and record.error.message.startswith("ValueError: no\n")
    assert parts.scheduler.held_nodes == {"two": {}}


@by_procedure
def test_an_agent_that_is_gone_without_a_result(parts: Parts, procedure: Procedure) -> None:
    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive(procedure=procedure)
        await run.run()
        parts.engine.vanish(run.folder)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.FAILED and record.error is not None and record.error.code == "NodeAgentLost"
    # What the agent left running is ended.
    assert parts.engine.calls == ["sweep", "release"]


def test_an_engine_that_knows_better(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive()
        await run.run()
        parts.engine.known_ending = Ending(Status.FAILED, RunError("NodeFailed", "the node burned"))
        parts.engine.vanish(run.folder)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.error is not None and record.error.message == "the node burned"


def test_children_without_a_job_end_with_it(parts: Parts) -> None:
    async def drive() -> None:
        parts.add()
        run = parts.drive()
        await run.run()
        parts.store.runs.add(RunRecord("child", "e", Status.RUNNING, 1.0, parent_id="run"))
        parts.engine.finish(run.folder, exit_code=1)
        await run.until_ended()

    asyncio.run(drive())
    child = parts.get("child")
    assert child.status is Status.FAILED and child.error is not None and child.error.code == "ParentFailed"


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_mark_is_its_state_once_the_script_has_ended(parts: Parts, exit_code: int) -> None:
    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive()
        await run.run()
        run.driver.mark(Mark(Status.COMPLETED))
        parts.engine.finish(run.folder, exit_code=exit_code)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.COMPLETED and bool(record.warnings) == bool(exit_code)


def test_a_run_folder_that_is_removed(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive()
        await run.run()
        shutil.rmtree(run.folder.path)
        parts.engine.vanish(run.folder)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.FAILED and record.error is not None and record.error.code == "RunFolderLost"


# Before its script


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ComputeTargetException("no such node"), "ComputeTargetError", "no such node"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "SystemError", "Permission denied: /x"),
        (KeyError("a bug"), "InternalError", "Trainmaster failed: KeyError('a bug')"),
    ],
)
def test_agents_that_cannot_be_started(parts: Parts, error: Exception, code: str, words: str) -> None:
    async def drive() -> RunRecord:
        parts.add()
        parts.engine.errors.append(error)
        return await parts.drive().until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.FAILED and record.error is not None
    assert record.error.code == code and record.error.message.startswith(words)
    assert parts.scheduler.held_nodes == {"two": {}}


def test_a_specification_that_cannot_be_read(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.store.runs.add(RunRecord("run", "e", Status.NOT_STARTED, 1.0, target="two", spec="{"))
        return await parts.drive().until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.FAILED and record.error is not None
    assert "the specification of run run" in record.error.message


@pytest.mark.parametrize("shortage", [Shortage("out of processes"), OSError(errno.EMFILE, "Too many open files")])
def test_a_shortage_is_waited_out(parts: Parts, shortage: Exception) -> None:
    async def drive() -> RunRecord:
        parts.add()
        parts.engine.errors += [shortage, shortage]
        run = parts.drive()
        await run.run()
        parts.engine.finish(run.folder)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.COMPLETED and parts.engine.starts == 3


def test_a_shortage_ends_with_a_cancel(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.add()
        parts.engine.errors += [Shortage("out of processes")] * 100_000
        run = parts.drive()
        await run.until(lambda: parts.engine.starts > 2)
        run.cancel()
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.CANCELED


def test_the_end_is_written_when_the_disk_has_room_again(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError(errno.ENOSPC, "No space left on device")] * 2
    flush = driver_module.files.flush

    def flush_or_fail(folder: Any) -> None:
        if failures:
            raise failures.pop()
        flush(folder)

    monkeypatch.setattr(driver_module.files, "flush", flush_or_fail)
    monkeypatch.setattr(driver_module, "retry", partial(driver_module.retry, backoff=Backoff(first=0.0)))

    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive()
        await run.run()
        parts.engine.finish(run.folder)
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.COMPLETED and not failures


# Retries


@by_procedure
def test_a_retry_that_succeeds(parts: Parts, procedure: Procedure) -> None:
    async def drive() -> tuple[Driven, RunRecord]:
        parts.add(spec=replace(SPEC, max_retries=2))
        run = parts.drive(procedure=procedure)
        await run.run()
        (run.folder.logs / "70_driver_log.txt").write_text("first\n")
        parts.engine.finish(run.folder, exit_code=1)
        await run.until(lambda: run.folder.attempt == 2)
        await run.run()
        parts.engine.finish(run.folder)
        return run, await run.until_ended()

    run, record = asyncio.run(drive())
    assert record.status is Status.COMPLETED and parts.engine.starts == 2
    first = (run.folder.logs / "attempt_1" / "70_driver_log.txt").read_text()
    assert first == "first\nattempt 1 of 3 failed: ValueError: no; starting attempt 2\n"


def test_all_attempts_fail(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.add(spec=replace(SPEC, max_retries=1))
        run = parts.drive()
        for attempt in (1, 2):
            await run.until(lambda attempt=attempt: run.folder.attempt == attempt)  # type: ignore[misc]
            await run.run()
            parts.engine.finish(run.folder, exit_code=1)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.FAILED and record.error is not None
    assert record.error.message.startswith("2 attempts failed; the last one: ValueError: no")


def test_nodes_that_were_taken_away_cost_no_retry(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive()
        await run.run()
        parts.engine.known_ending = Ending(Status.FAILED, RunError("Preempted", "taken away"), again=True)
        parts.engine.vanish(run.folder)
        await run.until(lambda: run.folder.attempt == 2)
        parts.engine.known_ending = None
        await run.run()
        parts.engine.finish(run.folder)
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.COMPLETED


# Cancel


async def _not_started(run: Driven) -> None:
    pass


async def _preparing(run: Driven) -> None:
    await run.until_status(Status.PREPARING)


async def _queued(run: Driven) -> None:
    await run.until_status(Status.QUEUED)


async def _starting(run: Driven) -> None:
    await run.until_agents()


async def _running(run: Driven) -> None:
    await run.run()


@pytest.mark.parametrize("reach", [_not_started, _preparing, _queued, _starting, _running])
@by_procedure
def test_cancel(
    parts: Parts, procedure: Procedure, reach: Callable[[Driven], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if reach is _preparing:

        async def build_for_ever(*args: Any, say: Callable[[str], None], **more: Any) -> None:
            say("building an environment")
            await asyncio.Event().wait()

        monkeypatch.setattr(preparing.environments, "find_or_build", build_for_ever)
    if reach is _queued:
        parts.add("other", nodes=(0, 1))
        parts.scheduler.add_run(parts.get("other"))

    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive(procedure=procedure)
        await reach(run)
        run.cancel()
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.CANCELED and record.error is None
    assert "run" not in parts.scheduler.held_nodes.get("two", {})
    assert parts.scheduler.waiting_reason("run") == ""


def test_cancel_while_agents_are_being_started(parts: Parts) -> None:
    """A start may take minutes, for example while an environment is copied to a host."""

    async def drive() -> RunRecord:
        parts.add()
        parts.engine.holds_starts = True
        run = parts.drive()
        await run.until_agents()
        run.cancel()
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.CANCELED
    assert parts.engine.calls[0] == "stop"


def test_cancel_between_attempts(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_RETRY_SECONDS", "3600")

    async def drive() -> RunRecord:
        parts.add(spec=replace(SPEC, max_retries=1))
        run = parts.drive()
        await run.run()
        parts.engine.finish(run.folder, exit_code=1)
        await run.until(lambda: "starts in a moment" in run.driver.progress)
        run.cancel()
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.CANCELED and parts.engine.starts == 1


def test_a_cancelled_run_says_what_its_end_waits_for(parts: Parts) -> None:
    """Its machines may be away. A run that goes on waits for nothing."""

    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive()
        await run.run()
        assert (run.driver.has_begun, run.driver.progress) == (True, "")
        run.cancel()
        assert run.driver.progress == "waiting in the test"
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.CANCELED


def test_cancel_of_a_script_that_has_ended(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive()
        await run.run()
        parts.engine.finish(run.folder)
        run.cancel()
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.COMPLETED


def test_an_agent_that_does_not_end_is_killed(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    async def do_nothing(nodes: Any) -> None:
        pass

    monkeypatch.setattr(parts.engine, "stop", do_nothing)
    monkeypatch.setattr(driver_module, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(driver_module, "_AGENT_PATIENCE_SECONDS", 0.0)

    async def drive() -> RunRecord:
        parts.add()
        run = parts.drive()
        await run.run()
        run.cancel()
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.CANCELED
    assert parts.engine.calls == ["kill", "sweep", "release"]


# The next dispatcher


def test_a_running_run_is_adopted(parts: Parts, replace_dispatcher: Callable[[], Parts]) -> None:
    async def drive() -> RunRecord:
        parts.add()
        first = parts.drive()
        await first.run()
        await first.abandon()
        second = replace_dispatcher().drive()
        await second.until(lambda: second.parts.scheduler.held_nodes == {"two": {"run": (0,)}})
        parts.engine.finish(second.folder)
        return await second.until_ended()

    assert asyncio.run(drive()).status is Status.COMPLETED
    assert parts.engine.starts == 1


def test_a_run_that_ended_without_a_dispatcher(parts: Parts, replace_dispatcher: Callable[[], Parts]) -> None:
    async def drive() -> RunRecord:
        parts.add()
        first = parts.drive()
        await first.run()
        await first.abandon()
        parts.engine.finish(first.folder, exit_code=1)
        return await replace_dispatcher().drive().until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.FAILED and parts.engine.starts == 1


def test_a_run_whose_agent_was_not_started_yet(parts: Parts, replace_dispatcher: Callable[[], Parts]) -> None:
    async def drive() -> RunRecord:
        parts.add()
        parts.engine.holds_starts = True
        first = parts.drive()
        await first.until_agents()
        await first.abandon()
        parts.engine.holds_starts = False
        second = replace_dispatcher().drive()
        await second.until(lambda: parts.engine.starts == 2)
        await second.run()
        parts.engine.finish(second.folder)
        return await second.until_ended()

    assert asyncio.run(drive()).status is Status.COMPLETED


def test_a_run_that_was_canceled_before_its_agent(parts: Parts, replace_dispatcher: Callable[[], Parts]) -> None:
    async def drive() -> tuple[Driven, RunRecord]:
        parts.add()
        parts.engine.holds_starts = True
        first = parts.drive()
        await first.until_agents()
        await first.abandon()
        parts.engine.vanish(first.folder)
        parts.updates.move("run", Status.CANCEL_REQUESTED)
        second = replace_dispatcher().drive()
        return second, await second.until_ended()

    second, record = asyncio.run(drive())
    assert record.status is Status.CANCELED and parts.engine.starts == 1
    # An agent that was on its way finds the claim taken.
    assert (second.folder.node(0) / "agent.json").exists()


def test_a_run_in_the_queue_starts_over(parts: Parts, replace_dispatcher: Callable[[], Parts]) -> None:
    async def drive() -> RunRecord:
        parts.add()
        parts.add("other", nodes=(0, 1))
        parts.scheduler.add_run(parts.get("other"))
        first = parts.drive()
        await first.until_status(Status.QUEUED)
        await first.abandon()
        second = replace_dispatcher().drive()
        await second.run()
        parts.engine.finish(second.folder)
        return await second.until_ended()

    assert asyncio.run(drive()).status is Status.COMPLETED


def test_a_dispatcher_that_was_killed_between_attempts(
    parts: Parts, replace_dispatcher: Callable[[], Parts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINMASTER_RETRY_SECONDS", "3600")

    async def drive() -> RunRecord:
        parts.add(spec=replace(SPEC, max_retries=1))
        first = parts.drive()
        await first.run()
        parts.engine.finish(first.folder, exit_code=1)
        await first.until(lambda: "starts in a moment" in first.driver.progress)
        await first.abandon()
        monkeypatch.setenv("TRAINMASTER_RETRY_SECONDS", "0")
        second = replace_dispatcher().drive()
        await second.run()
        assert second.folder.attempt == 2
        parts.engine.finish(second.folder)
        return await second.until_ended()

    assert asyncio.run(drive()).status is Status.COMPLETED and parts.engine.starts == 2


def test_a_new_trial_that_has_nodes_already(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.add(status=Status.STARTING, nodes=(1,))
        run = parts.drive(procedure=TrialProcedure(), new_spec=load_spec(parts.get().spec))
        await run.until_agents()
        parts.engine.finish(run.folder)
        return await run.until_ended()

    record = asyncio.run(drive())
    assert record.status is Status.COMPLETED and record.nodes == (1,)


def test_kill(parts: Parts) -> None:
    async def drive() -> None:
        parts.add()
        run = parts.drive()
        await run.run()
        await run.abandon()
        await run.driver.kill()

    asyncio.run(drive())
    assert parts.engine.calls == ["kill", "sweep"]


# Elastic runs on engines with a queue of their own

ELASTIC = replace(SPEC, node_count=2, distribution=Distribution("torch", process_count=2, min_nodes=1))


def test_an_elastic_run_starts_with_the_nodes_that_its_engine_has(parts: Parts) -> None:
    """With plans for these nodes, and a warning; also if another dispatcher takes it over."""

    async def drive() -> tuple[Driven, RunRecord]:
        parts.add(spec=ELASTIC)
        parts.engine.errors = [FewerNodesError(1)]
        run = parts.drive()
        await run.run()
        parts.engine.finish(run.folder)
        return run, await run.until_ended()

    run, record = asyncio.run(drive())
    assert (record.status, parts.engine.starts) == (Status.COMPLETED, 2)
    assert [each.name for each in run.folder.node(0).parent.iterdir() if each.name.isdigit()] == ["0"]
    (process,) = json.loads((run.folder.node(0) / "plan.json").read_text())["processes"]
    assert process["env"]["WORLD_SIZE"] == "1"
    assert any("1 of 2 nodes" in warning for warning in record.warnings)
    assert read_members(ELASTIC, run.folder) == (0,)


def test_an_elastic_run_that_is_cancelled_before_it_starts_with_fewer(parts: Parts) -> None:
    async def drive() -> RunRecord:
        parts.add(spec=ELASTIC)
        run = parts.drive()

        async def start(*_: Any) -> None:
            run.cancel()
            raise FewerNodesError(1)

        parts.engine.start = start  # type: ignore[method-assign]
        return await run.until_ended()

    assert asyncio.run(drive()).status is Status.CANCELED
    assert "release" in parts.engine.calls
