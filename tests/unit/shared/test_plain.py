"""Dataclasses to plain data and back: the same again, or an error that names the place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import pytest

from trainmaster.shared.serialization import PlainDataError, from_plain, to_plain


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    number: int = 1


@dataclass(frozen=True)
class Thing:
    name: str
    ratio: float = 0.5
    flag: bool = False
    kind: Literal["a", "b"] = "a"
    colour: Colour = Colour.RED
    maybe: int | None = None
    names: tuple[str, ...] = ()
    inner: Inner = field(default_factory=Inner)
    inners: tuple[Inner, ...] = ()
    pairs: Mapping[str, str] = field(default_factory=dict)
    anything: Any = None


def test_there_and_back():
    thing = Thing(
        *("x", 2.0, True, "b", Colour.RED, 3, ("p", "q"), Inner(5), (Inner(6), Inner(7)), {"k": "v"}),
        anything=[1, {"a": None}],
    )
    assert from_plain(Thing, json.loads(json.dumps(to_plain(thing)))) == thing


def test_defaults_fill_in():
    assert from_plain(Thing, {"name": "x"}) == Thing("x")


def test_whole_number_is_a_ratio():
    ratio = from_plain(Thing, {"name": "x", "ratio": 2}).ratio
    assert ratio == 2.0
    assert isinstance(ratio, float)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "Thing must be an object, not list"),
        (None, "Thing must be an object, not NoneType"),
        ({}, "name"),
        ({"name": "x", "nmae": 1}, "Thing has unknown keys: nmae"),
        ({"name": 3}, "Thing.name must be str, not int"),
        ({"name": "x", "ratio": "1"}, "Thing.ratio must be float, not str"),
        ({"name": "x", "ratio": True}, "Thing.ratio must be float, not bool"),
        ({"name": "x", "flag": 1}, "Thing.flag must be bool, not int"),
        ({"name": "x", "kind": "c"}, "Thing.kind must be one of a, b, not 'c'"),
        ({"name": "x", "kind": ["a"]}, "Thing.kind must be one of a, b"),
        ({"name": "x", "colour": "blue"}, "Thing.colour must be one of red, not 'blue'"),
        ({"name": "x", "maybe": True}, "Thing.maybe must be int, not bool"),
        ({"name": "x", "names": "pq"}, "Thing.names must be a list, not str"),
        ({"name": "x", "names": ["p", 1]}, "Thing.names[1] must be str, not int"),
        ({"name": "x", "inner": {"number": "1"}}, "Thing.inner.number must be int, not str"),
        ({"name": "x", "inner": 1}, "Thing.inner must be an object, not int"),
        ({"name": "x", "inners": [{}, {"n": 1}]}, "Thing.inners[1] has unknown keys: n"),
        ({"name": "x", "pairs": {"k": 1}}, "Thing.pairs.k must be str, not int"),
        ({"name": "x", "pairs": []}, "Thing.pairs must be an object, not list"),
    ],
)
def test_errors_name_the_place(data, message):
    with pytest.raises(PlainDataError) as caught:
        from_plain(Thing, data)
    assert message in str(caught.value)
