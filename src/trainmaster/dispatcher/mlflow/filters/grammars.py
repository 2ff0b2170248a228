"""What can be said about each noun: which keys, which comparators, which lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from trainmaster.shared.filters.clauses import Entity

AttributeType = Literal["text", "number"]

NUMBERS = ("=", "!=", "<", "<=", ">", ">=")
TEXTS = ("=", "!=", "LIKE", "ILIKE")
LISTS = ("IN", "NOT IN")
NULLS = ("IS NULL", "IS NOT NULL")


@dataclass(frozen=True)
class Grammar:
    """What can be said about a noun."""

    attributes: Mapping[str, AttributeType]
    """What a condition can be about."""
    orders: tuple[str, ...]
    """The attributes that things can be sorted by."""
    lists: tuple[str, ...] | None = ()
    """Attributes that can be compared with a list; None for all, and for tags and parameters too."""
    entities: Mapping[str, Entity] = field(default_factory=dict)
    """Every way to write an entity."""
    style: Literal["runs", "experiments", "registry", "logged models"] = "registry"
    """How MLflow words the errors."""
    ids: tuple[str, ...] = ()
    """Attributes that are only equal or not."""
    nulls: tuple[Entity, ...] = ()
    """Entities that may be NULL."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of attributes."""
    has_exact_case: bool = False
    """Whether comparators have to be written in capitals."""
    quotes_numbers: bool = False
    """Whether numbers may stand in quotes."""
    needs_integers: bool = False
    """Whether attributes that are numbers are only compared with whole ones."""

    def comparators_of(self, entity: Entity, key: str) -> tuple[str, ...]:
        """The comparators that a key takes."""
        if entity == "metric" or (entity == "attribute" and self.attributes.get(key) == "number"):
            return NUMBERS
        if entity == "attribute" and key in self.ids:
            return ("=", "!=", *LISTS)
        if entity in ("attribute", "dataset") or self.lists is None:
            return (*TEXTS, *LISTS)
        return (*TEXTS, *NULLS) if entity in self.nulls else TEXTS


def _freeze(**types: AttributeType) -> Mapping[str, AttributeType]:
    return MappingProxyType(types)


_ALL_ENTITIES: Mapping[str, Entity] = MappingProxyType(
    {
        "metric": "metric",
        "metrics": "metric",
        "parameter": "parameter",
        "parameters": "parameter",
        "param": "parameter",
        "params": "parameter",
        "tag": "tag",
        "tags": "tag",
        "attribute": "attribute",
        "attributes": "attribute",
        "attr": "attribute",
        "run": "attribute",
        "dataset": "dataset",
        "datasets": "dataset",
    }
)
_FEW_ENTITIES: Mapping[str, Entity] = MappingProxyType({"attribute": "attribute", "tag": "tag", "tags": "tag"})

_RUN_ALIASES = MappingProxyType(
    {
        "created": "start_time",
        "Created": "start_time",
        "run name": "run_name",
        "Run name": "run_name",
        "Run Name": "run_name",
    }
)

DATASET_KEYS = ("name", "digest", "context")

RUNS = Grammar(
    attributes=_freeze(
        run_id="text",
        run_name="text",
        user_id="text",
        status="text",
        start_time="number",
        end_time="number",
        artifact_uri="text",
    ),
    orders=("run_id", "run_name", "user_id", "status", "start_time", "end_time", "artifact_uri", "created", "Created"),
    lists=("run_id",),
    entities=_ALL_ENTITIES,
    style="runs",
    nulls=("tag", "parameter"),
    aliases=_RUN_ALIASES,
)

EXPERIMENTS = Grammar(
    attributes=_freeze(name="text", experiment_id="text", creation_time="number", last_update_time="number"),
    orders=("name", "experiment_id", "creation_time", "last_update_time"),
    lists=("experiment_id",),
    ids=("experiment_id",),
    style="experiments",
    entities=_FEW_ENTITIES,
    nulls=("tag",),
    has_exact_case=True,
    needs_integers=True,
)

REGISTERED_MODELS = Grammar(
    attributes=_freeze(name="text"),
    orders=("name", "creation_timestamp", "last_updated_timestamp"),
    lists=("name",),
    entities=_FEW_ENTITIES,
)

MODEL_VERSIONS = Grammar(
    attributes=_freeze(name="text", version_number="number", run_id="text", source_path="text"),
    orders=("name", "version_number", "creation_timestamp", "last_updated_timestamp"),
    lists=("name", "run_id"),
    entities=_FEW_ENTITIES,
    quotes_numbers=True,
    needs_integers=True,
)

LOGGED_MODELS = Grammar(
    attributes=_freeze(
        name="text",
        model_id="text",
        model_type="text",
        status="text",
        source_run_id="text",
        experiment_id="text",
        creation_timestamp="number",
        last_updated_timestamp="number",
    ),
    orders=(
        "name",
        "model_id",
        "model_type",
        "status",
        "source_run_id",
        "creation_timestamp",
        "last_updated_timestamp",
    ),
    lists=None,
    style="logged models",
    entities=MappingProxyType({"attributes": "attribute", "metrics": "metric", "params": "parameter", "tags": "tag"}),
    aliases=MappingProxyType(
        {
            "creation_time": "creation_timestamp",
            "creation_timestamp_ms": "creation_timestamp",
            "last_updated_time": "last_updated_timestamp",
            "last_updated_timestamp_ms": "last_updated_timestamp",
        }
    ),
)
