"""Numbers, times and words."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.text import (
    count_of,
    duration,
    experiment_name,
    first_line,
    mask_password,
    moment,
    pairs,
    size,
    tags,
)
from trainmaster.sdk.experiment import check_experiment_name


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-1, "0.00 s"), (0, "0.00 s"), (9.999, "10.0 s"), (59.94, "59.9 s"), (59.96, "1m 00s"), (3599.6, "1h 00m")],
)
def test_durations(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0 B"), (1023, "1.0 kB"), (1024**2, "1.0 MB"), (1024**5 * 3, "3072.0 TB")]
)
def test_sizes(count: int, expected: str) -> None:
    assert size(count) == expected


def test_a_moment_is_as_short_as_it_can_be() -> None:
    now = time.mktime((2026, 5, 10, 12, 0, 0, 0, 0, -1))
    assert moment(now - 60, now) == "11:59:00"
    assert moment(now - 86400 * 3, now) == "07 May 12:00"
    assert moment(now - 86400 * 400, now).endswith("2025")


@given(st.text())
def test_every_folder_gives_a_valid_experiment(name: str) -> None:
    check_experiment_name(experiment_name(name))


def test_pairs_keep_further_equal_signs_and_the_last_wins() -> None:
    assert pairs("--env", ["A=1=2", "A=3", "B="]) == {"A": "3", "B": ""}
    assert pairs("--env", None) == {}


@pytest.mark.parametrize("word", ["A", "=1", ""])
def test_what_is_no_pair_is_refused(word: str) -> None:
    with pytest.raises(UserErrorException, match="NAME=VALUE"):
        pairs("--env", [word])


def test_a_tag_may_stand_alone() -> None:
    assert tags(["a=1", "b", "c="]) == {"a": "1", "b": None, "c": ""}
    with pytest.raises(UserErrorException):
        tags(["=1"])


@pytest.mark.parametrize(
    "address", ["https://user:pass@host/simple", "https://token@host/simple", "http://u:p@a/x http://v:q@b/y"]
)
def test_no_password_is_shown(address: str) -> None:
    shown = mask_password(address)
    assert "***@" in shown
    assert not {"pass", "token", "u:p", "v:q"} & set(shown.replace("/", "@").split("@"))


def test_counts_and_first_lines() -> None:
    assert count_of(0, "file") == "0 files"
    assert first_line("\n  \n  a cause\nmore") == "a cause"
    assert first_line("") == ""
