"""What a terminal is shown of a script's output: colours, and no other control."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.shared.terminal import Filter, SafeStream, clean

RED, PLAIN = "\x1b[31m", "\x1b[0m"


@pytest.mark.parametrize(
    "text",
    [
        "plain\n",
        "\ttabs\r\nand 50 %\r100 %\n",
        "grüße 🚀 日本",
        f"{RED}red{PLAIN}",
        "\x1b[1;38;2;1;2;3m\x1b[38:5:4m\x1b[m",
    ],
)
def test_texts_and_colours_pass(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    "attack",
    [
        *(
            "\x1b]0;title\x07",
            "\x1b]2;title\x1b\\",
            "\x1b]52;c;aGk=\x07",
            "\x1b]8;;http://x\x1b\\",
            "\x1b]1337;File=x\x9c",
        ),
        *("\x1b[2J", "\x1b[H", "\x1b[10A", "\x1b[1;1f", "\x1b[?1049h", "\x1b[?25l", "\x1b[6n", "\x1b[5i", "\x1b[!p"),
        *(
            "\x1b[>4;1m",
            "\x1b[?1m",
            "\x1b[ m",
            "\x1b[1 q",
            "\x1bc",
            "\x1b7",
            "\x1b8",
            "\x1b(0",
            "\x1b#8",
            "\x1bM",
            "\x1bD",
        ),
        *("\x1bP+q544e\x1b\\", "\x1b_Gi=1;x\x1b\\", "\x1b^pm\x1b\\", "\x1bXsos\x1b\\", "\x1bPq\x18"),
        *("\x9b2J", "\x9d0;title\x07", "\x90q\x9c", "\x85", "\x84", "\x8d", "\x9c"),
        *("\x07", "\x08", "\x0b", "\x0c", "\x0e", "\x0f", "\x00", "\x7f", "\x05", "\x1b"),
    ],
)
def test_every_other_control_is_dropped(attack: str) -> None:
    whole = f"a{attack}{RED}b{PLAIN}\n"
    wanted = f"a{RED}b{PLAIN}\n"
    assert clean(whole) == wanted
    # Also where it comes in two pieces, or letter by letter.
    for cut in range(len(whole) + 1):
        screen = Filter()
        assert screen.pass_on(whole[:cut]) + screen.pass_on(whole[cut:]) == wanted, cut
    letters = Filter()
    assert "".join(map(letters.pass_on, whole)) == wanted


def test_a_colour_of_one_letter_is_told_in_two() -> None:
    assert clean("\x9b31mred") == f"{RED}red"


def test_a_string_without_an_end_takes_no_more_than_its_line() -> None:
    screen = Filter()
    assert screen.pass_on("a\x1b]0;") == "a"
    for _ in range(100):
        assert screen.pass_on("x" * 1000) == ""
    assert len(screen._begun) < 5000
    assert screen.pass_on("x\nnext line\n") == "\nnext line\n"


@given(st.lists(st.text(st.sampled_from("\x1b\x9b\x9d[]m0;5?A\x07\\\n\rxP\x9c\x18(")), max_size=6))
def test_whatever_comes_nothing_but_colours_and_lines_gets_through(pieces: list[str]) -> None:
    screen = Filter()
    shown = "".join(map(screen.pass_on, pieces))
    rest = shown
    while (start := rest.find("\x1b")) >= 0:
        assert rest[start + 1 : start + 2] == "[", shown
        end = rest.index("m", start)
        assert set(rest[start + 2 : end]) <= set("0123456789;:"), shown
        rest = rest[:start] + rest[end + 1 :]
    assert all(letter in "\n\r\t" or letter.isprintable() for letter in rest), shown


def test_a_stream_remembers_what_was_begun() -> None:
    below = io.StringIO()
    stream = SafeStream(below)
    for piece in ("title \x1b]0;", "evil", "\x07gone", "\x1b", "[31", "mred\n"):
        assert stream.write(piece) == len(piece)
    stream.writelines(["\x1b[2J", "end\n"])
    stream.flush()
    assert below.getvalue() == "title gone\x1b[31mred\nend\n"
    assert not stream.isatty()
