"""The filter language: what each text means, and what is said about a text that means nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.job.errors import UserErrorException
from trainmaster.shared.filters import (
    And,
    Compare,
    Field,
    IsSet,
    Match,
    Not,
    OneOf,
    Or,
    Value,
    parse_field,
    parse_filter,
    parse_order,
)

NOW = 1_800_000_000.0
LR = Field("argument", "lr")
LOSS = Field("metric", "loss", "last")
KIND = Field("tag", "kind")
STATUS = Field("column", "status")
CREATED = Field("column", "created")
NAME = Field("column", "name")
DAY = 1793491200.0


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("", And()),
        ("lr < 0.1", Compare(LR, "<", Value("0.1", 0.1))),
        ("lr<0.1", Compare(LR, "<", Value("0.1", 0.1))),
        ("arg.lr = -1e-3", Compare(LR, "=", Value("-1e-3", -0.001))),
        ('lr = "0.1"', Compare(LR, "=", Value("0.1"))),
        ("lr == abc", Compare(LR, "=", Value("abc"))),
        ("batch-size <> 3", Compare(Field("argument", "batch_size"), "!=", Value("3", 3.0))),
        ("model.depth >= 3", Compare(Field("argument", "model.depth"), ">=", Value("3", 3.0))),
        ('"status" = 3', Compare(Field("argument", "status"), "=", Value("3", 3.0))),
        ("metric.loss > 1", Compare(LOSS, ">", Value("1", 1.0))),
        ("metrics.val.loss.MIN > 1", Compare(Field("metric", "val.loss", "min"), ">", Value("1", 1.0))),
        ('metric."a b".max > 1', Compare(Field("metric", "a b", "max"), ">", Value("1", 1.0))),
        ('metric.loss."min" > 1', Compare(Field("metric", "loss.min", "last"), ">", Value("1", 1.0))),
        ("metric.min > 1", Compare(Field("metric", "min", "last"), ">", Value("1", 1.0))),
        ("metric.train/loss.count > 1", Compare(Field("metric", "train/loss", "count"), ">", Value("1", 1.0))),
        ("tag.kind = base", Compare(KIND, "=", Value("base"))),
        ("property.azureml.git.commit ~ abc*", Match(Field("property", "azureml.git.commit"), "abc*")),
        ("tag.kind is set", IsSet(KIND)),
        ("tag.kind IS NOT SET", Not(IsSet(KIND))),
        ("not lr = 1", Not(Compare(LR, "=", Value("1", 1.0)))),
        ("status = failed", OneOf(STATUS, (Value("Failed"),))),
        ("status in (Failed, Cancelled)", OneOf(STATUS, (Value("Failed"), Value("Canceled")))),
        ("status = ended", OneOf(STATUS, (Value("Canceled"), Value("Completed"), Value("Failed")))),
        ("status != Failed", Not(OneOf(STATUS, (Value("Failed"),)))),
        ("lr in (1, x)", OneOf(LR, (Value("1", 1.0), Value("x")))),
        ("lr not in (1)", And((IsSet(LR), Not(OneOf(LR, (Value("1", 1.0),)))))),
        ('name ~ "debug*"', Match(NAME, "debug*")),
        ("name ~* debug?", Match(NAME, "debug?", ignores_case=True)),
        ("name !~ debug*", And((IsSet(NAME), Not(Match(NAME, "debug*"))))),
        ("number > 3", Compare(Field("column", "number"), ">", Value("3", 3.0))),
        ("name = 3", Compare(NAME, "=", Value("3"))),
        ("created > 2026-11-01", Compare(CREATED, ">=", Value("2026-11-01", DAY + 86400))),
        ("created >= 2026-11-01", Compare(CREATED, ">=", Value("2026-11-01", DAY))),
        ("created_at < 2026-11-01", Compare(CREATED, "<", Value("2026-11-01", DAY))),
        (
            "created = 2026-11-01",
            And(
                (
                    Compare(CREATED, ">=", Value("2026-11-01", DAY)),
                    Compare(CREATED, "<", Value("2026-11-01", DAY + 86400)),
                )
            ),
        ),
        ("created > 2026-11-01T00:00:01Z", Compare(CREATED, ">", Value("2026-11-01T00:00:01Z", DAY + 1))),
        ("created > '2026-11-01 01:00+01:00'", Compare(CREATED, ">", Value("2026-11-01 01:00+01:00", DAY))),
        ("ended > -2h", Compare(Field("column", "ended"), ">", Value("-2h", NOW - 7200))),
        (
            "lr < 1 and tag.kind = a or not (lr > 2)",
            Or(
                (
                    And((Compare(LR, "<", Value("1", 1.0)), Compare(KIND, "=", Value("a")))),
                    Not(Compare(LR, ">", Value("2", 2.0))),
                )
            ),
        ),
        (r'name = "say \"x\""', Compare(NAME, "=", Value('say "x"'))),
    ],
)
def test_what_a_filter_means(text, condition):
    assert parse_filter(text, NOW) == condition


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("lr <", 5, "expected a value, not the end"),
        ("lr < < 1", 6, "expected a value"),
        ("lr", 3, "expected a comparison"),
        ("lr < 1 ant lr > 2", 8, "'and'"),
        ("(lr < 1", 1, "not closed"),
        ("lr < 1)", 7, "expected 'and' or 'or'"),
        ('name = "x', 8, "quote is not closed"),
        ("staus = Failed", 1, "Did you mean 'status'? An argument of this name is written as arg.staus"),
        ("metrik.loss < 1", 1, "Did you mean 'metric'"),
        ("metric < 1", 1, "metric.NAME"),
        ("metric. < 1", 1, "metric.NAME"),
        ("metric..a < 1", 1, "not complete"),
        ("status = Faild", 10, "Did you mean 'Failed'"),
        ("status > Failed", 10, "not larger"),
        ("metric.loss = good", 15, "compared with a number"),
        ("metric.loss ~ 1*", 13, "not a text"),
        ("created > tomorow", 11, "compared with a time"),
        ("lr in 1", 7, "expected '('"),
        ("lr in (1 2)", 10, "expected ',' or ')'"),
        ("lr is null", 7, "expected 'set'"),
        ("and lr < 1", 1, "name of a field"),
        ("lr ! 1", 4, "no meaning"),
        ("(" * 60 + "lr < 1" + ")" * 60, 52, "more than 50 brackets"),
        ("not " * 60 + "lr < 1", 205, "more than 50 brackets"),
        (" or ".join(["lr < 1"] * 201), 2001, "more than 200 conditions"),
        ("lr in (" + ", ".join(["1"] * 501) + ")", 8, "more than 500 values"),
        ("x" * 10_001, 10_001, "10000 are allowed"),
    ],
)
def test_what_is_said_about_a_wrong_filter(text, position, words):
    with pytest.raises(UserErrorException) as raised:
        parse_filter(text, NOW)
    message = str(raised.value)
    assert f"(position {position})" in message and words in message


def test_the_position_is_marked_below_the_text():
    with pytest.raises(UserErrorException) as raised:
        parse_filter("lr < 1 ant x = 2", NOW)
    assert raised.value.cause == "lr < 1 ant x = 2\n       ^"


def test_an_order_has_a_direction():
    assert (parse_order("metric.loss.min").field, parse_order("lr DESC").descending) == (
        Field("metric", "loss", "min"),
        True,
    )
    with pytest.raises(UserErrorException, match="'asc' or 'desc'"):
        parse_order("lr down")
    with pytest.raises(UserErrorException, match="name of a field"):
        parse_field("")


@given(st.text(alphabet="lr.<>=~!()\"'\\ ,andoritsemc0123-*?", max_size=60))
def test_any_text_is_read_or_refused_with_a_position(text):
    try:
        parse_filter(text, NOW)
    except UserErrorException as error:
        assert "(position " in str(error)
