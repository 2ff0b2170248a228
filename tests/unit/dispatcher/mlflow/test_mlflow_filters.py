"""MLflow's filter language: what is read, and what is refused with MLflow's words."""

from __future__ import annotations

from typing import Any

import pytest

from trainmaster.dispatcher.mlflow.errors import MlflowError
from trainmaster.dispatcher.mlflow.filters import (
    EXPERIMENTS,
    LOGGED_MODELS,
    MODEL_VERSIONS,
    REGISTERED_MODELS,
    RUNS,
    Grammar,
    parse_filter,
    parse_order,
)


@pytest.mark.parametrize(
    ("text", "entity", "key", "comparator", "value"),
    [
        ("metrics.loss<0.5", "metric", "loss", "<", 0.5),
        ("metric.loss >= -1", "metric", "loss", ">=", -1.0),
        ("metrics.a != 1e-3", "metric", "a", "!=", 0.001),
        ("metrics.val.loss = 1", "metric", "val.loss", "=", 1.0),
        ("metrics.`val loss` = 1", "metric", "val loss", "=", 1.0),
        ('metrics."val/loss-2" = 1', "metric", "val/loss-2", "=", 1.0),
        ("`metrics`.a > 1", "metric", "a", ">", 1.0),
        ("params.lr = '0.1'", "parameter", "lr", "=", "0.1"),
        ('parameters.lr = "0.1"', "parameter", "lr", "=", "0.1"),
        ('param.name = "it\'s"', "parameter", "name", "=", "it's"),
        ("parameter.lr like '0%'", "parameter", "lr", "LIKE", "0%"),
        ("params.and = 'x'", "parameter", "and", "=", "x"),
        ("params.lr IS NULL", "parameter", "lr", "IS NULL", None),
        ("tags.mlflow.source.name ILIKE '%A%'", "tag", "mlflow.source.name", "ILIKE", "%A%"),
        ("tag.`mlflow.runName` is not null", "tag", "mlflow.runName", "IS NOT NULL", None),
        ("status = 'RUNNING'", "attribute", "status", "=", "RUNNING"),
        ("run.status != 'RUNNING'", "attribute", "status", "!=", "RUNNING"),
        ("attr.`Run name` = 'a'", "attribute", "run_name", "=", "a"),
        ("Created > 5", "attribute", "start_time", ">", 5),
        ("attribute.end_time <= 1.5", "attribute", "end_time", "<=", 1.5),
        ("run_id IN ('a', \"b\")", "attribute", "run_id", "IN", ("a", "b")),
        ("attributes.run_id not in ('a')", "attribute", "run_id", "NOT IN", ("a",)),
        ("datasets.name IN ('a',)", "dataset", "name", "IN", ("a",)),
        ("dataset.context = 'train'", "dataset", "context", "=", "train"),
    ],
)
def test_clauses_about_runs_are_read(text: str, entity: str, key: str, comparator: str, value: Any) -> None:
    (clause,) = parse_filter(text, RUNS)
    assert (clause.entity, clause.key, clause.comparator, clause.value) == (entity, key, comparator, value)


