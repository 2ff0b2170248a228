"""Models from inside a job or a service: where one lies, registering one, and what there is."""

import os
import sys

from trainmaster.job.errors import (
    ModelNotFoundException,
    RunEnvironmentException,
    TrainmasterError,
    WebserviceException,
)
from trainmaster.job.script import model_questions
from trainmaster.job.script.asking import ask, can_ask
from trainmaster.job.script.full import full_package
from trainmaster.job.script.identity import new_id
from trainmaster.job.script.model_places import as_path, in_service
from trainmaster.job.script.model_rules import (
    Framework,
    check_name,
    checked_framework,
    checked_labels,
    checked_version,
    dataset_uses,
    label_names,
)
from trainmaster.job.script.resource_configuration import as_plain
from trainmaster.job.script.surroundings import JobWorkspace, full_workspace

# Gigabytes may be copied and hashed before the answer.
_ANSWER_SECONDS = 3600.0


def find_path(name, version=None, of_workspace=None):
    """Where a model lies: in a service, in the workspace of the job (or by `of_workspace`), else `name` as a path."""
    if not isinstance(name, str) or not name:
        raise WebserviceException("{!r} cannot be the name of a model".format(str(name)[:60]))
    version = checked_version(version)
    found = in_service(name, version)
    if found is not None:
        return found
    if of_workspace is None and not can_ask():
        return as_path(name)
    try:
        return (of_workspace or _located)(name, version)
    except ModelNotFoundException as missing:
        return as_path(name, missing)


def _located(name, version):
    return _ask("models.locate", name=name, version=version)["path"]


class Model:
    """A registered model, as a job sees it; one of another workspace than the job's is one of the full Trainmaster.

    >>> path = Model.get_model_path("mnist")  # doctest: +SKIP
    """

    Framework = Framework

    def __new__(cls, workspace, *args, **kwargs):
        if _is_whole(workspace):
            return full_model("Model(workspace, name)")(workspace, *args, **kwargs)
        return super(Model, cls).__new__(cls)

    def __init__(
        self,
        workspace,
        name=None,
        id=None,
        tags=None,
        properties=None,
        version=None,
        run_id=None,
        model_framework=None,
        expand=True,
        **kwargs,
    ):
        self.workspace = workspace
        self._record = kwargs.get("_record") or model_questions.find(
            _ask, name, id, version, tags, properties, run_id, model_framework
        )

    @staticmethod
    def get_model_path(model_name, version=None, _workspace=None):
        """Where a model's file or folder lies, in a service or in a job; else `model_name` as a path."""
        if _is_whole(_workspace):
            return full_model("Model.get_model_path").get_model_path(model_name, version, _workspace)
        return find_path(model_name, version)

    @staticmethod
    def register(
        workspace,
        model_path,
        model_name,
        tags=None,
        properties=None,
        description=None,
        datasets=None,
        model_framework=None,
        model_framework_version=None,
        child_paths=None,
        sample_input_dataset=None,
        sample_output_dataset=None,
        resource_configuration=None,
    ):
        """Keeps a file or a folder as the next version of `model_name`."""
        if _is_whole(workspace):
            return full_model("Model.register").register(
                workspace, model_path, model_name, tags, properties, description, datasets, model_framework,
                model_framework_version, child_paths, sample_input_dataset, sample_output_dataset,
                resource_configuration,
            )  # fmt: skip
        said = described(
            model_name, tags, properties, description, datasets, model_framework, model_framework_version,
            sample_input_dataset, sample_output_dataset, resource_configuration,
        )  # fmt: skip
        path = os.path.abspath(os.fspath(model_path))
        return kept(workspace, said, path, child_paths=child_paths)

    @staticmethod
    def list(
        workspace,
        name=None,
        tags=None,
        properties=None,
        run_id=None,
        latest=False,
        dataset_id=None,
        expand=True,
        page_count=255,
        model_framework=None,
    ):
        """The models for which all of it is true, newest first; with `latest` only the newest of each name."""
        if _is_whole(workspace):
            return full_model("Model.list").list(
                workspace, name, tags, properties, run_id, latest, dataset_id, expand, page_count, model_framework
            )
        found = model_questions.matching(
            _ask,
            name=name,
            run_id=run_id,
            framework=model_framework,
            dataset_id=dataset_id,
            tags=tags,
            properties=properties,
            latest=bool(latest),
        )
        return [Model(workspace, _record=record) for record in found]

    @property
    def name(self):
        """Its name."""
        return self._record["name"]

    @property
    def version(self):
        """The version of the name."""
        return self._record["version"]

    @property
    def id(self):
        """`name:version`."""
        return "{}:{}".format(self.name, self.version)

    @property
    def url(self):
        """Its address, in v1's form."""
        return "aml://asset/" + self.id

    @property
    def description(self):
        """What was written about it."""
        return self._record["description"]

    @property
    def tags(self):
        """Its labels."""
        return dict(self._record["tags"])

    @property
    def properties(self):
        """Pairs that never change."""
        return dict(self._record["properties"])

    @property
    def facts(self):
        """What programs found out about it."""
        return dict(self._record["facts"])

    @property
    def run_id(self):
        """The run whose files it is."""
        return self._record["run_id"] or None

    @property
    def experiment_name(self):
        """The experiment of that run."""
        return self._record["experiment"] or None

    @property
    def model_framework(self):
        """What it was made with."""
        return self._record["framework"] or None

    @property
    def model_framework_version(self):
        """In which version."""
        return self._record["framework_version"] or None

    @property
    def path(self):
        """The file or folder itself, in the workspace; read-only."""
        return _located(self.name, self.version)

    def download(self, target_dir=".", exist_ok=False, exists_ok=None):
        """Copies it into a folder and returns the path of the copy."""
        from trainmaster.job.script.files import copy_out, walk_files

        source = self.path
        target = os.path.join(os.fspath(target_dir), os.path.basename(source))
        if os.path.exists(target) and not (exist_ok if exists_ok is None else exists_ok):
            raise WebserviceException(
                "{} is there already".format(target), hint="Give exist_ok=True to write over it, or another target_dir."
            )
        for each in walk_files(source) if os.path.isdir(source) else [source]:
            copy_out(each, os.path.normpath(os.path.join(target, os.path.relpath(each, source))))
        return target

    def add_tags(self, tags):
        """Adds labels."""
        self.update_tags_properties(add_tags=tags)

    def remove_tags(self, tags):
        """Drops labels by their keys."""
        self.update_tags_properties(remove_tags=tags)

    def add_properties(self, properties):
        """Adds pairs that never change."""
        self.update_tags_properties(add_properties=properties)

    def update_tags_properties(self, add_tags=None, remove_tags=None, add_properties=None):
        """Adds and drops tags and adds properties, all or nothing."""
        self._change(
            "models.relabel",
            add_tags=checked_labels(add_tags, "tags"),
            remove_tags=label_names(remove_tags),
            add_properties=checked_labels(add_properties, "properties"),
        )

    def add_facts(self, facts):
        """Keeps facts, each any JSON by a name; one that is there is replaced."""
        self._change("models.relabel", facts=dict(facts))

    def update(
        self,
        tags=None,
        description=None,
        sample_input_dataset=None,
        sample_output_dataset=None,
        resource_configuration=None,
    ):
        """Sets what is given; `tags` takes the place of all tags."""
        samples = _sample(sample_input_dataset), _sample(sample_output_dataset)
        changes = model_questions.changes(tags, description, *samples, resource_configuration)
        self._change("models.update", changes=changes)

    def add_dataset_references(self, datasets):
        """Adds datasets, each with what it was used for."""
        self._change("models.refer", datasets=[], uses=_uses(datasets))

    def delete(self):
        """Removes it; refused while a service has it."""
        _ask("models.delete", name=self.name, version=self.version)

    @staticmethod
    def deploy(workspace, name, models, *args, **kwargs):
        """Makes a scoring service of models (full Trainmaster)."""
        return full_model("Model.deploy").deploy(_whole(workspace), name, _whole_models(models), *args, **kwargs)

    @staticmethod
    def package(workspace, models, *args, **kwargs):
        """Writes models as a folder that runs anywhere (full Trainmaster)."""
        return full_model("Model.package").package(_whole(workspace), _whole_models(models), *args, **kwargs)

    @staticmethod
    def profile(workspace, profile_name, models, *args, **kwargs):
        """Measures what a service of models needs (full Trainmaster)."""
        chosen = _whole_models(models)
        return full_model("Model.profile").profile(_whole(workspace), profile_name, chosen, *args, **kwargs)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            whole = full_model("model." + name)(_whole(self.workspace), id=self.id)
        except TrainmasterError as error:
            raise AttributeError(str(error)) from error
        return getattr(whole, name)

    def _change(self, op, **changes):
        self._record = _ask(op, name=self.name, version=self.version, **changes)

    def __repr__(self):
        return "Model(name={}, id={}, version={}, tags={}, properties={})".format(
            self.name, self.id, self.version, self.tags, self.properties
        )


