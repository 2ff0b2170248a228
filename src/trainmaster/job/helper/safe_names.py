"""Checks names and paths from outside: from a journal, a job request, the socket, a host, or a service.

Every name and path is checked here before it becomes part of a path. Python 3.6, standard library.
"""

LONGEST_NAME = 255
"""The limit of file systems."""
LONGEST_RUN_ID = 230
"""For new runs: leaves room for suffixes of an id, such as the number of a trial."""
RULE = "letters, digits, dots, dashes and underscores, a letter, digit or underscore first"

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_FIRST = frozenset(_LETTERS)
_ALLOWED = frozenset(_LETTERS + "-.")


def is_plain(name: object, longest: int = LONGEST_NAME) -> bool:
    """Whether `name` can be the name of one file or folder and nothing else.

    >>> [is_plain(name) for name in ("run_1", "a.b-c", "../x", "a/b", "", ".hidden", 7)]
    [True, True, False, False, False, False, False]
    """
    return isinstance(name, str) and 0 < len(name) <= longest and name[0] in _FIRST and _ALLOWED.issuperset(name)


def inner_parts(path: object) -> "list[str]":
    """The parts of a relative path that stays in its folder. Raises ValueError for any other path.

    >>> inner_parts("files/outputs/model.pt")
    ['files', 'outputs', 'model.pt']
    """
    parts = path.split("/") if isinstance(path, str) else [""]
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError("{:.300} is not a relative path inside the folder".format(repr(path)))
    return parts
