"""The files from which editors and type checkers know the public names.

They are `trainmaster/__init__.pyi` and a file for each of v1's modules in `packages/azureml`. All come from the table
of names; `python -m trainmaster.migration.surface` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from trainmaster.job import names

_PACKAGE = Path(__file__).parents[1]
_AZUREML = _PACKAGE.parents[1] / "packages" / "azureml" / "src" / "azureml"
_WRITER = "Written by `python -m trainmaster.migration.surface`"


def editor_files() -> dict[Path, str]:
    """The text of every file."""
    modules = [module for module in names.V1_MODULES if module != "azureml"]
    return {_PACKAGE / "__init__.pyi": _public_text(), **{_path(module): _text(module) for module in modules}}


def _public_text() -> str:
    public = _imports(names.list_names(names.PUBLIC), lambda name: names.find_home(name, names.PUBLIC))
    errors = "from trainmaster.job import errors as errors\n"
    return f'"""The public names. {_WRITER}."""\n\n{errors}{public}\n__version__: str\n'


def _path(module: str) -> Path:
    place = _AZUREML.joinpath(*module.split(".")[1:])
    is_package = any(other.startswith(module + ".") for other in names.V1_MODULES)
    return place / "__init__.py" if is_package else place.with_suffix(".py")


def _text(module: str) -> str:
    imports = _imports(names.V1_MODULES[module].split(), names.find_v1_home)
    return f'"""Shows `{module}` to editors; never run. {_WRITER}."""\n' + (f"\n{imports}" if imports else "")


def _imports(wanted: Iterable[str], home: Callable[[str], str]) -> str:
    rows = sorted((home(name), names.V1_RENAMED.get(name, name), name) for name in wanted)
    return "".join(f"from {module} import {name} as {shown}\n" for module, name, shown in rows)
