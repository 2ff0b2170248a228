"""The metrics of a GPU, of whichever make. Pure."""

from trainmaster.job.agent.use.units import GB


def name_values(
    index: int,
    percent: "float | None",
    used: "float | None",
    total: "float | None",
    watts: "float | None",
    celsius: "float | None",
) -> "dict[str, float]":
    """The metrics of one GPU; `used` and `total` are in bytes, None is what its driver does not say.

    >>> name_values(0, 37.0, 1 << 30, 4 << 30, None, 61.0) == {
    ...     "gpu0_percent": 37.0, "gpu0_memory_gb": 1.0, "gpu0_memory_percent": 25.0, "gpu0_celsius": 61.0}
    True
    """
    values = {
        "percent": percent,
        "memory_gb": None if used is None else round(used / GB, 3),
        "memory_percent": round(100.0 * used / total, 1) if used is not None and total else None,
        "watts": None if watts is None else round(watts, 1),
        "celsius": celsius,
    }
    return {"gpu{}_{}".format(index, name): value for name, value in values.items() if value is not None}
