from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable

from trainmaster.dispatcher.store import Store, listing, migrate, schema
from trainmaster.dispatcher.store.search import Search
from trainmaster.job.errors import WorkspaceException
from trainmaster.shared.filters import parse_filter
from trainmaster.shared.records import RunQuery, RunRecord, Status

NEXT = """
from alembic import op
import sqlalchemy as sa

revision = "9000"
down_revision = "{newest}"


def upgrade():
    with op.batch_alter_table("runs") as table:
        table.add_column(sa.Column("mood", sa.Text, nullable=False, server_default="fine"))
    {more}
"""


@pytest.fixture
def next_release(tmp_path, monkeypatch):
    """As if the next release had one more migration."""

    def release(more="pass"):
        location = tmp_path / "migrations"
        shutil.copytree(migrate.LOCATION, location, ignore=shutil.ignore_patterns("__pycache__"))
        (location / "versions" / "9000_next.py").write_text(NEXT.format(more=more, newest=schema.REVISION))
        monkeypatch.setattr(migrate, "LOCATION", location)
        monkeypatch.setattr(schema, "REVISION", "9000")

    return release


def ask(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def definitions(path):
    query = "SELECT type, name, sql FROM sqlite_master WHERE tbl_name != 'alembic_version' ORDER BY type, name"
    return [(kind, name, " ".join((sql or "").split())) for kind, name, sql in ask(path, query)]


def test_the_migrations_make_the_schema(database):
    with closing(sqlite3.connect(database)) as driver:
        engine = create_engine("sqlite://", creator=lambda: driver)
        with engine.connect() as connection:
            context = MigrationContext.configure(
                connection, opts={"compare_type": True, "compare_server_default": True}
            )
            assert compare_metadata(context, schema.metadata) == []
        engine.dispose()


def test_they_make_it_to_the_letter(database, tmp_path):
    """Also what Alembic does not compare: checks, partial indexes, AUTOINCREMENT, WITHOUT ROWID."""
    engine = create_engine(f"sqlite:///{tmp_path / 'direct.db'}")
    schema.metadata.create_all(engine)
    engine.dispose()

    def normal(definition):
        return sorted(definition.replace("(", "( ").replace(")", " )").replace(",", " , ").split())

    migrated = {name: normal(sql) for kind, name, sql in definitions(database) if kind != "trigger"}
    direct = {name: normal(sql) for kind, name, sql in definitions(tmp_path / "direct.db")}
    assert migrated == direct


def test_the_revision_is_the_newest_migration():
    scripts = ScriptDirectory.from_config(migrate.configuration())
    assert scripts.get_current_head() == schema.REVISION
    assert all(script.revision.isdecimal() for script in scripts.walk_revisions())


def test_an_older_store_is_copied_and_migrated(database, next_release):
    store = Store.open(database)
    kept = store.runs.add(RunRecord("run", "exp", Status.RUNNING, 1.0, tags={"a": 1}))
    store.journals.ingest("run", "j", 0, 1, [{"k": "metric", "n": "m", "v": 1, "t": 1.0}])
    store.close()
    newest = schema.REVISION
    next_release()
    migrated = Store.open(database)
    assert migrated.runs.get("run") == kept and migrated.metrics.read("run")[0].values == (1,)
    migrated.close()
    assert ask(database, "SELECT mood FROM runs") == [("fine",)]
    assert ask(database, "SELECT version_num FROM alembic_version") == [("9000",)]
    copy = database.with_name("trainmaster.db.before-9000")
    assert ask(copy, "SELECT id FROM runs") == [("run",)]
    assert ask(copy, "SELECT version_num FROM alembic_version") == [(newest,)]
    files = {path.name for path in database.parent.iterdir() if path.is_file()}
    assert files == {database.name, copy.name}


@pytest.fixture
def first_release(tmp_path):
    """A database as the first release made it, with a run, a metric and a target in it."""
    path = tmp_path / "trainmaster.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as driver:
        engine = create_engine("sqlite://", creator=lambda: driver, poolclass=StaticPool)
        with engine.connect() as connection:
            config = migrate.configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, "0001")
            connection.commit()
        driver.executescript("""
            INSERT INTO experiments VALUES (1, 'e-1', 'exp', 1.0, NULL, 1, '');
            INSERT INTO runs VALUES (7, 'exp_1', 1, 1, NULL, 'azureml.scriptrun', 'Completed', 1.0, 2.0, 3.0, 'kept',
                                     '', 'local', '', '', '', '', '', 'me', '{"a":"b"}', '');
            INSERT INTO run_labels VALUES (7, 0, 'a', 'b');
            INSERT INTO metrics VALUES (1, 7, 'loss', 'scalar', 1, 0.5, 0.5, 0.5, 0, NULL, NULL, NULL, NULL, NULL);
            INSERT INTO metric_points VALUES (1, 0, 0.5, 0, NULL, NULL, 2.5);
            INSERT INTO targets VALUES ('box', 'local', 2, 4, 0, '{}', 1.0);
        """)
    return path


