"""Collections of a workspace: experiments, targets, models, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class UnknownName(KeyError):
    """An unknown name, with a sentence that explains it."""

    def __str__(self) -> str:
        return str(self.args[0])


class Named(dict[str, T], Generic[T]):
    """Name to object. Also callable, as these collections were methods in 2018.

    `explain` may give a sentence for a name that is not in the collection.
    """

    def __init__(self, found: Mapping[str, T] | None = None, explain: Callable[[str], str] | None = None) -> None:
        super().__init__(found or {})
        self._explain = explain

    def __call__(self) -> Named[T]:
        return self

    def __missing__(self, name: str) -> NoReturn:
        why = self._explain(name) if self._explain is not None else ""
        raise UnknownName(why) if why else KeyError(name)
