"""The comparison itself: each kind of difference is found, and what is as in v1 is not."""

from __future__ import annotations

import pytest

from tests.conformance import checking


class Base:
    pass


class Ours(Base):
    def __init__(self, first, second=None, *, third=1, **others):
        self.kept = first

    @staticmethod
    def make(name, force=False):
        pass

    def method(self, a, b="x", extra=None):
        pass

    @property
    def shown(self):
        return 1


def found(monkeypatch, **row):
    monkeypatch.setattr(checking, "found_at", lambda path: Ours)
    whole = {"path": "v1.Ours", "use": "core", "bases": [], "members": {}, "used parameters": {}, **row}
    return [(each.where, each.what) for each in checking.class_findings(whole)]


def member(kind, signature=""):
    return {"kind": kind, "use": "core 1", "signature": signature}


@pytest.mark.parametrize(
    "row",
    [
        {"constructor": "(first, second=None)"},
        {"constructor": "(first, second=None, *, third=1, **kwargs)"},
        {"members": {"make": member("static", "(name, force=False)")}},
        {"members": {"method": member("method", "(a, b='x')")}},
        {"members": {"method": member("method", "(a, b=UNTOLD)")}},
        {"members": {"shown": member("property"), "kept": member("property")}},
    ],
)
def test_the_same(monkeypatch, row):
    assert found(monkeypatch, **row) == []


@pytest.mark.parametrize(
    ("row", "where", "what"),
    [
        ({"constructor": "(first, other=None)"}, "v1.Ours(other)", "is missing"),
        ({"constructor": "(first, second=0)"}, "v1.Ours(second)", "the default is None, not 0"),
        ({"constructor": "(first, second=None, *, third=True)"}, "v1.Ours(third)", "the default is 1, not True"),
        ({"constructor": "(second=None, first=1)"}, "v1.Ours(first)", "has no default"),
        ({"constructor": "(second=None, first=UNTOLD)"}, "v1.Ours", "the order is"),
        ({"constructor": "(first, second=None, third=1)"}, "v1.Ours", "the order is"),
        ({"constructor": "(second=None)"}, "v1.Ours(first)", "is asked for"),
        ({"constructor": "(first, *args)"}, "v1.Ours(args)", "there is no *args"),
        ({"members": {"gone": member("method", "()")}}, "v1.Ours.gone", "is missing"),
        ({"members": {"gone": member("property")}}, "v1.Ours.gone", "is missing"),
        ({"members": {"method": member("static", "(a, b='x')")}}, "v1.Ours.method", "cannot be called on the class"),
        ({"members": {"shown": member("method", "()")}}, "v1.Ours.shown", "cannot be called"),
    ],
)
def test_differences(monkeypatch, row, where, what):
    findings = found(monkeypatch, **row)
    assert any(each[0] == where and each[1].startswith(what) for each in findings), findings


def test_class_trees(monkeypatch):
    monkeypatch.setitem(checking._PUBLIC, "Other", "v1.Other")
    monkeypatch.setattr(checking, "_is_below", lambda owner, base: base != "v1.Other")
    assert found(monkeypatch, bases=["Other", "SomethingInternal"]) == [("v1.Ours", "is not a Other")]


def test_what_cannot_be_imported():
    row = {"path": "azureml.core.Nonsense", "use": "core", "bases": [], "members": {}}
    assert [each.what[:18] for each in checking.class_findings(row)] == ["cannot be imported"]
