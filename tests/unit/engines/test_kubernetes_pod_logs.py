"""What is new in the log of a pod, from the times of its lines."""

from __future__ import annotations

import pytest

from trainmaster.engines.kubernetes.services.pod_logs import new_lines, round_time
from trainmaster.shared.log_texts import LogPlace

AT = "2027-01-15T08:00:0"
TEXT = f"{AT}0.1Z one\n{AT}0.25Z two\n{AT}0.25Z three\n{AT}1Z \n{AT}1.000000001Z five and six\n"


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (LogPlace(), "one\ntwo\nthree\n\nfive and six\n"),
        (LogPlace(f"{AT}0.1Z", 1), "two\nthree\n\nfive and six\n"),
        # Of two lines with the same time, one was shown.
        (LogPlace(f"{AT}0.25Z", 1), "three\n\nfive and six\n"),
        (LogPlace(f"{AT}0.25Z", 2), "\nfive and six\n"),
        (LogPlace(f"{AT}0.9Z", 1), "\nfive and six\n"),
        (LogPlace(f"{AT}1Z", 1), "five and six\n"),
        (LogPlace(f"{AT}1.000000001Z", 1), ""),
    ],
)
def test_new_lines(place, text):
    found = new_lines(TEXT, place)
    assert found.text == text
    assert found.next == LogPlace(f"{AT}1.000000001Z", 1)


def test_half_a_line_is_left_to_the_next_time():
    first = new_lines(f"{AT}0.1Z one\n{AT}0.2Z tw", LogPlace())
    assert (first.text, first.next) == ("one\n", LogPlace(f"{AT}0.1Z", 1))
    assert new_lines(f"{AT}0.1Z one\n{AT}0.2Z two\n", first.next).text == "two\n"


def test_lines_are_counted_over_several_reads():
    """Lines with the same time may come one after the other."""
    place, shown = LogPlace(), ""
    for count in range(4):
        found = new_lines(f"{AT}0.5Z same\n" * count, place)
        place, shown = found.next, shown + found.text
    assert (place, shown) == (LogPlace(f"{AT}0.5Z", 3), "same\n" * 3)


def test_a_log_without_new_lines_keeps_its_place():
    assert new_lines("", LogPlace(f"{AT}0.5Z", 2)).next == LogPlace(f"{AT}0.5Z", 2)


@pytest.mark.parametrize("time", [f"{AT}0Z", f"{AT}0.1Z", f"{AT}0.999999999Z"])
def test_servers_know_whole_seconds(time):
    assert round_time(LogPlace(time, 1)) == f"{AT}0Z"
