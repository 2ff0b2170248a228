"""Which error leads to which exit code."""

from __future__ import annotations

import pytest

from trainmaster.cli import exits
from trainmaster.cli.commands import EXIT_CODES
from trainmaster.job import errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UserErrorException("x"), 2),
        (errors.SnapshotException("x"), 2),
        (errors.EnvironmentException("x"), 2),
        (errors.ActivityFailedException("x"), 1),
        (errors.ActivityCanceledException("x"), 3),
        (errors.RunNotFoundException("x"), 4),
        (errors.ComputeTargetException("ComputeTargetNotFound: there is no compute target 'x'"), 4),
        (errors.ComputeTargetException("node_count=9 can never fit"), 2),
        (errors.ServiceException("x"), 5),
        (errors.WorkspaceException("x"), 5),
    ],
)
def test_codes(error: errors.TrainmasterError, code: int) -> None:
    assert exits.exit_code(error) == code


def test_every_code_is_documented() -> None:
    own = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert own - {exits.BROKEN_PIPE} == {code for code, _ in EXIT_CODES}
