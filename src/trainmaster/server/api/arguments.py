"""The arguments of a request, from its path, query and body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from trainmaster.dispatcher.arguments import check_value
from trainmaster.server.api.signatures import Parameter, Place, Signature, is_list, is_mapping, read_item, read_text
from trainmaster.server.bodies import check_type, parse_object
from trainmaster.server.errors import HttpError, refuse
from trainmaster.shared.serialization import PlainDataError


def read_arguments(signature: Signature, request: Request, names: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The arguments by name. Defaults are left to the function that is called."""
    found = {each.name: read_text(each.type, names[each.name], each.name) for each in signature.select(Place.PATH)}
    if not signature.ignores_query:
        found.update(_read_query(signature.select(Place.QUERY), request))
    found.update(_read_body(signature.select(Place.BODY), request, body))
    return found


def _read_query(parameters: tuple[Parameter, ...], request: Request) -> dict[str, Any]:
    if not request.scope["query_string"] and not any(each.is_required for each in parameters):
        return {}
    query: dict[str, list[str]] = {}
    for name, text in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True):
        query.setdefault(name, []).append(text)
    known = {each.name for each in parameters}
    if not query.keys() <= known:
        name = next(name for name in query if name not in known)
        raise refuse(400, f"there is no argument {name[:60]!r}", hint=f"Known: {', '.join(sorted(known))}.")
    found: dict[str, Any] = {}
    for each in parameters:
        texts = query.get(each.name)
        if texts is None:
            if each.is_required:
                raise _missing(each.name)
        elif is_list(each.type):
            found[each.name] = [read_item(each.type, text, each.name) for text in texts]
        elif is_mapping(each.type):
            found[each.name] = {key: value for text in texts for key, value in read_text(each.type, text, "").items()}
        elif len(texts) > 1:
            raise refuse(400, f"the argument '{each.name}' is there {len(texts)} times")
        else:
            found[each.name] = read_text(each.type, texts[0], each.name)
    return found


def _read_body(parameters: tuple[Parameter, ...], request: Request, body: bytes) -> dict[str, Any]:
    if body:
        check_type(request)
    given = parse_object(body) if body else {}
    types = {each.name: each for each in parameters}
    for name in given:
        if name not in types:
            raise refuse(400, f"there is no argument {name[:60]!r}", hint=f"Known: {', '.join(sorted(types))}.")
    for each in parameters:
        if each.is_required and each.name not in given:
            raise _missing(each.name)
    return given


def check_types(signature: Signature, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments of the body that have the wrong type. (The dispatcher checks those of operations itself.)"""
    for each in signature.select(Place.BODY):
        if each.name in arguments:
            try:
                check_value(each.type, arguments[each.name], each.name)
            except PlainDataError as error:
                raise refuse(400, "the request cannot be used", cause=str(error)[:300]) from None


def _missing(name: str) -> HttpError:
    return refuse(400, f"the argument '{name}' is missing")
