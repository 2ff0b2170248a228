"""Finds every use of v1's names in Python code, by following names from imports through assignments and calls.

The inference is deliberately simple: constructors, results of calls (`table.py`), aliases, loops, `with`, functions of
the same file. What it cannot follow is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from trainmaster.migration.table import Judgement, Table, Verdict

# The distributions of v1. Scripts also name folders and other things that begin with azureml-.
_PACKAGE = re.compile(
    r"azureml-(?:accel|ai|automl|cli|contrib|core|datadrift|dataprep|dataset|defaults|designer|explain|fsspec|inference|"
    r"interpret|mlflow|model-management|monitoring|opendatasets|pipeline|responsibleai|sdk|studio|telemetry|tensorboard|"
    r"train|widgets)\b[^/]*"
)


@dataclass(frozen=True)
class Use:
    """One use of a name of v1."""

    line: int
    column: int
    name: str
    kind: str
    """import, call, attribute, parameter or package."""
    judgement: Judgement


@dataclass(frozen=True)
class Ref:
    """What a name stands for."""

    kind: str
    """module, thing (a class, function or value), object, many (objects), named (objects by their names), pairs (of
    anything and an object), member, function (of this file), absent."""
    name: str
    """A dotted path for modules and missing names; otherwise `Thing` or `Thing.member`."""


_UNKNOWN = Ref("unknown", "")


@dataclass
class Names:
    """What the names of a file, or of all cells of a notebook, stand for."""

    bound: dict[str, Ref] = field(default_factory=dict)
    functions: dict[str, dict[str, Ref]] = field(default_factory=dict)
    """For each function of this file: what its parameters stand for, and its result under `return`."""


def uses_of(text: str, names: Names, known: Table) -> list[Use]:
    """All uses in `text`, by line. Adds what it binds to `names`. Raises libcst.ParserSyntaxError."""
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    places = wrapper.resolve(PositionProvider)
    # Two walks: a function may use what is bound below it, and be called below it.
    _Flow(names, known, places).visit(wrapper.module)
    flow = _Flow(names, known, places)
    flow.visit(wrapper.module)
    return sorted(set(flow.uses), key=lambda use: (use.line, use.column, use.name))


class _Flow:
    """One walk through a module, line by line."""

    def __init__(self, names: Names, known: Table, places: Any) -> None:
        self._names = names
        self._known = known
        self._places = places
        self._scopes: list[dict[str, Ref]] = [names.bound]
        self._returned: list[Ref] = []
        self.uses: list[Use] = []

    def visit(self, node: cst.CSTNode) -> Ref | None:
        """Walks through `node`. Returns what it stands for, if it is an expression that can be followed."""
        handler: Callable[[Any], Ref | None] | None = getattr(self, f"_{type(node).__name__}", None)
        if handler is not None:
            return handler(node)
        for child in node.children:
            if not isinstance(child, cst.BaseParenthesizableWhitespace | cst.TrailingWhitespace | cst.EmptyLine):
                self.visit(child)
        return None

    # Imports

    def _Import(self, node: cst.Import) -> None:
        for alias in node.names:
            path = path_of(alias.name)
            if _is_v1(path):
                self._note(node, path, "import", self._known.judge_module(path))
            bound = path if alias.asname else path.partition(".")[0]
            name = path_of(alias.asname.name) if alias.asname else bound
            self._bind(name, self._module(bound) if _is_v1(path) else None)

    def _ImportFrom(self, node: cst.ImportFrom) -> None:
        path = path_of(node.module) if node.module is not None else ""
        ours = _is_v1(path) and not node.relative
        if isinstance(node.names, cst.ImportStar):
            if ours:
                self._import_all(node, path)
            return
        for alias in node.names:
            name = path_of(alias.name)
            ref = self._import_name(node, path, name) if ours else None
            self._bind(path_of(alias.asname.name) if alias.asname else name, ref)

    def _import_all(self, node: cst.CSTNode, path: str) -> None:
        self._note(node, path, "import", self._known.judge_module(path))
        for full, thing in self._known.names.items():
            if full.rpartition(".")[0] == path:
                self._bind(full.rpartition(".")[2], Ref("thing", thing))

    def _import_name(self, node: cst.CSTNode, path: str, name: str) -> Ref:
        ref = self._member_of_module(path, name)
        full = f"{path}.{name}"
        judgement = self._known.judge_thing(ref.name) if ref.kind == "thing" else self._known.judge_module(full)
        self._note(node, full, "import", judgement)
        return ref

    def _module(self, path: str) -> Ref:
        return Ref("module" if self._known.is_module(path) else "absent", path)

    def _member_of_module(self, path: str, name: str) -> Ref:
        full = f"{path}.{name}"
        if full in self._known.names:
            return Ref("thing", self._known.names[full])
        return self._module(full)

    # Names and what they stand for

    def _Name(self, node: cst.Name) -> Ref | None:
        return self._lookup(node.value)

    def _Attribute(self, node: cst.Attribute) -> Ref | None:
        base = self.visit(node.value)
        name = node.attr.value
        if base is None:
            return self._lookup(path_of(node)) if _is_plain(node) else None
        if base.kind == "module":
            ref = self._member_of_module(base.name, name)
            if ref.kind == "thing":
                self._note(node, f"{base.name}.{name}", "attribute", self._known.judge_thing(ref.name))
            elif ref.kind == "absent":
                self._note(node, ref.name, "attribute", self._known.missing(ref.name))
            return ref
        if base.kind == "absent":
            self._note(node, f"{base.name}.{name}", "attribute", self._known.missing(base.name))
            return Ref("absent", f"{base.name}.{name}")
        if base.kind in ("thing", "object"):
            return self._member(node, base.name, name)
        return base if base.kind in ("many", "named") else None

    def _member(self, node: cst.CSTNode, thing: str, name: str) -> Ref | None:
        if self._known.things[thing]["kind"] != "class" or name.startswith("_"):
            return None
        self._note(node, f"{thing}.{name}", "attribute", self._known.judge_member(thing, name))
        found = self._known.member(thing, name)
        if found is None:
            return None
        if found["kind"] == "class":
            return Ref("thing", found["is"])
        if found["kind"] == "function":
            return Ref("member", f"{thing}.{name}")
        return _parse_result(self._known.gives(f"{thing}.{name}", found))

    def _lookup(self, text: str) -> Ref | None:
        found = next((scope[text] for scope in reversed(self._scopes) if text in scope), None)
        return None if found == _UNKNOWN else found

    # Calls

    def _Call(self, node: cst.Call) -> Ref | None:
        ref = self.visit(node.func)
        given = [(arg.keyword.value if arg.keyword else None, self.visit(arg.value)) for arg in node.args]
        if ref is None:
            return _result_of_builtin(path_of(node.func), given[0][1]) if given else None
        if ref.kind == "function":
            return self._call_own(ref.name, given)
        if ref.kind == "absent":
            self._note(node.func, ref.name, "call", self._known.missing(ref.name))
            return ref
        if ref.kind in ("many", "named"):
            return _result_of_collection(node.func, ref)
        if ref.kind == "thing":
            return self._call_thing(node, ref.name, [name for name, _ in given if name])
        if ref.kind == "member":
            thing, _, member = ref.name.partition(".")
            entry = self._known.member(thing, member) or {}
            self._call_known(node, ref.name, entry, [name for name, _ in given if name])
            self._note(node.func, ref.name, "call", self._known.judge_member(thing, member))
            return _parse_result(self._known.gives(ref.name, entry))
        return None

    def _call_thing(self, node: cst.Call, thing: str, keywords: list[str]) -> Ref | None:
        entry = self._known.things[thing]
        judgement = self._known.judge_making(thing)
        if judgement.verdict is Verdict.WORKS and not any(arg.star for arg in node.args):
            judgement = self._known.judge_omission(thing, keywords)
        self._note(node.func, thing, "call", judgement)
        self._call_known(node, thing, entry, keywords)
        if entry["kind"] == "class":
            return Ref("object", thing)
        return _parse_result(self._known.gives(thing, entry))

    def _call_known(self, node: cst.Call, called: str, entry: Any, keywords: Iterable[str]) -> None:
        if "refused" in entry:
            return
        for keyword in keywords:
            judgement = self._known.judge_parameter(called, entry.get("parameters"), keyword)
            if judgement.verdict is not Verdict.WORKS:
                arg = next(arg for arg in node.args if arg.keyword and arg.keyword.value == keyword)
                self._note(arg, f"{called}({keyword}=)", "parameter", judgement)

    def _call_own(self, name: str, given: list[tuple[str | None, Ref | None]]) -> Ref | None:
        function = self._names.functions[name]
        order = [each for each in function if each != "return"]
        for place, (keyword, ref) in enumerate(given):
            target = keyword or (order[place] if place < len(order) else None)
            if ref is not None and target in function:
                function[target] = ref
        return function.get("return")

    # Other expressions that can be followed

    def _Subscript(self, node: cst.Subscript) -> Ref | None:
        base = self.visit(node.value)
        for element in node.slice:
            self.visit(element)
        return Ref("object", base.name) if base is not None and base.kind in ("many", "named") else None

    def _Await(self, node: cst.Await) -> Ref | None:
        return self.visit(node.expression)

    def _IfExp(self, node: cst.IfExp) -> Ref | None:
        self.visit(node.test)
        found = [self.visit(node.body), self.visit(node.orelse)]
        return found[0] or found[1]

    def _BooleanOperation(self, node: cst.BooleanOperation) -> Ref | None:
        found = [self.visit(node.left), self.visit(node.right)]
        return found[0] or found[1]

    def _NamedExpr(self, node: cst.NamedExpr) -> Ref | None:
        ref = self.visit(node.value)
        self._assign(node.target, ref)
        return ref

    def _List(self, node: cst.List | cst.Tuple) -> Ref | None:
        found = [self.visit(element.value) for element in node.elements]
        return next((Ref("many", ref.name) for ref in found if ref is not None and ref.kind == "object"), None)

    _Tuple = _List

    def _ListComp(self, node: cst.ListComp | cst.GeneratorExp) -> Ref | None:
        self._comprehension(node.for_in)
        ref = self.visit(node.elt)
        return Ref("many", ref.name) if ref is not None and ref.kind == "object" else None

    _GeneratorExp = _ListComp

    def _comprehension(self, part: cst.CompFor) -> None:
        self._assign(part.target, _one_of(self.visit(part.iter)))
        for condition in part.ifs:
            self.visit(condition.test)
        if part.inner_for_in is not None:
            self._comprehension(part.inner_for_in)

    def _SimpleString(self, node: cst.SimpleString) -> None:
        value = node.evaluated_value
        if isinstance(value, str) and _PACKAGE.fullmatch(value):
            sentence = self._known.packages["in_environments"]
            self._note(node, value, "package", Judgement(Verdict.DIFFERS, sentence))

    # Statements that bind names

    def _Assign(self, node: cst.Assign) -> None:
        ref = self.visit(node.value)
        for target in node.targets:
            self._assign(target.target, ref)

    def _AnnAssign(self, node: cst.AnnAssign) -> None:
        ref = self.visit(node.value) if node.value is not None else None
        self._assign(node.target, ref or self._resolve_annotation(node.annotation))

    def _With(self, node: cst.With) -> None:
        for item in node.items:
            ref = self.visit(item.item)
            if item.asname is not None:
                self._assign(item.asname.name, ref)
        self.visit(node.body)

    def _For(self, node: cst.For) -> None:
        self._assign(node.target, _one_of(self.visit(node.iter)))
        self.visit(node.body)
        if node.orelse is not None:
            self.visit(node.orelse)

    def _FunctionDef(self, node: cst.FunctionDef) -> None:
        name = node.name.value
        for decorator in node.decorators:
            self.visit(decorator.decorator)
        parameters = [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]
        known = self._names.functions.setdefault(name, {})
        for each in parameters:
            if each.default is not None:
                self.visit(each.default)
            known.setdefault(each.name.value, self._resolve_annotation(each.annotation) or _UNKNOWN)
        self._bind(name, Ref("function", name))
        around, self._returned = self._returned, []
        self._scopes.append({each: ref for each, ref in known.items() if each != "return"})
        self.visit(node.body)
        self._scopes.pop()
        given = self._returned or [ref for ref in [self._resolve_annotation(node.returns)] if ref]
        if given:
            known["return"] = given[-1]
        self._returned = around

    def _ClassDef(self, node: cst.ClassDef) -> None:
        for base in node.bases:
            self.visit(base.value)
        self._scopes.append({})
        self.visit(node.body)
        self._scopes.pop()
        self._bind(node.name.value, None)

    def _Return(self, node: cst.Return) -> None:
        ref = self.visit(node.value) if node.value is not None else None
        if ref is not None:
            self._returned.append(ref)

    def _resolve_annotation(self, annotation: cst.Annotation | None) -> Ref | None:
        if annotation is None:
            return None
        ref = self.visit(annotation.annotation)
        return Ref("object", ref.name) if ref is not None and ref.kind == "thing" else None

    def _assign(self, target: cst.CSTNode, ref: Ref | None) -> None:
        if isinstance(target, cst.Name):
            self._bind(target.value, ref)
        elif isinstance(target, cst.Tuple | cst.List):
            *before, last = target.elements
            for element in before:
                self._assign(element.value, None)
            self._assign(last.value, Ref("object", ref.name) if ref is not None and ref.kind == "pair" else None)
        elif isinstance(target, cst.Attribute):
            self.visit(target)
            if _is_plain(target) and self.visit(target.value) is None:
                # `self.run = ...` is known in all methods.
                self._names.bound[path_of(target)] = ref or _UNKNOWN
        else:
            self.visit(target)

    def _bind(self, name: str, ref: Ref | None) -> None:
        self._scopes[-1][name] = ref or _UNKNOWN

    def _note(self, node: cst.CSTNode, name: str, kind: str, judgement: Judgement) -> None:
        start = self._places[node].start
        if kind == "call":
            # The called attribute was noted already. Both are one use.
            same = ("attribute", start.line, start.column)
            self.uses = [use for use in self.uses if (use.kind, use.line, use.column) != same or use.name != name]
        self.uses.append(Use(start.line, start.column, name, kind, judgement))


def path_of(node: cst.CSTNode) -> str:
    """`a.b.c` for names and attributes; empty for any other expression."""
    if isinstance(node, cst.Attribute):
        return f"{path_of(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _is_plain(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) or (isinstance(node, cst.Attribute) and _is_plain(node.value))


def _is_v1(path: str) -> bool:
    return path == "azureml" or path.startswith("azureml.")


def _parse_result(name: str) -> Ref | None:
    if not name:
        return None
    kind = {"[": "many", "{": "named"}.get(name[0], "object")
    return Ref(kind, name.strip("[]{}"))


def _one_of(ref: Ref | None) -> Ref | None:
    """What a loop over it yields; None for named objects, which yield their names."""
    kind = {"many": "object", "pairs": "pair"}.get(ref.kind) if ref is not None else None
    return Ref(kind, ref.name) if ref is not None and kind else None


def _result_of_collection(called: cst.CSTNode, ref: Ref) -> Ref | None:
    """The result of `collection()` (a method in early releases), `collection.get(name)`, `.items()` and the like."""
    method = called.attr.value if isinstance(called, cst.Attribute) else ""
    kinds = {"get": "object", "pop": "object", "items": "pairs", "values": "many", "keys": ""}
    kind = kinds.get(method, ref.kind)
    return Ref(kind, ref.name) if kind else None


def _result_of_builtin(name: str, first: Ref | None) -> Ref | None:
    """The result of `next(runs)`, `list(runs)` and the like."""
    if first is None or first.kind != "many":
        return None
    if name in ("next", "max", "min"):
        return _one_of(first)
    if name == "enumerate":
        return Ref("pairs", first.name)
    return first if name in ("list", "tuple", "sorted", "reversed", "iter", "filter") else None
