"""The table of v1's names: `here.json`, read from the names themselves, and `knowledge.toml`, written by hand. Pure,
once both are read.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from trainmaster.job.names import V1_MODULES

_FOLDER = Path(__file__).parent


class Verdict(StrEnum):
    """Whether a name of v1 works here."""

    WORKS = "works"
    DIFFERS = "differs"
    ABSENT = "absent"


@dataclass(frozen=True)
class Judgement:
    """A verdict and, unless the name simply works, a sentence: how it differs, or what to use instead."""

    verdict: Verdict
    sentence: str = ""


WORKS = Judgement(Verdict.WORKS)


@dataclass(frozen=True)
class Table:
    """Everything known about the names of v1."""

    modules: frozenset[str]
    names: Mapping[str, str]
    things: Mapping[str, Mapping[str, Any]]
    absent: Mapping[str, str]
    differs: Mapping[str, str]
    refused: Mapping[str, str]
    gives_more: Mapping[str, str]
    packages: Mapping[str, str]

    def is_module(self, path: str) -> bool:
        return path in self.modules

    def judge_module(self, path: str) -> Judgement:
        """The judgement of `import path`."""
        return WORKS if path in self.modules else self.missing(path)

    def missing(self, path: str) -> Judgement:
        """The judgement of a dotted name that is missing."""
        key = path
        while key not in self.absent:
            key = key.rpartition(".")[0]
        return Judgement(Verdict.ABSENT, self.absent[key])

    def absent_root(self, name: str) -> str:
        """The missing name that `name` is, or is a part of; empty for names that exist.

        `azureml.pipeline.core.Pipeline.submit` is a part of `azureml.pipeline`.
        """
        thing = self.names.get(name) or name.partition(".")[0]
        if "refused" in self.things.get(thing, {}):
            return thing
        parts = name.split(".")
        prefixes = [".".join(parts[:count]) for count in range(1, len(parts) + 1)] if parts[0] == "azureml" else []
        return next((each for each in prefixes if each not in self.modules and each not in self.names), "")

    def judge_thing(self, thing: str) -> Judgement:
        """The judgement of a class, function or value that is imported or mentioned."""
        refused = self.things[thing].get("refused")
        return Judgement(Verdict.ABSENT, refused) if refused else WORKS

    def judge_making(self, thing: str) -> Judgement:
        """The judgement of `Thing(...)`."""
        found = self.judge_thing(thing)
        return found if found.verdict is Verdict.ABSENT else self._look_up(f"{thing}()", {})

    def judge_member(self, thing: str, member: str) -> Judgement:
        """The judgement of `thing.member`."""
        entry = self.things[thing]
        if "refused" in entry:
            return Judgement(Verdict.ABSENT, entry["refused"])
        found = self.member(thing, member)
        if found is None:
            if entry.get("open") or entry["kind"] != "class":
                return WORKS
            return Judgement(Verdict.ABSENT, f"{thing} has no '{member}' here.")
        refused = found.get("refused") or self.refused.get(f"{thing}.{member}")
        if refused:
            return Judgement(Verdict.ABSENT, refused)
        keys = [f"{each}.{member}" for each in (thing, *self._base_classes(thing))]
        return self._look_up(next((key for key in keys if key in self.differs), keys[0]), found)

    def _base_classes(self, thing: str) -> list[str]:
        """The base classes of a class. What is known about their members holds for its own."""
        return [name for name, entry in self.things.items() if thing in entry.get("below", ())]

    def judge_parameter(self, called: str, parameters: list[str] | None, name: str) -> Judgement:
        """The judgement of the keyword `name` in a call of `called`."""
        if parameters is not None and name not in parameters and "**" not in parameters:
            return Judgement(Verdict.ABSENT, f"{called} has no parameter '{name}' here.")
        return self._look_up(f"{called}({name})", {})

    def judge_omission(self, called: str, given: Collection[str]) -> Judgement:
        """The judgement of a call of `called` that omits a parameter whose default differs."""
        prefix = f"{called}(!"
        omitted = [key for key in self.differs if key.startswith(prefix) and key[len(prefix) : -1] not in given]
        return self._look_up(omitted[0], {}) if omitted else WORKS

    def _look_up(self, key: str, entry: Mapping[str, Any]) -> Judgement:
        how = self.differs.get(key) or entry.get("differs", "")
        return Judgement(Verdict.DIFFERS, how) if how else WORKS

    def member(self, thing: str, member: str) -> Mapping[str, Any] | None:
        """What is known about a member of `thing` or of its subclasses, because an object may be of any of them."""
        classes = [thing, *self.things[thing].get("below", ())]
        found = [members[member] for each in classes if member in (members := self.things[each].get("members", {}))]
        if not found:
            return None
        # A member that only some of the classes refuse is not refused.
        found.sort(key=lambda each: "refused" in each)
        parameters = {name: None for each in found for name in each.get("parameters", ())}
        return {**found[0], "parameters": list(parameters)} if "parameters" in found[0] else found[0]

    def gives(self, key: str, entry: Mapping[str, Any] | None) -> str:
        """The thing that a call or an attribute results in; empty if unknown."""
        return str(self.gives_more.get(key, (entry or {}).get("gives", "")))


@cache
def table() -> Table:
    """The table of this release."""
    here = json.loads((_FOLDER / "here.json").read_text(encoding="utf-8"))
    knowledge = tomllib.loads((_FOLDER / "knowledge.toml").read_text(encoding="utf-8"))
    return Table(
        modules=frozenset(V1_MODULES),
        names={
            f"{module}.{name}": here["renamed"].get(name, name)
            for module, listed in V1_MODULES.items()
            for name in listed.split()
        },
        things=here["things"],
        absent=knowledge["absent"],
        differs=knowledge["differs"],
        refused=knowledge["refused"],
        gives_more=knowledge["gives"],
        packages=knowledge["packages"],
    )
