"""The part of v1 that exists here, read from the `azureml` names themselves.

`python -m trainmaster.migration.surface` writes `here.json`. A test compares the file with the names.

A name is `refused` if it only raises an error that says what to use instead. It is called, and the text is recorded.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from trainmaster.job import names
from trainmaster.job.errors import TrainmasterError
from trainmaster.migration.editor_files import editor_files

FILE = Path(__file__).with_name("here.json")
_REFUSALS = re.compile(r"(?:.*\.)?_?(?:not_here|not_yet)(?:\..*)?")
_OWN = ("trainmaster", "azureml")
_IDLE = ("Nothing:", "None:", "Nothing happens", "Recorded", "Has no effect")


def surface() -> dict[str, Any]:
    """`things`: classes with their members, functions, values. `renamed`: import names to things called differently."""
    found = dict(_list_exports())
    ids = {id(value): _name_of(name, value) for name, value in found.items()}
    things = {ids[id(value)]: value for value in found.values()}
    for thing in list(things.values()):
        things.update(_find_nested_classes(thing))
    known = frozenset(name for name, value in things.items() if inspect.isclass(value))
    described = {name: _describe(value, known) for name, value in sorted(things.items())}
    _add_job_side(described, known)
    for name in known:
        below = sorted(each for each in known if each != name and issubclass(things[each], things[name]))
        if below and "members" in described[name]:
            described[name]["below"] = below
    own_names = {(name.rpartition(".")[2], ids[id(value)]) for name, value in found.items()}
    return {
        "renamed": {name: own for name, own in sorted(own_names) if name != own},
        "things": described,
    }


def _list_exports() -> Iterator[tuple[str, Any]]:
    for path, listed in names.V1_MODULES.items():
        for name in listed.split():
            yield f"{path}.{name}", getattr(import_module(path), name)


def _name_of(name: str, value: Any) -> str:
    """The own name of a class or function; for a value, the last part of the name that is imported."""
    own = getattr(value, "__name__", None)
    return own if own and (inspect.isclass(value) or inspect.isfunction(value)) else name.rpartition(".")[2]


def _find_nested_classes(thing: Any) -> Iterator[tuple[str, Any]]:
    """The classes inside a class, such as the factories of Dataset."""
    if not inspect.isclass(thing) or _refusal_of_class(thing):
        return
    for name, value in inspect.getmembers_static(thing):
        if not name.startswith("_") and inspect.isclass(value) and value.__module__.partition(".")[0] in _OWN:
            yield value.__name__, value


def _describe(thing: Any, known: frozenset[str]) -> dict[str, Any]:
    if inspect.isclass(thing):
        refusal = _refusal_of_class(thing)
        if refusal:
            return {"kind": "class", "refused": refusal}
        public = [(name, value) for name, value in inspect.getmembers_static(thing) if not name.startswith("_")]
        members = {name: _member(value, known) for name, value in public}
        return {
            "kind": "class",
            "parameters": _parameters(thing),
            "members": {**_attributes(thing, known), **members},
            "open": any("__getattr__" in vars(base) for base in thing.__mro__),
        }
    if inspect.isfunction(thing):
        return _function(thing, known)
    return {"kind": "value"}


def _refusal_of_class(thing: type) -> str:
    """The error text of a class whose constructor only refuses."""
    making = inspect.getattr_static(thing, "__init__")
    return _find_refusal(making).get("refused", "") if inspect.isfunction(making) else ""


def _member(value: Any, known: frozenset[str]) -> dict[str, Any]:
    if inspect.isclass(value):
        return {"kind": "class", "is": value.__name__}
    if isinstance(value, property):
        assert value.fget is not None
        return {"kind": "value", **_find_result(value.fget, known), **_find_refusal(value.fget), **_idle(value.fget)}
    function = getattr(value, "__func__", value)
    if inspect.isfunction(function):
        return _function(function, known)
    return {"kind": "value"}


def _function(function: Any, known: frozenset[str]) -> dict[str, Any]:
    refused = _find_refusal(function)
    if refused:
        return {"kind": "function", **refused}
    return {"kind": "function", "parameters": _parameters(function), **_find_result(function, known), **_idle(function)}


def _parameters(thing: Callable[..., Any]) -> list[str]:
    """The names of the parameters; `**` if a call may use any name."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (ValueError, TypeError):
        return ["**"]
    return [
        "**" if each.kind is each.VAR_KEYWORD else each.name
        for each in parameters
        if each.kind is not each.VAR_POSITIONAL and each.name not in ("self", "cls")
    ]


