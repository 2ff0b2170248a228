"""`trainmaster server`: workspaces for a team, over HTTP. It holds no state of runs; dispatchers do."""
