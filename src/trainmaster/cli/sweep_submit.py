"""`trainmaster sweep submit`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.sweep_space import expression_in_words, range_in_words
from trainmaster.sdk.display.screen import note, note_warnings, paint, say, say_json, section, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.sdk.display.text import count_of, tags
from trainmaster.shared.job_spec import words_of

if TYPE_CHECKING:
    from trainmaster.cli.sweep_file import SweepFile
    from trainmaster.tuning.spec import SweepSpec

_SAMPLES = 5


def submit_arguments(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a YAML file that describes the sweep")
    parser.add_argument(
        "-e", "--experiment", metavar="NAME", help="default: from the file, or the name of the job's folder"
    )
    parser.add_argument("--tag", metavar="NAME=VALUE", action="append", help="a tag of the sweep (repeatable)")
    parser.add_argument(
        "-w", "--wait", "-f", "--follow", action="store_true", dest="wait",
        help="watch the sweep as 'sweep show -f' does, and exit with 0, 1 or 3 at its end",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="show the space and the first trials, and queue nothing")


def submit(options: Options) -> int:
    """Start the sweep that a YAML file describes. Prints its id when it is queued; it then runs by itself.

    The file:

      job:                        # what every trial runs, with the options of 'trainmaster submit'
        folder: .                 # relative to this file
        script: train.py
        arguments: --epochs 10
        pip: [torch]              # also: framework, target, nodes, env, ...: all keys of a job file
      space:
        --lr: loguniform(-7, -1)  # the limits are exponents of e
        --batch-size: [16, 32, 64]
      sampling: random            # or grid, bayesian, or {kind: random, seed: 7}
      policy: {kind: bandit, slack_factor: 0.1, delay_evaluation: 5}
      metric: accuracy            # what the script logs with run.log
      goal: maximize
      max_total_runs: 40
      max_concurrent_runs: 4      # also: max_duration_minutes, max_failures_in_a_row, resume_from, experiment, tags

    JSON: {"id", "experiment", "status"}; with --wait the keys of 'sweep show', at the end; with --dry-run
    {"experiment", "metric", "goal", "sampling", "seed", "policy", "total", "space", "samples": [{"parameters",
    "arguments"}], ...}.

      trainmaster sweep submit sweep.yaml --dry-run
      trainmaster sweep submit sweep.yaml --follow
    """
    from trainmaster.cli.opening import LazyWorkspace
    from trainmaster.cli.sweep_file import read_sweep_file

    with note_warnings():
        found = read_sweep_file(Path(options.file), LazyWorkspace(options.workspace))
        spec = found.config.compile({}) if options.dry_run else None
    name = options.experiment or found.experiment
    if spec is not None:
        return _show_plan(spec, name, options)
    return _send(found, name, options)


def _send(found: SweepFile, name: str, options: Options) -> int:
    from trainmaster.cli.opening import open_workspace
    from trainmaster.sdk.experiment import Experiment

    workspace = open_workspace(options.workspace)
    labels = {**found.tags, **tags(options.tag)}
    with note_warnings():
        run = Experiment(workspace, name).submit(found.config, tags=labels)
    if options.wait:
        from trainmaster.cli.sweeps import follow_to_end

        note(f"sweep {run.id}")
        return follow_to_end(workspace, run.id, options)
    if options.json:
        say_json({"id": run.id, "experiment": name, "status": run.status})
        return exits.OK
    say(run.id)
    if sys.stderr.isatty():
        note(f"It is queued. 'trainmaster sweep show -f {run.id}' follows it.")
    return exits.OK


def _show_plan(spec: SweepSpec, experiment: str, options: Options) -> int:
    from trainmaster.sdk.experiment import check_experiment_name
    from trainmaster.tuning.view import policy_in_words, sampling_in_words, total

    check_experiment_name(experiment)
    samples = list(_samples(spec))
    plan = {
        "experiment": experiment,
        "metric": spec.metric,
        "goal": str(spec.goal),
        "sampling": sampling_in_words(spec.sampling),
        "seed": None if spec.sampling.kind == "grid" else spec.sampling.seed,
        "policy": policy_in_words(spec.policy),
        "total": total(spec),
        "max_concurrent_runs": spec.max_concurrent_runs,
        "max_duration_minutes": spec.max_duration_minutes,
        "space": dict(spec.space),
        "samples": samples,
    }
    if options.json:
        say_json(plan)
        return exits.OK
    _say_plan(plan, spec)
    return exits.OK


def _samples(spec: SweepSpec) -> Iterator[dict[str, Any]]:
    from trainmaster.tuning.arguments import parameter_words
    from trainmaster.tuning.samplers import Observation, next_parameters

    drawn: list[Observation] = []
    for index in range(min(_SAMPLES, spec.max_total_runs)):
        parameters = next_parameters(spec, index, drawn)
        if parameters is None:
            return
        drawn.append(Observation(parameters))
        yield {"parameters": parameters, "arguments": list(parameter_words(parameters))}


def _say_plan(plan: dict[str, Any], spec: SweepSpec) -> None:
    job = spec.job
    section("Every trial runs", [shlex.join(words_of(job)), f"of {job.source_directory}, on {job.target}"])
    rows = [(name, expression_in_words(item), range_in_words(item)) for name, item in spec.space.items()]
    columns = (Column("PARAMETER"), Column("EXPRESSION", flexible=True), Column("VALUES", flexible=True))
    section("Space", render(columns, rows, width_of_terminal(), paint))
    minutes = count_of(spec.max_duration_minutes, "minute")
    section(
        "Sweep",
        [
            f"{plan['goal'].lower()} {spec.metric}, in experiment {plan['experiment']}",
            f"{plan['sampling']} sampling" + ("" if plan["seed"] is None else f", seed {plan['seed']}"),
            f"policy: {plan['policy']}",
            f"{count_of(plan['total'], 'trial')}, {spec.max_concurrent_runs} at once, for {minutes} at most",
        ],
    )
    section("The first trials", [shlex.join(sample["arguments"]) for sample in plan["samples"]])
    if plan["seed"] is not None:
        say(paint("Unless the file sets a seed, every submit draws other values.", "dim"))
    say(paint("This was a dry run: nothing was queued or written.", "dim"))
