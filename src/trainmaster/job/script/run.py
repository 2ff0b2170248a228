"""Run: the run of this job and its children, as the script sees them."""

import os
from time import time

from trainmaster.job.errors import RunEnvironmentException, UserErrorException
from trainmaster.job.script.files import RunFiles, copy_out
from trainmaster.job.script.journal import Journal, process_id
from trainmaster.job.script.tracked_run import TrackedRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from typing import Any, Callable, Iterator, Mapping, NoReturn, Sequence

    from trainmaster.job.script.metrics import Reference

_LONGEST_ID = 128
# One run per process (outside of jobs one offline run), by its id.
_contexts: "dict[str, object]" = {}


def get_context(allow_offline: bool = True, **kwargs: "Any") -> "Any":
    """The run of this job; outside of a job an offline run that prints, or an error without `allow_offline`."""
    run_id = os.environ.get("TRAINMASTER_RUN_ID", "")
    if run_id not in _contexts:
        # setdefault, so that threads that ask at the same time get the same run.
        _contexts.setdefault(run_id, JobRun() if run_id else _offline_run(allow_offline))
    elif not run_id and not allow_offline:
        _offline_run(allow_offline)
    return _contexts[run_id]


def get_run(experiment: "Any", run_id: str, **kwargs: "Any") -> "Any":
    """The run with this id. It needs the full Trainmaster in the job's environment."""
    return Run(experiment, run_id)


