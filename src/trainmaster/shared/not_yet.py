"""Functions of v1 that Trainmaster does not have."""

from __future__ import annotations

from typing import NoReturn


def connections(method: str) -> NoReturn:
    """External connections were Azure's; what they hold are an address and a secret."""
    raise NotImplementedError(
        f"workspace.{method}: there are no connections here. "
        "Keep the secret with workspace.get_default_keyvault().set_secret(name, value)."
    )
