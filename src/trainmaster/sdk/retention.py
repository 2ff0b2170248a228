"""Which runs of an experiment are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmaster.shared.records import RetentionRule
from trainmaster.shared.serialization import from_plain

if TYPE_CHECKING:
    from trainmaster.sdk.experiment import Experiment


@dataclass(frozen=True)
class RetentionVerdict:
    """What a rule does to a run, and why."""

    run_id: str
    is_kept: bool
    reason: str


class Retention:
    """The retention rule of an experiment, as `experiment.retention` has it.

    ```python
    experiment.retention.set("best 5 by accuracy, newest 20, tagged")
    doomed = [each.run_id for each in experiment.retention.dry_run() if not each.is_kept]
    ```
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment

    @property
    def rule(self) -> str | None:
        """Which runs are kept; None if all are."""
        found = self._call("list")
        return from_plain(RetentionRule, found[0]).rule if found else None

    def set(self, rule: str) -> str:
        """Say which runs are kept. The dispatcher deletes the others an hour after their end."""
        return from_plain(RetentionRule, self._call("set", rule=rule)).rule

    def delete(self) -> bool:
        """Keep all runs from now on. Returns whether there was a rule."""
        return bool(self._call("delete"))

    def dry_run(self, rule: str | None = None, at_once: bool = False) -> list[RetentionVerdict]:
        """What the rule, or another one, would do now. With `at_once`, runs that have just ended are not spared."""
        plan = self._call("plan", rule=rule, at_once=at_once)
        return [from_plain(RetentionVerdict, each) for each in plan["verdicts"]]

    def apply(self, at_once: bool = False) -> list[str]:
        """Delete what the rule does not keep now. Returns the ids of the deleted runs."""
        return list(self._call("apply", at_once=at_once)["run_ids"])

    def _call(self, verb: str, **arguments: Any) -> Any:
        return self._experiment.workspace.connection.call(
            f"retention.{verb}", experiment=self._experiment.name, **arguments
        )
