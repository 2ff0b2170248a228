"""Where a workspace is: on this machine, or on a server. `backend.py` says what both offer."""
