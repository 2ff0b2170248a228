"""How often to measure. Pure."""

# Measuring never takes more than this share of a core; the goal is half a percent.
BUDGET = 0.003
FIRST_SECONDS = 2.0
_SAMPLES_AT_FULL_RATE = 300
_LONGEST_SECONDS = 60.0
_FEW_RANKS = 8
_MOST_STRETCH = 5.0


def next_interval(elapsed: float, cost: float, ranks: int, wanted: "float | None" = None) -> float:
    """Seconds until the next measurement, `elapsed` seconds after the first, if one takes `cost` seconds of a core.

    It grows with the age of the run, so that a week has some ten thousand measurements and not 300,000. Many ranks are
    measured less often still. `wanted` is an interval that the user chose.

    >>> next_interval(10, 0.001, 1), next_interval(3600, 0.001, 1), next_interval(604800, 0.001, 64)
    (2.0, 12.0, 300.0)
    >>> next_interval(10, 0.03, 1)
    10.0
    >>> next_interval(3600, 0.001, 1, wanted=1.0)
    1.0
    """
    affordable = cost / BUDGET
    if wanted is not None:
        return max(wanted, affordable)
    longest = _LONGEST_SECONDS * min(max(1.0, ranks / _FEW_RANKS), _MOST_STRETCH)
    return max(FIRST_SECONDS, min(elapsed / _SAMPLES_AT_FULL_RATE, longest), affordable)
