"""The examples in the docstrings, and the names of the package."""

import doctest
import importlib
import pkgutil

import pytest

import trainmaster.tuning
from trainmaster.sdk import sweeps

MODULES = [each.name for each in pkgutil.walk_packages(trainmaster.tuning.__path__, "trainmaster.tuning.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) >= 6


@pytest.mark.parametrize("name", sorted(sweeps._HOMES))
def test_every_name_has_its_home(name):
    assert getattr(sweeps, name).__name__ == name


def test_no_other_names():
    with pytest.raises(AttributeError, match="nothing"):
        _ = sweeps.nothing
