"""Every operation with every kind of wrong argument: one clear error, never a fault."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from trainmaster.dispatcher.api.operations import Operations
from trainmaster.dispatcher.arguments import Arguments
from trainmaster.dispatcher.assembly import assemble
from trainmaster.dispatcher.store import Store
from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.shared.folders import WorkspaceFolder
from trainmaster.shared.records import (
    DatasetRecord,
    DatastoreRecord,
    ModelQuery,
    ModelRecord,
    RunQuery,
    RunRecord,
    Status,
    TargetRecord,
)
from trainmaster.shared.serialization import PlainDataError
from trainmaster.shared.service_spec import ImageRecord, ServiceRecord

DEEP: list[Any] = []
for _ in range(500):
    DEEP = [DEEP]
WRONG: list[Any] = [
    *(None, True, 0, -1, 2**70, 1.5, float("nan"), float("inf"), "", "x", "../../x", "nul\0", "\ud800", "x" * 10_000),
    *([], [1], ["x"], [None], [["x"]], [{}], {}, {"x": 1}, {"x": None}, {"x": {"y": []}}, {"\ud800": "x"}, DEEP),
]
# These would start something, or wait.
NOT_CALLED = {"environments.build", "environments.follow_build", "packages.create", "models.convert"}


class Place:
    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.folder = WorkspaceFolder(path)
        self.folder.identity.write_text('{"id": "w", "name": "w"}')
        self.store = Store.create(self.folder.database)
        self.dispatcher = assemble(self.folder, self.store)
        self.operations = Operations(self.dispatcher)
        # There is something of the name that the calls use.
        self.store.runs.add(RunRecord("x", "x", Status.RUNNING, 1.0))
        self.store.experiments.ensure("x", at=1.0)


async def in_a_place(path: Path, work: Callable[[Place], Awaitable[None]]) -> None:
    place = Place(path)
    try:
        await work(place)
    finally:
        await place.dispatcher.close()
        place.store.close()


def test_no_argument_makes_an_operation_fail(tmp_path: Path) -> None:
    async def fuzz(place: Place) -> None:
        faults = []
        for op in sorted(set(place.operations._operations) - NOT_CALLED):
            for args in calls(place.operations._operations[op]):
                try:
                    async with asyncio.timeout(20):
                        await place.operations.call(op, args)
                except TrainmasterError:
                    pass
                except Exception as error:  # noqa: BLE001 (that is what is looked for)
                    faults.append(f"{op} {args!r:.200}: {error!r:.200}")
        assert not faults, "\n".join(faults)

    asyncio.run(in_a_place(tmp_path / "w", fuzz))


def calls(operation: Callable[..., Any]) -> list[Any]:
    """Calls in which one argument is any of the wrong ones, and the others are of the right type."""
    parameters = inspect.signature(operation, eval_str=True).parameters
    right = {name: right_value(each.annotation) for name, each in parameters.items()}
    found: list[Any] = [*WRONG, {**right, "surprise": 1}, right]
    for name in parameters:
        found += [{**right, name: value} for value in WRONG]
        found.append({other: value for other, value in right.items() if other != name})
    return found


def right_value(hint: Any) -> Any:
    if is_dataclass(hint):
        return {field.name: right_value(inner) for field, inner in hints(hint)}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return str(next(iter(hint)).value)
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if get_origin(hint) is tuple:
        return []
    for value in ("x", 1, True, [], ["x"], {}, {"x": "y"}, None):
        with suppress(PlainDataError):

            def sample(value: Any) -> None: ...

            sample.__annotations__["value"] = hint
            Arguments(sample).check({"value": value})
            return value
    raise AssertionError(hint)


@pytest.mark.parametrize(
    ("args", "cause"),
    [
        ({"run_id": 7}, "run_id must be a text, not a whole number"),
        ({"run_id": ["a"]}, "run_id must be a text, not a list"),
        ({"run_id": None}, "run_id must be a text, not null"),
        ({}, "the argument 'run_id' is missing"),
        ({"run_id": "a", "more": 1}, "there is no argument 'more'"),
        ([], "args must be an object, not a list"),
        (None, "args must be an object, not null"),
    ],
)
def test_the_error_says_what_is_wrong(tmp_path: Path, args: Any, cause: str) -> None:
    async def ask(place: Place) -> None:
        with pytest.raises(UserErrorException, match=r"runs\.get: the request cannot be used") as caught:
            await place.operations.call("runs.get", args)
        assert caught.value.cause == cause
        with pytest.raises(UserErrorException, match=r"runs\.watch: the request cannot be used") as caught:
            place.operations.read_watch_request(args)
        assert caught.value.cause == cause

    asyncio.run(in_a_place(tmp_path / "w", ask))


def sample(
    number: int,
    part: float = 0.0,
    names: Sequence[str] = (),
    pairs: Mapping[str, Mapping[str, str]] | None = None,
    either: str | int | None = None,
) -> None:
    """Something to be called."""


@pytest.mark.parametrize(
    "args",
    [
        {"number": 1},
        {"number": 1, "part": 1, "names": ["a"], "pairs": {"a": {"b": "c"}}, "either": 5},
        {"number": -(2**63) + 1, "part": 0.5, "names": [], "pairs": None, "either": None},
    ],
)
def test_what_fits_passes(args: dict[str, Any]) -> None:
    assert Arguments(sample).check(args) is args


@pytest.mark.parametrize(
    "wrong",
    [
        {"number": True},
        {"number": 1.0},
        {"number": 2**63},
        {"part": "1"},
        {"part": True},
        {"names": "text"},
        {"names": ["a", 1]},
        {"pairs": {"a": {"b": 1}}},
        {"pairs": {"a": []}},
        {"pairs": []},
        {"either": 1.5},
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PlainDataError, match=next(iter(wrong))):
        Arguments(sample).check({"number": 1, **wrong})


RECORDS: dict[tuple[str, str], type[Any]] = {
    ("runs.submit", "run"): RunRecord,
    ("runs.list", "query"): RunQuery,
    ("sweeps.submit", "run"): RunRecord,
    ("models.register", "model"): ModelRecord,
    ("models.keep", "model"): ModelRecord,
    ("models.list", "query"): ModelQuery,
    ("datasets.register", "dataset"): DatasetRecord,
    ("datastores.put", "record"): DatastoreRecord,
    ("targets.put", "target"): TargetRecord,
    ("services.deploy", "service"): ServiceRecord,
    ("images.create", "image"): ImageRecord,
}


def test_no_field_of_a_record_makes_an_operation_fail(tmp_path: Path) -> None:
    async def fuzz(place: Place) -> None:
        faults = []
        for (op, argument), kind in RECORDS.items():
            parameters = inspect.signature(place.operations._operations[op], eval_str=True).parameters
            right = {name: right_value(each.annotation) for name, each in parameters.items()}
            record = {field.name: right_value(hint) for field, hint in hints(kind)}
            for name in record:
                for value in (record[name], *WRONG):
                    args = {**right, argument: {**record, name: value}}
                    try:
                        async with asyncio.timeout(20):
                            await place.operations.call(op, args)
                    except TrainmasterError:
                        pass
                    except Exception as error:  # noqa: BLE001 (that is what is looked for)
                        faults.append(f"{op} {name}={value!r:.60}: {error!r:.200}")
        assert not faults, "\n".join(faults)

    asyncio.run(in_a_place(tmp_path / "w", fuzz))


def hints(kind: type[Any]) -> list[tuple[Any, Any]]:
    resolved = get_type_hints(kind)
    return [(field, resolved[field.name]) for field in fields(kind)]
