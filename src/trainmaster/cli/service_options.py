"""The options of `trainmaster services deploy`, `update` and `call`, converted to what the SDK takes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.text import pairs

if TYPE_CHECKING:
    from trainmaster.sdk.environment.definition import Environment
    from trainmaster.sdk.services.inference_config import InferenceConfig
    from trainmaster.sdk.workspace.workspace import Workspace


def add_model_arguments(parser: Parser) -> None:
    """Adds the options that say what is served."""
    parser.add_argument(
        "-m",
        "--model",
        metavar="MODEL",
        action="append",
        help="NAME, NAME:VERSION, or a file or folder to register (repeatable)",
    )
    parser.add_argument("--ic", metavar="FILE", help="an inference configuration: a JSON file as in v1")
    parser.add_argument("--script", metavar="FILE", help="the scoring script, with init() and run(data)")
    parser.add_argument("--source", metavar="FOLDER", help="the folder that contains the script")
    parser.add_argument("--environment", metavar="NAME", help="a registered environment")
    parser.add_argument("--conda-file", metavar="FILE", help="a conda file with the packages of the script")
    parser.add_argument("--requirements", metavar="FILE", help="a requirements file with the packages of the script")
    parser.add_argument("--python", metavar="PATH", help="a Python of yours with all packages and uvicorn")
    parser.add_argument("--replicas", type=int, metavar="N", help="the number of processes that answer (default: 1)")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until the service answers")


def model_names(options: Options) -> list[str]:
    """The models of --model."""
    return list(options.model or ())


def check_something_is_served(options: Options) -> None:
    """Refuses a service without a model and without a script."""
    if not options.model and not options.script and not options.ic:
        raise UserErrorException(
            f"service {options.name} needs a model or a script",
            hint="Write -m NAME for a registered model, -m PATH for a file or folder, or --script FILE.",
        )


def inference_config(options: Options, workspace: Workspace) -> InferenceConfig | None:
    """The scoring script with its packages; None for a model that needs no code."""
    from trainmaster.sdk.services.inference_config import InferenceConfig
    from trainmaster.sdk.v1.deployment_files import read_inference_config

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
            "--source and an environment need --script",
            hint="Add --script, or omit them: a model of a known kind needs no code.",
        )
    return None


def _environment(options: Options, workspace: Workspace) -> Environment | None:
    from trainmaster.sdk.environment.definition import Environment

    given = [
        name for name in ("environment", "conda_file", "requirements", "python") if getattr(options, name) is not None
    ]
    if len(given) > 1:
        raise UserErrorException(f"specify only one of --{', --'.join(name.replace('_', '-') for name in given)}")
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


def deployment_config(options: Options) -> Any:
    """The settings of the service, from the file and the options. An option overrides the file."""
    from trainmaster.sdk.v1 import deployment_files

    given: dict[str, Any] = {
        "port": options.port,
        "host": options.host,
        "cors_origins": options.cors,
        "max_batch_size": options.batch,
        "auth_enabled": True if options.auth else None,
        "tags": pairs("--tag", options.tag) or None,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    kind = options.kind or _usual_kind(options, changes)
    if options.replicas is not None:
        changes["num_replicas" if kind == "aks" else "replicas"] = options.replicas
    if options.dc:
        if options.kind:
            raise UserErrorException("--kind and --dc exclude each other", hint="The file of --dc sets computeType.")
        return deployment_files.read_deployment_config(options.dc, changes)
    return deployment_files.deployment_config(kind, changes)


def _usual_kind(options: Options, changes: Mapping[str, Any]) -> str:
    if options.target:
        return "aks"
    return "aci" if {"auth_enabled", "tags"} & set(changes) else "local"


def request_body(given: str) -> str | bytes:
    """The request: the text itself, the content of @FILE, or standard input."""
    if given == "-":
        return sys.stdin.buffer.read()
    if given.startswith("@"):
        with open(given[1:], "rb") as file:
            return file.read()
    return given
