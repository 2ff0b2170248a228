"""v1's switch for diagnostics. There are none here: nothing is ever sent anywhere."""

from __future__ import annotations

from typing import Any

_said = False


def set_diagnostics_collection(send_diagnostics: bool = True, verbosity: Any = None) -> None:
    """Has no effect. The first call that would switch diagnostics on says so in a line."""
    global _said
    if send_diagnostics and not _said:
        _said = True
        print("Trainmaster collects and sends no diagnostics; this call has no effect.")
