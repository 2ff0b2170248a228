"""Pictures of a sweep: plain shapes, which are written as SVG, or as PNG by matplotlib."""

from __future__ import annotations

from typing import Literal

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.sweeps.pictures.drawing import Drawing
from trainmaster.tuning.view import SweepView

Kind = Literal["parallel", "scatter"]
KINDS: tuple[Kind, ...] = ("parallel", "scatter")


def picture(view: SweepView, kind: str = "parallel") -> Drawing:
    """`parallel`: a line for each trial through its parameters to the metric; `scatter`: each parameter by itself."""
    if kind == "parallel":
        from trainmaster.sdk.sweeps.pictures.parallel import parallel

        return parallel(view)
    if kind == "scatter":
        from trainmaster.sdk.sweeps.pictures.scatter import scatter

        return scatter(view)
    raise UserErrorException(f"unknown kind of picture: {kind!r:.60}", hint=f"Known: {', '.join(KINDS)}.")
