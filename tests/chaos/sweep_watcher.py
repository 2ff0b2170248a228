"""Waits for the sweep of the storm. It may be killed at any moment."""

import sys
from pathlib import Path

from trainmaster import Workspace

Workspace(path=Path(sys.argv[1])).get_run(sys.argv[4]).wait_for_completion(raise_on_error=False)
