"""`trainmaster services list`, `show`, `deploy`, `update`, `call`, `logs`, `keys` and `delete`."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Any

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.screen import note, paint, say, say_json, width_of_terminal, write
from trainmaster.cli.table import Column, render
from trainmaster.cli.text import first_line, moment, pairs
from trainmaster.errors import ActivityFailedException, UserErrorException, WebserviceException

if TYPE_CHECKING:
    from trainmaster.environments.definition import Environment
    from trainmaster.serving.inference_config import InferenceConfig
    from trainmaster.serving.webservice import Webservice
    from trainmaster.workspace import Workspace

_STATES = {"Healthy": "green", "running": "green", "Failed": "red", "failed": "red", "Unhealthy": "red"}
_COLUMNS = (
    Column("SERVICE", style=lambda text: "bold"),
    Column("KIND"),
    Column("STATE", style=lambda text: _STATES.get(text, "yellow")),
    Column("MODELS", flexible=True),
    Column("ADDRESS"),
    Column("CHANGED"),
)
_KINDS = ("local", "aci", "aks")


def listing_arguments(parser: Parser) -> None:
    """Nothing of its own."""


def listing(options: Options) -> int:
    """The services. JSON: a list of {"name", "computeType", "state", "scoringUri", "swaggerUri", "authEnabled",
    "modelIds", "numReplicas", "scoringTimeoutMs", "imageId", "tags", "properties", "description", "error", "warnings",
    "settings", "createdTime", "updatedTime"}.
    """
    from trainmaster.serving.webservice import Webservice

    services = Webservice.list(open_workspace(options.workspace))
    if options.json:
        say_json([service.serialize() for service in services])
    elif not services:
        note("There is none yet; Model.deploy(...) or 'trainmaster services deploy' makes one.")
    else:
        for line in render(_COLUMNS, [_row(service) for service in services], width_of_terminal(), paint):
            say(line)
    return exits.OK


def show_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")


def show(options: Options) -> int:
    """One service: its state, address and models, and why it failed. JSON: as in `services list`."""
    service = _service(options)
    if options.json:
        say_json(service.serialize())
        return exits.OK
    said = service.serialize()
    say(f"{service.name}: {paint(service.state, _STATES.get(service.state, 'yellow'))}")
    if service.description:
        say(service.description)
    say(f"Address     {service.scoring_uri or 'none yet'}")
    say(f"Kind        {service.compute_type}, {said['numReplicas']} replica(s), keys {_on(service.auth_enabled)}")
    say(f"Models      {', '.join(said['modelIds']) or 'none'}")
    say(f"Changed     {moment(service.updated_time.timestamp(), time.time())}")
    if service.tags:
        say(f"Tags        {', '.join(f'{key}={value}' for key, value in service.tags.items())}")
    for warning in service.warnings:
        say(f"Warning     {warning}")
    if service.error:
        say(f"Error       {service.error['message']}")
    return exits.OK


def deploy_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    _what_arguments(parser)
    parser.add_argument("--dc", metavar="FILE", help="a deployment configuration: v1's JSON file")
    parser.add_argument("--kind", choices=_KINDS, help="whose defaults it has (default: local; aks asks for keys)")
    parser.add_argument("--port", type=int, metavar="N", help="default: one that is free, kept for ever")
    parser.add_argument("--host", metavar="ADDRESS", help="default: 127.0.0.1, this machine alone")
    parser.add_argument("--auth", action="store_true", help="ask for a key (not with --kind local)")
    parser.add_argument("--cors", metavar="ORIGIN", action="append", help="a web page that may ask; * for all")
    parser.add_argument("--batch", type=int, metavar="N", help="up to so many requests go to run() together")
    parser.add_argument("--tag", metavar="NAME=VALUE", action="append", help="a label")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace one of this name where it is, without a pause"
    )


def deploy(options: Options) -> int:
    """Deploy models as a service and wait until it answers. JSON: the service, as in `services list`.

    Without --script and --ic an ONNX, scikit-learn, TorchScript or SavedModel model needs no code.
    """
    from trainmaster.models import Model

    workspace = open_workspace(options.workspace)
    config = _deployment_config(options)
    service = Model.deploy(
        workspace,
        options.name,
        _models(options),
        _inference_config(options, workspace),
        config,
        overwrite=options.overwrite,
    )
    return _await(service, options)


def update_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    _what_arguments(parser)


def update(options: Options) -> int:
    """Give a service other models or another script, where it is and without a pause. JSON: as in `services list`."""
    workspace = open_workspace(options.workspace)
    service = _service(options)
    service._change(
        models=_models(options) or None,
        inference_config=_inference_config(options, workspace),
        spec={"replicas": options.replicas},
    )
    return _await(service, options)


def call_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument(
        "data", metavar="DATA", nargs="?", default="-", help="the request; @FILE for a file, - for a pipe"
    )


def call(options: Options) -> int:
    """Send one request and print the answer. JSON: {"answer"}."""
    answer = _service(options).run(_data(options.data))
    if options.json:
        say_json({"answer": answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer})
    elif isinstance(answer, bytes):
        sys.stdout.flush()
        sys.stdout.buffer.write(answer)
    elif isinstance(answer, str):
        say(answer)
    else:
        say_json(answer)
    return exits.OK


def logs_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("-n", "--lines", type=int, default=200, metavar="N", help="the last lines (default: 200)")
    parser.add_argument("--deployment", action="store_true", help="what was done to deploy it, and nothing else")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as it grows")


def logs(options: Options) -> int:
    """What a service and its script said. JSON: {"log"}."""
    from trainmaster.serving.webservice import Webservice

    service = _service(options)
    text = Webservice.get_logs(service, options.lines, init=options.deployment)
    if options.json:
        say_json({"log": text})
        return exits.OK
    write(sys.stdout, text)
    if options.follow:
        _follow(service)
    return exits.OK


def keys_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--regenerate", choices=("primary", "secondary"), help="put a new key in its place first")


def keys(options: Options) -> int:
    """The keys of a service; each opens it. JSON: {"primary", "secondary"}."""
    service = _service(options)
    try:
        if options.regenerate:
            service.regen_key(options.regenerate)
        primary, secondary = service.get_keys()
    except NotImplementedError as error:
        raise UserErrorException(str(error)) from None
    if options.json:
        say_json({"primary": primary, "secondary": secondary})
    else:
        say(f"primary    {primary}")
        say(f"secondary  {secondary}")
    return exits.OK


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")


def delete(options: Options) -> int:
    """Take services down; what they have begun is answered first. JSON: {"deleted"}, a list of names."""
    from trainmaster.serving.webservice import Webservice

    workspace = open_workspace(options.workspace)
    services = [Webservice(workspace, name) for name in options.names]
    for service in services:
        service.delete()
    if options.json:
        say_json({"deleted": options.names})
    else:
        note(f"Deleted {', '.join(options.names)}.")
    return exits.OK


# What is deployed


def _what_arguments(parser: Parser) -> None:
    parser.add_argument(
        "-m", "--model", metavar="MODEL", action="append", help="NAME, NAME:VERSION, or a file or folder to register"
    )
    parser.add_argument("--ic", metavar="FILE", help="an inference configuration: v1's JSON file")
    parser.add_argument("--script", metavar="FILE", help="the scoring script, with init() and run(data)")
    parser.add_argument("--source", metavar="FOLDER", help="the folder around the script")
    parser.add_argument("--environment", metavar="NAME", help="a registered environment")
    parser.add_argument("--conda-file", metavar="FILE", help="its packages, as a conda file")
    parser.add_argument("--requirements", metavar="FILE", help="its packages, as pip's requirements")
    parser.add_argument("--python", metavar="PATH", help="a Python of yours that has all packages and uvicorn")
    parser.add_argument("--replicas", type=int, metavar="N", help="how many processes answer (default: 1)")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it answers")


def _models(options: Options) -> list[str]:
    return list(options.model or ())


def _inference_config(options: Options, workspace: Workspace) -> InferenceConfig | None:
    from trainmaster.serving.config_files import read_inference_config
    from trainmaster.serving.inference_config import InferenceConfig

    given = {
        "entry_script": options.script,
        "source_directory": options.source,
        "environment": _environment(options, workspace),
    }
    changes = {key: value for key, value in given.items() if value is not None}
    if options.ic:
        return read_inference_config(options.ic, workspace, changes)
    if options.script:
        return InferenceConfig(**changes)
    if changes:
        raise UserErrorException(
            "--source and an environment go with --script",
            hint="Or leave them out: a model whose kind is known needs no code.",
        )
    return None


def _environment(options: Options, workspace: Workspace) -> Environment | None:
    from trainmaster.environments.definition import Environment

    given = [
        name for name in ("environment", "conda_file", "requirements", "python") if getattr(options, name) is not None
    ]
    if len(given) > 1:
        raise UserErrorException(f"give one of --{', --'.join(name.replace('_', '-') for name in given)}")
    if options.environment:
        return Environment.get(workspace, options.environment)
    if options.conda_file:
        return Environment.from_conda_specification("conda-file", options.conda_file)
    if options.requirements:
        return Environment.from_pip_requirements("requirements", options.requirements)
    if options.python:
        environment = Environment("python")
        environment.python.user_managed_dependencies = True
        environment.python.interpreter_path = options.python
        return environment
    return None


def _deployment_config(options: Options) -> Any:
    from trainmaster.serving.config_files import deployment_config, read_deployment_config

    given: dict[str, Any] = {
        "port": options.port,
        "host": options.host,
        "cors_origins": options.cors,
        "max_batch_size": options.batch,
        "auth_enabled": True if options.auth else None,
        "tags": pairs("--tag", options.tag) or None,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    kind = options.kind or ("aci" if {"auth_enabled", "tags"} & set(changes) else "local")
    if options.replicas is not None:
        changes["num_replicas" if kind == "aks" else "replicas"] = options.replicas
    if options.dc:
        if options.kind:
            raise UserErrorException("--kind and --dc cannot be given together", hint="The file says computeType.")
        return read_deployment_config(options.dc, changes)
    return deployment_config(kind, changes)


# How it is shown


def _await(service: Webservice, options: Options) -> int:
    if not options.no_wait:
        if not options.json:
            note(f"Deploying {service.name} ...")
        try:
            # What the SDK prints is no data of a command.
            with contextlib.redirect_stdout(sys.stderr):
                service.wait_for_deployment(show_output=not options.json)
        except WebserviceException as error:
            raise ActivityFailedException(error.headline, cause=error.cause, hint=error.hint) from None
    if options.json:
        say_json(service.serialize())
    elif options.no_wait:
        note(f"On its way; 'trainmaster services show {service.name}' tells how it goes.")
    else:
        say(str(service.scoring_uri))
    return exits.OK


def _follow(service: Webservice) -> None:
    """What the log gains from its end on, until interrupted."""
    from trainmaster.file_events import FileEvents, ready
    from trainmaster.serving.plan import ServiceFiles
    from trainmaster.waiting import GrowingText

    text = GrowingText(ServiceFiles(service.folder).log)
    for _ in text.new():
        # Shown already.
        continue
    with FileEvents() as events:
        events.watch(service.folder)
        while service.folder.exists():
            if ready(1.0, *([events] if events.works else [])):
                events.clear()
            for part in text.new():
                write(sys.stdout, part)


def _service(options: Options) -> Webservice:
    from trainmaster.serving.webservice import Webservice

    return Webservice(open_workspace(options.workspace), options.name)


def _data(given: str) -> str | bytes:
    if given == "-":
        return sys.stdin.buffer.read()
    if given.startswith("@"):
        with open(given[1:], "rb") as file:
            return file.read()
    return given


def _row(service: Webservice) -> tuple[str, ...]:
    models = ", ".join(service.serialize()["modelIds"])
    address = service.scoring_uri or (first_line(service.error["message"])[:60] if service.error else "")
    changed = moment(service.updated_time.timestamp(), time.time())
    return service.name, service.compute_type, service.state, models, address, changed


def _on(value: bool) -> str:
    return "on" if value else "off"
