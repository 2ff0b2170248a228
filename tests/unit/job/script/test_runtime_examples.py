import doctest
import importlib
import pkgutil

import pytest

from trainmaster.job import script as runtime

FOUND = pkgutil.iter_modules(runtime.__path__, "trainmaster.job.script.")
MODULES = [module.name for module in FOUND if not module.ispkg]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_job_side_stays_within_python_3_6():
    """What the tests on old Pythons would find where those are installed, found everywhere: the syntax."""
    import ast
    from pathlib import Path

    for path in Path(runtime.__path__[0]).rglob("*.py"):
        ast.parse(path.read_text(), feature_version=(3, 6))
