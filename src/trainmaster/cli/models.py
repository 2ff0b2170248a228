"""`trainmaster models list`, `show`, `register`, `download`, `delete`, `verify` and `tag`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import find_run, open_workspace
from trainmaster.cli.output import Listing, show_facts, show_names, show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException, WebserviceException
from trainmaster.sdk.display.describing import iso
from trainmaster.sdk.display.screen import paint, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, moment, pairs, size, tags
from trainmaster.shared.serialization import to_plain

if TYPE_CHECKING:
    from trainmaster.sdk.models.model import Model
    from trainmaster.sdk.workspace.workspace import Workspace


def list_models_arguments(parser: Parser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="list all versions of this model; default: the newest of each"
    )
    parser.add_argument("--all", action="store_true", dest="all_versions", help="list all versions of all models")
    parser.add_argument("--run", metavar="RUN", help="only models from this run")
    parser.add_argument("--tag", metavar="NAME[=VALUE]", action="append", help="only models with this tag")


def list_models(options: Options) -> int:
    """List the registered models, newest first.

    JSON: a list of {"id", "name", "version", "description", "tags", "properties", "framework", "framework_version",
    "run_id", "experiment", "lineage", "datasets", "resources", "facts", "entry", "file_count", "byte_count",
    "created_by", "created_at"}.

      trainmaster models list
      trainmaster models list digits --all
      trainmaster models list --run last
    """
    from trainmaster.sdk.models.model import Model

    workspace = open_workspace(options.workspace)
    run_id = find_run(workspace, options.run).id if options.run else None
    latest = not (options.all_versions or options.name)
    models = Model.list(workspace, options.name, tags(options.tag), run_id=run_id, latest=latest)
    return _LISTING.show(models, options)


def show_arguments(parser: Parser) -> None:
    _add_model(parser)


def show(options: Options) -> int:
    """Show one model: its origin and its files.

    JSON: the keys of 'models list', and "files", a list of {"path", "digest" (SHA-256), "size", "executable"}.

      trainmaster models show digits
      trainmaster models show digits:2
    """
    model = find_model(open_workspace(options.workspace), options.model)
    files = model.manifest().files
    if options.json:
        say_json({**as_json(model), "files": to_plain(files)})
        return exits.OK
    say(f"{model.name}, version {model.version}")
    if model.description:
        say(model.description)
    show_facts([*_facts(model), ("Files", f"{len(files)}, {size(sum(file.size for file in files))}")])
    show_names([file.path for file in files])
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
        *_tensor_facts(model.facts),
        ("Facts", ", ".join(name for name in model.facts if name not in ("inputs", "outputs", "parity"))),
    ]


def _tensor_facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Inputs, outputs, and the largest difference of a conversion, if the facts have them."""
    from trainmaster.job.onnx import Parity, Tensor

    try:
        lines = [
            (what[:-1].capitalize(), str(Tensor(**each))) for what in ("inputs", "outputs") for each in facts[what]
        ]
        return [*lines, ("Parity", str(Parity(**facts["parity"])))] if "parity" in facts else lines
    except (KeyError, TypeError):
        # Users may store other facts under these names.
        return []


def register_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the model's name; an existing model gets a new version")
    parser.add_argument("path", metavar="PATH", help="a file or folder; with --run, one of the run's files")
    parser.add_argument("--run", metavar="RUN", help="register a file of this run")
    parser.add_argument("--tag", metavar="NAME=VALUE", action="append", help="a tag (repeatable)")
    parser.add_argument(
        "--property", metavar="NAME=VALUE", action="append", help="a property, which cannot change later (repeatable)"
    )
    parser.add_argument("--description", metavar="TEXT", help="a description")
    parser.add_argument("--framework", metavar="NAME", help="such as PyTorch, Onnx, ScikitLearn")
    parser.add_argument("--framework-version", metavar="VERSION", help="such as 2.4.0")


