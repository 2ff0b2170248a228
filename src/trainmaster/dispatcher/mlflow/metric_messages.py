"""Values of metrics as MLflow's clients read them. Histories are long, so their JSON is written at once."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from trainmaster.dispatcher.store.histories import HistoryPoint
from trainmaster.dispatcher.store.ordered_points import limit_number
from trainmaster.shared import json_text

NOT_A_NUMBER = "NaN"


def describe_number(number: float | None) -> float | str:
    """A value in an answer; None is NaN. MLflow's database has no infinite numbers.

    >>> describe_number(0.5), describe_number(None), describe_number(float("-inf"))
    (0.5, 'NaN', -1.7976931348623157e+308)
    """
    if number is None or math.isnan(number):
        return NOT_A_NUMBER
    return limit_number(number)


def write_points(
    key: str, points: Sequence[HistoryPoint], run_id: str = "", not_a_number: float | str = NOT_A_NUMBER
) -> bytes:
    """The points of one metric as JSON objects with commas between them.

    >>> write_points("loss", [(1000, 3, 0.5), (1001, 4, None)])
    b'{"key":"loss","value":0.5,"timestamp":1000,"step":3},{"key":"loss","value":"NaN","timestamp":1001,"step":4}'
    """
    largest = sys.float_info.max
    found = [
        {
            "key": key,
            "value": not_a_number
            if number is None
            else number
            if -largest <= number <= largest
            else limit_number(number),
            "timestamp": time,
            "step": step,
        }
        for time, step, number in points
    ]
    if run_id:
        found = [{**point, "run_id": run_id} for point in found]
    return json_text.write(found)[1:-1]
