"""The job side runs on Python 3.6 with nothing installed, and its agents start fast."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainmaster

ROOT = Path(trainmaster.__file__).parent
# Code in these folders runs on Python 3.7 and later.
NEWER = ("job/onnx",)


def _modules(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def _imports_at_load(body: list[ast.stmt]) -> Iterator[str]:
    """The modules that are imported when a module is loaded: not those in functions, nor for the type checker."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from _imports_at_load(node.orelse)
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            for part in ("body", "orelse", "finalbody"):
                yield from _imports_at_load(getattr(node, part, []))


@pytest.mark.parametrize("path", [ROOT / "__init__.py", *_modules("job")], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_parses(path: Path) -> None:
    name = path.relative_to(ROOT).as_posix()
    version = (3, 7) if name.startswith(NEWER) else (3, 6)
    tree = ast.parse(path.read_text("utf-8"), name, feature_version=version)
    # `feature_version` does not cover this one.
    futures = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    assert version >= (3, 7) or not futures


@pytest.mark.parametrize("path", _modules("job/agent"), ids=lambda path: str(path.relative_to(ROOT)))
def test_agents_do_not_import_slow_modules(path: Path) -> None:
    """Every trial of a sweep starts an agent; each of these takes milliseconds to import."""
    slow = {"typing", "collections", "dataclasses", "enum", "json", "re", "signal", "socket", "threading"}
    imported = {name.partition(".")[0] for name in _imports_at_load(ast.parse(path.read_text("utf-8")).body)}
    assert not imported & slow
    assert imported <= sys.stdlib_module_names | {"trainmaster"}
