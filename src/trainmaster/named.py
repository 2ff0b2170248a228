"""Collections of a workspace: experiments, targets, models, by their names."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Named(dict[str, T], Generic[T]):
    """Name to object. Also callable, as these collections were methods in 2018."""

    def __call__(self) -> Named[T]:
        return self
