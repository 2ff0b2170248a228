"""How commands print their results: JSON for programs, tables and sentences for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from trainmaster.cli import exits
from trainmaster.cli.parsing import Options
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render

T = TypeVar("T")


@dataclass(frozen=True)
class Listing(Generic[T]):
    """How items of one kind are listed."""

    columns: Sequence[Column]
    row: Callable[[T], Sequence[str]]
    json: Callable[[T], Any]
    empty: str = ""
    """The note where there is no item."""

    def show(self, items: Sequence[T], options: Options) -> int:
        """Prints the items as JSON or as a table; returns the exit code."""
        if options.json:
            say_json([self.json(item) for item in items])
        elif items:
            show_table(self.columns, [self.row(item) for item in items])
        elif self.empty:
            note(self.empty)
        return exits.OK


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table that fits the terminal."""
    for line in render(columns, rows, width_of_terminal(), paint):
        say(line)


def show_result(options: Options, data: Any, text: str) -> int:
    """Prints `data` as JSON, or `text`; returns the exit code."""
    if options.json:
        say_json(data)
    else:
        say(text)
    return exits.OK


def show_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Prints names and values, a line each; those without a value are left out."""
    for name, value in facts:
        if value:
            say(f"{name:<12}{value}")


def show_names(names: Sequence[str], most: int = 20) -> None:
    """Prints names, indented: the first `most`, and how many more there are."""
    for name in names[:most]:
        say(f"  {name}")
    if len(names) > most:
        say(f"  and {len(names) - most} more")
