"""Suggestions for misspelled names and keywords."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

C = TypeVar("C", bound=type)


def guess(word: str, known: Iterable[str], quote: str = "") -> str:
    """
    >>> guess("unifrom", ["uniform", "normal"]), guess("x", ["uniform"])
    ('Did you mean uniform? ', '')
    """
    close = closest(word, known)
    return f"Did you mean {quote}{close}{quote}? " if close else ""


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The name that is most like this one; empty if none is like it. A larger `cutoff` means more like it."""
    return next(iter(get_close_matches(word, list(known), 1, cutoff)), "")


def make_keyword_error(owner: str, name: str, known: Iterable[str], synonyms: Mapping[str, str]) -> TypeError:
    """The TypeError of Python for an unknown keyword, with the keyword that was probably meant.

    >>> print(make_keyword_error("Estimator", "pip_package", ["pip_packages"], {}))
    Estimator() got an unexpected keyword argument 'pip_package'. Did you mean 'pip_packages'?
    """
    meant = f"Did you mean '{synonyms[name]}'?" if name in synonyms else guess(name, known, "'").rstrip()
    message = f"{owner}() got an unexpected keyword argument {name!r}"
    return TypeError(f"{message}. {meant}" if meant else message)


def suggests_keywords(synonyms: Mapping[str, str]) -> Callable[[C], C]:
    """Has a class say which keyword was probably meant; `synonyms` are names that other classes have for its own."""

    def decorate(owner: C) -> C:
        make = owner.__init__  # type: ignore[misc]
        known = [name for name in signature(make).parameters if name != "self"]

        @wraps(make)
        def check_keywords(self: Any, *given: Any, **named: Any) -> None:
            for name in named:
                if name not in known:
                    raise make_keyword_error(owner.__name__, name, known, synonyms)
            make(self, *given, **named)

        owner.__init__ = check_keywords  # type: ignore[misc]
        return owner

    return decorate
