"""Run: the run of this job, as its script sees it."""

import os

from trainmaster.job.errors import RunEnvironmentException, UserErrorException
from trainmaster.job.script.files import RunFiles, copy_out
from trainmaster.job.script.full import full_run_class
from trainmaster.job.script.journal import Journal
from trainmaster.job.script.labels import Labels
from trainmaster.job.script.recorder import Recorder

_MOST_CHILDREN = 100
# One run per process (and one stand-in outside of jobs), by its id.
_contexts: "dict[str, object]" = {}


def get_context(allow_offline=True, **kwargs):
    """The run of this job; elsewhere a stand-in that prints, or an error without `allow_offline`."""
    run_id = os.environ.get("TRAINMASTER_RUN_ID", "")
    if run_id not in _contexts:
        # setdefault, so that threads which ask at the same time get one and the same.
        _contexts.setdefault(run_id, JobRun() if run_id else _offline_run(allow_offline))
    elif not run_id and not allow_offline:
        _offline_run(allow_offline)
    return _contexts[run_id]


def get_run(experiment, run_id, **kwargs):
    """The run with this id. It needs the full Trainmaster in the job's environment."""
    return Run(experiment, run_id)


class Run(Recorder, Labels):
    """A run. In a job `Run.get_context()` gives the job's own; `Run(experiment, run_id)` and the static
    methods need the full Trainmaster in the job's environment.

    >>> run = Run.get_context()  # doctest: +SKIP
    >>> run.log("accuracy", 0.9)  # doctest: +SKIP
    """

    def __new__(cls, *args, **kwargs):
        if cls is Run:
            return full_run_class("Run(experiment, run_id)")(*args, **kwargs)
        return super(Run, cls).__new__(cls)

    @classmethod
    def get_context(cls, allow_offline=True, used_for_context_manager=False, **kwargs):
        """The run of this job; elsewhere a stand-in that prints, or an error without `allow_offline`."""
        return get_context(allow_offline)

    @classmethod
    def get_submitted_run(cls, **kwargs):
        """The run of this job, by the old name; an error outside of a job."""
        return get_context(allow_offline=False)

    @staticmethod
    def get(workspace, run_id):
        """The run with this id (full Trainmaster)."""
        return full_run_class("Run.get").get(workspace, run_id)

    @staticmethod
    def list(experiment, *args, **kwargs):
        """The runs of an experiment (full Trainmaster)."""
        return full_run_class("Run.list").list(experiment, *args, **kwargs)

    @staticmethod
    def list_by_compute(compute, *args, **kwargs):
        """The runs on a target (full Trainmaster)."""
        return full_run_class("Run.list_by_compute").list_by_compute(compute, *args, **kwargs)

    @staticmethod
    def add_type_provider(runtype, run_factory):
        """Names the class for a type of run (full Trainmaster)."""
        return full_run_class("Run.add_type_provider").add_type_provider(runtype, run_factory)


