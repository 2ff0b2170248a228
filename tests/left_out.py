"""Tests that this machine or this user cannot run: they are skipped, and named at the end with the reason.

CI sets TRAINMASTER_TESTS_LEAVE_OUT_NOTHING, under which a test that is left out has failed.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any, NoReturn

import pytest

EVERYTHING = "TRAINMASTER_TESTS_LEAVE_OUT_NOTHING"


def leave_out(reason: str) -> NoReturn:
    """Leaves out the test that runs now, or every test that uses the fixture that is made now."""
    pytest.skip(reason)


def require_root(purpose: str) -> None:
    """Leaves out tests that need root, for other users than root."""
    if os.geteuid() != 0:
        leave_out(f"needs root, {purpose}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    """Where nothing may be left out, a skipped test has failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(EVERYTHING):
        report.outcome = "failed"
        report.longrepr = f"left out, but {EVERYTHING} is set: {reason_of(report)}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Names the tests that were left out, by reason."""
    by_reason: dict[str, list[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        by_reason.setdefault(reason_of(report), []).append(report.nodeid)
    if not by_reason:
        return
    count = sum(len(tests) for tests in by_reason.values())
    terminalreporter.section(f"{count} tests left out on this machine, for this user", yellow=True)
    for reason, tests in sorted(by_reason.items()):
        terminalreporter.write_line(f"{len(tests)} left out: {reason}")
        for test in sorted(tests):
            terminalreporter.write_line(f"    {test}")


def reason_of(report: Any) -> str:
    """Why a test was skipped; its report has the file, the line and the reason.

    >>> class Report: longrepr = ("tests/test_a.py", 3, "Skipped: no git")
    >>> reason_of(Report)
    'no git'
    """
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")
