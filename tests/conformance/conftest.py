"""After the tests: how much of v1 is here, and what of it nobody was seen to use is not."""

from tests.conformance.test_conformance import ALL, TABLE


def pytest_terminal_summary(terminalreporter):
    members = sum(1 + len(row["members"]) for row in TABLE["classes"])
    rare = [each for each in ALL if not each.must_be_so]
    terminalreporter.section("v1 conformance")
    terminalreporter.line(f"{members} classes and members of v1; of those that nobody was seen to use, these differ:")
    for each in rare:
        terminalreporter.line(f"  {each.where}: {each.what}")
