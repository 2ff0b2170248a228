import decimal
import enum
import fractions
import math
import warnings

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.job.errors import UserErrorException
from trainmaster.job.script import values


class Colour(str, enum.Enum):  # noqa: UP042 - what scripts for old Pythons have
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Tensor:
    """As torch's: iterable by type, one value by contents."""

    shape = ()

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value

    def __iter__(self):
        raise TypeError("iteration over a 0-d tensor")


class EagerTensor:
    """As TensorFlow's: without item()."""

    shape = ()

    def numpy(self):
        return numpy.float32(0.75)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (-0.0, -0.0),
        (2**80, 2**80),
        ("text", "text"),
        ("half \ud800", "half \\ud800"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (numpy.float64(0.1), 0.1),
        (numpy.float32(0.5), 0.5),
        (numpy.int8(-3), -3),
        (numpy.uint64(2**64 - 1), 2**64 - 1),
        (numpy.bool_(True), True),
        (numpy.str_("a"), "a"),
        (numpy.longdouble(0.5), 0.5),
        (numpy.array(2.5), 2.5),
        (numpy.array([7]), 7),
        (numpy.array([[1.5]]), 1.5),
        (Tensor(0.25), 0.25),
        (EagerTensor(), 0.75),
    ],
)
def test_scalars(value, plain):
    found = values.scalar("m", value)
    assert found == plain and type(found) is type(plain)


@pytest.mark.parametrize("value", [math.nan, numpy.float64("nan"), numpy.float32("nan")])
def test_not_a_number_is_a_number(value):
    assert math.isnan(values.scalar("m", value))


@pytest.mark.parametrize("value", [[1], range(3), (n for n in ()), iter([1]), map(int, [])])
def test_several_values_belong_to_log_list(value):
    with pytest.raises(UserErrorException, match="log_list"):
        values.scalar("m", value)


@pytest.mark.parametrize(
    "value",
    [
        1j,
        b"bytes",
        {"a": 1},
        (1, 2),
        {1, 2},
        numpy.arange(3),
        numpy.array([]),
        object,
        decimal.Decimal("0.5"),
        fractions.Fraction(1, 2),
        numpy.datetime64("2020-01-01"),
        numpy.complex64(1),
        len,
    ],
)
def test_other_types_are_kept_as_text_with_a_warning(value):
    with pytest.warns(UserWarning, match="not a type of metric") as caught:
        assert values.scalar("m", value) == repr(value)
    assert caught[0].filename == __file__


def test_text_of_other_types_is_bounded():
    with pytest.warns(UserWarning):
        assert len(values.scalar("m", b"x" * 100_000)) == 10_000


def test_a_value_without_text_is_an_error():
    class Broken:
        def __repr__(self):
            raise RuntimeError("no")

    with pytest.raises(UserErrorException, match="cannot be shown"):
        values.scalar("m", Broken())


def test_a_number_too_large_to_read_back_is_an_error():
    with pytest.raises(UserErrorException, match="bits"):
        values.scalar("m", 10**5000)
    assert values.scalar("m", 10**4000) == 10**4000


@pytest.mark.parametrize("name", ["", "  ", None, 1, b"m", "x" * 256, "a\nb", "nul\0", "\ud800"])
def test_names_that_are_none(name):
    with pytest.raises(UserErrorException, match="name"):
        values.metric_name(name)


@pytest.mark.parametrize("name", ["loss", "val/acc top-5 (%)", "Verlust µ", "损失", "x" * 255, "🚂"])
def test_names(name):
    assert values.metric_name(name) == name


@pytest.mark.parametrize(
    ("given", "plain"),
    [([1, 2.5, "a", None], [1, 2.5, "a", None]), (range(2), [0, 1]), ((n for n in "ab"), ["a", "b"]), ([], [])],
)
def test_lists(given, plain):
    assert values.scalars("m", given) == plain


def test_arrays_are_lists():
    assert values.scalars("m", numpy.array([0.5, 1.5])) == [0.5, 1.5]


@pytest.mark.parametrize("given", ["text", b"x", 1, None, {"a": 1}, [[1, 2]], [numpy.arange(2)]])
def test_what_is_no_list_of_scalars(given):
    with pytest.raises(UserErrorException):
        values.scalars("m", given)


def test_rows_hold_scalars():
    assert values.row("m", {"x": numpy.int64(1), "y": None}) == {"x": 1, "y": None}
    for wrong in ({}, {"x": [1]}, {"x": (n for n in ())}):
        with pytest.raises(UserErrorException):
            values.row("m", wrong)


def test_tables_have_columns_of_one_length():
    columns = {"x": [1, 2], "y": (n for n in "ab"), "z": numpy.array([0.5, 1])}
    assert values.table("m", columns) == {"x": [1, 2], "y": ["a", "b"], "z": [0.5, 1.0]}
    assert values.table("m", {"x": 1, "name": "one"}) == {"x": [1], "name": ["one"]}
    with pytest.raises(UserErrorException, match="differ in length") as caught:
        values.table("m", {"x": [1, 2], "y": [1]})
    assert caught.value.cause == "x: 2, y: 1"


@pytest.mark.parametrize("wrong", [{}, [1], "x", None, {1: [1]}, {"x": [[1]]}, {"": [1]}])
def test_what_is_no_table(wrong):
    with pytest.raises(UserErrorException):
        values.table("m", wrong)


@pytest.mark.parametrize(("step", "plain"), [(None, None), (3, 3), (-1, -1), (numpy.int64(4), 4), (5.0, 5)])
def test_steps(step, plain):
    assert values.step_number("m", step) == plain


@pytest.mark.parametrize("step", [0.5, math.nan, math.inf, "1", [1], 1e30])
def test_what_is_no_step(step):
    with pytest.raises(UserErrorException, match="step"):
        values.step_number("m", step)


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()))
def test_plain_values_stay_what_they_are(value):
    found = values.scalar("m", value)
    assert type(found) is type(value)
    assert found == value or math.isnan(value)


@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.floats(), st.binary(), st.complex_numbers()),
        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner), st.tuples(inner)),
    )
)
def test_every_value_is_a_scalar_or_a_clear_error(value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            assert isinstance(values.scalar("m", value), (type(None), bool, int, float, str))
        except UserErrorException as error:
            assert error.hint
