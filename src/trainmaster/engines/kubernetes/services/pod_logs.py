"""The logs of a service's pods: their last lines, then what is added, so that no line is skipped or repeated.

The API server has no offsets. Every line has a time, to the nanosecond, so a place in a log (`LogPlace`) is the time of
its last line and the number of lines with that time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from trainmaster.engines.kubernetes.api import Api
from trainmaster.engines.kubernetes.api_errors import ApiError
from trainmaster.shared.log_texts import LogPlace, LogText

Places = dict[str, LogPlace]

_MOST_LINES = 5000
"""Of a pod that is new."""


async def read_last(api: Api, pods: Sequence[str], lines: int) -> tuple[str, Places]:
    """The last lines of each pod, one pod after the other, and where to read on."""
    # The last line says where to read on, even if nothing is to be shown.
    return await _read(api, {pod: LogPlace() for pod in pods}, max(lines, 1))


async def read_new(api: Api, pods: Sequence[str], places: Mapping[str, LogPlace]) -> tuple[str, Places]:
    """What was added since `places`, and where to read on."""
    return await _read(api, {pod: places.get(pod, LogPlace()) for pod in pods}, _MOST_LINES)


async def _read(api: Api, places: Mapping[str, LogPlace], lines: int) -> tuple[str, Places]:
    texts, found = [], dict(places)
    for pod, place in places.items():
        # A pod that has just been created has no log yet, and one that is being deleted has none any more.
        with contextlib.suppress(ApiError):
            query = {"sinceTime": round_time(place)} if place.identity else {"tailLines": lines}
            async with api.stream(f"{api.pods}/{pod}/log", timestamps="true", **query) as answer:
                new = new_lines((await answer.read()).decode(errors="replace"), place)
            found[pod] = new.next
            if new.text:
                texts.append(f"==> {pod} <==\n{new.text}")
    return "".join(texts), found


def round_time(place: LogPlace) -> str:
    """The time from which the log has to be asked for: servers know only whole seconds.

    >>> round_time(LogPlace("2027-01-15T08:00:00.123456789Z", 1))
    '2027-01-15T08:00:00Z'
    """
    return place.identity.partition(".")[0].rstrip("Z") + "Z"


def new_lines(text: str, place: LogPlace) -> LogText:
    """The complete lines after `place` in a text whose lines begin with their times, without these.

    >>> text = "2027-01-15T08:00:00.5Z one\\n2027-01-15T08:00:00.75Z two\\n"
    >>> new_lines(text, LogPlace("2027-01-15T08:00:00.5Z", 1))
    LogText(text='two\\n', next=LogPlace(identity='2027-01-15T08:00:00.75Z', start=1))
    """
    shown, last, count, seen = [], place.identity, place.start, 0
    # What follows the last end of a line is not complete yet.
    for line in text.split("\n")[:-1]:
        time, separator, words = line.partition(" ")
        if not separator or _order(time) < _order(place.identity):
            continue
        if time == place.identity and seen < place.start:
            seen += 1
            continue
        count = count + 1 if time == last else 1
        last = time
        shown.append(f"{words}\n")
    return LogText("".join(shown), LogPlace(last, count))


def _order(time: str) -> tuple[str, str]:
    """Times in UTC can be compared so, although the zeros at their ends are left out."""
    seconds, _, fraction = time.rstrip("Z").partition(".")
    return seconds, fraction.ljust(9, "0")
