"""The last lines of a log, at the same cost for a kilobyte and a terabyte."""

import os

LINES = 40
BYTES = 8192
# Progress bars write hundreds of states into one line, so more is read than kept.
READ = 65536


def tail(path: "str | bytes | os.PathLike[str]") -> str:
    """The last lines of the file as a terminal would show them: at most 40, and at most 8 KiB."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - READ))
            data = file.read(READ)
    except OSError:
        return ""
    return last_lines(data, cut=size > READ)


def last_lines(data: bytes, cut: bool, count: int = LINES, size: int = BYTES) -> str:
    """Like `tail`, for the end of a file; `cut` if `data` begins in the middle of the file."""
    # A zero byte is not text, and a database cannot store it.
    text = data.decode("utf-8", "replace").replace("\0", "\ufffd")
    lines = text.split("\n")
    if cut and len(lines) > 1:
        lines = lines[1:]
    last = [_visible_part(line) for line in lines[-count - 1 :]]
    if last and not last[-1]:
        last.pop()
    else:
        last = last[-count:]
    kept = "\n".join(last).encode("utf-8")
    if len(kept) <= size:
        return kept.decode("utf-8")
    kept = kept[-size:]
    # Whole lines, if there are any.
    first, _, rest = kept.partition(b"\n")
    return (rest or first).decode("utf-8", "ignore")


def _visible_part(line: str) -> str:
    """What a terminal shows of a line after carriage returns have overwritten it."""
    return line.rstrip("\r").rpartition("\r")[2]
