"""Names and paths that come from outside: a journal, a letter, the socket, a host, a service.

Every one of them is checked here before it becomes part of a path. Python 3.6, standard library.
"""

LONGEST_NAME = 255
"""What file systems take."""
LONGEST_RUN_ID = 230
"""For new runs: leaves room for what is put behind an id, such as the number of a trial."""
RULE = "letters, digits, dots, dashes and underscores, a letter, digit or underscore first"

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_FIRST = frozenset(_LETTERS)
_ALLOWED = frozenset(_LETTERS + "-.")


def is_plain(name, longest=LONGEST_NAME):
    """Whether `name` can be the name of one file or folder and nothing else.

    >>> [is_plain(name) for name in ("run_1", "a.b-c", "../x", "a/b", "", ".hidden", 7)]
    [True, True, False, False, False, False, False]
    """
    return isinstance(name, str) and 0 < len(name) <= longest and name[0] in _FIRST and _ALLOWED.issuperset(name)


def inner_parts(path):
    """The parts of a relative path that stays in its folder. ValueError for every other path.

    >>> inner_parts("files/outputs/model.pt")
    ['files', 'outputs', 'model.pt']
    """
    parts = path.split("/") if isinstance(path, str) else [""]
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError("{:.300} is not a relative path inside the folder".format(repr(path)))
    return parts
