"""Values of metrics as MLflow's clients read them. Histories are long, so their JSON is put together as text."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from trainmaster.dispatcher.store.histories import HistoryPoint
from trainmaster.dispatcher.store.ordered_points import limit_number

NOT_A_NUMBER = "NaN"


def describe_number(number: float | None) -> float | str:
    """A value in an answer; None is NaN. MLflow's database has no infinite numbers.

    >>> describe_number(0.5), describe_number(None), describe_number(float("-inf"))
    (0.5, 'NaN', -1.7976931348623157e+308)
    """
    if number is None or math.isnan(number):
        return NOT_A_NUMBER
    return limit_number(number)


def write_points(key: str, points: Sequence[HistoryPoint], run_id: str = "", not_a_number: str = '"NaN"') -> str:
    """The points of one metric as JSON objects with commas between them.

    >>> write_points("loss", [(1000, 3, 0.5), (1001, 4, None)])
    '{"key": "loss", "value": 0.5, "timestamp": 1000, "step": 3}, \
{"key": "loss", "value": "NaN", "timestamp": 1001, "step": 4}'
    """
    start, middle = f'{{"key": {json.dumps(key)}, "value": ', ', "timestamp": '
    end = f', "run_id": {json.dumps(run_id)}}}' if run_id else "}"
    return ", ".join(
        [
            f'{start}{not_a_number if number is None else _write_number(number)}{middle}{time}, "step": {step}{end}'
            for time, step, number in points
        ]
    )


def _write_number(number: float) -> str:
    return repr(number if -math.inf < number < math.inf else limit_number(number))
