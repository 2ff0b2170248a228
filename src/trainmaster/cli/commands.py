"""All commands: their names, modules and summaries. Listing them loads none of the modules."""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command: `function` in `trainmaster.cli.<module>`, and `<function>_arguments` if it takes arguments."""

    name: str
    module: str
    function: str
    summary: str


_SERVER_USERS = "trainmaster.server.identity.commands"

SECTIONS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    (
        "Run",
        (
            Command("submit", "submit", "submit", "run a script, notebook, module, command or job file"),
            Command("sweep submit", "sweep_submit", "submit", "tune parameters: run a script many times"),
            Command("rerun", "rerun", "rerun", "run again what an earlier run did, with one thing changed"),
            Command("resume", "rerun", "resume", "continue a run from the files and checkpoints it left"),
            Command("cancel", "runs", "cancel", "end runs and all their processes"),
        ),
    ),
    (
        "Inspect",
        (
            Command("runs", "runs", "runs", "list runs, newest first"),
            Command("show", "runs", "show", "show one run: its state, error and settings"),
            Command("best", "best", "best", "show the best runs of an experiment by a metric"),
            Command("compare", "compare", "compare", "show what differs between runs, and their curves"),
            Command("logs", "logs", "logs", "show what a run printed; -f follows it"),
            Command("metrics", "metrics", "metrics", "show what a run logged, with sparklines"),
            Command("top", "top", "top", "watch targets, runs and what they use, live"),
            Command("sweep list", "sweeps", "list_sweeps", "list sweeps, newest first"),
            Command("sweep show", "sweeps", "show", "show one sweep: its trials, best first; -f follows it"),
            Command("sweep plot", "sweep_plot", "plot", "draw a sweep as SVG or PNG"),
            Command("studio", "trainmaster.server.personal.command", "studio", "open the studio: pages in the browser"),
            Command("files", "files", "files", "list the files of a run"),
            Command("download", "files", "download", "copy files of a run to this folder"),
        ),
    ),
    (
        "Organise",
        (
            Command("tag", "labels", "tag", "set and remove tags of a run"),
            Command("name", "labels", "name", "give a run a name for people"),
            Command("note", "labels", "note", "write a note about a run, in Markdown"),
            Command("archive", "archiving", "archive", "leave runs out of lists"),
            Command("restore", "archiving", "restore", "show archived runs in lists again"),
        ),
    ),
    (
        "Notifications",
        (
            Command("notify add", "notifications", "add", "be told when runs end, fail or hang"),
            Command("notify list", "notifications", "list_channels", "list the channels that tell of runs"),
            Command("notify test", "notifications", "test", "send one notification now"),
            Command("notify remove", "notifications", "remove", "remove a channel"),
            Command("notify smtp", "notifications", "smtp", "set or show the mail server"),
        ),
    ),
    (
        "Clean up",
        (
            Command("runs delete", "runs_removal", "delete", "delete runs that have ended, with all their files"),
            Command("runs prune", "runs_removal", "prune", "delete old runs"),
            Command("retention set", "retention", "put", "say which runs of an experiment are kept"),
            Command("retention show", "retention", "show", "show the retention rules"),
            Command("retention apply", "retention", "apply", "remove the runs that a rule does not keep"),
            Command("retention delete", "retention", "delete", "remove the retention rule of an experiment"),
            Command("env prune", "env", "prune", "delete environments that no run needs"),
        ),
    ),
    (
        "Environments and compute targets",
        (
            Command("env list", "env", "list_environments", "list the environments that were built, with their sizes"),
            Command("env show", "env", "show", "show the exact packages of an environment or a run"),
            Command("env build", "env", "build", "build an environment before its first run"),
            Command("compute list", "compute", "list_targets", "list the compute targets"),
            Command("compute show", "compute_show", "show", "show one target: its settings, machines and their states"),
            Command("compute create", "compute", "create", "create a target, or change its size"),
            Command("compute test", "compute_check", "check", "try what runs on a target need"),
            Command("compute delete", "compute", "delete", "delete a target"),
            Command("compute sizes", "compute", "sizes", "show what each vm_size means here"),
        ),
    ),
    (
        "Data and models",
        (
            Command("data list", "data", "list_datasets", "list the registered datasets"),
            Command("data show", "data", "show", "show one dataset: its source and files"),
            Command("data upload", "data", "upload", "copy a folder to a datastore and register it"),
            Command("models list", "models", "list_models", "list the registered models"),
            Command("models show", "models", "show", "show one model: its origin and files"),
            Command("models register", "models", "register", "register a file or folder as a model"),
            Command("models download", "models", "download", "copy the files of a model to this folder"),
            Command("models to-onnx", "models_to_onnx", "to_onnx", "convert a model to ONNX and check its answers"),
            Command("models tag", "models", "tag", "set and remove tags of a model"),
            Command("models verify", "models", "verify", "check the files of models for damage"),
            Command("models delete", "models", "delete", "delete one version of a model"),
        ),
    ),
    (
        "Services",
        (
            Command("services list", "services", "list_services", "list the scoring services"),
            Command("services show", "services", "show", "show one service: its state, address and error"),
            Command("services deploy", "services", "deploy", "serve models over HTTP"),
            Command("services update", "services", "update", "replace models or code without downtime"),
            Command("services call", "services", "call", "send one request to a service"),
            Command("services logs", "services", "logs", "show what a service printed; -f follows it"),
            Command("services keys", "services", "keys", "show the keys of a service"),
            Command("services delete", "services", "delete", "shut services down and delete them"),
        ),
    ),
    (
        "Workspace",
        (
            Command("workspace", "workspaces", "show", "show where everything is kept"),
            Command("workspace list", "workspaces", "list_workspaces", "list your workspaces"),
            Command("workspace create", "workspaces", "create", "create a workspace"),
            Command("workspace move", "workspace_move", "move", "move the database to PostgreSQL, or back to a file"),
            Command("import mlflow", "mlflow", "import_mlflow", "copy runs and models of MLflow into the workspace"),
            Command("export mlflow", "mlflow", "export_mlflow", "copy the runs and models of the workspace to MLflow"),
            Command("secret list", "secrets", "list_secrets", "list the names of the workspace's secrets"),
            Command("secret set", "secrets", "put", "store a secret, read from the terminal or a pipe"),
            Command("secret delete", "secrets", "delete", "delete a secret"),
            Command("quota list", "quotas", "list_quotas", "list the quotas and what is used of them"),
            Command("quota set", "quotas", "put", "limit what a user or the workspace may use at once"),
            Command("quota delete", "quotas", "delete", "remove the limits of a user or of the workspace"),
            Command("status", "dispatcher", "status", "show whether the dispatcher runs, and its active runs"),
            Command("up", "dispatcher", "up", "start the dispatcher"),
            Command("down", "dispatcher", "down", "stop the dispatcher; runs continue"),
        ),
    ),
    (
        "Server",
        (
            Command("server init", "trainmaster.server.command", "init", "create a server for a team"),
            Command("server run", "trainmaster.server.command", "run", "serve workspaces over HTTP"),
            Command("server user list", _SERVER_USERS, "list_users", "list the users of a server"),
            Command("server user add", _SERVER_USERS, "add_user", "add a user to a server"),
            Command("server user remove", _SERVER_USERS, "remove_user", "remove a user with all tokens and roles"),
            Command("server token list", _SERVER_USERS, "list_tokens", "list the tokens of a server's users"),
            Command("server token create", _SERVER_USERS, "create_token", "create a token, which is shown once"),
            Command("server token revoke", _SERVER_USERS, "revoke_token", "end a token for ever"),
            Command("server role list", _SERVER_USERS, "list_roles", "list who has which role in a workspace"),
            Command("server role grant", _SERVER_USERS, "grant_role", "give a user a role in a workspace"),
            Command("server role revoke", _SERVER_USERS, "revoke_role", "take a user's role in a workspace away"),
            Command("server login-link", _SERVER_USERS, "create_link", "print a link that signs a browser in, once"),
            Command("server types", "trainmaster.server.command", "types", "write the API's types as TypeScript"),
        ),
    ),
    (
        "On a server",
        (
            Command("login", "login", "login", "sign in to a server with a token"),
            Command("logout", "login", "logout", "forget the token for a server"),
            Command("whoami", "login", "whoami", "show who you are on a server"),
            Command("sync", "sync", "sync", "send what was logged while the network was gone"),
        ),
    ),
    (
        "Set up",
        (
            Command("schema job", "schema", "job", "print the JSON Schema of job files, for editors"),
            Command("schema sweep", "schema", "sweep", "print the JSON Schema of sweep files, for editors"),
            Command("doctor", "doctor", "doctor", "check what this machine has and what is missing"),
            Command(
                "migrate", "trainmaster.migration.command", "migrate", "check what of azureml v1 scripts works here"
            ),
        ),
    ),
)

EXIT_CODES: tuple[tuple[int, str], ...] = (
    (0, "success"),
    (1, "the run or service that was waited for failed"),
    (2, "wrong usage or input"),
    (3, "the run that was waited for was canceled"),
    (4, "the run, environment, model, service or compute target does not exist"),
    (5, "the dispatcher, the workspace or the compute target cannot be used"),
    (70, "a bug in Trainmaster; please report it"),
    (130, "interrupted; a run that was waited for continues"),
)


def all_commands() -> dict[str, Command]:
    """Name to command."""
    return {command.name: command for _, commands in SECTIONS for command in commands}


def groups() -> set[str]:
    """The first words of commands of two words."""
    return {name.split()[0] for name in all_commands() if " " in name}
