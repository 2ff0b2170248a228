"""Which files are ignored: git's ignore rules, exactly as git matches them, and some folders by default.

Git matches bytes, and so does this module. The patterns of most projects are plain names or `*.suffix`; only others
become regular expressions, because compiling those takes longer than the snapshot of a small project. The snapshot
modules use named tuples: defining a frozen dataclass takes four times as long, and submit waits for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from typing import NamedTuple

IGNORE_FILE = b".amlignore"
GIT_IGNORE_FILE = b".gitignore"

_DEFAULT_NAMES = frozenset(
    b".git .hg .svn .venv venv node_modules __pycache__ .ipynb_checkpoints .mypy_cache .ruff_cache .pytest_cache "
    b".tox .azureml azureml-logs azureml-setup .trainmaster".split()
)
# At the root they would be confused with the run's own folders.
_DEFAULT_ROOT_NAMES = frozenset((b"outputs", b"logs"))
_DEFAULT_SUFFIX = b".pyc"
_ENVIRONMENT_MARKS = frozenset((b"pyvenv.cfg", b"conda-meta"))

Matcher = Callable[[bytes, bytes], bool]
"""Takes the path relative to the ignore file, and its last part."""


class Rule(NamedTuple):
    """One line of an ignore file."""

    matches: Matcher
    negated: bool
    folders_only: bool
    names_something: bool
    """False for catch-alls such as `!*/`, which must not include `.git` again."""


class RuleSet(NamedTuple):
    """The rules of one ignore file, and of those in the folders above it."""

    rules: tuple[Rule, ...]
    """Last line first: the last one that matches decides."""
    base: bytes
    """The folder of the ignore file."""
    parent: RuleSet | None

    def deciding_rule(self, path: bytes, is_folder: bool) -> Rule | None:
        """The rule that decides about `path`, if there is one."""
        relative = path[len(self.base) + 1 :] if self.base else path
        name = relative[relative.rfind(b"/") + 1 :]
        for rule in self.rules:
            if (is_folder or not rule.folders_only) and rule.matches(relative, name):
                return rule
        return self.parent.deciding_rule(path, is_folder) if self.parent else None


class Verdict(NamedTuple):
    """Whether a file is part of the snapshot."""

    ignored: bool
    wanted: bool = False
    """Explicitly included by a `!` rule, even if it is a Python environment."""


_TAKEN = Verdict(ignored=False)
_WANTED = Verdict(ignored=False, wanted=True)
_IGNORED = Verdict(ignored=True)


def judge(rules: RuleSet | None, path: bytes, is_folder: bool) -> Verdict:
    """Decide by the rules and the defaults whether `path` is ignored."""
    rule = rules.deciding_rule(path, is_folder) if rules else None
    if rule is not None and not rule.negated:
        return _IGNORED
    if rule is not None and rule.names_something:
        return _WANTED
    return _IGNORED if _is_default(path) else _TAKEN


def is_environment(names: Set[bytes]) -> bool:
    """Whether a folder with these names is a Python environment."""
    return not _ENVIRONMENT_MARKS.isdisjoint(names)


def _is_default(path: bytes) -> bool:
    name = path[path.rfind(b"/") + 1 :]
    return name in _DEFAULT_NAMES or name.endswith(_DEFAULT_SUFFIX) or path in _DEFAULT_ROOT_NAMES


def parse_rules(text: bytes, base: bytes = b"", parent: RuleSet | None = None) -> RuleSet:
    """Parse the text of an ignore file in the folder `base`."""
    lines = text.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    parsed = [rule for line in reversed(lines) if (rule := _parse_line(line.removesuffix(b"\r"))) is not None]
    return RuleSet(tuple(parsed), base, parent)


def _parse_line(line: bytes) -> Rule | None:
    if line.startswith(b"#"):
        return None
    pattern = _without_trailing_spaces(line)
    negated = pattern.startswith(b"!")
    pattern = pattern[1:] if negated else pattern
    folders_only = pattern.endswith(b"/")
    pattern = pattern[:-1] if folders_only else pattern
    if not pattern:
        return None
    last = pattern[pattern.rfind(b"/") + 1 :]
    return Rule(_matcher(pattern), negated, folders_only, names_something=bool(last.strip(b"*?.")))


def _without_trailing_spaces(line: bytes) -> bytes:
    kept = line.rstrip(b" ")
    if kept == line:
        return line
    # Keep an escaped space, which follows an odd number of backslashes.
    backslashes = len(kept) - len(kept.rstrip(b"\\"))
    return kept + b" " if backslashes % 2 else kept


def _matcher(pattern: bytes) -> Matcher:
    if b"/" not in pattern:
        if not _has_wildcard(pattern):
            return lambda path, name: name == pattern
        if pattern[:1] == b"*" and not _has_wildcard(pattern[1:]):
            suffix = pattern[1:]
            return lambda path, name: name.endswith(suffix)
        match_name = _compile_lazily(pattern)
        return lambda path, name: match_name(name)
    anchored = pattern[1:] if pattern[:1] == b"/" else pattern
    if not _has_wildcard(anchored):
        return lambda path, name: path == anchored
    match_path = _compile_lazily(anchored)
    return lambda path, name: match_path(path)


def _has_wildcard(pattern: bytes) -> bool:
    return any(mark in pattern for mark in (b"*", b"?", b"[", b"\\"))


def _compile_lazily(pattern: bytes) -> Callable[[bytes], bool]:
    compiled: re.Pattern[bytes] | None = None

    def match(text: bytes) -> bool:
        nonlocal compiled
        if compiled is None:
            compiled = re.compile(translate(pattern), re.DOTALL)
        return compiled.fullmatch(text) is not None

    return match


_NEVER = b"(?!)"


def translate(pattern: bytes) -> bytes:
    """Translate a wildcard pattern into a regular expression for a whole path or name."""
    found = re.search(rb"[*?\[\\]", pattern)
    # Git removes the literal prefix before matching, so `a**/b` is treated like `**/b` after the prefix.
    start = position = found.start() if found else len(pattern)
    parts = [re.escape(pattern[:start])]
    while position < len(pattern):
        sign = pattern[position : position + 1]
        if sign == b"*":
            part, position = _translate_stars(pattern, position, start)
        elif sign == b"[":
            part, position = _translate_class(pattern, position + 1)
        elif sign == b"?":
            part, position = b"[^/]", position + 1
        elif sign == b"\\":
            literal = pattern[position + 1 : position + 2]
            part, position = re.escape(literal) if literal else _NEVER, position + 2
        else:
            part, position = re.escape(sign), position + 1
        parts.append(part)
    return b"".join(parts)


def _translate_stars(pattern: bytes, position: int, start: int) -> tuple[bytes, int]:
    end = position
    while pattern[end : end + 1] == b"*":
        end += 1
    after = pattern[end:]
    begins_a_part = position == start or pattern[position - 1 : position] == b"/"
    ends_a_part = not after or after.startswith((b"/", b"\\/"))
    if end - position < 2 or not (begins_a_part and ends_a_part):
        return b"[^/]*", end
    if after.startswith(b"/"):
        return b"(?:.*/)?", end + 1
    return b".*", end


_POSIX_CLASSES: dict[bytes, Callable[[bytes], bool]] = {
    b"alnum": bytes.isalnum,
    b"alpha": bytes.isalpha,
    b"blank": lambda byte: byte in b" \t",
    b"cntrl": lambda byte: byte < b" " or byte == b"\x7f",
    b"digit": bytes.isdigit,
    b"graph": lambda byte: b"!" <= byte <= b"~",
    b"lower": bytes.islower,
    b"print": lambda byte: b" " <= byte <= b"~",
    b"punct": lambda byte: b"!" <= byte <= b"~" and not byte.isalnum(),
    b"space": lambda byte: byte in b" \t\n\r\v\f",
    b"upper": bytes.isupper,
    b"xdigit": lambda byte: byte in b"0123456789abcdefABCDEF",
}


def _translate_class(pattern: bytes, position: int) -> tuple[bytes, int]:
    """Translate the class after `[`. A malformed or unclosed class matches nothing, as in git."""
    negated = pattern[position : position + 1] in (b"!", b"^")
    read = _read_class(pattern, position + negated)
    if read is None:
        return _NEVER, len(pattern)
    members, position = read
    allowed = (set(range(256)) - members if negated else members) - {ord("/")}
    if not allowed:
        return _NEVER, position
    return b"[" + b"".join(b"\\x%02x" % code for code in sorted(allowed)) + b"]", position


def _read_class(pattern: bytes, position: int) -> tuple[set[int], int] | None:
    """Read the members of a class and its end; a `]` at the start is a member."""
    members: set[int] = set()
    previous: int | None = None
    begin = position
    while position == begin or pattern[position : position + 1] != b"]":
        if position >= len(pattern):
            return None
        end = pattern.find(b"]", position + 2)
        if pattern[position : position + 2] == b"[:" and (end < 0 or pattern[position + 2 : end].endswith(b":")):
            test = _POSIX_CLASSES.get(pattern[position + 2 : end - 1]) if end >= 0 else None
            if test is None:
                return None
            members.update(code for code in range(128) if test(bytes((code,))))
            previous, position = None, end + 1
            continue
        is_range = previous is not None and pattern[position : position + 1] == b"-"
        is_range = is_range and pattern[position + 1 : position + 2] not in (b"", b"]")
        literal, position = _class_literal(pattern, position + is_range)
        if literal is None:
            return None
        members.update(range(previous, literal + 1) if is_range and previous is not None else (literal,))
        previous = None if is_range else literal
    return members, position + 1


def _class_literal(pattern: bytes, position: int) -> tuple[int | None, int]:
    if pattern[position] == ord("\\"):
        position += 1
    return (pattern[position], position + 1) if position < len(pattern) else (None, position)
