"""What stands beside these names: Microsoft's SDK, which cannot, and parts of it that Trainmaster does not have."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# Every installer makes a folder of this name. Asking importlib.metadata would take longer than all the rest.
_MICROSOFTS = "azureml_core-"


def refuse_microsofts_sdk() -> None:
    """Stops the import where Microsoft's azureml-core is installed too: its files and ours overwrite each other."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        if any(name.startswith(_MICROSOFTS) and name.endswith((".dist-info", ".egg-info")) for name in names):
            raise ImportError(
                "two packages 'azureml' are installed: trainmaster-azureml and Microsoft's azureml-core "
                f"(in {folder or os.getcwd()}), and each overwrites files of the other.\n"
                "Keep one of them. To run v1 scripts with Trainmaster:\n"
                "    pip uninstall azureml-core\n"
                "    pip install --force-reinstall --no-deps trainmaster-azureml\n"
                "To use Microsoft's SDK:\n"
                "    pip uninstall trainmaster-azureml\n"
                "    pip install --force-reinstall azureml-core"
            )


class NotHere(ModuleNotFoundError):
    """A module of v1 that does not exist here. It has no `name`: `from azureml import dataprep` would pass over an
    error with the name of what it looks for, and say less.
    """


class _NotHere:
    """Asked last of all: says what a module of v1 that does not exist here was for, and what to do instead."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith("azureml."):
            return None
        # Where `trainmaster migrate` has it from; read only when such an import fails.
        from trainmaster.migration.table import table

        raise NotHere(f"No module named {name!r}: {table().missing(name).sentence}")


def tell_what_to_use_instead(module: str, name: str) -> None:
    """Raises ImportError for a name that v1 had in `module` and that is known not to be here."""
    # Classes only: whether a package has a module is often asked with hasattr, which wants an AttributeError.
    if not name[0].isupper():
        return
    from trainmaster.migration.table import table

    sentence = table().absent.get(f"{module}.{name}")
    # Not an AttributeError: `from module import name` would replace its words by its own.
    if sentence:
        raise ImportError(f"cannot import name {name!r} from {module!r}: {sentence}", name=module)


def tell_what_is_not_here() -> None:
    """Makes `import azureml.pipeline` fail with a reason."""
    if _NotHere not in sys.meta_path:
        sys.meta_path.append(_NotHere)
