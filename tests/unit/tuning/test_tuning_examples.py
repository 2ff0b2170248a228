"""The examples in the docstrings."""

import doctest
import importlib
import pkgutil

import pytest

import trainmaster.tuning

MODULES = [each.name for each in pkgutil.walk_packages(trainmaster.tuning.__path__, "trainmaster.tuning.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    assert sum(doctest.testmod(importlib.import_module(name)).attempted for name in MODULES) >= 6
