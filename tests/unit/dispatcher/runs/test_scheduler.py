"""The scheduler: the order of the queue, nodes that are returned, and targets that change."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from dataclasses import replace

from tests.driven_runs import SPEC, Parts

from trainmaster.dispatcher.runs.waiting import Request
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.records import Status, TargetRecord


def test_nodes_go_to_the_run_that_was_submitted_first(parts: Parts) -> None:
    scheduler = parts.scheduler
    parts.add("holder", nodes=(0, 1))
    scheduler.add_run(parts.get("holder"))

    async def queue() -> None:
        with ExitStack() as stack:
            # The environment of the older one took longer to build.
            younger = stack.enter_context(scheduler.queue(Request("younger", "two", 2, seq=3)))
            older = stack.enter_context(scheduler.queue(Request("older", "two", 2, seq=2)))
            assert "2nd in the queue" in scheduler.waiting_reason("younger")
            assert "run holder holds them" in scheduler.waiting_reason("older")
            scheduler.remove_run("holder")
            assert older.done() and older.result() == (0, 1) and not younger.done()
            assert "run older holds them" in scheduler.waiting_reason("younger")
            scheduler.release("older")
            assert younger.result() == (0, 1) and scheduler.waiting_reason("younger") == ""

    asyncio.run(queue())
    assert scheduler.held_nodes == {"two": {"younger": (0, 1)}}


def test_a_run_that_leaves_the_queue_makes_room(parts: Parts) -> None:
    scheduler = parts.scheduler
    parts.add("holder", nodes=(0,))
    scheduler.add_run(parts.get("holder"))

    async def queue() -> None:
        with ExitStack() as stack:
            with scheduler.queue(Request("large", "two", 2, seq=2)):
                small = stack.enter_context(scheduler.queue(Request("small", "two", 1, seq=3)))
                assert not small.done()
            assert small.result() == (1,)

    asyncio.run(queue())


def test_free_nodes_are_not_taken_from_runs_that_wait(parts: Parts) -> None:
    scheduler = parts.scheduler

    async def take() -> None:
        assert scheduler.take_free_nodes(Request("first", "two", 1)) == (0,)
        with scheduler.queue(Request("large", "two", 2, seq=2)):
            assert scheduler.take_free_nodes(Request("second", "two", 1)) == ()
        assert scheduler.take_free_nodes(Request("second", "two", 1)) == (1,)
        assert scheduler.take_free_nodes(Request("third", "two", 1)) == ()

    asyncio.run(take())
    scheduler.release("first")
    assert scheduler.held_nodes == {"two": {"second": (1,)}}


def test_an_elastic_run_starts_with_fewer_nodes_when_its_time_is_over(parts: Parts) -> None:
    scheduler = parts.scheduler

    async def wait() -> None:
        assert scheduler.take_free_nodes(Request("holder", "two", 1)) == (0,)
        with scheduler.queue(Request("patient", "two", 2, seq=2, min_nodes=1, fewer_at=time.time() + 3600)) as turn:
            assert not turn.done()
        soon = time.time() + 0.05
        with scheduler.queue(Request("elastic", "two", 2, seq=2, min_nodes=1, fewer_at=soon)) as turn:
            # Nothing else happens than that the time passes.
            assert await asyncio.wait_for(turn, 60) == (1,)
            assert time.time() >= soon

    asyncio.run(wait())


def test_a_run_that_starts_again_gets_the_nodes_that_are_free(parts: Parts) -> None:
    scheduler = parts.scheduler

    async def take() -> None:
        assert scheduler.take_free_nodes(Request("elastic", "two", 1)) == (0,)
        with scheduler.queue(Request("large", "two", 2, seq=2)):
            assert scheduler.take_more_nodes("elastic", "two", 1) == (0,)
        assert scheduler.take_more_nodes("elastic", "two", 0) == (0,)
        assert scheduler.take_more_nodes("elastic", "two", 5) == (0, 1)
        assert scheduler.take_more_nodes("elastic", "two", 1) == (0, 1)

    asyncio.run(take())
    assert scheduler.held_nodes == {"two": {"elastic": (0, 1)}}


def test_a_user_who_has_used_much_waits_longer(parts: Parts) -> None:
    """What runs have used is in the store, so that it counts after a restart, too."""
    scheduler, now = parts.scheduler, time.time()
    times = {"started_at": now - 90000, "ended_at": now - 3600, "created_at": now - 90000}
    parts.add("past", nodes=(0, 1), submitted_by="ann", status=Status.COMPLETED, **times)
    parts.add("holder", nodes=(0, 1), submitted_by="bob")
    scheduler.add_run(parts.get("holder"))
    assert scheduler.penalties(now) == {}

    async def queue() -> None:
        ann = Request("ann's", "two", 2, seq=3, user="ann", submitted_at=now)
        bob = Request("bob's", "two", 2, seq=4, user="bob", submitted_at=now + 1)
        with scheduler.queue(ann) as first, scheduler.queue(bob) as second:
            assert set(scheduler.penalties(now)) == {"ann"}
            assert scheduler.waiting_reason("ann's").endswith("user 'ann' has used more than an equal share")
            scheduler.remove_run("holder")
            assert second.done() and not first.done()
            scheduler.release("bob's")
            assert first.done()

    asyncio.run(queue())


def test_a_small_run_with_a_limit_starts_before_a_large_one(parts: Parts) -> None:
    scheduler, now = parts.scheduler, time.time()
    limited = replace(SPEC, max_run_duration_seconds=3600)
    parts.add("holder", limited, nodes=(0,), started_at=now, created_at=now)
    scheduler.add_run(parts.get("holder"))

    async def queue() -> None:
        large, small = Request("large", "two", 2, seq=2), Request("small", "two", 1, seq=3, seconds=600)
        with scheduler.queue(large) as first, scheduler.queue(small) as second:
            assert second.result() == (1,) and not first.done()

    asyncio.run(queue())


def test_a_larger_target_starts_runs_that_wait(parts: Parts) -> None:
    scheduler = parts.scheduler

    async def queue() -> None:
        with scheduler.queue(Request("run", "two", 3)) as nodes:
            assert "has only 2" in scheduler.waiting_reason("run")
            parts.store.targets.put(TargetRecord("two", "test", 3, 1, 0))
            scheduler.targets_changed()
            assert nodes.result() == (0, 1, 2)

    asyncio.run(queue())


def test_an_engine_with_a_queue_of_its_own_gets_every_run(parts: Parts) -> None:
    scheduler = parts.scheduler
    parts.engine.queues = True

    async def queue() -> None:
        with scheduler.queue(Request("a", "two", 2)) as first, scheduler.queue(Request("b", "two", 2)) as second:
            assert first.result() == second.result() == (0, 1)
        assert scheduler.take_free_nodes(Request("c", "two", 1)) == ()

    asyncio.run(queue())


def test_a_run_whose_engine_is_not_installed_hears_of_it_when_it_starts(parts: Parts) -> None:
    def refuse(name: str) -> None:
        raise ComputeTargetException(f"there is no engine {name}")

    parts.context.engines._create = refuse  # type: ignore[assignment]

    async def queue() -> None:
        with parts.scheduler.queue(Request("run", "two", 1)) as nodes:
            assert nodes.result() == (0,)

    asyncio.run(queue())


def test_the_cluster_of_one_run_exists_while_its_run_does(parts: Parts) -> None:
    spec = replace(SPEC, target="amlcompute", vm_size="Standard_D2_v2", node_count=2)
    name = f"amlcompute-{'0' * 12}"
    parts.add("run", spec, target=name)
    parts.scheduler.add_run(parts.get("run"))
    (own,) = set(parts.scheduler.targets()) - {"local", "two"}
    assert own.startswith("amlcompute-") and parts.scheduler.target(own).nodes == 2
    parts.scheduler.remove_run("run")
    assert set(parts.scheduler.targets()) == {"local", "two"}
    assert parts.scheduler.target(own).name == "local"
