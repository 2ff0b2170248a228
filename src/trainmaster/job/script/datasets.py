"""Datasets inside a job: the inputs of its run, and what is registered in the workspace."""

import json
import os
import sys
from types import SimpleNamespace

from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.job.script.asking import ask, is_elsewhere
from trainmaster.job.script.dataset_factories import FileFactory, TabularFactory
from trainmaster.job.script.dataset_files import WebFiles, is_web, local_files, wildcard_base, without_all
from trainmaster.job.script.dataset_sources import sources_of
from trainmaster.job.script.dataset_views import FileView, TableView, View, check_sources
from trainmaster.job.script.full import full_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from trainmaster.job.script.dataset_files import Place, Source, Step
    from trainmaster.job.script.storage import Storage

    # What the dispatcher tells a job about a dataset.
    Facts = dict[str, Any]


class JobDataset(View):
    """A dataset as a job sees it: its files are on this machine, or on the web."""

    def __init__(self, facts: "Facts") -> None:
        self._facts = facts

    def _registration(self) -> "Any":
        if not self._facts.get("name"):
            return None
        known = self._facts
        return SimpleNamespace(
            name=known["name"],
            version=known.get("version"),
            description=known.get("description"),
            tags=known.get("tags") or {},
        )

    @property
    def id(self) -> "str | None":
        """The id; None for a dataset that this script made, because the workspace does not know it."""
        found: "str | None" = self._facts["id"]
        return found

    def _with_steps(self, *steps: "Step") -> "Any":
        definition = self._describe()
        definition = dict(definition, steps=list(definition["steps"]) + list(steps))
        return type(self)({"id": None, "definition": definition})

    def _describe(self) -> "dict[str, Any]":
        definition: "dict[str, Any]" = self._facts["definition"]
        return definition

    def _open_place(self, key: "Place") -> "Storage":
        return WebFiles(key[1]) if key[0] == "web" else local_files()


class FileDataset(JobDataset, FileView):
    """A dataset of files."""


class TabularDataset(JobDataset, TableView):
    """A dataset of tables."""


class FileDatasetFactory(FileFactory):
    """Makes datasets from files of this machine, of datastores that are folders here, or of the web; also
    `Dataset.File`.
    """

    @staticmethod
    def upload_directory(src_dir: "str | os.PathLike[str]", target: "Any", *args: "Any", **kwargs: "Any") -> "Any":
        """Uploads a folder to a datastore, and makes a dataset from it (full Trainmaster)."""
        full = _full_factories("Dataset.File.upload_directory").FileDatasetFactory
        return full.upload_directory(src_dir, target, *args, **kwargs)

    @classmethod
    def _make(cls, kind: str, path: "Any", validate: bool, reader: "dict[str, Any]") -> "Any":
        return _make_from_paths(kind, path, validate, reader)


class TabularDatasetFactory(TabularFactory):
    """Makes datasets from tables of this machine, of datastores that are folders here, or of the web; also
    `Dataset.Tabular`.
    """

    @staticmethod
    def register_pandas_dataframe(dataframe: "Any", target: "Any", name: str, *args: "Any", **kwargs: "Any") -> "Any":
        """Keeps a DataFrame in a datastore, and registers it (full Trainmaster)."""
        full = _full_factories("Dataset.Tabular.register_pandas_dataframe").TabularDatasetFactory
        return full.register_pandas_dataframe(dataframe, target, name, *args, **kwargs)

    @classmethod
    def _make(cls, kind: str, path: "Any", validate: bool, reader: "dict[str, Any]") -> "Any":
        return _make_from_paths(kind, path, validate, reader)


class Dataset:
    """The datasets of the workspace, from inside a job."""

    File = FileDatasetFactory
    Tabular = TabularDatasetFactory

    @staticmethod
    def get_by_name(workspace: "Any", name: str, version: "str | int" = "latest", **kwargs: "Any") -> "Any":
        """The registered dataset of this name."""
        return _make(_ask(name=name, version=str(version)))

    @staticmethod
    def get_by_id(workspace: "Any", id: str, **kwargs: "Any") -> "Any":
        """The dataset with this id: an input of the run, or any other of the workspace."""
        for facts in job_data()["inputs"].values():
            if facts["id"] == id:
                return _make(facts)
        return _make(_ask(id=id))


