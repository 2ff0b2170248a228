"""A workspace in a folder of this machine: the dispatcher's socket, and files that are read where they are."""
