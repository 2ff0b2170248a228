"""`trainmaster models list`, `show`, `register`, `download`, `delete`, `verify` and `tag`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException, WebserviceException
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.sdk.display.text import count_of, moment, pairs, size, tags
from trainmaster.shared.serialization import to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.models import Model
    from trainmaster.sdk.workspace.workspace import Workspace

_COLUMNS = (
    Column("MODEL", style=lambda text: "bold"),
    Column("VERSION", right=True),
    Column("FRAMEWORK"),
    Column("SIZE", right=True),
    Column("REGISTERED"),
    Column("RUN", flexible=True),
    Column("TAGS", flexible=True),
)
_MOST_FILES = 20


def listing_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="all versions of this one; else the newest of each")
    parser.add_argument("--all", action="store_true", dest="all_versions", help="all versions of all")
    parser.add_argument("--run", metavar="RUN", help="only models of this run")
    parser.add_argument("--tag", metavar="NAME[=VALUE]", action="append", help="only models with this tag")


def listing(options: Options) -> int:
    """The registered models, newest first. JSON: a list of {"id", "name", "version", "description", "tags",
    "properties", "framework", "framework_version", "run_id", "experiment", "lineage", "datasets", "resources", "facts",
    "entry", "file_count", "byte_count", "created_by", "created_at"}.
    """
    from trainmaster.sdk.models import Model

    workspace = open_workspace(options.workspace)
    run_id = find_run(workspace, options.run).id if options.run else None
    latest = not (options.all_versions or options.name)
    models = Model.list(workspace, options.name, tags(options.tag), run_id=run_id, latest=latest)
    if options.json:
        say_json([as_json(model) for model in models])
    elif not models:
        note("There is none; run.register_model(name, path) or 'trainmaster models register' makes one.")
    else:
        for line in render(_COLUMNS, [_row(model) for model in models], width_of_terminal(), paint):
            say(line)
    return exits.OK


def show_arguments(parser: Parser) -> None:
    _add_model(parser)


def show(options: Options) -> int:
    """One model: where it comes from and what it consists of. JSON: the keys of `models list`, and "files", a list of
    {"path", "digest" (SHA-256), "size", "executable"}.
    """
    model = find_model(open_workspace(options.workspace), options.model)
    files = model.manifest().files
    if options.json:
        say_json({**as_json(model), "files": to_plain(files)})
        return exits.OK
    say(f"{model.name}, version {model.version}")
    if model.description:
        say(model.description)
    for what, text in _facts(model):
        if text:
            say(f"{what:<12}{text}")
    say(f"{'Files':<12}{len(files)}, {size(sum(file.size for file in files))}")
    for file in files[:_MOST_FILES]:
        say(f"  {file.path}")
    if len(files) > _MOST_FILES:
        say(f"  and {len(files) - _MOST_FILES} more")
    return exits.OK


def _facts(model: Model) -> list[tuple[str, str]]:
    record = model._record
    framework = " ".join(filter(None, (model.model_framework, model.model_framework_version)))
    known = [f"{each.purpose}: {each.dataset_id}" for each in record.datasets]
    return [
        ("Registered", f"{moment(record.created_at, time.time())} by {model.created_by}"),
        ("Framework", framework),
        ("Run", f"{model.run_id} of experiment {model.experiment_name}" if model.run_id else ""),
        ("Snapshot", str(model.lineage.get("snapshot_id", ""))),
        ("Environment", str(model.lineage.get("environment", ""))),
        ("Data", ", ".join([*model.lineage.get("data", ()), *known])),
        ("Tags", _pairs(model.tags)),
        ("Properties", _pairs(model.properties)),
        *_ends(model.facts),
        ("Facts", ", ".join(name for name in model.facts if name not in ("inputs", "outputs", "parity"))),
    ]


def _ends(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Inputs, outputs, and how near a conversion comes, where they are known in that form."""
    from trainmaster.job.onnx import Parity, Tensor

    try:
        lines = [
            (what[:-1].capitalize(), str(Tensor(**each))) for what in ("inputs", "outputs") for each in facts[what]
        ]
        return [*lines, ("Parity", str(Parity(**facts["parity"])))] if "parity" in facts else lines
    except (KeyError, TypeError):
        # Anybody may keep facts under any name.
        return []


def register_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the model's name; its next version if there is one")
    parser.add_argument("path", metavar="PATH", help="a file or folder; with --run one of the run's files")
    parser.add_argument("--run", metavar="RUN", help="take it from the files of this run")
    parser.add_argument("--tag", metavar="NAME=VALUE", action="append", help="a label; may be repeated")
    parser.add_argument("--property", metavar="NAME=VALUE", action="append", help="a pair that never changes")
    parser.add_argument("--description", metavar="TEXT")
    parser.add_argument("--framework", metavar="NAME", help="such as PyTorch, Onnx, ScikitLearn")
    parser.add_argument("--framework-version", metavar="VERSION")


