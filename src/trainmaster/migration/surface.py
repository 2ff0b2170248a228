"""What of v1 is here, read from the `azureml` names themselves: `python -m trainmaster.migration.surface` writes
`here.json`. A test compares that file with what is read, so that it cannot say anything that is not so.

A name is `refused` if all it does is to say what to use instead; such a function is called, and its words are kept.
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
    found = dict(_exported())
    ids = {id(value): _name_of(name, value) for name, value in found.items()}
    things = {ids[id(value)]: value for value in found.values()}
    for thing in list(things.values()):
        things.update(_nested(thing))
    known = frozenset(name for name, value in things.items() if inspect.isclass(value))
    described = {name: _described(value, known) for name, value in sorted(things.items())}
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


def _exported() -> Iterator[tuple[str, Any]]:
    for path, listed in names.V1_MODULES.items():
        for name in listed.split():
            yield f"{path}.{name}", getattr(import_module(path), name)


def _name_of(name: str, value: Any) -> str:
    """Classes and functions by their own names; values, and what was renamed, by the last part of the import."""
    own = getattr(value, "__name__", None)
    return own if own and (inspect.isclass(value) or inspect.isfunction(value)) else name.rpartition(".")[2]


def _nested(thing: Any) -> Iterator[tuple[str, Any]]:
    """Classes within a class, such as the factories of Dataset."""
    if not inspect.isclass(thing) or _refusal_of_class(thing):
        return
    for name, value in inspect.getmembers_static(thing):
        if not name.startswith("_") and inspect.isclass(value) and value.__module__.partition(".")[0] in _OWN:
            yield value.__name__, value


def _described(thing: Any, known: frozenset[str]) -> dict[str, Any]:
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
    """The words of a class that can only be named."""
    making = inspect.getattr_static(thing, "__init__")
    return _refused(making).get("refused", "") if inspect.isfunction(making) else ""


def _member(value: Any, known: frozenset[str]) -> dict[str, Any]:
    if inspect.isclass(value):
        return {"kind": "class", "is": value.__name__}
    if isinstance(value, property):
        assert value.fget is not None
        return {"kind": "value", **_typed(value.fget, known), **_refused(value.fget), **_idle(value.fget)}
    function = getattr(value, "__func__", value)
    if inspect.isfunction(function):
        return _function(function, known)
    return {"kind": "value"}


def _function(function: Any, known: frozenset[str]) -> dict[str, Any]:
    refused = _refused(function)
    if refused:
        return {"kind": "function", **refused}
    return {"kind": "function", "parameters": _parameters(function), **_typed(function, known), **_idle(function)}


def _parameters(thing: Callable[..., Any]) -> list[str]:
    """The names a call may use; `**` if any."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (ValueError, TypeError):
        return ["**"]
    return [
        "**" if each.kind is each.VAR_KEYWORD else each.name
        for each in parameters
        if each.kind is not each.VAR_POSITIONAL and each.name not in ("self", "cls")
    ]


def _typed(function: Any, known: frozenset[str]) -> dict[str, str]:
    """What a call gives, as far as its annotation names one of v1's things; `[Run]` for several runs, `{Run}` for runs
    by their names.
    """
    words = re.findall(r"\w+", str(function.__annotations__.get("return", "")))
    named = [word for word in words if word in known]
    if len(set(named)) != 1:
        return {}
    if any(word in ("dict", "Mapping", "Named") for word in words):
        return {"gives": f"{{{named[0]}}}"}
    several = any(word in ("Iterator", "list", "Sequence", "Collection") for word in words)
    return {"gives": f"[{named[0]}]" if several else named[0]}


def _idle(function: Any) -> dict[str, str]:
    """The first sentence about a function that has nothing to do here."""
    told = (inspect.getdoc(function) or "").partition("\n")[0]
    return {"differs": told} if told.startswith(_IDLE) else {}


def _refused(function: Any) -> dict[str, str]:
    """The words of a function that does nothing but refuse. It touches no argument, so it may be called with none."""
    if not _only_refuses(function):
        return {}
    parameters = inspect.signature(function).parameters.values()
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    given = [_Anything() if each.name in ("self", "cls") else None for each in places]
    named = {each.name: None for each in parameters if each.kind is each.KEYWORD_ONLY}
    words = _words(function, *given, **named)
    return {"refused": words} if words else {}


class _Anything:
    """Stands for the object whose method is asked: it may want to say its name."""

    def __getattr__(self, name: str) -> str:
        return "..."


def _words(function: Callable[..., Any], *given: Any, **named: Any) -> str:
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
    """What objects of the class have besides: what is set on `self`, and the fields of dataclasses."""
    found: dict[str, Any] = {}
    for base in thing.__mro__:
        if base.__module__.partition(".")[0] not in _OWN:
            continue
        for name in vars(base).get("__annotations__", {}):
            found.setdefault(name, {"kind": "value"})
        for name, made in _set_on_self(base):
            given = {"gives": made} if made in known else {}
            found[name] = {"kind": "value", **found.get(name, {}), **given}
    return {name: value for name, value in found.items() if not name.startswith("_")}


def _set_on_self(base: type) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
    except (OSError, TypeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            made = (
                node.value.func.id if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) else ""
            )
            for target in targets:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id == "self"
                ):
                    yield target.attr, made


def _add_job_side(described: dict[str, Any], known: frozenset[str]) -> None:
    """In a job a run is another class, with members of its own."""
    from trainmaster.job.script.run import JobRun

    inside = _described(JobRun, known)["members"]
    described["Run"]["members"] = {**inside, **described["Run"]["members"]}


def as_text(found: dict[str, Any]) -> str:
    """The file's text: a line for each thing, so that changes can be read."""
    rows = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in found["things"].items()]
    return f'{{\n "renamed": {json.dumps(found["renamed"])},\n "things": {{\n' + ",\n".join(rows) + "\n }\n}\n"


if __name__ == "__main__":
    FILE.write_text(as_text(surface()))
    for path, text in editor_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
