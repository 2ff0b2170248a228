"""What v1 could do and this release cannot yet.

The classes of models and services can be imported from here; whoever uses one is told in which
release it comes. Which ones is said in `runtime/later.py`, since jobs know them too.
"""

from __future__ import annotations

from typing import Any, NoReturn

from trainmaster.runtime.later import LATER, later


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = later(name)
    return value


def connections(method: str) -> NoReturn:
    """External connections were Azure's; what they hold are an address and a secret."""
    raise NotImplementedError(
        f"workspace.{method}: there are no connections here. "
        "Keep the secret with workspace.get_default_keyvault().set_secret(name, value)."
    )