def register(options: Options) -> int:
    """Keep a file or a folder as a model. JSON: the model, as in `models list`."""
    from trainmaster.sdk.models import Model

    workspace = open_workspace(options.workspace)
    said: dict[str, Any] = {
        "tags": pairs("--tag", options.tag),
        "properties": pairs("--property", options.property),
        "description": options.description,
        "model_framework": options.framework,
        "model_framework_version": options.framework_version,
    }
    if options.run:
        from trainmaster.sdk.run.run import Run

        run = Run.get(workspace, find_run(workspace, options.run).id)
        model = run.register_model(options.name, options.path, **said)
    else:
        model = Model.register(workspace, options.path, options.name, **said)
    if options.json:
        say_json(as_json(model))
    else:
        record = model._record
        say(f"{model.id} has {count_of(record.file_count, 'file')}, {size(record.byte_count)}.")
    return exits.OK


def download_arguments(parser: Parser) -> None:
    _add_model(parser)
    parser.add_argument("--output", "-o", metavar="FOLDER", default=".", help="default: here")
    parser.add_argument("--overwrite", action="store_true", help="write over files that are there")


def download(options: Options) -> int:
    """Copy a model's files to here. JSON: {"id", "path"}."""
    model = find_model(open_workspace(options.workspace), options.model)
    path = model.download(options.output, exist_ok=options.overwrite)
    if options.json:
        say_json({"id": model.id, "path": str(Path(path).absolute())})
    else:
        say(path)
    return exits.OK


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("model", metavar="NAME:VERSION")


def delete(options: Options) -> int:
    """Remove one version of a model; refused while a service has it. JSON: {"deleted": id}."""
    if ":" not in options.model:
        raise UserErrorException(
            f"'{options.model[:300]}' is a name; one version is deleted at a time",
            hint=f"Such as: trainmaster models delete {options.model[:300]}:1",
        )
    model = find_model(open_workspace(options.workspace), options.model)
    model.delete()
    if options.json:
        say_json({"deleted": model.id})
    else:
        say(f"{model.id} is removed.")
    return exits.OK


def verify_arguments(parser: Parser) -> None:
    parser.add_argument("model", metavar="NAME[:VERSION]", nargs="?", help="default: all versions of all models")


def verify(options: Options) -> int:
    """Read the files of models and compare them with what was registered; exit code 1 if one is damaged. JSON: a list
    of {"id", "whole", "damages"}.
    """
    from trainmaster.sdk.models import Model

    workspace = open_workspace(options.workspace)
    models = [find_model(workspace, options.model)] if options.model else Model.list(workspace)
    found = [(model, _damage(model)) for model in models]
    if options.json:
        say_json([{"id": model.id, "whole": not lines, "damages": lines} for model, lines in found])
    else:
        for model, lines in found:
            say(f"{model.id} is {paint('damaged', 'red') if lines else 'whole'}")
            for line in lines:
                say(f"  {line}")
    return exits.RUN_FAILED if any(lines for _, lines in found) else exits.OK


def _damage(model: Model) -> list[str]:
    try:
        model.verify()
    except WebserviceException as error:
        return error.cause.splitlines() or [error.headline]
    return []


def tag_arguments(parser: Parser) -> None:
    _add_model(parser)
    parser.add_argument("tags", metavar="NAME=VALUE", nargs="*", help="tags to set")
    parser.add_argument("--remove", metavar="NAME", action="append", default=[], help="a tag to drop; may be repeated")


def tag(options: Options) -> int:
    """Set and drop tags of a model. JSON: the model, as in `models list`."""
    model = find_model(open_workspace(options.workspace), options.model)
    model.update_tags_properties(add_tags=pairs("tags", options.tags), remove_tags=options.remove)
    if options.json:
        say_json(as_json(model))
    else:
        say(f"{model.id}: {_pairs(model.tags) or 'no tags'}")
    return exits.OK


def find_model(workspace: Workspace, given: str) -> Model:
    """The model of `name:version`, or the newest of a name."""
    from trainmaster.sdk.models import Model

    return Model(workspace, id=given) if ":" in given else Model(workspace, given)


def as_json(model: Model) -> dict[str, Any]:
    """The keys of a model."""
    hidden = ("key", "manifest", "modified_at")
    plain = {key: value for key, value in to_plain(model._record).items() if key not in hidden}
    return {"id": model.id, **plain, "created_at": iso(model._record.created_at)}


def _row(model: Model) -> tuple[str, ...]:
    record = model._record
    when = moment(record.created_at, time.time())
    framework = model.model_framework or "-"
    return (
        model.name,
        str(model.version),
        framework,
        size(record.byte_count),
        when,
        model.run_id or "-",
        _pairs(model.tags),
    )


def _pairs(labels: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" if value else key for key, value in labels.items())


def _add_model(parser: Parser) -> None:
    parser.add_argument("model", metavar="NAME[:VERSION]", help="the newest version unless one is given")
