"""`trainmaster services list`, `show`, `deploy`, `update`, `call`, `logs`, `keys` and `delete`."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.service_options import (
    check_something_is_served,
    deployment_config,
    inference_config,
    named_models,
    request_body,
    what_arguments,
)
from trainmaster.job.errors import ActivityFailedException, UserErrorException, WebserviceException
from trainmaster.sdk.display.screen import is_terminal, note, paint, say, say_json, width_of_terminal
from trainmaster.sdk.display.table import Column, render
from trainmaster.sdk.display.text import first_line, moment

if TYPE_CHECKING:
    from trainmaster.sdk.services.webservice import Webservice

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
    from trainmaster.sdk.services.webservice import Webservice

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
    what_arguments(parser)
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
    from trainmaster.sdk.models import Model

    check_something_is_served(options)
    workspace = open_workspace(options.workspace)
    config = deployment_config(options)
    service = Model.deploy(
        workspace,
        options.name,
        named_models(options),
        inference_config(options, workspace),
        config,
        overwrite=options.overwrite,
    )
    return _await(service, options)


def update_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME")
    what_arguments(parser)


def update(options: Options) -> int:
    """Give a service other models or another script, where it is and without a pause. JSON: as in `services list`."""
    workspace = open_workspace(options.workspace)
    service = _service(options)
    service._change(
        models=named_models(options) or None,
        inference_config=inference_config(options, workspace),
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
    answer = _service(options).run(request_body(options.data))
    if options.json:
        say_json({"answer": answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer})
    elif isinstance(answer, bytes) and is_terminal(sys.stdout):
        say(answer.decode("utf-8", "replace"))
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
    from trainmaster.cli.service_logs import ServiceLogs
    from trainmaster.sdk.services.webservice import Webservice

    service = _service(options)
    if options.json:
        say_json({"log": Webservice.get_logs(service, options.lines, init=options.deployment)})
        return exits.OK
    logs = ServiceLogs(service._log_paths(init=options.deployment))
    logs.show_last(options.lines)
    if options.follow:
        logs.follow(service.folder)
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
    from trainmaster.sdk.services.webservice import Webservice

    workspace = open_workspace(options.workspace)
    services = [Webservice(workspace, name) for name in options.names]
    for service in services:
        service.delete()
    if options.json:
        say_json({"deleted": options.names})
    else:
        note(f"Deleted {', '.join(options.names)}.")
    return exits.OK


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


def _service(options: Options) -> Webservice:
    from trainmaster.sdk.services.webservice import Webservice

    return Webservice(open_workspace(options.workspace), options.name)


def _row(service: Webservice) -> tuple[str, ...]:
    models = ", ".join(service.serialize()["modelIds"])
    address = service.scoring_uri or (first_line(service.error["message"])[:60] if service.error else "")
    changed = moment(service.updated_time.timestamp(), time.time())
    return service.name, service.compute_type, service.state, models, address, changed


def _on(value: bool) -> str:
    return "on" if value else "off"