def full_model(wanted):
    """The class of the full Trainmaster, for `wanted` (named in the error where it cannot be had)."""
    full_package(wanted)
    # By its name, because this side of Trainmaster never depends on that one.
    __import__("trainmaster.sdk.models.model")
    return sys.modules["trainmaster.sdk.models.model"].Model


def _is_whole(workspace):
    """Whether it is a workspace that the full Trainmaster opened: perhaps another one than the job's."""
    return workspace is not None and not isinstance(workspace, JobWorkspace)


def _whole(workspace):
    return workspace if _is_whole(workspace) else full_workspace()


def _whole_models(models):
    kind = full_model("Model")
    return [kind(_whole(each.workspace), id=each.id) if isinstance(each, Model) else each for each in models]


def described(
    name, tags, properties, description, datasets, framework, framework_version, sample_input, sample_output, resources
):
    """All that is said of a model besides its files, as the workspace is told."""
    framework, framework_version = checked_framework(framework, framework_version)
    return {
        "name": check_name(name),
        "key": new_id(),
        "tags": checked_labels(tags, "tags"),
        "properties": checked_labels(properties, "properties"),
        "description": str(description or ""),
        "datasets": _uses(datasets),
        "framework": framework,
        "framework_version": framework_version,
        "sample_input": _sample(sample_input),
        "sample_output": _sample(sample_output),
        "resources": as_plain(resources),
        "created_by": _user(),
    }


def kept(workspace, said, path, of_run=False, child_paths=None):
    """The model that the workspace makes of files of a run, or of any path."""
    said = dict(said, lineage={"registered_in": os.environ.get("TRAINMASTER_RUN_ID", "")})
    children = None if child_paths is None else [os.fspath(each) for each in child_paths]
    record = _ask("models.keep", model=said, path=path, of_run=of_run, child_paths=children)
    return Model(workspace, _record=record)


_HINT = "'trainmaster up' starts the dispatcher."


def _ask(op, **args):
    return ask(op, args, "models", _HINT, _ANSWER_SECONDS)


def _uses(datasets):
    return dataset_uses(datasets, _sample)


def _sample(dataset):
    if dataset is None:
        return ""
    if getattr(dataset, "id", None) is None:
        raise RunEnvironmentException(
            "{!r} has no id that the workspace would know".format(dataset),
            hint="Inside a job a model can refer to inputs of the run and to registered datasets.",
        )
    return dataset.id


def _user():
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