def test_clauses_are_joined_by_and() -> None:
    assert [clause.key for clause in parse_filter("metrics.a > 1 and\nparams.b = 'c'AND tags.d IS NULL", RUNS)] == [
        "a",
        "b",
        "d",
    ]
    assert parse_filter("", RUNS) == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  ", "Could not be parsed"),
        ("metrics.a > 1; metrics.b < 1", "Search filter contained multiple expression"),
        ("m.acc >= 0.94", "Invalid entity type 'm'. Valid values are ['metric', 'parameter', 'tag'"),
        ("Metrics.acc >= 0.94", "Invalid entity type 'Metrics'"),
        ("acc >= 0.94", "Invalid attribute key 'acc' specified"),
        ("attribute.experiment_id = '1'", "Invalid attribute key 'experiment_id'"),
        ("metrics.a > 1 OR params.b = 'c'", "Invalid clause(s) in filter string: 'OR'"),
        ("metrics.a > 1 AND (params.b = 'c')", "Invalid clause(s) in filter string"),
        ("`metrics.A > 0.1", "Invalid clause(s) in filter string"),
        ("params.acc = 'LR", "Invalid clause(s) in filter string"),
        ("tags.acc = = 'LR'", "Invalid clause(s) in filter string"),
        ("params.acc LR", "Invalid clause(s) in filter string"),
        ("status = true", "Invalid clause(s) in filter string"),
        ("status IS 'RUNNING'", "Invalid clause(s) in filter string"),
        ("dataset.profile = 'x'", "Invalid dataset key 'profile'"),
        ("metrics.a IS NULL", "IS NULL / IS NOT NULL is only supported for tags and params, not for 'metric' 'a'"),
        ("metrics.a = '5'", "Expected numeric value type for metric. Found '5'"),
        ("metrics.a != metrics.a", "Expected numeric value type for metric"),
        ("params.a = 5", "Expected a quoted string value for parameter (e.g. 'my-value'). Got value 5"),
        ("tags.a = 5", "Expected a quoted string value for tag"),
        ("status = 1", "Expected a quoted string value for attributes. Got value 1"),
        ("start_time = '1'", "Expected numeric value type for numeric attribute: start_time. Found '1'"),
        ("params.a = x", "Parameter value is either not quoted or unidentified quote types"),
        ("params.a = `x`", "Parameter value is either not quoted or unidentified quote types"),
        ("1.0 > metrics.a", "Invalid comparison clause. Expected 'Identifier' found '1.0'"),
        ("status IN ('RUNNING')", "Only ['run_id'] attributes support comparison with a list"),
        ("run_id IN ()", "expected a non-empty list of string values, but got empty list"),
        ("run_id IN (1, 2)", "but got different type in list: (1, 2)"),
        ("run_id IN ('a', b)", "ill-formed list"),
        ("run_id IN ('a' + 'b')", "ill-formed list"),
        ("metrics.a ~ 1", "Invalid comparator '~' not one of"),
        ("params.a > 'x'", "Invalid comparator '>' not one of"),
        ("status >= 'x'", "Invalid comparator '>=' not one of"),
        ("start_time LIKE 5", "Invalid comparator 'LIKE' not one of"),
        ("datasets.name < 'x'", "Invalid comparator '<' not one of"),
        ("run_id = ('a', 'b')", "Invalid comparator '=' not one of"),
    ],
)
def test_what_cannot_be_said_about_runs_is_refused(text: str, message: str) -> None:
    _check_refusal(text, RUNS, message)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (EXPERIMENTS, "name LIKE 'a%' AND tags.x = 'y' AND creation_time > 5 AND tags.z IS NULL"),
        (EXPERIMENTS, "experiment_id IN ('1', '2') AND attribute.last_update_time != 5"),
        (REGISTERED_MODELS, "name ilike 'a%' AND tags.x = 'y' AND name IN ('a')"),
        (
            MODEL_VERSIONS,
            "name = 'a' AND version_number > 5 AND run_id IN ('a') AND source_path LIKE 'a' AND tag.a != 'b'",
        ),
        (MODEL_VERSIONS, "version_number = '5'"),
        (
            LOGGED_MODELS,
            "metrics.a > 0.5 AND params.b LIKE 'c' AND tags.d IN ('e') AND creation_time < 5 AND name = 'f'",
        ),
        (LOGGED_MODELS, "params.a = 0.5 AND name = b AND status = 2"),
    ],
)
def test_every_noun_has_its_own_keys(grammar: Grammar, text: str) -> None:
    assert len(parse_filter(text, grammar)) == text.count(" AND ") + 1


