"""Models from inside a job or a service: where the files of a model are, registering a model, and finding one."""

import os
import sys
from types import SimpleNamespace

from trainmaster.job.errors import ModelNotFoundException, TrainmasterError, WebserviceException
from trainmaster.job.script.asking import ask, can_ask
from trainmaster.job.script.full import full_package
from trainmaster.job.script.model_places import as_path, find_in_service
from trainmaster.job.script.model_rules import check_version
from trainmaster.job.script.registered_model import RegisteredModel
from trainmaster.job.script.surroundings import JobWorkspace, full_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence, Type

    from trainmaster.job.script.registered_model import DatasetReferences

# Gigabytes may be copied and hashed before the answer.
_ANSWER_SECONDS = 3600.0
_HINT = "'trainmaster up' starts the dispatcher."


def find_path(
    name: str, version: "int | str | None" = None, locate: "Callable[[str, int | None], str] | None" = None
) -> str:
    """The path of a model: in a service, in the workspace of the job (or where `locate` says), else `name` itself."""
    if not isinstance(name, str) or not name:
        raise WebserviceException("{!r} cannot be the name of a model".format(str(name)[:60]))
    number = check_version(version)
    found = find_in_service(name, number)
    if found is not None:
        return found
    if locate is None and not can_ask():
        return as_path(name)
    try:
        return (locate or _locate)(name, number)
    except ModelNotFoundException as missing:
        return as_path(name, missing)


class Model(RegisteredModel):
    """A registered model of the job's workspace. For any other workspace, the full Trainmaster is needed.

    >>> path = Model.get_model_path("mnist")  # doctest: +SKIP
    """

    def __new__(cls, workspace: "Any" = None, *args: "Any", **kwargs: "Any") -> "Any":
        if _is_full(workspace):
            return full_model("Model(workspace, name)")(workspace, *args, **kwargs)
        return super(Model, cls).__new__(cls)

    @classmethod
    def _class_for(cls, workspace: "Any", wanted: str) -> "Type[Any]":
        return full_model(wanted) if _is_full(workspace) else cls

    @staticmethod
    def _caller(workspace: "Any") -> "Callable[..., Any]":
        return _ask

    @staticmethod
    def _read(answer: "Any") -> "Any":
        return SimpleNamespace(**answer)

    @classmethod
    def _keep_path(
        cls,
        workspace: "Any",
        path: str,
        child_paths: "Sequence[str] | None",
        description: "dict[str, Any]",
        references: "DatasetReferences",
    ) -> "Any":
        children = None if child_paths is None else [os.fspath(each) for each in child_paths]
        return _keep(description, os.path.abspath(path), of_run=False, child_paths=children)

    @classmethod
    def _keep_run_files(
        cls, run: "Any", path: str, description: "dict[str, Any]", references: "DatasetReferences"
    ) -> "Any":
        return _keep(description, path, of_run=True, child_paths=None)

    @staticmethod
    def get_model_path(model_name: str, version: "int | None" = None, _workspace: "Any" = None) -> str:
        """The path of a model's file or folder, in a service or in a job; else `model_name` as a path."""
        if _is_full(_workspace):
            found: str = full_model("Model.get_model_path").get_model_path(model_name, version, _workspace)
            return found
        return find_path(model_name, version)

    @property
    def path(self) -> str:
        """The file or folder itself, in the workspace; read-only."""
        return _locate(self.name, self.version)

    def _copy_into(self, folder: str) -> None:
        from trainmaster.job.script.files import copy_out, walk_files

        source = self.path
        target = os.path.join(folder, self.entry)
        for each in walk_files(source) if os.path.isdir(source) else [source]:
            copy_out(each, os.path.normpath(os.path.join(target, os.path.relpath(each, source))))

    @staticmethod
    def deploy(workspace: "Any", name: str, models: "Sequence[Any]", *args: "Any", **kwargs: "Any") -> "Any":
        """Makes a scoring service of models (full Trainmaster)."""
        return full_model("Model.deploy").deploy(_as_full(workspace), name, _full_models(models), *args, **kwargs)

    @staticmethod
    def package(workspace: "Any", models: "Sequence[Any]", *args: "Any", **kwargs: "Any") -> "Any":
        """Writes models as a folder that runs anywhere (full Trainmaster)."""
        return full_model("Model.package").package(_as_full(workspace), _full_models(models), *args, **kwargs)

    @staticmethod
    def profile(workspace: "Any", profile_name: str, models: "Sequence[Any]", *args: "Any", **kwargs: "Any") -> "Any":
        """Measures what a service of models needs (full Trainmaster)."""
        chosen = _full_models(models)
        return full_model("Model.profile").profile(_as_full(workspace), profile_name, chosen, *args, **kwargs)

    def __getattr__(self, name: str) -> "Any":
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            full = full_model("model." + name)(_as_full(self.workspace), id=self.id)
        except TrainmasterError as error:
            raise AttributeError(str(error)) from error
        return getattr(full, name)


def full_model(wanted: str) -> "Any":
    """The Model class of the full Trainmaster; `wanted` is named in the error where it is not installed."""
    full_package(wanted)
    # By its name, because the job side never depends on the SDK.
    __import__("trainmaster.sdk.models.model")
    return sys.modules["trainmaster.sdk.models.model"].Model


def _is_full(workspace: "Any") -> bool:
    """Whether the full Trainmaster opened this workspace: it may be another one than the job's."""
    return workspace is not None and not isinstance(workspace, JobWorkspace)


def _as_full(workspace: "Any") -> "Any":
    return workspace if _is_full(workspace) else full_workspace()


def _full_models(models: "Sequence[Any]") -> "list[Any]":
    kind = full_model("Model")
    return [kind(_as_full(each.workspace), id=each.id) if isinstance(each, Model) else each for each in models]


def _locate(name: str, version: "int | None") -> str:
    return str(_ask("models.locate", name=name, version=version)["path"])


def _keep(description: "dict[str, Any]", path: str, of_run: bool, child_paths: "list[str] | None") -> "Any":
    model = dict(description, lineage={"registered_in": os.environ.get("TRAINMASTER_RUN_ID", "")})
    return Model._read(_ask("models.keep", model=model, path=path, of_run=of_run, child_paths=child_paths))


def _ask(op: str, **args: "Any") -> "Any":
    return ask(op, args, "models", _HINT, _ANSWER_SECONDS)
