"""MLflow's filter language: one parser, and a table of what can be said about each noun (`grammars`). Pure.

    clauses = parse_filter("name ILIKE '%net%' AND tags.stage = 'prod'", REGISTERED_MODELS)
    keys = parse_order("creation_timestamp DESC", REGISTERED_MODELS)

A filter is a tuple of `Clause(entity, key, comparator, value)`, of which all have to hold; an order is a
`SortKey(entity, key, descending)`. What the noun does not allow is refused with MLflow's code and message, so a clause
can be turned into SQL as it is, with `compare_text` and `compare_number` of `store/clauses.py`, which behave like
MLflow's on both databases:

    match clause:
        case Clause("attribute", "name"):
            condition = compare_text(models.c.name, clause, connection.dialect)
        case Clause("tag"):
            # A thing without the tag does not match, even with !=.
            found = select(tags.c.model_seq).where(tags.c.name == clause.key)
            condition = exists(found.where(compare_text(tags.c.value, clause, connection.dialect)))

Values are texts, except for metrics and attributes that are numbers (`Grammar.attributes`), and tuples of texts for IN
and NOT IN.
"""

from trainmaster.dispatcher.mlflow.filters.grammars import (
    EXPERIMENTS,
    LOGGED_MODELS,
    MODEL_VERSIONS,
    REGISTERED_MODELS,
    RUNS,
    Grammar,
)
from trainmaster.dispatcher.mlflow.filters.parser import parse_filter, parse_order
from trainmaster.shared.filters.clauses import Clause, SortKey

__all__ = [
    "EXPERIMENTS",
    "LOGGED_MODELS",
    "MODEL_VERSIONS",
    "REGISTERED_MODELS",
    "RUNS",
    "Clause",
    "Grammar",
    "SortKey",
    "parse_filter",
    "parse_order",
]
