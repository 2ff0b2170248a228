"""A workspace that keeps its datastores in memory: the one method a datastore needs of it."""

from pathlib import Path

import pytest
from tests.inner_dispatcher import InnerDispatcher

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.backend.operation_storage import OperationStorage
from trainmaster.sdk.datastores import Datastore
from trainmaster.storage.storage import open_storage


class FakeWorkspace:
    name = "testing"

    def __init__(self):
        self.records = {}
        self.default = None
        self.connection = self
        self.backend = self

    def open_storage(self, store):
        return open_storage(store.url, store.options)

    def call(self, op, **args):
        return getattr(self, "_" + op.replace("datastores.", ""))(**args)

    def _put(self, record, overwrite):
        if record["name"] in self.records and not overwrite:
            raise UserErrorException(f"There is a datastore {record['name']!r} already")
        self.records[record["name"]] = record

    def _get(self, name):
        return self.records.get(self.default if name is None else name)

    def _list(self):
        return list(self.records.values())

    def _delete(self, name):
        del self.records[name]

    def _set_default(self, name):
        self.default = name


@pytest.fixture
def workspace(tmp_path):
    made = FakeWorkspace()
    folder = tmp_path / "workspace" / "datastore"
    folder.mkdir(parents=True)
    Datastore.register(made, "workspaceblobstore", folder).set_as_default()
    return made


@pytest.fixture
def store(workspace):
    return Datastore.get_default(workspace)


@pytest.fixture
def folder(store):
    """Where the default store keeps its files."""
    return Path(store.url)


@pytest.fixture
def memory(workspace):
    from fsspec.implementations.memory import MemoryFileSystem

    yield Datastore.register(workspace, "memory", "memory://bucket/sub")
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture
def distant(tmp_path):
    """A store whose files are reached only by operations of a dispatcher."""
    (tmp_path / "distant").mkdir()
    dispatcher = InnerDispatcher(tmp_path / "distant")
    dispatcher.open_storage = lambda store: OperationStorage(dispatcher, store.name)
    yield Datastore.register(dispatcher, "distant", tmp_path / "distant" / "files")
    dispatcher.close()


@pytest.fixture
def tree(tmp_path):
    """Makes a folder of files: {'a/b.txt': b'text'}."""

    def make(files, name="source"):
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        return root

    return make


@pytest.fixture
def contents():
    """A folder as {'a/b.txt': b'text'}."""

    def read(root):
        return {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}

    return read