def test_a_store_of_the_first_release_is_opened_with_all_that_is_in_it(first_release):
    assert ask(first_release, "SELECT version_num FROM alembic_version") == [("0001",)]
    store = Store.open(first_release)
    run = store.runs.get("exp_1")
    assert (run.status, run.display_name, run.tags, run.seq) == (Status.COMPLETED, "kept", {"a": "b"}, 7)
    assert store.runs.find(RunQuery(tags={"a": "b"})) == [run]
    (loss,) = store.metrics.read("exp_1")
    assert (loss.values, loss.ranks) == ((0.5,), (None,))
    assert store.journals.ingest("exp_1", "3-10-abc.jsonl", 0, 1, [{"k": "metric", "n": "loss", "v": 0.25, "t": 3.0}])
    (loss,) = store.metrics.read("exp_1")
    assert (loss.values, loss.ranks) == ((0.5, 0.25), (None, 3))
    assert store.targets.get("box").nodes == 2
    assert store.environments.list_newest() == []
    assert store.environments.register("mine", {"a": 1}, at=5.0).version == 1
    store.close()
    with pytest.raises(sqlite3.IntegrityError, match="a terminal state never changes"):
        ask(first_release, "UPDATE runs SET status = 'Running', ended_at = NULL")
    assert ask(first_release, "SELECT version_num FROM alembic_version") == [(schema.REVISION,)]
    copy = first_release.with_name(f"trainmaster.db.before-{schema.REVISION}")
    assert ask(copy, "SELECT id FROM runs") == [("exp_1",)]
    assert ask(copy, "SELECT count(*) FROM sqlite_master WHERE name = 'environments'") == [(0,)]


def test_aliases_and_stages_that_jobs_kept_as_tags_are_moved(tmp_path):
    path = tmp_path / "trainmaster.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as driver:
        engine = create_engine("sqlite://", creator=lambda: driver, poolclass=StaticPool)
        with engine.connect() as connection:
            config = migrate.configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, "0011")
            connection.commit()
        tags = '{"mlflow.alias.best": "true", "mlflow.stage": "production", "a": "b"}'
        for number, text, deleted in ((1, "{}", "NULL"), (2, tags, "NULL"), (3, "{}", "9.0")):
            driver.execute(
                "INSERT INTO models (name, version, key, manifest, entry, file_count, byte_count, description, tags,"
                " properties, framework, framework_version, run_id, experiment, lineage, datasets, sample_input,"
                " sample_output, resources, facts, created_by, created_at, modified_at, deleted_at) VALUES"
                f" (?, 1, ?, '', 'm', 1, 1, '', ?, '{{}}', '', '', '', '', '{{}}', '[]', '', '', '{{}}', '{{}}', 'me',"
                f" {number}.0, {number}.5, {deleted})",
                (f"net{number}", str(number), text),
            )
    store = Store.open(path)
    found = store.models.get("net2", 1)
    assert (found.tags, found.stage, found.aliases) == ({"a": "b"}, "Production", ("best",))
    assert store.models.get("net1", 1).stage == "None"
    names = [store.registered_models.get(f"net{number}") for number in (1, 2, 3)]
    assert [each and (each.created_at, each.modified_at) for each in names] == [(1.0, 1.5), (2.0, 2.5), None]
    store.close()


def test_what_a_crashed_older_dispatcher_left_is_migrated_too(store, add, tmp_path, database, next_release):
    add()
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for suffix in ("", "-wal", "-shm"):
        shutil.copy(f"{database}{suffix}", crashed)
    next_release()
    migrated = Store.open(crashed / database.name)
    assert migrated.runs.get("run") is not None
    migrated.close()
    assert ask(crashed / "trainmaster.db.before-9000", "SELECT id FROM runs") == [("run",)]


@pytest.mark.parametrize("more", ['op.execute("SELECT * FROM nothing")', "raise ValueError('on purpose')"])
def test_a_failing_migration_changes_nothing(database, next_release, more):
    before, content = definitions(database), ask(database, "SELECT version_num FROM alembic_version")
    next_release(more)
    with pytest.raises(WorkspaceException, match="cannot be migrated") as caught:
        Store.open(database)
    assert "before-9000" in caught.value.hint
    assert definitions(database) == before
    assert ask(database, "SELECT version_num FROM alembic_version") == content


def test_a_database_that_was_never_migrated_is(database):
    with closing(sqlite3.connect(database)) as connection:
        for kind, name, _ in reversed(definitions(database)):
            if kind == "table" and not name.startswith("sqlite_"):
                connection.execute(f"DROP TABLE {name}")
        connection.execute("DELETE FROM alembic_version")
        connection.commit()
    store = Store.open(database)
    store.facts.put("a", 1)
    store.close()


def test_the_schema_and_the_lists_can_be_said_to_postgresql():
    dialect = postgresql.dialect()
    for table in schema.metadata.sorted_tables:
        assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            assert "CREATE INDEX" in str(CreateIndex(index).compile(dialect=dialect))
    query = RunQuery(
        "exp", "a", True, tags={"a": 1, "b": None}, properties={"p": 1}, statuses=("Queued",), before_seq=5
    )
    statement = listing._statement(listing._shape(query))
    assert "WITH RECURSIVE" in statement._compile(dialect).string


def test_the_arguments_of_older_runs_are_found(first_release):
    spec = """{"version": 1, "command": ["python train.py --depth 3"], "arguments": ["--lr", "0.1", "--quiet"]}"""
    with closing(sqlite3.connect(first_release)) as connection:
        connection.execute("INSERT INTO run_specs VALUES (7, ?)", (spec,))
        connection.commit()
    store = Store.open(first_release)
    columns = ("id", "arguments")
    page = store.search.find(Search(parse_filter("lr < 0.2 and depth = 3 and quiet = true", 0.0), columns=columns), 0.0)
    assert page.rows == ({"id": "exp_1", "arguments": {"lr": 0.1, "depth": 3.0, "quiet": "true"}},)
    store.close()