def _find_result(function: Any, known: frozenset[str]) -> dict[str, str]:
    """The result of a call, if its annotation names one of v1's things: `Run`, `[Run]` for several runs, `{Run}` for
    runs by name.
    """
    words = re.findall(r"\w+", str(function.__annotations__.get("return", "")))
    named = [word for word in words if word in known]
    if len(set(named)) != 1:
        return {}
    if any(word in ("dict", "Mapping", "Named") for word in words):
        return {"gives": f"{{{named[0]}}}"}
    several = any(word in ("Iterator", "list", "Sequence", "Collection", "RunList") for word in words)
    return {"gives": f"[{named[0]}]" if several else named[0]}


def _idle(function: Any) -> dict[str, str]:
    """The first sentence of the docstring, if it says that the function has no effect."""
    sentence = (inspect.getdoc(function) or "").partition("\n")[0]
    return {"differs": sentence} if sentence.startswith(_IDLE) else {}


def _find_refusal(function: Any) -> dict[str, str]:
    """The error text of a function that only refuses. It uses none of its arguments, so it can be called without."""
    if not _only_refuses(function):
        return {}
    parameters = inspect.signature(function).parameters.values()
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    given = [_Anything() if each.name in ("self", "cls") else None for each in places]
    named = {each.name: None for each in parameters if each.kind is each.KEYWORD_ONLY}
    text = _error_text(function, *given, **named)
    return {"refused": text} if text else {}


class _Anything:
    """Stands in for `self`, whose name may be part of the error text."""

    def __getattr__(self, name: str) -> str:
        return "..."


def _error_text(function: Callable[..., Any], *given: Any, **named: Any) -> str:
    try:
        function(*given, **named)
    except (NotImplementedError, TrainmasterError) as error:
        return " ".join(_without_name(str(error)).split())
    return ""


def _only_refuses(function: Any) -> bool:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    body = [each for each in getattr(definition, "body", []) if not _is_docstring(each)]
    if len(body) != 1:
        return False
    if isinstance(body[0], ast.Raise):
        return isinstance(body[0].exc, ast.Call)
    call = body[0].value if isinstance(body[0], ast.Expr | ast.Return) else None
    return isinstance(call, ast.Call) and _REFUSALS.fullmatch(ast.unparse(call.func)) is not None


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _without_name(words: str) -> str:
    """
    >>> _without_name("Run.register_model: models arrive later. Use files.")
    'models arrive later. Use files.'
    >>> _without_name("Dataset.x is not part of Trainmaster. Use files.")
    'Use files.'
    """
    return re.sub(r"^[\w.()=]+(?:: | is not part of Trainmaster\. )", "", words)


def _attributes(thing: type, known: frozenset[str]) -> dict[str, Any]:
    """The attributes of the objects of a class: those set on `self`, and the fields of dataclasses."""
    found: dict[str, Any] = {}
    for base in thing.__mro__:
        if base.__module__.partition(".")[0] not in _OWN:
            continue
        for name in vars(base).get("__annotations__", {}):
            found.setdefault(name, {"kind": "value"})
        for name, type_name in _self_attributes(base):
            given = {"gives": type_name} if type_name in known else {}
            found[name] = {"kind": "value", **found.get(name, {}), **given}
    return {name: value for name, value in found.items() if not name.startswith("_")}


def _self_attributes(base: type) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
    except (OSError, TypeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            value = node.value
            type_name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
            for target in targets:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == "self"
                ):
                    yield target.attr, type_name


def _add_job_side(described: dict[str, Any], known: frozenset[str]) -> None:
    """Adds the members of the class that a run has inside a job."""
    from trainmaster.job.script.run import JobRun

    inside = _describe(JobRun, known)["members"]
    described["Run"]["members"] = {**inside, **described["Run"]["members"]}


def as_text(found: dict[str, Any]) -> str:
    """The text of the file: one line per thing, so that changes are readable."""
    rows = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in found["things"].items()]
    return f'{{\n "renamed": {json.dumps(found["renamed"])},\n "things": {{\n' + ",\n".join(rows) + "\n }\n}\n"


if __name__ == "__main__":
    FILE.write_text(as_text(surface()))
    for path, text in editor_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
