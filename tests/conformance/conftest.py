"""After the tests: how much of v1 is here, and what of it nobody was seen to use is not."""

from __future__ import annotations

from tests.conformance.test_conformance import ALL, TABLE


def pytest_terminal_summary(terminalreporter):
    members = sum(1 + len(row["members"]) for row in TABLE["classes"])
    rare: dict[tuple[str, str], list[str]] = {}
    for each in ALL:
        if not each.must_be_so:
            owner, _, parameter = each.where.partition("(")
            rare.setdefault((owner, each.what), []).append(parameter.rstrip(")"))
    terminalreporter.section("v1 conformance")
    terminalreporter.line(f"{members} classes and members of v1; of those that nobody was seen to use, these differ:")
    for (owner, what), parameters in rare.items():
        terminalreporter.line(f"  {owner}{_listed(parameters)}: {what}")


def _listed(parameters):
    return f"({', '.join(parameters)})" if any(parameters) else ""
