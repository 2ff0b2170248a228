"""From `script_params` and argument lists to the words of a command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.estimators.data import binding_of, is_reference, refuse_unbound, word_of
from trainmaster.shared.job_spec import Binding


@dataclass(frozen=True)
class Arguments:
    """The words of a command line, and the data they refer to."""

    words: tuple[str, ...] = ()
    data: tuple[Binding, ...] = ()


def from_params(params: Mapping[Any, Any]) -> Arguments:
    """Keys and values in the order of the dict. Lists become several words; None and "" are left out.

    >>> from_params({"--layers": [64, 32], "--verbose": "", "--seed": 0}).words
    ('--layers', '64', '32', '--verbose', '--seed', '0')
    """
    return _arguments("script_params", flat(params))


def flat(params: Mapping[Any, Any]) -> list[Any]:
    """The items of `params` in their order, unchanged."""
    return [item for item in _spread(params) if not _is_nothing(item)]


def from_list(parameter: str, given: Iterable[Any]) -> Arguments:
    """The words of a list of arguments. Only None is left out: an empty string may be intended."""
    return _arguments(parameter, [item for item in given if item is not None])


def _spread(params: Mapping[Any, Any]) -> Iterator[Any]:
    for key, value in params.items():
        yield key
        if isinstance(value, list | tuple):
            yield from value
        else:
            yield value


def _is_nothing(item: Any) -> bool:
    # Identity and type first: comparing a numpy array with "" gives no truth value.
    return item is None or (isinstance(item, str) and item == "")


def _arguments(parameter: str, items: list[Any]) -> Arguments:
    data = tuple(binding_of(parameter, item) for item in items if is_reference(item))
    return Arguments(words=tuple(_word(parameter, item) for item in items), data=data)


def _word(parameter: str, item: Any) -> str:
    if is_reference(item):
        return word_of(binding_of(parameter, item))
    refuse_unbound(parameter, item)
    word = str(item)
    if "\0" in word:
        raise UserErrorException(f"{parameter} contains a NUL character, which a command line cannot have: {word!r}")
    return word
