"""The whole terminal for a view that changes: its other screen, keys, changes of its size. Left as it was found."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from types import FrameType
from typing import IO, Any

from trainmaster.shared.terminal import clean

# The other screen, no cursor, no line wrapping; and back.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
_KEY = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)
_KEYS = {"\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "page up", "\x1b[6~": "page down", "k": "up", "j": "down"}


class Ended(Exception):
    """A signal asked the program to end."""


class Terminal:
    """Draws on `output` and reads keys from `keyboard`, if that is a terminal."""

    def __init__(self, output: IO[str], keyboard: IO[str]) -> None:
        self._output: IO[str] = getattr(output, "unfiltered", output)
        self._keyboard = keyboard.fileno() if keyboard.isatty() else None
        self._modes: list[Any] | None = None
        self._pressed: list[str] = []
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Takes the terminal over, and gives it back however the block ends."""
        wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        handlers = {signal.SIGWINCH: _ignore, signal.SIGTERM: _end, signal.SIGHUP: _end, signal.SIGTSTP: self._suspend}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            self._take()
            yield
        finally:
            self._give_back()
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(wakeup)
            os.close(self._reading)
            os.close(self._writing)

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        try:
            found = os.get_terminal_size(self._output.fileno())
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24

    def draw(self, lines: list[str]) -> None:
        """Shows these lines, and nothing else."""
        # Written over what is there, so that nothing flickers.
        text = "\r\n".join(f"{clean(line)}\x1b[K" for line in lines)
        self._write(f"\x1b[H{text}\x1b[J")

    def wait(self, seconds: float) -> str | None:
        """The name of a key that was pressed, "resize" if the size may have changed, or None after `seconds`."""
        until = time.monotonic() + seconds
        while not self._pressed:
            sources = [self._reading, *([] if self._keyboard is None else [self._keyboard])]
            ready, _, _ = select.select(sources, [], [], max(0.0, until - time.monotonic()))
            if self._reading in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._reading, 4096)
                return "resize"
            if not ready:
                return None
            text = os.read(ready[0], 64).decode("utf-8", "replace")
            if not text:
                # The keyboard is gone: the view goes on without it.
                self._keyboard = None
                continue
            self._pressed = split_keys(text)
        return self._pressed.pop(0)

    def _take(self) -> None:
        if self._keyboard is not None:
            self._modes = termios.tcgetattr(self._keyboard)
            tty.setcbreak(self._keyboard)
        self._write(_ENTER)

    def _give_back(self) -> None:
        self._write(_LEAVE)
        if self._keyboard is not None and self._modes is not None:
            termios.tcsetattr(self._keyboard, termios.TCSADRAIN, self._modes)

    def _suspend(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its screen, and this view comes back with `fg`."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        # The process continues here.
        signal.signal(signal.SIGTSTP, self._suspend)
        self._take()

    def _write(self, text: str) -> None:
        encoding: str = getattr(self._output, "encoding", None) or "ascii"
        with contextlib.suppress(OSError):
            self._output.write(text.encode(encoding, "replace").decode(encoding))
            self._output.flush()


def split_keys(text: str) -> list[str]:
    """The keys in what a terminal sent.

    >>> split_keys("\\x1b[A\\x1b[6~jq")
    ['up', 'page down', 'down', 'q']
    """
    return [_KEYS.get(key, key) for key in _KEY.findall(text)]


def _ignore(number: int, frame: FrameType | None) -> None:
    return


def _end(number: int, frame: FrameType | None) -> None:
    raise Ended


def is_usable() -> bool:
    """Whether standard output is a terminal that can be drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
