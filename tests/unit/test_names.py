"""Functions are named by verbs: no name begins with a bare participle or a preposition (`_made`, `told`, `of_run`)."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
_PARTICIPLES = frozenset(
    [
        "made",
        "told",
        "kept",
        "found",
        "shown",
        "given",
        "taken",
        "said",
        "sent",
        "held",
        "left",
        "built",
        "written",
        "chosen",
        "known",
        "done",
        "gone",
        "begun",
        "brought",
        "thought",
        "seen",
        "got",
        "spent",
        "lost",
        "met",
        "paid",
        "drawn",
        "driven",
        "grown",
        "torn",
        "worn",
        "born",
        "bound",
        "fed",
        "fought",
        "hidden",
        "laid",
        "led",
        "meant",
        "ridden",
        "risen",
        "shot",
        "spoken",
        "stolen",
        "struck",
        "taught",
        "understood",
        "won",
        "woven",
        "heard",
    ]
)
_VERBS_IN_ED = frozenset(("need", "feed", "seed", "speed", "embed", "exceed", "proceed", "shed", "breed", "bleed"))
_PREPOSITIONS = frozenset(
    [
        "of",
        "in",
        "by",
        "at",
        "under",
        "over",
        "beside",
        "below",
        "above",
        "until",
        "since",
        "after",
        "before",
        "behind",
        "between",
        "within",
        "among",
        "around",
    ]
)
# These may begin a name (`from_wire`, `to_plain`), but are not one.
_NOT_ALONE = frozenset(("as", "from", "to", "with", "on", "without"))


def test_functions_are_named_by_verbs() -> None:
    names_of_v1 = set(read_names(json.loads((PROJECT / "tests/conformance/v1.json").read_text())))
    offenders = [
        f"{path.relative_to(PROJECT)}: {name}"
        for path in sorted((PROJECT / "src").rglob("*.py"))
        for name in function_names(ast.parse(path.read_text()))
        if not is_verb(name) and name not in names_of_v1
    ]
    assert offenders == []


@pytest.mark.parametrize("name", ["_made", "told", "of_run", "_listed", "in_use", "named_models", "as", "until"])
def test_participles_and_prepositions_are_not_verbs(name: str) -> None:
    assert not is_verb(name)


@pytest.mark.parametrize("name", ["_make", "list_runs", "as_json", "to_plain", "seed", "feed_all", "__init__", "_"])
def test_verbs(name: str) -> None:
    assert is_verb(name)


def is_verb(name: str) -> bool:
    """Whether a function may have this name, by the first word of it."""
    words = [word for word in name.split("_") if word]
    if not words or name.startswith("__"):
        return True
    if words[0] in _PREPOSITIONS or words[0] in _PARTICIPLES:
        return False
    if words[0] in _NOT_ALONE:
        return len(words) > 1
    return not words[0].endswith("ed") or words[0] in _VERBS_IN_ED


def function_names(tree: ast.AST) -> Iterator[str]:
    """The names of all functions and methods, without properties, which are nouns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = [ast.unparse(each) for each in node.decorator_list]
            if not any("property" in each or each.endswith(".setter") for each in decorators):
                yield node.name


def read_names(value: Any) -> Iterator[str]:
    """The last parts of all names in v1's table."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield key.rpartition(".")[2]
            yield from read_names(each)
    elif isinstance(value, list):
        for each in value:
            yield from read_names(each)
    elif isinstance(value, str):
        yield value.rpartition(".")[2]
