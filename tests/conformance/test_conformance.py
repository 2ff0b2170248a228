"""Our names, parameters, defaults and class trees against the table of v1's.

What v1's users use ([seed] and [core] in the table) must be as in v1; what nobody was seen to use is only reported.
"""

from __future__ import annotations

import ast
from importlib import import_module

import pytest

from tests.conformance import checking
from tests.conformance.checking import TABLE, class_findings, function_findings, is_same
from tests.conformance.known import DIFFERENCES
from trainmaster import Environment, RunConfiguration

ALL = [
    *(finding for row in TABLE["classes"] for finding in class_findings(row)),
    *(finding for row in TABLE["functions"] for finding in function_findings(row)),
]


def test_the_table_is_whole():
    """A table that lost its rows would make every test below pass."""
    assert len(TABLE["classes"]) > 60 and sum(len(row["members"]) for row in TABLE["classes"]) > 400
    assert sum(len(names) for names in TABLE["imports"].values()) > 90


@pytest.mark.parametrize(
    ("module", "names"), [pytest.param(module, names, id=module) for module, names in TABLE["imports"].items()]
)
def test_imports(module, names):
    loaded = import_module(module)
    assert not [name for name in names if not hasattr(loaded, name)]


@pytest.mark.parametrize("row", [pytest.param(row, id=row["path"]) for row in (*TABLE["classes"], *TABLE["functions"])])
def test_names_parameters_and_defaults(row):
    findings = [each for each in ALL if each.where.startswith(row["path"]) and _is_of(each.where, row["path"])]
    wrong = [each for each in findings if each.must_be_so and each.where not in DIFFERENCES]
    assert not wrong, "\n".join(f"{each.where}: {each.what} [{each.use}]" for each in wrong)


def _is_of(where: str, path: str) -> bool:
    return where[len(path) : len(path) + 1] in ("", ".", "(")


def test_no_difference_is_listed_that_is_none():
    assert set(DIFFERENCES) <= {each.where for each in ALL}


@pytest.mark.parametrize(("name", "base"), TABLE["exceptions"].items())
def test_exceptions(name, base):
    home = "azureml.train.hyperdrive.exceptions" if name.startswith("HyperDrive") else "azureml.exceptions"
    found = checking.found_at(f"{home}.{name}")
    above = Exception if base == "Exception" else checking.found_at(f"azureml.exceptions.{base}")
    assert issubclass(found, above)
    error = found("what", inner_exception=ValueError("why"))
    assert error.message == "what" and isinstance(error.inner_exception, ValueError)


@pytest.mark.parametrize(
    ("path", "field", "text"),
    [(path, field, text) for path, fields in TABLE["fields"].items() for field, text in fields.items()],
)
def test_fields(path, field, text):
    value = RunConfiguration() if path.endswith("RunConfiguration") else Environment("any")
    for part in field.split("."):
        value = getattr(value, part)
    assert text is None or is_same(value, ast.literal_eval(text))
