"""`trainmaster services list`, `show`, `deploy`, `update`, `call`, `logs`, `keys` and `delete`."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from trainmaster.cli import exits
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import Listing, show_facts, show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.cli.service_options import (
    add_model_arguments,
    check_something_is_served,
    deployment_config,
    inference_config,
    model_names,
    request_body,
)
from trainmaster.job.errors import ActivityFailedException, UserErrorException, WebserviceException
from trainmaster.sdk.display.screen import is_terminal, note, paint, say, say_json
from trainmaster.sdk.display.table import Column
from trainmaster.sdk.display.text import count_of, first_line, moment

if TYPE_CHECKING:
    from trainmaster.sdk.services.webservice import Webservice

_STATES = {"Healthy": "green", "running": "green", "Failed": "red", "failed": "red", "Unhealthy": "red"}
_KINDS = ("local", "aci", "aks")


def list_services(options: Options) -> int:
    """List the scoring services.

    JSON: a list of {"name", "computeType", "state", "scoringUri", "swaggerUri", "authEnabled", "modelIds",
    "numReplicas", "scoringTimeoutMs", "imageId", "tags", "properties", "description", "error", "warnings", "settings",
    "createdTime", "updatedTime"}.

      trainmaster services list
    """
    from trainmaster.sdk.services.webservice import Webservice

    return _LISTING.show(Webservice.list(open_workspace(options.workspace)), options)


def show_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the service's name")


def show(options: Options) -> int:
    """Show one service: its state, address, models and error.

    JSON: the keys of 'services list'.

      trainmaster services show digits
    """
    service = _service(options)
    if options.json:
        say_json(service.serialize())
        return exits.OK
    facts = service.serialize()
    say(f"{service.name}: {paint(service.state, _STATES.get(service.state, 'yellow'))}")
    if service.description:
        say(service.description)
    keys = "on" if service.auth_enabled else "off"
    show_facts(
        [
            ("Address", str(service.scoring_uri or "none yet")),
            ("Kind", f"{service.compute_type}, {count_of(facts['numReplicas'], 'replica')}, keys {keys}"),
            ("Models", ", ".join(facts["modelIds"]) or "none"),
            ("Changed", moment(service.updated_time.timestamp(), time.time())),
            ("Tags", ", ".join(f"{key}={value}" for key, value in service.tags.items())),
            *(("Warning", warning) for warning in service.warnings),
            ("Error", str(service.error["message"]) if service.error else ""),
        ]
    )
    return exits.OK


def deploy_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the service's name")
    add_model_arguments(parser)
    parser.add_argument("--dc", metavar="FILE", help="a deployment configuration: v1's JSON file")
    parser.add_argument("--kind", choices=_KINDS, help="whose defaults to use (default: local; aks requires keys)")
    parser.add_argument("--target", metavar="NAME", help="a compute target on Kubernetes (default: this machine)")
    parser.add_argument("--port", type=int, metavar="N", help="default: a free port, which the service keeps")
    parser.add_argument("--host", metavar="ADDRESS", help="default: 127.0.0.1, this machine only")
    parser.add_argument("--auth", action="store_true", help="require a key (not with --kind local)")
    parser.add_argument(
        "--cors", metavar="ORIGIN", action="append", help="a web origin that may send requests; * for all (repeatable)"
    )
    parser.add_argument("--batch", type=int, metavar="N", help="pass up to N requests to run() together")
    parser.add_argument("--tag", metavar="NAME=VALUE", action="append", help="a tag (repeatable)")
    parser.add_argument("--overwrite", action="store_true", help="replace the service of this name without downtime")


def deploy(options: Options) -> int:
    """Deploy models as a service, wait until it answers, and print its address.

    ONNX, scikit-learn, TorchScript and SavedModel models need no code: omit --script and --ic.

    JSON: the service, as in 'services list'.

      trainmaster services deploy digits -m digits:2
      trainmaster services deploy digits -m digits --script score.py --requirements requirements.txt --auth
      trainmaster services deploy digits -m digits --kind aks --target gpu --replicas 2
    """
    from trainmaster.sdk.compute.target import ComputeTarget
    from trainmaster.sdk.models.model import Model

    check_something_is_served(options)
    workspace = open_workspace(options.workspace)
    config = deployment_config(options)
    service = Model.deploy(
        workspace,
        options.name,
        model_names(options),
        inference_config(options, workspace),
        config,
        deployment_target=ComputeTarget(workspace, options.target) if options.target else None,
        overwrite=options.overwrite,
    )
    return _wait(service, options)


def update_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the service's name")
    add_model_arguments(parser)


def update(options: Options) -> int:
    """Replace the models or the script of a service without downtime. Its address stays.

    JSON: the service, as in 'services list'.

      trainmaster services update digits -m digits:3
    """
    workspace = open_workspace(options.workspace)
    service = _service(options)
    service._change(
        models=model_names(options) or None,
        inference_config=inference_config(options, workspace),
        spec={"replicas": options.replicas},
    )
    return _wait(service, options)


def call_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the service's name")
    parser.add_argument(
        "data",
        metavar="DATA",
        nargs="?",
        default="-",
        help="the request; @FILE reads a file, - standard input (the default)",
    )


def call(options: Options) -> int:
    """Send one request to a service and print the answer.

    JSON: {"answer"}.

      trainmaster services call digits '{"data": [[1, 2, 3]]}'
      trainmaster services call digits @request.json
    """
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
    parser.add_argument("name", metavar="NAME", help="the service's name")
    parser.add_argument(
        "-n", "--lines", type=int, default=200, metavar="N", help="show the last N lines (default: 200)"
    )
    parser.add_argument("--deployment", action="store_true", help="show only the log of its deployment")
    parser.add_argument("-f", "--follow", action="store_true", help="keep showing new lines")


def logs(options: Options) -> int:
    """Show what a service and its script printed.

    JSON: {"log"}.

      trainmaster services logs digits -f
    """
    from trainmaster.cli.service_logs import ServiceLogs
    from trainmaster.sdk.services.webservice import Webservice

    service = _service(options)
    if options.json:
        say_json({"log": Webservice.get_logs(service, options.lines, init=options.deployment)})
        return exits.OK
    logs = ServiceLogs(service.workspace, service.name)
    logs.show_last(options.lines, init=options.deployment)
    if options.follow:
        logs.follow()
    return exits.OK


def keys_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the service's name")
    parser.add_argument("--regenerate", choices=("primary", "secondary"), help="replace this key first")


def keys(options: Options) -> int:
    """Show the keys of a service. Either of them gives access.

    JSON: {"primary", "secondary"}.

      trainmaster services keys digits --regenerate secondary
    """
    service = _service(options)
    try:
        if options.regenerate:
            service.regen_key(options.regenerate)
        primary, secondary = service.get_keys()
    except NotImplementedError as error:
        raise UserErrorException(str(error)) from None
    text = f"primary    {primary}\nsecondary  {secondary}"
    return show_result(options, {"primary": primary, "secondary": secondary}, text)


def delete_arguments(parser: Parser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+", help="the services to delete")


def delete(options: Options) -> int:
    """Shut services down and delete them. Requests in progress are answered first.

    JSON: {"deleted": [name, ...]}.

      trainmaster services delete digits
    """
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


def _wait(service: Webservice, options: Options) -> int:
    if not options.no_wait:
        if not options.json:
            note(f"Deploying {service.name} ...")
        try:
            # What the SDK prints is not data of the command.
            with contextlib.redirect_stdout(sys.stderr):
                service.wait_for_deployment(show_output=not options.json)
        except WebserviceException as error:
            raise ActivityFailedException(error.headline, cause=error.cause, hint=error.hint) from None
    if options.json:
        say_json(service.serialize())
    elif options.no_wait:
        note(f"Deploying {service.name}. 'trainmaster services show {service.name}' shows its state.")
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


_LISTING: Listing[Webservice] = Listing(
    columns=(
        Column("SERVICE", style=lambda text: "bold"),
        Column("KIND"),
        Column("STATE", style=lambda text: _STATES.get(text, "yellow")),
        Column("MODELS", flexible=True),
        Column("ADDRESS"),
        Column("CHANGED"),
    ),
    row=_row,
    json=lambda service: service.serialize(),
    empty="There are no services yet. Model.deploy(...) or 'trainmaster services deploy' creates one.",
)
