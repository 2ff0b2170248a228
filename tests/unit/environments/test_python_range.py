"""Ranges of Pythons in conda files."""

from __future__ import annotations

import pytest

from trainmaster.environments.python_range import choose, is_range

ALL = [f"3.{minor}" for minor in range(14, 5, -1)]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("python>=3.6", "3.14"),
        ("python >=3.6, <3.9", "3.8"),
        ("python<=3.8", "3.8"),
        ("python<3.8.5", "3.8"),
        ("python<3.8.0", "3.7"),
        ("python>3.6,<3.7", "3.6"),
        ("python>=3.6.2,<3.7", "3.6"),
        ("python!=3.14", "3.13"),
        ("python!=3.14.0", "3.14"),
        ("python~=3.7", "3.14"),
        ("python>=3", "3.14"),
        ("python<4", "3.14"),
        ("conda-forge::python<3.7", "3.6"),
        ("python>=3.6,=3.7.*", "3.7"),
        ("python<3.6", None),
        ("python>=3.6|2.7", None),
        ("python>=3.x", None),
        ("python", None),
    ],
)
def test_the_newest_that_fits(text, chosen):
    assert choose(text, ALL) == chosen


def test_the_first_that_fits_is_taken():
    assert choose("python>=3.6", ["3.5", "3.9", "3.14"]) == "3.9"


@pytest.mark.parametrize("text", ["python-dateutil>=2", "pythonnet", "python=", "cython>=3"])
def test_other_packages(text):
    assert not is_range(text) or choose(text, ALL) is None
