"""Datasets inside a job: the inputs of its run, and what is registered in the workspace."""

import json
import os
import sys

from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.job.script.asking import ask, is_elsewhere
from trainmaster.job.script.dataset_factories import FileFactory, TabularFactory
from trainmaster.job.script.dataset_files import WebFiles, is_web, local_files, wildcard_base, without_all
from trainmaster.job.script.dataset_sources import sources_of
from trainmaster.job.script.dataset_views import FileView, TableView, check_sources
from trainmaster.job.script.full import full_package


class JobDataset:
    """A dataset as a job sees it: its data lie on this machine, or on the web."""

    def __init__(self, facts):
        self._facts = facts

    @property
    def id(self):
        """Its id."""
        return self._facts["id"]

    @property
    def name(self):
        """The name it is registered by; None for one that is not."""
        return self._facts.get("name") or None

    @property
    def version(self):
        """The version of the name; None for one that is not registered."""
        return self._facts.get("version")

    @property
    def description(self):
        """What was written about it."""
        return self._facts.get("description") or None

    @property
    def tags(self):
        """Its labels."""
        return dict(self._facts.get("tags") or {})

    def _with_steps(self, *steps):
        definition = self._describe()
        definition = dict(definition, steps=list(definition["steps"]) + list(steps))
        return type(self)({"id": None, "definition": definition})

    def _describe(self):
        return self._facts["definition"]

    def _open_place(self, key):
        return WebFiles(key[1]) if key[0] == "web" else local_files()

    def __repr__(self):
        named = "name={!r}, version={!r}".format(self.name, self.version) if self.name else "id={!r}".format(self.id)
        return "{}({})".format(type(self).__name__, named)


class FileDataset(JobDataset, FileView):
    """A dataset of files."""


class TabularDataset(JobDataset, TableView):
    """A dataset of tables."""


class FileDatasetFactory(FileFactory):
    """Makes datasets of files of this machine, of datastores that are folders here, or of the web; also
    `Dataset.File`.
    """

    @staticmethod
    def upload_directory(src_dir, target, *args, **kwargs):
        """Uploads a folder to a datastore, and makes a dataset of it (full Trainmaster)."""
        whole = _full_factories("Dataset.File.upload_directory").FileDatasetFactory
        return whole.upload_directory(src_dir, target, *args, **kwargs)

    @classmethod
    def _made(cls, kind, path, validate, reader):
        return _of_paths(kind, path, validate, reader)


class TabularDatasetFactory(TabularFactory):
    """Makes datasets of tables of this machine, of datastores that are folders here, or of the web; also
    `Dataset.Tabular`.
    """

    @staticmethod
    def register_pandas_dataframe(dataframe, target, name, *args, **kwargs):
        """Keeps a DataFrame in a datastore, and registers it (full Trainmaster)."""
        whole = _full_factories("Dataset.Tabular.register_pandas_dataframe").TabularDatasetFactory
        return whole.register_pandas_dataframe(dataframe, target, name, *args, **kwargs)

    @classmethod
    def _made(cls, kind, path, validate, reader):
        return _of_paths(kind, path, validate, reader)


class Dataset:
    """The datasets of the workspace, from inside a job."""

    File = FileDatasetFactory
    Tabular = TabularDatasetFactory

    @staticmethod
    def get_by_name(workspace, name, version="latest", **kwargs):
        """The registered dataset of this name."""
        return _made(_ask(name=name, version=str(version)))

    @staticmethod
    def get_by_id(workspace, id, **kwargs):
        """The dataset with this id: an input of the run, or any other of the workspace."""
        for facts in job_data()["inputs"].values():
            if facts["id"] == id:
                return _made(facts)
        return _made(_ask(id=id))


class Inputs(dict):  # type: ignore[type-arg]
    """The inputs of a run by their names; a name that is not there is missed with the names that are."""

    def __missing__(self, name):
        raise UserErrorException(
            "the run has no dataset {!r}".format(name),
            hint="It has: {}.".format(", ".join(sorted(self)) or "none"),
        )


def input_datasets():
    """Name to path, or to the dataset where the input is used directly."""
    return Inputs(
        (name, _made(facts) if facts["mode"] == "direct" else facts["path"])
        for name, facts in job_data()["inputs"].items()
    )


def output_datasets():
    """Name to the path that the script writes to."""
    return Inputs(job_data()["outputs"])


def job_data():
    """What the dispatcher wrote down for this job."""
    path = os.environ.get("TRAINMASTER_DATASETS", "")
    if not path:
        return {"inputs": {}, "outputs": {}}
    with open(path) as file:
        return json.load(file)


def _of_paths(kind, path, validate, reader):
    given = path if isinstance(path, list) else [path]
    if not all(isinstance(each, (str, os.PathLike)) or _of_job(each) for each in given):
        # Of a datastore of the full Trainmaster.
        return _full_factories("a dataset of a datastore")._made(kind, path, validate, reader)
    definition = {"kind": kind, "sources": sources_of(path, _store_source), "reader": reader, "steps": []}
    made = _made({"id": None, "definition": definition})
    if validate:
        check_sources(definition["sources"], made._open_place)
    return made


def _of_job(item):
    """The datastore and path that `item` names, if they are those of a job; else None."""
    from trainmaster.job.script.datastores import DataReference, Datastore

    if isinstance(item, DataReference) and isinstance(item.datastore, Datastore):
        return item.datastore, item.path_on_datastore
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Datastore):
        return item
    return None


def _store_source(item):
    from trainmaster.job.script.store_paths import store_path

    store, path = _of_job(item)
    folder = store.visible_folder()
    if folder is None:
        raise store.refusal()
    return {"path": os.path.join(folder, store_path(path))}


def _full_factories(wanted):
    full_package(wanted)
    # By its name, because this side of Trainmaster never depends on that one.
    __import__("trainmaster.sdk.datasets.factories")
    return sys.modules["trainmaster.sdk.datasets.factories"]


def _made(facts):
    kind = TabularDataset if facts["definition"]["kind"] == "tabular" else FileDataset
    return kind(facts)


def _ask(**wanted):
    """What the dispatcher knows of a dataset, with paths of this machine."""
    hint = "Give the dataset to the run as an input: dataset.as_named_input('name') in its arguments or inputs."
    found = ask("datasets.locate", wanted, "datasets", hint)
    if is_elsewhere():
        _check_seen(found, hint)
    return found


def _check_seen(facts, hint):
    """Refuses a dataset in a folder that only the dispatcher's machine has."""
    for source in facts["definition"]["sources"]:
        base = os.path.join("/", wildcard_base(without_all(source["path"])))
        if not is_web(source) and not os.path.exists(base):
            raise DatastoreException(
                "dataset {!r} lies in {}, which is not seen from here".format(facts.get("name") or facts["id"], base),
                hint=hint,
            )
