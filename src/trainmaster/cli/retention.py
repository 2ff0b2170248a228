"""`trainmaster retention set`, `show`, `apply` and `delete`."""

from __future__ import annotations

from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import Listing, show_result, show_table
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import note, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, size
from trainmaster.shared.records import RetentionRule
from trainmaster.shared.serialization import from_plain


def put_arguments(parser: Parser) -> None:
    _add_experiment(parser)
    parser.add_argument("rule", metavar="RULE", help="what to keep, such as 'best 5 by accuracy, newest 20, tagged'")


def put(options: Options) -> int:
    """Say which runs of an experiment are kept. From now on the dispatcher deletes the others, an hour after their end.

    A run is kept if any part of the rule keeps it: 'newest N', 'best N by METRIC [highest|lowest]', 'tagged',
    'tagged NAME', 'tagged NAME=VALUE', 'younger than 30d'. Runs that have not ended, runs from which a model was
    registered, and runs whose models a service uses are always kept. Child runs stay with their parent.

    JSON: {"experiment", "rule", "set_at"}.

      trainmaster retention set mnist "best 5 by accuracy, newest 20, tagged"
      trainmaster retention apply mnist --dry-run
    """
    workspace = open_workspace(options.workspace)
    answer = workspace.connection.call("retention.set", experiment=options.experiment, rule=options.rule)
    rule = from_plain(RetentionRule, answer)
    text = f"Of experiment '{rule.experiment}' these runs are kept: {rule.rule}."
    return show_result(options, _as_json(rule), text)


def show_arguments(parser: Parser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", nargs="?", help="default: all that have a rule")


def show(options: Options) -> int:
    """Show the retention rules of experiments.

    JSON: a list of {"experiment", "rule", "set_at"}.

      trainmaster retention show
    """
    workspace = open_workspace(options.workspace)
    found = workspace.connection.call("retention.list", experiment=options.experiment)
    listing: Listing[RetentionRule] = Listing(
        columns=(Column("EXPERIMENT"), Column("KEEPS")),
        row=lambda rule: (rule.experiment, rule.rule),
        json=_as_json,
        empty="There is no retention rule: all runs are kept.",
    )
    return listing.show([from_plain(RetentionRule, each) for each in found], options)


def apply_arguments(parser: Parser) -> None:
    _add_experiment(parser)
    parser.add_argument("--dry-run", action="store_true", help="say what would be deleted, and why the rest is kept")
    parser.add_argument("--now", action="store_true", help="do not spare runs that ended within the last hour")
    parser.add_argument("--rule", metavar="RULE", help="with --dry-run: try another rule")


def apply(options: Options) -> int:
    """Delete the runs that the rule of an experiment does not keep, as the dispatcher does by itself.

    JSON: {"removed": [ids], "children", "bytes", "left", "dry_run": false}. With --dry-run: {"experiment", "rule",
    "remove": [ids], "keep": [{"run", "reason"}], "dry_run": true}.

      trainmaster retention apply mnist --dry-run --rule "newest 10"
    """
    if options.rule is not None and not options.dry_run:
        raise UserErrorException("--rule needs --dry-run", hint="'trainmaster retention set' sets the rule.")
    workspace = open_workspace(options.workspace)
    if options.dry_run:
        plan = workspace.connection.call(
            "retention.plan", experiment=options.experiment, rule=options.rule, at_once=options.now
        )
        return _show_plan(plan, options)
    done = workspace.connection.call("retention.apply", experiment=options.experiment, at_once=options.now)
    if options.json:
        plain = {name: done[name] for name in ("children", "bytes", "left")}
        say_json({"removed": done["run_ids"], **plain, "dry_run": False})
        return exits.OK
    for run_id in done["run_ids"]:
        say(run_id)
    for line in done["left"][:5]:
        note(f"could not be deleted: {line}", "yellow")
    freed = f", which freed {size(done['bytes'])}" if done["run_ids"] else ""
    note(f"Deleted {count_of(len(done['run_ids']), 'run')}{freed}.")
    return exits.OK


def _show_plan(plan: dict[str, Any], options: Options) -> int:
    removed = [each["run_id"] for each in plan["verdicts"] if not each["is_kept"]]
    kept = [each for each in plan["verdicts"] if each["is_kept"]]
    if options.json:
        reasons = [{"run": each["run_id"], "reason": each["reason"]} for each in kept]
        head = {"experiment": plan["experiment"], "rule": plan["rule"]}
        say_json({**head, "remove": removed, "keep": reasons, "dry_run": True})
        return exits.OK
    rows = [(each["run_id"], "keep" if each["is_kept"] else "delete", each["reason"]) for each in plan["verdicts"]]
    if rows:
        style = {"delete": "red"}
        columns = (Column("RUN"), Column("", style=lambda text: style.get(text, "")), Column("WHY", flexible=True))
        show_table(columns, rows)
    note(f"Rule: {plan['rule']}. It would delete {count_of(len(removed), 'run')} and keep {len(kept)}.")
    return exits.OK


def delete_arguments(parser: Parser) -> None:
    _add_experiment(parser)


def delete(options: Options) -> int:
    """Remove the retention rule of an experiment: from now on all its runs are kept.

    JSON: {"deleted": experiment}.

      trainmaster retention delete mnist
    """
    workspace = open_workspace(options.workspace)
    if not workspace.connection.call("retention.delete", experiment=options.experiment):
        raise UserErrorException(f"experiment '{options.experiment[:100]}' has no retention rule")
    text = f"Experiment '{options.experiment}' has no retention rule any more: all its runs are kept."
    return show_result(options, {"deleted": options.experiment}, text)


def _as_json(rule: RetentionRule) -> dict[str, Any]:
    return {"experiment": rule.experiment, "rule": rule.rule, "set_at": iso(rule.set_at)}


def _add_experiment(parser: Parser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="the experiment's name")
