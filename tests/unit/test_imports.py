"""No module of the package imports itself through others, not even inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"


def test_the_package_has_no_import_cycles() -> None:
    graph = import_graph(SOURCES)
    assert len(graph) > 100
    assert find_cycle(graph) == []


def test_an_import_in_a_function_counts_and_one_for_types_does_not(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("def work():\n    from two import f\n")
    (tmp_path / "two.py").write_text("import three\nif TYPE_CHECKING:\n    import one\n")
    (tmp_path / "three.py").write_text("f = 1\n")
    assert find_cycle(import_graph(tmp_path)) == []
    (tmp_path / "three.py").write_text("def work():\n    import one\n")
    assert set(find_cycle(import_graph(tmp_path))) == {"one", "two", "three"}


def test_relative_imports_and_packages_count(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from . import inner\n")
    (tmp_path / "package" / "inner.py").write_text("from package import name\n")
    assert set(find_cycle(import_graph(tmp_path))) == {"package", "package.inner"}


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """The modules of one cycle, in the order of their imports; empty without a cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def import_graph(root: Path) -> dict[str, set[str]]:
    """Each module below `root`, and the modules it imports."""
    modules = {module_name(path, root): path for path in root.rglob("*.py")}
    graph = {}
    for name, path in modules.items():
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        found = imported_names(ast.parse(path.read_text()), package)
        graph[name] = {target for names in found if (target := first_module(names, modules))} - {name}
    return graph


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def first_module(names: tuple[str, ...], modules: dict[str, Path]) -> str:
    return next((name for name in names if name in modules), "")


def imported_names(node: ast.AST, package: str) -> Iterator[tuple[str, ...]]:
    """What each import may mean: `from a import b` the module `a.b`, otherwise `a`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.orelse:
                yield from imported_names(ast.Module([statement], []), package)
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name,) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = absolute_base(child, package)
            yield from ((f"{base}.{alias.name}", base) for alias in child.names)
        yield from imported_names(child, package)


def absolute_base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")
    return ".".join([*parents[: len(parents) - node.level + 1], *([node.module] if node.module else [])])