class JobRun(Run):
    """The run of the job this process belongs to; what it knows comes from the job's variables."""

    type = "azureml.scriptrun"

    def __init__(self):
        from trainmaster.job.script.surroundings import JobExperiment

        self._id = os.environ["TRAINMASTER_RUN_ID"]
        self._folder = os.environ.get("TRAINMASTER_RUN_FOLDER", "")
        if not self._folder:
            raise RunEnvironmentException(
                "the run {} has no folder to write to".format(self._id),
                cause="TRAINMASTER_RUN_ID is set, TRAINMASTER_RUN_FOLDER is not",
                hint="Hand the variables TRAINMASTER_* on to the processes the script starts.",
            )
        rank = os.environ.get("TRAINMASTER_RANK") or "0"
        self._writer = Journal.in_folder(os.path.join(self._folder, "journals"), rank)
        self._experiment = JobExperiment()
        self._children = []

    def __str__(self):
        return "Run(Experiment: {}, Id: {}, Type: {}, Status: {})".format(
            self.experiment.name, self.id, self.type, self.status
        )

    __repr__ = __str__

    def __reduce__(self):
        # Scripts hand their run to worker processes, or copy an object that has it: that is the same run.
        return get_context, ()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        # The exit code of the script decides about the state of its run.
        return False

    @property
    def id(self):
        """The id of the run."""
        return self._id

    @property
    def number(self):
        """The ordinal within the experiment, where the job was told; else None."""
        number = os.environ.get("TRAINMASTER_RUN_NUMBER", "")
        return int(number) if number.isdigit() else None

    @property
    def status(self):
        """The state as far as this process knows it."""
        return "Running"

    @property
    def experiment(self):
        """The experiment of the run: its name and workspace."""
        return self._experiment

    @property
    def parent(self):
        """The run this one is a child of, or None; in a job it has an id and an experiment."""
        parent_id = os.environ.get("TRAINMASTER_PARENT_RUN_ID", "")
        return ParentRun(parent_id) if parent_id else None

    def get_status(self):
        """The state as far as this process knows it."""
        return self.status

    def get_detailed_status(self):
        """The state, and an empty text about it."""
        return {"status": self.status, "details": ""}

    def get_details(self):
        """What a job knows of its run; outside of the job there is more."""
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

    def _definition(self):
        import sys

        arguments = list(sys.argv[1:])
        return {"script": sys.argv[0], "arguments": arguments, "Arguments": arguments}

    def get_portal_url(self):
        """The web page of the run, where there is one."""
        return os.environ.get("TRAINMASTER_PORTAL_URL", "")

    def get_snapshot_id(self):
        """The id of the snapshot the job runs, where the job was told."""
        return self.properties.get("ContentSnapshotId")

    def get_metrics(self, name=None, recursive=False, run_type=None, populate=False):
        """What this process logged so far, in v1's shape; with `recursive` by run id, with its children."""
        from trainmaster.job.script.metrics import shape_metrics

        def reference(kind, file):
            return self._contents(kind, file) if populate else self._reference(file)

        own = [r for r in self._journal().records() if r.get("r") == self._about and name in (None, r.get("n"))]
        metrics = shape_metrics(own, reference)
        if not recursive:
            return metrics
        found = {self.id: metrics}
        for child in self._children:
            found.update(child.get_metrics(name, True, run_type, populate))
        return found

    def get_file_names(self):
        """The names of the run's files."""
        return RunFiles(self._files_folder()).names()

    def download_file(self, name, output_file_path=None):
        """Copies a file of the run; by default into the current folder, under the last part of its name."""
        source = RunFiles(self._files_folder()).existing(name)
        target = os.path.basename(source) if output_file_path is None else os.fspath(output_file_path)
        if target.endswith("/") or os.path.isdir(target):
            target = os.path.join(target, os.path.basename(source))
        copy_out(source, target)

    def download_files(
        self,
        prefix=None,
        output_directory=None,
        output_paths=None,
        batch_size=100,
        append_prefix=True,
        timeout_seconds=None,
    ):
        """Copies all files of the run whose names begin with `prefix`."""
        start = prefix or ""
        names = [name for name in self.get_file_names() if name.startswith(start)]
        if output_paths is None:
            cut = 0 if append_prefix else len(start)
            output_paths = [name[cut:].lstrip("/") or os.path.basename(name) for name in names]
        if len(output_paths) != len(names):
            raise UserErrorException(
                "download_files needs one output path per file",
                cause="{} paths for {} files: {}".format(len(output_paths), len(names), ", ".join(names[:20])),
            )
        for name, path in zip(names, output_paths):  # noqa: B905
            self.download_file(name, os.path.join(os.fspath(output_directory or "."), path))

    def get_secret(self, name):
        """A secret of the workspace; None, with a warning, for a name that it does not have."""
        # Not by way of get_secrets: the warning is to point at the script's line.
        from trainmaster.job.script.secrets import get_secrets

        return get_secrets(os.environ["TRAINMASTER_RUN_ID"], [name])[name]

    def get_secrets(self, secrets):
        """Name to secret of the workspace; None, with a warning, for a name that it does not have."""
        from trainmaster.job.script.secrets import get_secrets

        return get_secrets(os.environ["TRAINMASTER_RUN_ID"], secrets)

    @property
    def input_datasets(self):
        """Name to the path of a dataset input; to the dataset itself where it is used directly."""
        from trainmaster.job.script.datasets import input_datasets

        return input_datasets()

    @property
    def output_datasets(self):
        """Name to the path that belongs to a dataset output."""
        from trainmaster.job.script.datasets import output_datasets

        return output_datasets()

    def register_model(
        self,
        model_name,
        model_path=None,
        tags=None,
        properties=None,
        model_framework=None,
        model_framework_version=None,
        description=None,
        datasets=None,
        sample_input_dataset=None,
        sample_output_dataset=None,
        resource_configuration=None,
        **kwargs,
    ):
        """Keeps files of the run (uploaded, or in outputs/) as the next version of a model, while the job goes on."""
        from trainmaster.job.script.models import Model

        return Model._register_run_files(
            self,
            model_name,
            model_path,
            tags=tags,
            properties=properties,
            description=description,
            datasets=datasets,
            framework=model_framework,
            framework_version=model_framework_version,
            sample_input=sample_input_dataset,
            sample_output=sample_output_dataset,
            resources=resource_configuration,
        )

    def child_run(self, name=None, run_id=None, outputs=None):
        """Begins a child run; used with `with` it is Completed at the end, or Failed on an exception."""
        from trainmaster.job.script.child import ChildRun

        child = ChildRun(self, name, run_id)
        self._children.append(child)
        return child

    def create_children(self, count=None, tag_key=None, tag_values=None):
        """Begins several child runs: `count` of them, or one per tag value. At most 100."""
        if (count is None) == (tag_values is None) or (tag_key is None) != (tag_values is None):
            raise UserErrorException("create_children takes either count, or tag_key and tag_values")
        labels = [None] * count if tag_values is None else list(tag_values)
        if not 0 < len(labels) <= _MOST_CHILDREN:
            raise UserErrorException("create_children makes 1 to {} runs at once".format(_MOST_CHILDREN))
        children = [self.child_run() for _ in labels]
        if tag_key is not None:
            for child, label in zip(children, labels):  # noqa: B905
                child.tag(tag_key, label)
        return children

    def submit_child(self, config, tags=None, **kwargs):
        """Submits a configuration as a child of this run; it has a job of its own (full Trainmaster)."""
        from trainmaster.job.script.surroundings import full_workspace

        own = full_run_class("run.submit_child").get(full_workspace(), self.id)
        child = own.submit_child(config, tags, **kwargs)
        self._children.append(child)
        return child

    def get_children(self, recursive=False, tags=None, properties=None, type=None, status=None):
        """The child runs that this process began."""
        from trainmaster.job.script.labels import matches

        for child in list(self._children):
            if matches(child.tags, tags) and matches(child.properties, properties):
                if type in (None, child.type) and status in (None, child.status):
                    yield child
            if recursive:
                for grandchild in child.get_children(True, tags, properties, type, status):
                    yield grandchild

    def start(self):
        """Nothing: the run has begun."""

    def complete(self, _set_status=True):
        """Nothing but a flush: in a job the exit code of the script decides."""
        self.flush()

    def fail(self, error_details=None, error_code=None, _set_status=True):
        """Nothing but a flush: in a job the exit code of the script decides."""
        self.flush()

    def cancel(self):
        """Only warns: a job is cancelled from outside."""
        import warnings

        warnings.warn("run.cancel() does nothing inside a job: end the script instead", stacklevel=2)

    def _journal(self):
        return self._writer

    def _files_folder(self):
        return os.path.join(self._folder, "files")

    def _reference(self, file):
        return "aml://artifactId/" + file

    def _contents(self, kind, file):
        with open(RunFiles(self._files_folder()).existing(file), "rb") as stream:
            contents = stream.read()
        if kind == "image":
            return contents
        import json

        return json.loads(contents.decode("utf-8"))


class ParentRun(JobRun):
    """The run a job's run is a child of: known by its id, and not to be written to from here."""

    def __init__(self, parent_id):
        super(ParentRun, self).__init__()
        self._id = parent_id

    def __reduce__(self):
        return ParentRun, (self._id,)

    @property
    def parent(self):
        """Not known in a job."""
        return None

    def _journal(self):
        raise RunEnvironmentException(
            "the parent run {} cannot be written to or read from this job".format(self.id),
            hint="Log to the job's own run; outside of the job the parent's children can be read together.",
        )

    def _files_folder(self):
        return self._journal()

    def _initial_text(self, variable):
        return ""

    def _initial_pairs(self, variable):
        return self._journal()


def _offline_run(allowed):
    if not allowed:
        raise RunEnvironmentException(
            "there is no run here: the script was started outside of a job",
            cause="the variable TRAINMASTER_RUN_ID is not set",
            hint="Submit the script, or use Run.get_context(), which gives a stand-in here.",
        )
    from trainmaster.job.script.offline import OfflineRun

    return OfflineRun()


def _refusal(method, instead):
    def refuse(self, *args, **kwargs):
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
