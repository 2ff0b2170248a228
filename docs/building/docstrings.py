"""How mkdocstrings reads the package: the public names, and the examples in docstrings."""

from __future__ import annotations

import re
from typing import Any

from griffe import Alias, Extension, Module, Object

import trainmaster

_FLAG = re.compile(r"\s*# doctest: .*$", re.MULTILINE)
_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class PublicNames(Extension):
    """Makes the public names known, such as `trainmaster.Workspace`: the package loads them on first use."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called when the whole package was read."""
        if pkg.name != "trainmaster":
            return
        for name in trainmaster.__all__:
            definition = getattr(trainmaster, name)
            pkg.set_member(name, Alias(name, f"{definition.__module__}.{definition.__qualname__}", parent=pkg))


class Doctests(Extension):
    """Shows examples as code. In Markdown their `>>>` would be quotations."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called for every object that was read."""
        if obj.docstring:
            obj.docstring.value = fence(obj.docstring.value)


def fence(text: str) -> str:
    """The text with its examples in fences, without what only the test of an example reads.

    >>> fence(">>> 1 + 1  # doctest: +SKIP\\n2").splitlines()
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    return _EXAMPLE.sub(lambda match: f"```pycon\n{_FLAG.sub('', match[0])}\n```", text)
