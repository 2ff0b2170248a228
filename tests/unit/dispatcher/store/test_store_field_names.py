"""Which names and values there are."""

from __future__ import annotations

import json

import pytest

from trainmaster.shared.filters import parse_field
from trainmaster.shared.records import RunFields, Status


@pytest.fixture
def filled(store, add):
    for number in range(6):
        words = ["--lr", str(0.1 * (number % 3)), "--seed", "7", *(["--Extra"] if number == 5 else [])]
        spec = json.dumps({"arguments": words})
        tags, properties = {"kind": "base" if number < 3 else "big", "team": "x"}, {"commit": str(number)}
        user, target = f"user{number % 2}", "gpu"
        add(
            f"r{number}",
            status=Status.COMPLETED,
            spec=spec,
            tags=tags,
            properties=properties,
            submitted_by=user,
            target=target,
        )
        rows = [{"k": "metric", "n": f"loss{number % 2}", "v": 1.0 + number // 4, "t": 1.0}]
        rows += [{"k": "metric", "n": "words", "v": "text", "t": 1.0}]
        store.journals.ingest(f"r{number}", "0-1-x.jsonl", 0, 1, rows)
    return store


def test_all_names_by_kind(filled):
    found = filled.field_names.list_names("", 100)
    assert set(found.arguments) == {"Extra", "lr", "seed"}
    assert (found.metrics, found.tags, found.properties) == (("loss0", "loss1"), ("kind", "team"), ("commit",))
    assert found.is_all


def test_names_that_begin_with_a_text(filled):
    assert filled.field_names.list_names("l", 100) == RunFields(("lr",), ("loss0", "loss1"), (), ())
    assert filled.field_names.list_names("loss", 1).metrics == ("loss0",)
    assert not filled.field_names.list_names("loss", 1).is_all
    assert filled.field_names.list_names("%_", 10) == RunFields((), (), (), ())


@pytest.mark.parametrize(
    ("field", "prefix", "values"),
    [
        ("lr", "", ["0.0", "0.1", "0.2"]),
        ("lr", "0.1", ["0.1"]),
        ("tag.kind", "b", ["base", "big"]),
        ("property.commit", "5", ["5"]),
        ("experiment", "", ["exp"]),
        ("user", "user", ["user0", "user1"]),
        ("target", "x", []),
        ("status", "can", ["CancelRequested", "Canceled"]),
        ("metric.loss0", "", []),
        ("created", "", []),
    ],
)
def test_values_of_a_field(filled, field, prefix, values):
    assert filled.field_names.list_values(parse_field(field), prefix, 10) == values


def test_names_that_differ(filled):
    found = filled.field_names.find_differing(["r0", "r3"])
    assert found == RunFields((), ("loss0", "loss1"), ("kind",), ("commit",))
    assert filled.field_names.find_differing(["r0", "r5"]).arguments == ("Extra", "lr")
    assert filled.field_names.find_differing(["r0", "r2"]).metrics == ()
    assert filled.field_names.find_differing(["r0", "r4"]).metrics == ("loss0",)
    assert filled.field_names.find_differing(["r0"]) == RunFields((), (), (), ())
    assert filled.field_names.find_differing([]) == RunFields((), (), (), ())
