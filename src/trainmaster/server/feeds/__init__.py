"""What changes in runs and workspaces, for all clients that follow it."""