class Inputs(dict):  # type: ignore[type-arg]
    """The inputs of a run by their names; the error for an unknown name lists the known ones."""

    def __missing__(self, name: str) -> "NoReturn":
        raise UserErrorException(
            "the run has no dataset {!r}".format(name),
            hint="It has: {}.".format(", ".join(sorted(self)) or "none"),
        )


def input_datasets() -> "Inputs":
    """Name to path, or to the dataset for an input in the mode `direct`."""
    return Inputs(
        (name, _make(facts) if facts["mode"] == "direct" else facts["path"])
        for name, facts in job_data()["inputs"].items()
    )


def output_datasets() -> "Inputs":
    """Name to the path that the script writes to."""
    return Inputs(job_data()["outputs"])


def job_data() -> "dict[str, Any]":
    """The inputs and outputs of this job, as the dispatcher wrote them to a file."""
    path = os.environ.get("TRAINMASTER_DATASETS", "")
    if not path:
        return {"inputs": {}, "outputs": {}}
    with open(path) as file:
        found: "dict[str, Any]" = json.load(file)
    return found


def _make_from_paths(kind: str, path: "Any", validate: bool, reader: "dict[str, Any]") -> "Any":
    given = path if isinstance(path, list) else [path]
    if not all(isinstance(each, (str, os.PathLike)) or _find_place(each) for each in given):
        # In a datastore of the full Trainmaster.
        return _full_factories("a dataset of a datastore").make_dataset(kind, path, validate, reader)
    sources = sources_of(path, _store_source)
    definition = {"kind": kind, "sources": sources, "reader": reader, "steps": []}
    dataset = _make({"id": None, "definition": definition})
    if validate:
        check_sources(sources, dataset._open_place)
    return dataset


def _find_place(item: "Any") -> "tuple[Any, Any] | None":
    """The datastore and path that `item` names, if the datastore is of the job's class; else None."""
    from trainmaster.job.script.datastores import DataReference, Datastore

    if isinstance(item, DataReference) and isinstance(item.datastore, Datastore):
        return item.datastore, item.path_on_datastore
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Datastore):
        return item
    return None


def _store_source(item: "Any") -> "Source | None":
    from trainmaster.job.script.store_paths import store_path

    found = _find_place(item)
    if found is None:
        return None
    store, path = found
    folder = store.visible_folder()
    if folder is None:
        raise store.refusal()
    return {"path": os.path.join(folder, store_path(path))}


def _full_factories(wanted: str) -> "Any":
    full_package(wanted)
    # By its name, because the job side never depends on the SDK.
    __import__("trainmaster.sdk.datasets.factories")
    return sys.modules["trainmaster.sdk.datasets.factories"]


def _make(facts: "Facts") -> "Any":
    kind = TabularDataset if facts["definition"]["kind"] == "tabular" else FileDataset
    return kind(facts)


def _ask(**wanted: "Any") -> "Facts":
    """What the dispatcher knows about a dataset, with paths of its machine."""
    hint = "Give the dataset to the run as an input: dataset.as_named_input('name') in its arguments or inputs."
    found: "Facts" = ask("datasets.locate", wanted, "datasets", hint)
    if is_elsewhere():
        _check_visible(found, hint)
    return found


def _check_visible(facts: "Facts", hint: str) -> None:
    """Raises an error for a dataset in a folder that only the dispatcher's machine has."""
    for source in facts["definition"]["sources"]:
        base = os.path.join("/", wildcard_base(without_all(source["path"])))
        if not is_web(source) and not os.path.exists(base):
            raise DatastoreException(
                "dataset {!r} is in {}, which this machine does not see".format(facts.get("name") or facts["id"], base),
                hint=hint,
            )
