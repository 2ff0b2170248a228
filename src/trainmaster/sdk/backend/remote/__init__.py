"""A workspace on a server: the same operations, files and contents, over HTTP."""
