"""All commands: names, where they are, and what help says. Nothing of them is loaded to list them."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command: `function` in `trainmaster.cli.<module>`, with `<function>_arguments` beside it."""

    name: str
    module: str
    function: str
    summary: str


SECTIONS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    (
        "Run",
        (
            Command("submit", "submit", "submit", "run a script of a folder"),
            Command("sweep submit", "sweep_submit", "submit", "tune parameters: run a script many times"),
            Command("cancel", "runs", "cancel", "end runs and all their processes"),
        ),
    ),
    (
        "Look",
        (
            Command("runs", "runs", "runs", "list runs, newest first"),
            Command("show", "runs", "show", "one run: its state, error, settings"),
            Command("logs", "logs", "logs", "what a run printed; -f follows it"),
            Command("metrics", "metrics", "metrics", "what a run logged, with sparklines"),
            Command("sweep list", "sweeps", "listing", "list sweeps, newest first"),
            Command("sweep show", "sweeps", "show", "one sweep: its trials, the best first; -f follows it"),
            Command("sweep plot", "sweep_plot", "plot", "a picture of a sweep: SVG or PNG"),
            Command("files", "files", "files", "the files of a run"),
            Command("download", "files", "download", "copy files of a run to here"),
        ),
    ),
    (
        "Manage",
        (
            Command("runs delete", "runs_removal", "delete", "remove runs that have ended, with all their files"),
            Command("runs prune", "runs_removal", "prune", "remove old runs"),
            Command("compute list", "compute", "targets", "the compute targets"),
            Command("compute show", "compute_show", "show", "one target: its settings, its machines and their states"),
            Command("compute create", "compute", "create", "make a target, or give it another size"),
            Command("compute delete", "compute", "delete", "remove a target"),
            Command("compute sizes", "compute", "sizes", "what a vm_size means here"),
            Command("data list", "data", "listing", "the registered datasets"),
            Command("data show", "data", "show", "one dataset: its source and files"),
            Command("data upload", "data", "upload", "copy a folder to a datastore and register it"),
            Command("models list", "models", "listing", "the registered models"),
            Command("models show", "models", "show", "one model: where it comes from, its files"),
            Command("models register", "models", "register", "keep a file or folder, or a run's, as a model"),
            Command("models download", "models", "download", "copy a model's files to here"),
            Command("models to-onnx", "models_to_onnx", "to_onnx", "convert a model to ONNX, if it answers the same"),
            Command("models tag", "models", "tag", "set and drop tags of a model"),
            Command("models verify", "models", "verify", "whether models are what was registered"),
            Command("models delete", "models", "delete", "remove one version of a model"),
            Command("services list", "services", "listing", "the scoring services"),
            Command("services show", "services", "show", "one service: its state, address, error"),
            Command("services deploy", "services", "deploy", "serve models over HTTP"),
            Command("services update", "services", "update", "other models or code, without a pause"),
            Command("services call", "services", "call", "send a service one request"),
            Command("services logs", "services", "logs", "what a service said; -f follows it"),
            Command("services keys", "services", "keys", "the keys of a service"),
            Command("services delete", "services", "delete", "take services down"),
            Command("secret list", "secrets", "listing", "the names of the workspace's secrets"),
            Command("secret set", "secrets", "put", "keep a secret, read from the terminal or a pipe"),
            Command("secret delete", "secrets", "delete", "forget a secret"),
            Command("env list", "env", "listing", "the environments that were built, and their sizes"),
            Command("env show", "env", "show", "the exact packages of an environment or a run"),
            Command("env build", "env", "build", "build an environment ahead of its first run"),
            Command("env prune", "env", "prune", "remove environments that no run needs"),
            Command("workspace", "workspaces", "show", "where everything is kept"),
            Command("workspace list", "workspaces", "listing", "the workspaces of this user"),
            Command("workspace create", "workspaces", "create", "make a workspace"),
            Command("status", "dispatcher", "status", "whether the dispatcher lives, and what it does"),
            Command("up", "dispatcher", "up", "start the dispatcher"),
            Command("down", "dispatcher", "down", "stop the dispatcher; runs go on"),
            Command(
                "migrate", "trainmaster.migration.command", "migrate", "what of your azureml v1 scripts works here"
            ),
            Command("doctor", "doctor", "doctor", "what this machine has, and what is missing"),
        ),
    ),
)

EXIT_CODES: tuple[tuple[int, str], ...] = (
    (0, "all is well"),
    (1, "the run or service that was waited for failed"),
    (2, "wrong usage or input"),
    (3, "the run that was waited for was cancelled"),
    (4, "no such run, environment, model, service or compute target"),
    (5, "the dispatcher or the workspace cannot be used"),
    (70, "a fault of Trainmaster itself; please report it"),
    (130, "interrupted; a run that was waited for goes on"),
)


def all_commands() -> dict[str, Command]:
    """Name to command."""
    return {command.name: command for _, commands in SECTIONS for command in commands}


def groups() -> set[str]:
    """The first words of commands of two words."""
    return {name.split()[0] for name in all_commands() if " " in name}
