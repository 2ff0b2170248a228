"""Reads a filter or an order, and refuses with MLflow's messages what the noun does not allow."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from trainmaster.dispatcher.mlflow.errors import WRONG, MlflowError
from trainmaster.dispatcher.mlflow.filters.grammars import DATASET_KEYS, LISTS, Grammar
from trainmaster.dispatcher.mlflow.filters.tokens import Token, split
from trainmaster.shared.filters.clauses import Clause, Entity, SortKey

LONGEST_FILTER = 100_000
MOST_CLAUSES = 200

_OPERANDS = frozenset({"name", "text", "integer", "float", "list"})
_NO_VALUE = Token("other", "")


def parse_filter(text: str, grammar: Grammar) -> tuple[Clause, ...]:
    """The clauses of a filter, all of which have to hold; none for an empty text.

    >>> from trainmaster.dispatcher.mlflow.filters.grammars import RUNS
    >>> parse_filter("metrics.loss < 0.5 and params.`my model` LIKE 'res%'", RUNS)[1].key
    'my model'
    """
    if len(text) > LONGEST_FILTER:
        raise _wrong(f"Invalid filter. It has {len(text)} characters; {LONGEST_FILTER} are allowed.")
    tokens = split(text)
    if text and not tokens:
        raise _wrong(f"Invalid filter '{text}'. Could not be parsed.")
    _refuse_several(text, tokens, grammar)
    found = _split_clauses(text, tokens, grammar)
    if len(found) > MOST_CLAUSES:
        raise _wrong(f"Invalid filter. It has {len(found)} clauses; {MOST_CLAUSES} are allowed.")
    clauses = [_read_clause(each, grammar) for each in found]
    for clause, each in zip(clauses, found, strict=True):
        _check_comparator(clause, each[1].text if grammar.has_exact_case else clause.comparator, grammar)
    return tuple(clauses)


def parse_order(text: str, grammar: Grammar) -> SortKey:
    """What an order sorts by: a key, then ASC (or nothing) or DESC.

    >>> from trainmaster.dispatcher.mlflow.filters.grammars import RUNS
    >>> parse_order("metrics.`val loss` DESC", RUNS)
    SortKey(entity='metric', key='val loss', descending=True)
    """
    tokens = split(text) if len(text) <= LONGEST_FILTER else []
    if not tokens or tokens[0].kind != "name" or len(tokens) > 2:
        raise _wrong(f"Invalid order_by clause '{text[:1000]}'. Could not be parsed.")
    if len(tokens) == 2 and not tokens[1].is_word("ASC", "DESC"):
        if tokens[1].kind == "name":
            raise _wrong(f"Invalid ordering key in order_by clause '{text}'.")
        raise _wrong(f"Invalid order_by clause '{text}'. Could not be parsed.")
    entity, key = _read_identifier(tokens[0].text, grammar, grammar.orders)
    if entity != "attribute" and grammar.style in ("experiments", "registry"):
        raise _wrong(f"Invalid order_by entity: {entity}")
    if entity == "dataset":
        raise _wrong(f"Invalid identifier type '{entity}'")
    return SortKey(entity, key, len(tokens) == 2 and tokens[1].is_word("DESC"))


# Clauses


def _refuse_several(text: str, tokens: Sequence[Token], grammar: Grammar) -> None:
    if any(token.text == ";" for token in tokens[:-1]):
        if grammar.style == "logged models":
            raise _wrong(f"Invalid filter string: {text!r}. Expected a single SQL expression.")
        raise _wrong(f"Search filter contained multiple expression {text!r}. Provide AND-ed expression list.")


def _split_clauses(text: str, tokens: Sequence[Token], grammar: Grammar) -> list[tuple[Token, Token, Token]]:
    """The clauses: what is compared, the comparator, and the value."""
    found: list[tuple[Token, Token, Token]] = []
    wrong: list[Token] = []
    position = 0
    while position < len(tokens):
        clause, length = _match_clause(tokens[position : position + 4])
        if clause is not None:
            found.append(clause)
        elif not tokens[position].is_word("AND"):
            wrong.append(tokens[position])
        position += length
    if wrong and grammar.style == "logged models":
        raise _wrong(
            f"Invalid filter string: {text!r}. Expected a list of comparisons separated by 'AND' "
            "(e.g. 'metrics.loss > 0.1 AND params.lr = 0.01')."
        )
    if wrong:
        quote = "'" if grammar.style == "runs" else ""
        shown = ", ".join(f"{quote}{token.text}{quote}" for token in wrong[:20])
        raise _wrong(f"Invalid clause(s) in filter string: {shown}")
    return found


def _match_clause(tokens: Sequence[Token]) -> tuple[tuple[Token, Token, Token] | None, int]:
    """The clause that these tokens begin with, and how many of them it has; else None and 1."""
    first, *rest = tokens
    if first.kind in _OPERANDS and len(rest) >= 2 and rest[0].kind == "comparison" and rest[1].kind in _OPERANDS:
        return (first, rest[0], rest[1]), 3
    if first.kind == "name":
        match rest:
            case [is_in, values, *_] if is_in.is_word("IN") and values.kind == "list":
                return (first, is_in, values), 3
            case [is_not, is_in, values] if is_not.is_word("NOT") and is_in.is_word("IN") and values.kind == "list":
                return (first, Token("keyword", "NOT IN"), values), 4
            case [is_, null, *_] if is_.is_word("IS") and null.is_word("NULL"):
                return (first, Token("keyword", "IS NULL"), _NO_VALUE), 3
            case [is_, is_not, null] if is_.is_word("IS") and is_not.is_word("NOT") and null.is_word("NULL"):
                return (first, Token("keyword", "IS NOT NULL"), _NO_VALUE), 4
    return None, 1


def _read_clause(tokens: tuple[Token, Token, Token], grammar: Grammar) -> Clause:
    left, comparator, right = tokens
    if left.kind != "name":
        raise _wrong(f"Invalid comparison clause. Expected 'Identifier' found '{left.text}'")
    entity, key = _read_identifier(left.text, grammar, (*grammar.attributes, *grammar.aliases))
    sign = " ".join(comparator.text.upper().split())
    if right is _NO_VALUE:
        if entity not in grammar.nulls:
            allowed = " and ".join({"tag": "tags", "parameter": "params"}[each] for each in grammar.nulls)
            if allowed:
                raise _wrong(f"IS NULL / IS NOT NULL is only supported for {allowed}, not for '{entity}' '{key}'")
            if grammar.style == "logged models":
                raise _wrong(f"Invalid comparison: {left.text} {sign}. Expected a comparison with 3 tokens.")
            raise _wrong("Invalid comparison clause. Expected 3 tokens found 2")
        return Clause(entity, key, sign)
    comparators = grammar.comparators_of(entity, key)
    if grammar.style == "logged models" and sign not in comparators:
        # Refused before the value is read.
        raise _refuse_comparator(entity, key, sign, comparators, grammar)
    return Clause(entity, key, sign, _read_value(entity, key, right, grammar))


def _check_comparator(clause: Clause, sign: str, grammar: Grammar) -> None:
    allowed = grammar.comparators_of(clause.entity, clause.key)
    # A list is only compared with IN, and IN only with a list.
    has_list = isinstance(clause.value, tuple)
    if sign in allowed and (sign in LISTS) == has_list:
        return
    match grammar.style:
        case "runs":
            raise _wrong(f"Invalid comparator '{sign}' not one of '{_show(allowed)}'")
        case "logged models":
            raise _refuse_comparator(clause.entity, clause.key, sign, allowed, grammar)
        case _:
            is_id = clause.entity == "attribute" and clause.key in grammar.ids
            is_number = clause.entity == "attribute" and grammar.attributes[clause.key] == "number"
            what = f"attribute {clause.key}" if is_number else clause.key if is_id else clause.entity
            raise _wrong(f"Invalid comparator for {what}: {sign}. Invalid comparator '{sign}' not one of {allowed}")


def _refuse_comparator(entity: Entity, key: str, sign: str, allowed: tuple[str, ...], grammar: Grammar) -> MlflowError:
    names = {entity: word for word, entity in grammar.entities.items()}
    shown = ("<", "<=", ">", ">=", "=", "!=") if "<" in allowed else allowed
    return _wrong(f"Invalid comparison operator for {names[entity]}.{key}: {sign!r}. Expected one of {shown}.")


# Identifiers


def _read_identifier(text: str, grammar: Grammar, attributes: Sequence[str]) -> tuple[Entity, str]:
    """The entity and the key of a name with or without a dot."""
    beginning, dot, rest = text.partition(".")
    entity: Entity = "attribute"
    key = text
    if dot:
        entity, key = _find_entity(beginning.strip(), grammar), rest.strip()
    key = _unquote(key)
    if entity == "attribute":
        if key not in attributes:
            raise _wrong(f"Invalid attribute key '{key}' specified. Valid keys are '{_show(attributes)}'")
        return entity, grammar.aliases.get(key, key)
    if entity == "dataset" and key not in DATASET_KEYS:
        raise _wrong(f"Invalid dataset key '{key}' specified. Valid keys are '{_show(DATASET_KEYS)}'")
    return entity, key


def _find_entity(text: str, grammar: Grammar) -> Entity:
    word = text[1:-1] if _is_quoted(text, "`") else text
    entity = grammar.entities.get(word)
    if entity is not None:
        return entity
    known = list(grammar.entities)
    match grammar.style:
        case "runs":
            known = ["metric", "parameter", "tag", "attribute", "dataset"]
            raise _wrong(f"Invalid entity type '{word}'. Valid values are {known}")
        case "logged models":
            raise _wrong(f"Invalid entity type: {word!r}. Expected one of {known}.")
        case _:
            raise _wrong(f"Invalid entity type '{word}'. Valid entity types are {tuple(known)}")


def _unquote(key: str) -> str:
    for quote in ("'", '"', "`"):
        if _is_quoted(key, quote):
            return key[1:-1]
    return key


def _is_quoted(text: str, quote: str) -> bool:
    return len(text) >= 2 and text[0] == text[-1] == quote


# Values


def _read_value(entity: Entity, key: str, token: Token, grammar: Grammar) -> str | int | float | tuple[str, ...]:
    if entity == "metric":
        if token.kind not in ("integer", "float"):
            raise _wrong(f"Expected numeric value type for metric. Found {token.text}")
        return float(token.text)
    if entity == "attribute" and grammar.attributes[key] == "number":
        return _read_number(key, token, grammar)
    if token.kind == "list" and (entity in ("attribute", "dataset") or grammar.lists is None):
        return _read_list(entity, key, token, grammar)
    if grammar.style == "logged models" and token.kind in ("name", "integer", "float") and token.text[0] not in '"`':
        # Texts need no quotes there.
        return token.text
    if token.kind not in ("text", "name"):
        if entity == "attribute":
            if grammar.quotes_numbers and token.kind in ("integer", "float"):
                numbers = _show(name for name, kind in grammar.attributes.items() if kind == "number")
                raise _wrong(f"Only the '{numbers}' attributes support comparison with numeric values.")
            lists = " or a list of quoted string values" if grammar.style == "registry" else ""
            raise _wrong(f"Expected a quoted string value{lists} for attributes. Got value {token.text}")
        if entity == "dataset":
            raise _wrong(f"Expected a quoted string value for dataset attributes. Got value {token.text}")
        raise _wrong(f"Expected a quoted string value for {entity} (e.g. 'my-value'). Got value {token.text}")
    if not (_is_quoted(token.text, "'") or _is_quoted(token.text, '"')):
        raise _wrong(
            "Parameter value is either not quoted or unidentified quote types used for string value "
            f"{token.text}. Use either single or double quotes."
        )
    return token.text[1:-1]


def _read_number(key: str, token: Token, grammar: Grammar) -> int | float:
    if token.kind == "list" and grammar.quotes_numbers:
        raise _refuse_list(grammar)
    text = _unquote(token.text) if grammar.quotes_numbers and token.kind in ("text", "name") else token.text
    if token.kind not in ("integer", "float") and not grammar.quotes_numbers:
        raise _wrong(f"Expected numeric value type for numeric attribute: {key}. Found {token.text}")
    try:
        return int(text)
    except ValueError:
        if token.kind == "float" and not grammar.needs_integers:
            return float(text)
    raise _wrong(f"Invalid value for numeric attribute '{key}': {text!r}")


def _read_list(entity: Entity, key: str, token: Token, grammar: Grammar) -> tuple[str, ...]:
    if entity == "attribute" and grammar.lists is not None and key not in grammar.lists:
        raise _refuse_list(grammar)
    beginning = "While parsing a list in the query, expected"
    inside = split(token.text[1:-1])
    if not inside:
        raise _wrong(f"{beginning} a non-empty list of string values, but got empty list")
    if not all(each.kind in ("text", "name", "integer", "float") or each.text == "," for each in inside):
        raise _wrong(f"{beginning} a non-empty list of string values, but got ill-formed list.")
    try:
        # Texts in a list are read as Python's, so that a quote can be escaped.
        values = ast.literal_eval(token.text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise _wrong(f"{beginning} a non-empty list of string values, but got ill-formed list.") from None
    found = values if isinstance(values, tuple) else (values,)
    if not all(isinstance(value, str) for value in found):
        raise _wrong(f"{beginning} string value, punctuation, or whitespace, but got different type in list: {found}")
    return found


def _refuse_list(grammar: Grammar) -> MlflowError:
    allowed = sorted(grammar.lists or ())
    return _wrong(f"Only {allowed} attributes support comparison with a list of quoted string values.")


def _show(words: Iterable[str]) -> str:
    return "{" + ", ".join(f"'{word}'" for word in words) + "}"


def _wrong(message: str) -> MlflowError:
    return MlflowError(WRONG, message)
