"""The table cannot lie: what it says is compared with the names themselves, by use where they refuse."""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from typing import Any

import pytest

from trainmaster.job.errors import TrainmasterError
from trainmaster.migration import surface
from trainmaster.migration.table import Verdict, table

TABLE = table()
REAL = [(name, member) for name, thing in TABLE.things.items() for member in thing.get("members", {})]
REFUSED = [name for name in TABLE.names if "refused" in TABLE.things[TABLE.names[name]]]


AS_IN_V1 = {"AmlComputeStatus()", "ScriptRun()"}
"""Names that did nothing in v1 either, or do all that a caller can notice."""


def thing_at(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def test_what_is_said_to_be_here_is_what_is_here() -> None:
    refresh = "names of v1 have changed; bring the table up to date: python -m trainmaster.migration.surface"
    kept = json.loads(surface.FILE.read_text())
    found = surface.surface()
    now = json.loads(surface.as_text(found))
    assert kept["renamed"] == now["renamed"], refresh
    different = [name for name in now["things"] if kept["things"].get(name) != now["things"][name]]
    assert different == [], refresh


@pytest.mark.parametrize("name", [name for name in TABLE.names if name not in REFUSED])
def test_every_name_that_works_can_be_imported(name: str) -> None:
    assert TABLE.judge_thing(TABLE.names[name]).verdict is Verdict.WORKS
    thing_at(name)


@pytest.mark.parametrize("name", REFUSED)
def test_every_name_that_is_not_here_refuses_and_says_why(name: str) -> None:
    with pytest.raises((NotImplementedError, TrainmasterError)) as refusal:
        thing_at(name)()
    assert TABLE.things[TABLE.names[name]]["refused"] in " ".join(str(refusal.value).split())


def test_methods_that_work_exist_with_their_parameters() -> None:
    for path, name in TABLE.names.items():
        members = TABLE.things[name].get("members", {})
        owner = thing_at(path)
        for member, entry in members.items():
            if entry["kind"] == "function" and "refused" not in entry and hasattr(owner, member):
                given = inspect.signature(getattr(owner, member)).parameters
                assert set(entry["parameters"]) - {"**"} <= {*given, "self"}, f"{name}.{member}"


def test_parts_that_are_not_here_cannot_be_imported() -> None:
    for path in TABLE.absent:
        module, _, name = path.rpartition(".")
        if path not in TABLE.modules:
            with pytest.raises(ImportError):
                exec(f"from {module} import {name}") if name[0].isupper() else import_module(path)


def test_notes_speak_of_names_that_are_there() -> None:
    assert [key for key in [*TABLE.differs, *TABLE.refused, *TABLE.gives_more] if not is_of_the_table(key)] == []


def is_of_the_table(key: str) -> bool:
    thing, member, parameter = re.fullmatch(r"(\w+)(?:\.(\w+))?(?:\(!?(\w*)\))?", key).groups()
    entry = TABLE.things.get(thing, {"refused": ""})
    if member and "refused" not in entry:
        entry = TABLE.member(thing, member) or {"refused": ""}
    return "refused" not in entry and (not parameter or parameter in entry["parameters"])


def test_what_has_no_effect_is_not_said_to_work() -> None:
    """What is written about a name where it is defined has to agree with the table."""
    idle = re.compile(r"no effect|[Oo]nly noted|[Rr]ecorded[;:.]|not used|here nothing happens|without effect")
    wrong = []
    for path, name in TABLE.names.items():
        entry, thing = TABLE.things[name], thing_at(path)
        if "refused" in entry or not inspect.isclass(thing):
            continue
        if TABLE.judge_making(name).verdict is Verdict.WORKS and idle.search(about(thing)):
            wrong.append(f"{name}()")
        for member in entry["members"]:
            found = inspect.getattr_static(thing, member, None)
            text = about(found.fget if isinstance(found, property) else getattr(found, "__func__", found))
            if TABLE.judge_member(name, member).verdict is Verdict.WORKS and idle.search(text):
                wrong.append(f"{name}.{member}")
    assert sorted(set(wrong) - AS_IN_V1) == []


def about(thing: Any) -> str:
    """The first sentence of what is written about it."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return ""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def test_notes_on_a_class_are_true_of_those_below() -> None:
    assert TABLE.judge_member("HyperDriveRun", "get_portal_url").verdict is Verdict.DIFFERS
    assert TABLE.judge_member("AksWebservice", "deploy_from_model").verdict is Verdict.DIFFERS
    assert TABLE.judge_member("HyperDriveRun", "complete").sentence.startswith("Has no effect")


def test_what_a_name_gives_is_known() -> None:
    given = [value.strip("[]{}") for value in TABLE.gives_more.values()]
    assert [name for name in given if name not in TABLE.things] == []


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("azureml.pipeline.steps.PythonScriptStep", "pipelines"),
        ("azureml.train.automl.AutoMLConfig", "automated machine learning"),
        ("azureml.nothing.like.that", "no such name"),
        ("azureml.opendatasets", "Download"),
    ],
)
def test_the_longest_part_that_fits_is_told(path: str, words: str) -> None:
    judgement = TABLE.missing(path)
    assert judgement.verdict is Verdict.ABSENT
    assert words in judgement.sentence


def test_sentences_are_one_line_each() -> None:
    sentences = [
        each for part in (TABLE.absent, TABLE.differs, TABLE.refused, TABLE.packages) for each in part.values()
    ]
    assert [text for text in sentences if "\n" in text or not text.endswith(".") or not text[0].isupper()] == []
