"""The filter language over runs: one parser for the command line, REST and the studio (docs/guide/search.md). Pure.

condition = parse_filter("lr < 0.1 and metric.loss.min <= 0.3", now=time.time())
"""

from trainmaster.shared.filters.conditions import (
    And,
    Compare,
    Condition,
    Field,
    IsSet,
    Match,
    Not,
    OneOf,
    Or,
    Order,
    Value,
    fields_of,
)
from trainmaster.shared.filters.parser import parse_field, parse_filter, parse_order

__all__ = [
    "And",
    "Compare",
    "Condition",
    "Field",
    "IsSet",
    "Match",
    "Not",
    "OneOf",
    "Or",
    "Order",
    "Value",
    "fields_of",
    "parse_field",
    "parse_filter",
    "parse_order",
]
