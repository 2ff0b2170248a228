"""The name of this machine, as other machines that share a workspace know it."""

from __future__ import annotations

import os
import re


def host_name() -> str:
    """`TRAINMASTER_HOST_NAME`, or the name of the machine: only letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^\w.-]", "-", os.environ.get("TRAINMASTER_HOST_NAME") or os.uname().nodename, flags=re.ASCII)
