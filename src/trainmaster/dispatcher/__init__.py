"""The dispatcher: the one process that owns a workspace's store and queue and moves runs through their states."""
