"""Refuses to work beside Microsoft's SDK, and explains which parts of it Trainmaster does not have."""

from __future__ import annotations

import os
import sys

# Every installer makes a folder whose name begins so. Asking importlib.metadata would take longer than the rest.
_MICROSOFTS = "azureml_core-"


def refuse_microsofts_sdk() -> None:
    """Raises ImportError where Microsoft's azureml-core is installed too: its files and ours overwrite each other."""
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


def explain(name: str) -> str:
    """What to use instead of a module or class of v1 that is not here; empty if nothing is known of a class."""
    # `trainmaster migrate` has it from this table; it is read only when an import fails.
    from trainmaster.migration.table import table

    known = table()
    return known.absent.get(name, "") if name.rpartition(".")[2][0].isupper() else known.missing(name).sentence