class Run(TrackedRun):
    """A run. In a job `Run.get_context()` returns the job's own; `Run(experiment, run_id)` and the static
    methods need the full Trainmaster in the job's environment.

    >>> run = Run.get_context()  # doctest: +SKIP
    >>> run.log("accuracy", 0.9)  # doctest: +SKIP
    """

    def __new__(cls, *args: "Any", **kwargs: "Any") -> "Any":
        if cls is Run:
            return _full_run_class("Run(experiment, run_id)")(*args, **kwargs)
        return super(Run, cls).__new__(cls)

    @classmethod
    def get_context(cls, allow_offline: bool = True, used_for_context_manager: bool = False, **kwargs: "Any") -> "Any":
        """The run of this job; outside of a job an offline run that prints, or an error without `allow_offline`."""
        return get_context(allow_offline)

    @classmethod
    def get_submitted_run(cls, **kwargs: "Any") -> "Any":
        """The run of this job, by the old name; an error outside of a job."""
        return get_context(allow_offline=False)

    @staticmethod
    def get(workspace: "Any", run_id: str) -> "Any":
        """The run with this id (full Trainmaster)."""
        return _full_run_class("Run.get").get(workspace, run_id)

    @staticmethod
    def list(experiment: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        """The runs of an experiment (full Trainmaster)."""
        return _full_run_class("Run.list").list(experiment, *args, **kwargs)

    @staticmethod
    def list_by_compute(compute: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        """The runs on a target (full Trainmaster)."""
        return _full_run_class("Run.list_by_compute").list_by_compute(compute, *args, **kwargs)

    @staticmethod
    def add_type_provider(runtype: str, run_factory: "Any") -> "Any":
        """Sets the class for a type of run (full Trainmaster)."""
        return _full_run_class("Run.add_type_provider").add_type_provider(runtype, run_factory)


class JobRun(Run):
    """The run of the job that this process belongs to; its facts come from the job's variables."""

    type = "azureml.scriptrun"
    _known_tags: "dict[str, str | None] | None" = None
    _known_properties: "dict[str, str] | None" = None
    # Never changed, but replaced by a run that sets one.
    _texts: "Mapping[str, str]" = {}

    def __init__(self) -> None:
        from trainmaster.job.script.surroundings import JobExperiment

        self._id = os.environ["TRAINMASTER_RUN_ID"]
        self._folder = os.environ.get("TRAINMASTER_RUN_FOLDER", "")
        if not self._folder:
            raise RunEnvironmentException(
                "the run {} has no folder to write to".format(self._id),
                cause="TRAINMASTER_RUN_ID is set, TRAINMASTER_RUN_FOLDER is not",
                hint="Pass the variables TRAINMASTER_* to the processes that the script starts.",
            )
        rank = os.environ.get("TRAINMASTER_RANK") or "0"
        self._writer = Journal.create_in(os.path.join(self._folder, "journals"), rank)
        self._experiment = JobExperiment()
        self._children: "builtins.list[Any]" = []

    def __reduce__(self) -> "Any":
        # Scripts pass their run to worker processes, or copy an object that has it: it is still the same run.
        return get_context, ()

    def __exit__(self, kind: "Any", error: "BaseException | None", trace: object) -> None:
        """Nothing: the exit code of the script decides about the state of its run."""

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._id

    @property
    def number(self) -> "int | None":
        """The number within the experiment; None if the job does not know it."""
        number = os.environ.get("TRAINMASTER_RUN_NUMBER", "")
        return int(number) if number.isdigit() else None

    @property
    def status(self) -> str:
        """The state, as far as this process knows it."""
        return "Running"

    @property
    def experiment(self) -> "Any":
        """The experiment of the run: its name and workspace."""
        return self._experiment

    @property
    def parent(self) -> "Any":
        """The run of which this one is a child, or None; in a job it has only an id and an experiment."""
        parent_id = os.environ.get("TRAINMASTER_PARENT_RUN_ID", "")
        return ParentRun(parent_id) if parent_id else None

    def get_status(self) -> str:
        """The state, as far as this process knows it."""
        return self.status

    def get_detailed_status(self) -> "dict[str, Any]":
        """The state, and an empty text about it."""
        return {"status": self.status, "details": ""}

    def get_details(self) -> "dict[str, Any]":
        """What a job knows about its run; outside of the job there is more."""
        return {
            "runId": self.id,
            "target": os.environ.get("AZUREML_TARGET_TYPE", ""),
            "status": self.status,
            "properties": self.properties,
            "runDefinition": self._definition(),
            "inputDatasets": [],
            "outputDatasets": [],
            "logFiles": {},
        }

    def _definition(self) -> "dict[str, Any]":
        import sys

        arguments = list(sys.argv[1:])
        return {"script": sys.argv[0], "arguments": arguments, "Arguments": arguments}

    def get_portal_url(self) -> str:
        """The web page of the run; empty if there is none."""
        return os.environ.get("TRAINMASTER_PORTAL_URL", "")

    def get_snapshot_id(self) -> "str | None":
        """The id of the job's snapshot; None if the job does not know it."""
        return self.properties.get("ContentSnapshotId")

    def _read_metrics(self, name: "str | None", reference: "Reference") -> "dict[str, Any]":
        from trainmaster.job.script.metrics import shape_records

        own = (r for r in self._journal().records() if r.get("r") == self._about and name in (None, r.get("n")))
        return shape_records(own, reference)

    def get_file_names(self) -> "builtins.list[str]":
        """The names of the run's files."""
        return RunFiles(self._files_folder()).names()

    def _find_file(self, name: str) -> str:
        return RunFiles(self._files_folder()).existing(name)

    def _read_file(self, name: str) -> bytes:
        with open(self._find_file(name), "rb") as stream:
            return stream.read()

    def _list_files(self, prefix: str) -> "builtins.list[str]":
        return [name for name in self.get_file_names() if name.startswith(prefix)]

    def _copy_file(self, name: str, target: str) -> None:
        copy_out(self._find_file(name), target)

    def get_secret(self, name: str) -> "str | None":
        """A secret of the workspace; None, with a warning, for a name that it does not have."""
        # Not through self.get_secrets, so that the warning points at the script's line.
        from trainmaster.job.script.secrets import get_secrets

        return get_secrets(os.environ["TRAINMASTER_RUN_ID"], [name])[name]

    def get_secrets(self, secrets: "Sequence[str]") -> "dict[str, str | None]":
        """Name to secret of the workspace; None, with a warning, for a name that it does not have."""
        from trainmaster.job.script.secrets import get_secrets

        return get_secrets(os.environ["TRAINMASTER_RUN_ID"], secrets)

    @property
    def input_datasets(self) -> "Any":
        """Name to the path of a dataset input; to the dataset itself in the mode `direct`."""
        from trainmaster.job.script.datasets import input_datasets

        return input_datasets()

    @property
    def output_datasets(self) -> "Any":
        """Name to the path of a dataset output."""
        from trainmaster.job.script.datasets import output_datasets

        return output_datasets()

    @staticmethod
    def _model_class() -> "Any":
        from trainmaster.job.script.models import Model

        return Model

    def child_run(self, name: "str | None" = None, run_id: "str | None" = None, outputs: "Any" = None) -> "ChildRun":
        """Begins a child run; at the end of a `with` block it is Completed, or Failed after an exception."""
        child = ChildRun(self, name, run_id)
        self._children.append(child)
        return child

    def _create_children(self, tags: "builtins.list[dict[str, Any]]") -> "builtins.list[ChildRun]":
        children = [self.child_run() for _ in tags]
        for child, pairs in zip(children, tags):  # noqa: B905
            if pairs:
                child.set_tags(pairs)
        return children

    def submit_child(self, config: "Any", tags: "Mapping[str, Any] | None" = None, **kwargs: "Any") -> "Any":
        """Submits a configuration as a child of this run, with its own job (full Trainmaster)."""
        from trainmaster.job.script.surroundings import full_workspace

        own = _full_run_class("run.submit_child").get(full_workspace(), self.id)
        child = own.submit_child(config, tags, **kwargs)
        self._children.append(child)
        return child

    def get_children(
        self,
        recursive: bool = False,
        tags: "str | Mapping[str, Any] | None" = None,
        properties: "str | Mapping[str, Any] | None" = None,
        type: "str | None" = None,
        status: "str | Sequence[str] | None" = None,
    ) -> "Iterator[Any]":
        """The child runs that this process began."""
        from trainmaster.job.script.labels import matches

        for child in list(self._children):
            if matches(child.tags, tags) and matches(child.properties, properties):
                if type in (None, child.type) and status in (None, child.status):
                    yield child
            if recursive:
                for grandchild in child.get_children(True, tags, properties, type, status):
                    yield grandchild

    def start(self) -> None:
        """Nothing: the run has already begun."""

    def complete(self, _set_status: bool = True) -> None:
        """Only flushes: in a job the exit code of the script decides about the state."""
        self.flush()

    def fail(self, error_details: "Any" = None, error_code: "str | None" = None, _set_status: bool = True) -> None:
        """Only flushes: in a job the exit code of the script decides about the state."""
        self.flush()

    def cancel(self) -> None:
        """Only warns: a job is cancelled from outside."""
        import warnings

        warnings.warn("run.cancel() does nothing inside a job: end the script instead", stacklevel=2)

    # Labels: those that the job was given, and those that this process has set since

    def _get_text(self, name: str) -> str:
        known = self._texts.get(name)
        return self._initial_text("TRAINMASTER_" + name.upper()) if known is None else known

    def _set_text(self, name: str, text: str) -> None:
        self._append({"k": "set", "v": {name: text}})
        self._texts = dict(self._texts, **{name: text})

    def _get_tags(self) -> "dict[str, str | None]":
        if self._known_tags is None:
            self._known_tags = self._initial_pairs("TRAINMASTER_TAGS")
        return self._known_tags

    def _get_properties(self) -> "dict[str, str]":
        if self._known_properties is None:
            self._known_properties = self._initial_pairs("TRAINMASTER_PROPERTIES")
        return self._known_properties

    def _add_tags(self, tags: "dict[str, str | None]") -> None:
        self._append({"k": "tags", "v": tags})
        self._get_tags().update(tags)

    def _drop_tags(self, names: "builtins.list[str]") -> None:
        self._append({"k": "untag", "v": names})
        for name in names:
            self._get_tags().pop(name, None)

    def _add_properties(self, properties: "dict[str, str]") -> None:
        known = self._get_properties()
        for key, value in properties.items():
            if known.get(key, value) != value:
                raise UserErrorException(
                    "the property {!r} cannot be changed".format(key),
                    cause="it is {!r} already".format(known[key]),
                    hint="Use a tag for what changes.",
                )
        self._append({"k": "properties", "v": properties})
        known.update(properties)

    def _initial_text(self, variable: str) -> str:
        return os.environ.get(variable, "")

    def _initial_pairs(self, variable: str) -> "dict[str, Any]":
        import json

        try:
            pairs = json.loads(os.environ.get(variable) or "{}")
        except ValueError:
            # Scripts may change their variables; the labels in the store stay as they are.
            return {}
        return pairs if isinstance(pairs, dict) else {}

    def _journal(self) -> "Journal":
        return self._writer

    def _files_folder(self) -> str:
        return os.path.join(self._folder, "files")


class ParentRun(JobRun):
    """The parent of a job's run: the job knows its id, and cannot write to it."""

    def __init__(self, parent_id: str) -> None:
        super(ParentRun, self).__init__()
        self._id = parent_id

    def __reduce__(self) -> "Any":
        return ParentRun, (self._id,)

    @property
    def parent(self) -> "Any":
        """Not known in a job."""
        return None

    def _journal(self) -> "NoReturn":
        raise RunEnvironmentException(
            "the parent run {} cannot be written to or read from this job".format(self.id),
            hint="Log to the job's own run; outside of the job the metrics of all children can be read together.",
        )

    def _files_folder(self) -> "NoReturn":
        self._journal()

    def _initial_text(self, variable: str) -> str:
        return ""

    def _initial_pairs(self, variable: str) -> "NoReturn":
        self._journal()


class ChildRun(JobRun):
    """A child of the job's run, or of another child, in the same journals.

    It ends with `complete`, `fail` or a `with` block.
    """

    def __init__(self, parent: "JobRun", name: "str | None" = None, run_id: "str | None" = None) -> None:
        if name is not None and not isinstance(name, str):
            raise UserErrorException("the name of a run has to be a str, not {}".format(type(name).__name__))
        self._id = _new_id() if run_id is None else _check_id(run_id)
        self._about = self._id
        self._parent = parent
        self._experiment = parent.experiment
        self._folder = os.path.join(_folder_of_children(parent), self._id)
        self._first_name = name
        self._texts = {"display_name": name} if name else {}
        self._state = "Running"
        self._children = []
        self._began_at = time()
        self._announced_in = 0
        self._journal()

    def __reduce__(self) -> "Any":
        return ChildRun, (self._parent, self._first_name, self._id)

    def __exit__(self, kind: "Any", error: "BaseException | None", trace: object) -> None:
        """Completed, or Failed after an exception, which is not caught; `sys.exit(0)` is not a failure."""
        if kind is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
            self.complete()
        else:
            self.fail("{}: {}".format(kind.__name__, error), error_code=kind.__name__)

    @property
    def parent(self) -> "Any":
        """The run that began this one."""
        return self._parent

    @property
    def status(self) -> str:
        """Running, Completed, Failed or Canceled."""
        return self._state

    @property
    def number(self) -> "int | None":
        """Not known in a job."""
        return None

    def complete(self, _set_status: bool = True) -> None:
        """Ends the run as Completed."""
        self._end("Completed", None)

    def fail(self, error_details: "Any" = None, error_code: "str | None" = None, _set_status: bool = True) -> None:
        """Ends the run as Failed; the details are text or an exception."""
        self._end("Failed", {"code": str(error_code or "UserError"), "message": str(error_details or "")})

    def cancel(self) -> None:
        """Ends the run as Canceled."""
        self._end("Canceled", None)

    def _end(self, state: str, error: "dict[str, str] | None") -> None:
        # A terminal state never changes.
        if self._state != "Running":
            return
        self._append({"k": "state", "v": state, "error": error, "t": time()})
        self._state = state

    def _journal(self) -> "Journal":
        journal = self._parent._journal()
        # Each process has its own journal, and every journal must announce the child before it logs to it.
        if self._announced_in != process_id():
            self._announced_in = process_id()
            self._parent._append({"k": "child", "id": self._id, "name": self._first_name, "t": self._began_at})
        return journal

    def _initial_text(self, variable: str) -> str:
        return ""

    def _initial_pairs(self, variable: str) -> "dict[str, Any]":
        return {}


def _full_run_class(wanted: str) -> "Any":
    from trainmaster.job.script.full import full_run_class

    return full_run_class(wanted)


def _offline_run(allowed: bool) -> "Any":
    if not allowed:
        raise RunEnvironmentException(
            "there is no run: the script was started outside of a job",
            cause="the variable TRAINMASTER_RUN_ID is not set",
            hint="Submit the script, or use Run.get_context(), which returns an offline run here.",
        )
    from trainmaster.job.script.offline import OfflineRun

    return OfflineRun()


def _new_id() -> str:
    from trainmaster.job.script.identity import new_id

    return new_id()


def _folder_of_children(parent: "JobRun") -> str:
    """Beside the run's own folder; on a machine that does not see the workspace in it, because that is copied back."""
    from trainmaster.job.script.asking import is_elsewhere

    beside = os.path.dirname(parent._folder)
    if isinstance(parent, ChildRun) or not is_elsewhere():
        return beside
    sees_workspace = os.path.exists(os.path.join(os.path.dirname(beside), "workspace.json"))
    return beside if sees_workspace else os.path.join(parent._folder, "children")


def _check_id(run_id: str) -> str:
    from trainmaster.job.helper.safe_names import RULE, is_plain

    if not is_plain(run_id, _LONGEST_ID):
        raise UserErrorException(
            "{!r} cannot be the id of a run".format(run_id), hint="Use {}, {} at most.".format(RULE, _LONGEST_ID)
        )
    return run_id


def _refusal(method: str, instead: str) -> "Callable[..., NoReturn]":
    def refuse(self: object, *args: "Any", **kwargs: "Any") -> "NoReturn":
        raise RunEnvironmentException("run.{}() cannot be used inside the job".format(method), hint=instead)

    refuse.__name__ = method
    refuse.__doc__ = "Not in a job. " + instead
    return refuse


_OUTSIDE = "Use it on the run that submit() returned, outside of the job."

for _method, _instead in (
    ("wait_for_completion", "A job cannot wait for itself. " + _OUTSIDE),
    ("get_all_logs", _OUTSIDE),
    ("get_details_with_logs", _OUTSIDE),
    ("get_environment", _OUTSIDE),
    ("clean", _OUTSIDE),
    ("restore_snapshot", "The snapshot is the working folder of the job. " + _OUTSIDE),
    ("take_snapshot", "Use run.upload_folder() to keep a folder with the run."),
):
    setattr(JobRun, _method, _refusal(_method, _instead))
