"""The node agent: executes one node's part of a run and leaves no process behind.

The agent runs between `submit` and the first line of the script. It is therefore single-threaded, needs only the
standard library of Python 3.6 or newer, and imports a module only when it needs it. docs/reference/on-disk.md describes
the files that it reads and writes.

Annotations are quoted, and `typing` is imported for the type checker only: importing it would take longer than
everything else that the agent imports.
"""
