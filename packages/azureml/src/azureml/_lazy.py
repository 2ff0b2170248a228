"""Names that point into Trainmaster; each is loaded when it is first used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import trainmaster
from azureml._others import NotHere, tell_what_to_use_instead


def names(module: str, homes: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for `module`: `homes` tells for each home what names live there."""
    found = {name: home for home, listed in homes.items() for name in listed.split()}

    def __getattr__(name: str) -> Any:
        if name in found:
            # In a job `trainmaster` is the job's kit, and the rest of it is found where it is installed.
            trainmaster._find_full_package()  # type: ignore[no-untyped-call]
            value = getattr(import_module(found[name]), name)
            setattr(sys.modules[module], name, value)
            return value
        # v1 had its submodules loaded: `import azureml.core` and then `azureml.core.runconfig.…` is common.
        if not name.startswith("_") and hasattr(sys.modules[module], "__path__"):
            try:
                return import_module(f"{module}.{name}")
            except NotHere:
                pass
            except ModuleNotFoundError as error:
                if error.name != f"{module}.{name}":
                    raise
        tell_what_to_use_instead(module, name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[module]), *found})

    return __getattr__, __dir__, sorted(found)
