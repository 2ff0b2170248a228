"""The node agent: carries out a node's part of a run and leaves no process behind.

It stands between `submit` and the script's first line, so it is single-threaded, needs only the standard
library of Python 3.6 or newer, and imports the little it needs when it needs it. What it reads and writes is
in docs/reference/on-disk.md.
"""