@pytest.mark.parametrize(
    ("grammar", "text", "message"),
    [
        (EXPERIMENTS, "name like 'a'", "Invalid comparator for attribute: like"),
        (EXPERIMENTS, "experiment_id LIKE '1'", "Invalid comparator for experiment_id: LIKE"),
        (EXPERIMENTS, "name = 5", "Expected a quoted string value for attributes. Got value 5"),
        (REGISTERED_MODELS, "name = 5", "Expected a quoted string value or a list of quoted string values for"),
        (EXPERIMENTS, "creation_time > 5.5", "Invalid value for numeric attribute 'creation_time': '5.5'"),
        (EXPERIMENTS, "attributes.name = 'a'", "Valid entity types are ('attribute', 'tag', 'tags')"),
        (EXPERIMENTS, "name IS NULL", "IS NULL / IS NOT NULL is only supported for tags, not for"),
        (REGISTERED_MODELS, "tags.a IS NULL", "Invalid comparison clause"),
        (REGISTERED_MODELS, "creation_timestamp > 5", "Invalid attribute key 'creation_timestamp'"),
        (REGISTERED_MODELS, "name > 'a'", "Invalid comparator for attribute: >"),
        (REGISTERED_MODELS, "tags.a > 'a'", "Invalid comparator for tag: >"),
        (MODEL_VERSIONS, "run_id = 5", "attributes support comparison with numeric values"),
        (MODEL_VERSIONS, "version_number = 'x'", "Invalid value for numeric attribute 'version_number': 'x'"),
        (MODEL_VERSIONS, "version_number LIKE '5'", "Invalid comparator for attribute version_number: LIKE"),
        (MODEL_VERSIONS, "source_path IN ('a')", "Only ['name', 'run_id'] attributes support comparison with a list"),
        (LOGGED_MODELS, "tag.a = 'b'", "Invalid entity type: 'tag'. Expected one of ['attributes', 'metrics',"),
        (LOGGED_MODELS, "params.a > 'b'", "Invalid comparison operator for params.a: '>'. Expected one of"),
        (LOGGED_MODELS, "metrics.a LIKE 'b'", "Invalid comparison operator for metrics.a: 'LIKE'. Expected one of"),
        (LOGGED_MODELS, "name = 'a'; name = 'b'", "Expected a single SQL expression."),
        (LOGGED_MODELS, "metrics.a > 1 OR metrics.b > 1", "Expected a list of comparisons separated by 'AND'"),
    ],
)
def test_what_cannot_be_said_about_other_nouns_is_refused(grammar: Grammar, text: str, message: str) -> None:
    _check_refusal(text, grammar, message)


@pytest.mark.parametrize(
    ("text", "entity", "key", "descending"),
    [
        ("metrics.a", "metric", "a", False),
        ("metrics.`a b` DESC", "metric", "a b", True),
        ('params."a b" asc', "parameter", "a b", False),
        ("tags.a desc", "tag", "a", True),
        ("start_time DESC", "attribute", "start_time", True),
        ("attributes.Created", "attribute", "start_time", False),
    ],
)
def test_orders_are_read(text: str, entity: str, key: str, descending: bool) -> None:
    found = parse_order(text, RUNS)
    assert (found.entity, found.key, found.descending) == (entity, key, descending)


@pytest.mark.parametrize(
    ("grammar", "text", "message"),
    [
        (RUNS, "", "Could not be parsed"),
        (RUNS, "metrics.a, metrics.b", "Could not be parsed"),
        (RUNS, "metrics.a up", "Invalid ordering key in order_by clause 'metrics.a up'"),
        (RUNS, "foo.a", "Invalid entity type 'foo'"),
        (RUNS, "lifecycle_stage", "Invalid attribute key 'lifecycle_stage'"),
        (RUNS, "dataset.name", "Invalid identifier type 'dataset'"),
        (EXPERIMENTS, "tags.a", "Invalid order_by entity: tag"),
        (REGISTERED_MODELS, "run_id", "Invalid attribute key 'run_id'"),
    ],
)
def test_other_orders_are_refused(grammar: Grammar, text: str, message: str) -> None:
    with pytest.raises(MlflowError) as refusal:
        parse_order(text, grammar)
    assert message in refusal.value.message


@pytest.mark.parametrize("text", ["(" * 50_000, "run_id IN (" + "(" * 20_000, "'" * 99_999, "a " * 200_000, "`" * 9999])
def test_a_hostile_filter_is_refused_at_once(text: str) -> None:
    _check_refusal(text, RUNS, "Invalid")


def _check_refusal(text: str, grammar: Grammar, message: str) -> None:
    with pytest.raises(MlflowError) as refusal:
        parse_filter(text, grammar)
    assert refusal.value.code == "INVALID_PARAMETER_VALUE"
    assert message in refusal.value.message
