"""Which versions of client and server work together: those that differ by at most one minor version."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainmaster import __version__
from trainmaster.job.errors import ServiceException
from trainmaster.sdk.backend.remote.address import ServerAddress

HEADER = "x-trainmaster-version"

_VERSION = re.compile(r"(\d+)\.(\d+)")


def check_version(address: ServerAddress, headers: Mapping[str, str]) -> None:
    """Refuses a server whose version is too far from ours. An answer without a version is from something else."""
    theirs = headers.get(HEADER)
    if theirs is not None and not fits(theirs, __version__):
        raise ServiceException(
            f"{address} runs Trainmaster {theirs}, and this is Trainmaster {__version__}",
            cause="Client and server may differ by one minor version.",
            hint=f"Install a Trainmaster that fits: pip install 'trainmaster~={_minor(theirs)}'.",
        )


def fits(theirs: str, ours: str) -> bool:
    """Whether two versions work together.

    >>> fits("0.9.1", "0.10.0"), fits("0.9.1", "0.11.0"), fits("1.0.0", "0.9.0")
    (True, False, False)
    """
    one, other = _VERSION.match(theirs), _VERSION.match(ours)
    if one is None or other is None:
        return False
    return one[1] == other[1] and abs(int(one[2]) - int(other[2])) <= 1


def _minor(version: str) -> str:
    found = _VERSION.match(version)
    return f"{found[1]}.{found[2]}.0" if found else version
