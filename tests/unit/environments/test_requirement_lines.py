"""Which lines of requirements are refused before anything is queued."""

from __future__ import annotations

import pytest

from trainmaster.environments.requirements_file import check_requirement
from trainmaster.job.errors import UserErrorException


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "numpy==1.26.4",
        "numpy >= 1.26 , <3",
        "numpy (>=1.26)",
        "torch===2.13.0+cpu",
        "requests[socks]~=2.0",
        "requests [socks, security] ; python_version < '3.9'",
        "colorama; sys_platform == 'win32'",
        "tool @ https://example.com/tool-1.0-py3-none-any.whl",
        "tool@git+https://example.com/tool.git@v1",
        "git+https://example.com/tool.git",
        "https://example.com/tool-1.0-py3-none-any.whl",
        "numpy==1.26.4 --hash=sha256:00",
        "--extra-index-url https://example.com/simple",
        "--pre",
    ],
)
def test_what_pip_takes(line: str) -> None:
    check_requirement("a line", line)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("numpy=1.26.4", "Write numpy==1.26.4"),
        ("numpy = 1.26.4", "Write numpy==1.26.4"),
        ("nump y==", "is not a valid requirement"),
        ("numpy 1.26", "is not a valid requirement"),
        ("numpy pandas", "is not a valid requirement"),
        ("numpy,pandas", "is not a valid requirement"),
        ("numpy==", "is not a valid requirement"),
        ("numpy>= ; python_version < '3.9'", "is not a valid requirement"),
        ("-r other.txt", "another file"),
        ("./tool", "local path"),
        ("", "has no package"),
        (" # later", "has no package"),
    ],
)
def test_slips_are_named(line: str, says: str) -> None:
    with pytest.raises(UserErrorException) as raised:
        check_requirement("a line", line)
    assert says in raised.value.message
    assert repr(line) in raised.value.message
