"""v1's switch for diagnostics. Trainmaster has none: it never sends anything anywhere."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_has_said_so = False


def set_diagnostics_collection(send_diagnostics: bool = True, verbosity: "Any" = None) -> None:
    """Has no effect. Outside of jobs, the first call that would switch diagnostics on prints a line."""
    global _has_said_so
    if send_diagnostics and not _has_said_so and "TRAINMASTER_RUN_ID" not in os.environ:
        _has_said_so = True
        print("Trainmaster collects and sends no diagnostics; this call has no effect.")