def register(options: Options) -> int:
    """Register a file or a folder as a model.

    JSON: the model, as in 'models list'.

      trainmaster models register digits outputs/model.pt --run last --tag stage=test
    """
    from trainmaster.sdk.models.model import Model

    workspace = open_workspace(options.workspace)
    settings: dict[str, Any] = {
        "tags": pairs("--tag", options.tag),
        "properties": pairs("--property", options.property),
        "description": options.description,
        "model_framework": options.framework,
        "model_framework_version": options.framework_version,
    }
    if options.run:
        from trainmaster.sdk.run.run import Run

        run = Run.get(workspace, find_run(workspace, options.run).id)
        model = run.register_model(options.name, options.path, **settings)
    else:
        model = Model.register(workspace, options.path, options.name, **settings)
    record = model._record
    text = f"{model.id} has {count_of(record.file_count, 'file')}, {size(record.byte_count)}."
    return show_result(options, as_json(model), text)


def download_arguments(parser: Parser) -> None:
    _add_model(parser)
    parser.add_argument(
        "--output", "-o", metavar="FOLDER", default=".", help="the folder to copy to (default: this one)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace files that already exist")


def download(options: Options) -> int:
    """Copy the files of a model to a folder.

    JSON: {"id", "path"}.

      trainmaster models download digits:2 --output model
    """
    model = find_model(open_workspace(options.workspace), options.model)
    path = model.download(options.output, exist_ok=options.overwrite)
    return show_result(options, {"id": model.id, "path": str(Path(path).absolute())}, path)


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("model", metavar="NAME:VERSION", help="the version to delete")


def delete(options: Options) -> int:
    """Delete one version of a model. Refused while a service uses it.

    JSON: {"deleted": id}.

      trainmaster models delete digits:1
    """
    if ":" not in options.model:
        raise UserErrorException(
            f"'{options.model[:300]}' has no version; models are deleted one version at a time",
            hint=f"For example: trainmaster models delete {options.model[:300]}:1",
        )
    model = find_model(open_workspace(options.workspace), options.model)
    model.delete()
    return show_result(options, {"deleted": model.id}, f"{model.id} is deleted.")


def verify_arguments(parser: Parser) -> None:
    parser.add_argument("model", metavar="NAME[:VERSION]", nargs="?", help="default: all versions of all models")


def verify(options: Options) -> int:
    """Compare the files of models with what was registered. The exit code is 1 if a model is damaged.

    JSON: a list of {"id", "whole", "damages"}.

      trainmaster models verify
    """
    from trainmaster.sdk.models.model import Model

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
    parser.add_argument("--remove", metavar="NAME", action="append", default=[], help="a tag to remove (repeatable)")


def tag(options: Options) -> int:
    """Set and remove tags of a model.

    JSON: the model, as in 'models list'.

      trainmaster models tag digits:2 stage=production --remove draft
    """
    model = find_model(open_workspace(options.workspace), options.model)
    model.update_tags_properties(add_tags=pairs("tags", options.tags), remove_tags=options.remove)
    return show_result(options, as_json(model), f"{model.id}: {_pairs(model.tags) or 'no tags'}")


def find_model(workspace: Workspace, given: str) -> Model:
    """The model `name:version`, or the newest version of `name`."""
    from trainmaster.sdk.models.model import Model

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
    parser.add_argument("model", metavar="NAME[:VERSION]", help="a model; default: its newest version")


_LISTING: Listing[Model] = Listing(
    columns=(
        Column("MODEL", style=lambda text: "bold"),
        Column("VERSION", right=True),
        Column("FRAMEWORK"),
        Column("SIZE", right=True),
        Column("REGISTERED"),
        Column("RUN", flexible=True),
        Column("TAGS", flexible=True),
    ),
    row=_row,
    json=as_json,
    empty="There are no such models. run.register_model(name, path) or 'trainmaster models register' registers one.",
)
