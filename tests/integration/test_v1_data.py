"""Datasets against a real workspace: registered, given to runs, read and written by their scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.conftest import ended

from trainmaster import (
    Dataset,
    DatasetConsumptionConfig,
    Environment,
    Experiment,
    OutputFileDatasetConfig,
    ScriptRunConfig,
)
from trainmaster.job.errors import DatastoreException, UserErrorException

TABLE = "name,age,joined\nAda,36,2020-01-05\nBob,41,2020-02-07\nCyd,29,2020-03-09\n"

LOOK = """
import json, os, sys
from azureml.core import Run
run = Run.get_context()
path = sys.argv[sys.argv.index('--data') + 1]
print(json.dumps({
    'path': path,
    'same': [run.input_datasets.get('d'), os.environ.get('d'), os.environ.get('D'),
             os.environ.get('AZUREML_DATAREFERENCE_d')],
    'list': os.environ['AZUREML_DATASET_ENVIRONMENT_VARS'],
    'real': os.path.realpath(path),
    'files': sorted(os.path.relpath(os.path.join(f, n), path) for f, _, ns in os.walk(path) for n in ns)
             if os.path.isdir(path) else open(path).read(),
}))
"""


@pytest.fixture(scope="module")
def store(shared, tmp_path_factory):
    """The default datastore with a few files."""
    source = tmp_path_factory.mktemp("source")
    for name in ("year-2018/1.jpg", "year-2018/2.jpg", "year-2019/1.jpg", "year-2019/notes.txt"):
        (source / "animals" / name).parent.mkdir(parents=True, exist_ok=True)
        (source / "animals" / name).write_text(name)
    (source / "people").mkdir()
    (source / "people" / "table.csv").write_text(TABLE)
    store = shared.get_default_datastore()
    store.upload(source, show_progress=False)
    return store


@pytest.fixture
def send(shared, project):
    """Submits a script with arguments, as notebooks of 2020 do."""

    def submit(script, arguments=(), run_config=None):
        environment = Environment("own")
        environment.python.user_managed_dependencies = True
        config = ScriptRunConfig(
            str(project(train=script)), "train.py", arguments=list(arguments), environment=environment
        )
        for field, value in (run_config or {}).items():
            setattr(config.run_config, field, value)
        return Experiment(shared, "data").submit(config)

    return submit


def printed(run):
    details = ended(run)
    assert details["status"] == "Completed", details["error"]["message"]
    return run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]


def seen_by(run):
    return json.loads(printed(run))


def test_a_mounted_folder_is_the_store_itself(send, shared, store):
    dataset = Dataset.File.from_files((store, "animals"))
    run = send(LOOK, ["--data", dataset.as_named_input("d").as_mount()])
    seen = seen_by(run)
    assert seen["same"] == [seen["path"]] * 4
    assert seen["real"] == os.path.realpath(shared.path / "datastore/animals")
    assert seen["list"] == "d:mount"
    given = run.get_details()["inputDatasets"][0]
    assert given["dataset"].to_path() == dataset.to_path()
    assert given["consumptionDetails"]["inputName"] == "d"
    assert Dataset.get_by_id(shared, dataset.id).to_path() == dataset.to_path()


def test_chosen_files_are_linked(send, shared, store):
    dataset = Dataset.File.from_files(path=(store, "animals/year-*/*.jpg"))
    seen = seen_by(send(LOOK, ["--data", dataset.as_named_input("d").as_mount()]))
    assert seen["files"] == ["year-2018/1.jpg", "year-2018/2.jpg", "year-2019/1.jpg"]
    assert dataset.to_path() == ["/year-2018/1.jpg", "/year-2018/2.jpg", "/year-2019/1.jpg"]
    link = f"{seen['path']}/year-2018/1.jpg"
    assert os.path.realpath(link) == os.path.realpath(shared.path / "datastore/animals/year-2018/1.jpg")


def test_a_download_is_a_copy(send, shared, store):
    dataset = Dataset.File.from_files((store, "animals/**")).take(2)
    script = LOOK + "open(os.path.join(path, 'year-2018/1.jpg'), 'w').write('changed')"
    seen = seen_by(send(script, ["--data", dataset.as_named_input("d").as_download()]))
    assert seen["files"] == ["year-2018/1.jpg", "year-2018/2.jpg"]
    assert (shared.path / "datastore/animals/year-2018/1.jpg").read_text() == "year-2018/1.jpg"


@pytest.mark.parametrize("mode", ["as_mount", "as_download"])
def test_of_a_single_file_the_path_is_the_file(send, store, mode):
    dataset = Dataset.File.from_files((store, "people/table.csv"))
    seen = seen_by(send(LOOK, ["--data", getattr(dataset.as_named_input("d"), mode)()]))
    assert seen["files"] == TABLE
    assert seen["path"].endswith("table.csv")


def test_an_input_without_a_name_and_a_place(send, store):
    dataset = Dataset.File.from_files((store, "animals"))
    run = send(LOOK, ["--data", dataset.as_mount("seen/here")])
    assert seen_by(run)["path"].endswith("code/seen/here")


def test_estimators_take_datasets_as_inputs(launch, store):
    dataset = Dataset.File.from_files((store, "animals"))
    script = "from azureml.core import Run\nimport os\nprint(sorted(os.listdir(Run.get_context().input_datasets['d'])))"
    run = launch(script, inputs=[dataset.as_named_input("d").as_mount()])
    assert printed(run) == "['year-2018', 'year-2019']\n"


def test_run_configurations_hold_datasets(send, store):
    dataset = Dataset.File.from_files((store, "animals"))
    config = {"data": {"d": DatasetConsumptionConfig("other", dataset, "mount")}}
    script = "import os\nprint(len(os.listdir(os.environ['d'])))"
    assert printed(send(script, run_config=config)) == "2\n"


def test_a_table_in_a_job(send, shared, store):
    table = Dataset.Tabular.from_delimited_files((store, "people/*.csv")).register(shared, "people of a job")
    script = """
import sys
from azureml.core import Dataset, Run
run = Run.get_context()
direct = run.input_datasets['people']
by_id = Dataset.get_by_id(run.experiment.workspace, id=sys.argv[1])
by_name = Dataset.get_by_name(run.experiment.workspace, name='people of a job')
print([list(each.to_pandas_dataframe()['age']) for each in (direct, by_id, by_name)], by_name.version)
print(direct.keep_columns('name').take(1).to_pandas_dataframe().to_dict('records'))
"""
    assert printed(send(script, [table.as_named_input("people")])) == (
        "[[36, 41, 29], [36, 41, 29], [36, 41, 29]] 1\n[{'name': 'Ada'}]\n"
    )


def test_a_job_makes_datasets_of_its_workspaces_stores(launch, shared):
    """As many v1 scripts do; the full Trainmaster is in this Python."""
    run = launch(
        """
from azureml.core import Dataset, Run, Workspace
run = Run.get_context()
workspace = Workspace.from_config()
assert workspace.path == run.experiment.workspace.path
store = run.experiment.workspace.get_default_datastore()
open('made.csv', 'w').write('a,b\\n1,2\\n')
store.upload_files(['made.csv'], target_path='made-in-a-job', overwrite=True, show_progress=False)
table = Dataset.Tabular.from_delimited_files((store, 'made-in-a-job/*.csv'))
table.register(workspace, 'made in a job')
print(table.filter(table['a'] == 1).to_pandas_dataframe().shape)
print(Dataset.File.from_files([(store, 'made-in-a-job')]).to_path())
print(Dataset.File.upload_directory('.', (store, 'all-of-it'), pattern='*.csv', overwrite=True).to_path())
"""
    )
    assert ended(run)["status"] == "Completed"
    log = run.get_details_with_logs()["logFiles"]["azureml-logs/70_driver_log.txt"]
    assert "(1, 2)\n['/made.csv']\n" in log and log.rstrip().endswith("['/made.csv']")
    assert Dataset.get_by_name(shared, "made in a job").to_pandas_dataframe().to_dict("list") == {"a": [1], "b": [2]}


def test_a_job_is_told_what_it_has_not(send, shared, store):
    script = """
from azureml.core import Dataset, Run
run = Run.get_context()
for look in (lambda: run.input_datasets['no'], lambda: Dataset.get_by_name(run.experiment.workspace, 'no such')):
    try:
        look()
    except Exception as error:
        print(type(error).__name__, error.headline)
"""
    run = send(script, ["--data", Dataset.File.from_files((store, "animals")).as_mount()])
    assert printed(run).splitlines() == [
        "UserErrorException the run has no dataset 'no'",
        "UserErrorException there is no dataset 'no such' in this workspace",
    ]


def test_an_output_is_written_to_the_store_and_registered(send, shared, store):
    out = OutputFileDatasetConfig("made", destination=(store, "made/{run-id}")).register_on_complete(
        "made by a job", description="a test", tags={"kind": "text"}
    )
    script = """
import os, sys
from azureml.core import Run
assert sys.argv[2] == os.environ['made'] == Run.get_context().output_datasets['made']
open(os.path.join(sys.argv[2], 'r.txt'), 'w').write('result')
"""
    for version in (1, 2):
        run = send(script, ["--out", out])
        assert printed(run) == ""
        made = Dataset.get_by_name(shared, "made by a job")
        assert (made.version, made.description, made.tags) == (version, "a test", {"kind": "text"})
        assert made.to_path() == ["/r.txt"]
        assert (shared.path / "datastore/made" / run.id / "r.txt").read_text() == "result"
    assert run.get_details()["outputDatasets"][0]["dataset"].to_path() == ["/r.txt"]


def test_an_upload_takes_what_is_wanted_and_a_failed_run_registers_nothing(send, shared, store):
    out = OutputFileDatasetConfig("kept").as_upload(source_globs="*.csv").read_delimited_files()
    script = """
import os, sys
for name in ('a.csv', 'b.txt'):
    open(os.path.join(os.environ['kept'], name), 'w').write('x,y\\n1,2\\n')
sys.exit(int(sys.argv[1]))
"""
    config = {"output_data": {"kept": out.register_on_complete("kept table")}}
    assert ended(send(script, [1], config))["status"] == "Failed"
    with pytest.raises(UserErrorException, match="no dataset 'kept table'"):
        Dataset.get_by_name(shared, "kept table")
    run = send(script, [0], config)
    assert ended(run)["status"] == "Completed"
    assert os.listdir(shared.path / "datastore/dataset" / run.id / "kept") == ["a.csv"]
    frame = Dataset.get_by_name(shared, "kept table").to_pandas_dataframe()
    assert frame.to_dict("list") == {"x": [1], "y": [2]}


def test_names_and_versions(shared, store):
    first = Dataset.File.from_files((store, "animals")).register(shared, "versions", description="one", tags={"a": "1"})
    assert (first.name, first.version) == ("versions", 1)
    assert Dataset.File.from_files((store, "animals")).register(shared, "versions").version == 1
    other = Dataset.File.from_files((store, "people"))
    with pytest.raises(UserErrorException, match=r"there is a dataset 'versions' already.*\n.*create_new_version=True"):
        other.register(shared, "versions")
    assert other.register(shared, "versions", create_new_version=True).version == 2
    assert Dataset.get_by_name(shared, "versions").to_path() == ["/table.csv"]
    assert Dataset.get_by_name(shared, "versions", version=1).id == first.id
    assert shared.datasets["versions"].version == 2
    changed = first.add_tags({"b": "2"}).remove_tags(["a"]).update(description="new")
    assert (changed.tags, changed.description) == ({"b": "2"}, "new")
    changed.unregister_all_versions()
    assert "versions" not in Dataset.get_all(shared)
    assert (shared.path / "datastore/animals").is_dir()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nobody",), "there is no dataset 'nobody' in this workspace"),
        (("asked", 7), "there is no version 7 of dataset 'asked'\nThe newest is 1."),
        (("asked", "second"), "'second' is not a version of a dataset"),
        ((7,), "the name of a dataset must be text, not 7"),
    ],
)
def test_what_is_not_registered(shared, store, arguments, message):
    Dataset.File.from_files((store, "animals")).register(shared, "asked")
    with pytest.raises(UserErrorException) as error:
        Dataset.get_by_name(shared, *arguments)
    assert message in str(error.value)


def test_data_that_is_gone_fails_the_run(send, shared, store):
    dataset = Dataset.File.from_files((store, "gone"), validate=False)
    details = ended(send("", [dataset.as_mount()]))
    assert details["status"] == "Failed"
    assert f"{shared.path}/datastore/gone does not exist" in details["error"]["message"]


def test_a_store_that_is_gone_is_missed_at_submit(send, shared, store, tmp_path):
    from trainmaster import Datastore

    (tmp_path / "a.txt").write_text("a")
    passing = Datastore.register(shared, "passing", tmp_path)
    dataset = Dataset.File.from_files((passing, "a.txt"))
    passing.unregister()
    with pytest.raises(DatastoreException, match="no datastore 'passing'"):
        send("", [dataset.as_mount()])


@pytest.fixture
def web(tmp_path):
    """A web server with a table."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web/people.csv").write_text(TABLE)
    (tmp_path / "web/more.csv").write_text(TABLE)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "web"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_files_of_the_web(send, web):
    dataset = Dataset.File.from_files([f"{web}/people.csv?key=secret", f"{web}/more.csv"])
    assert dataset.to_path() == ["/people.csv", "/more.csv"]
    seen = seen_by(send(LOOK, ["--data", dataset.as_named_input("d").as_mount()]))
    assert seen["files"] == ["more.csv", "people.csv"]
    one = seen_by(send(LOOK, ["--data", Dataset.File.from_files(f"{web}/people.csv").as_named_input("d").as_mount()]))
    assert one["files"] == TABLE
    table = Dataset.Tabular.from_delimited_files(f"{web}/people.csv")
    assert list(table.to_pandas_dataframe()["age"]) == [36, 41, 29]
    with pytest.raises(DatastoreException, match="404"):
        Dataset.File.from_files(f"{web}/missing.csv")


def test_a_table_of_the_web_made_in_a_job(send, web):
    script = f"""
from azureml.data.dataset_factory import TabularDatasetFactory
table = TabularDatasetFactory.from_delimited_files(path={web + "/people.csv"!r})
print(list(table.to_pandas_dataframe()['age']))
"""
    assert printed(send(script)) == "[36, 41, 29]\n"


def test_local_paths_and_uploads(send, shared, store, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here/a.txt").write_text("a")
    (tmp_path / "here/b.csv").write_text(TABLE)
    here = Dataset.File.from_files(tmp_path / "here")
    seen = seen_by(send(LOOK, ["--data", here.as_named_input("d").as_mount()]))
    assert (seen["real"], seen["files"]) == (str(tmp_path / "here"), ["a.txt", "b.csv"])
    uploaded = Dataset.File.upload_directory(tmp_path / "here", (store, "up"), pattern="*.csv", show_progress=False)
    assert uploaded.to_path() == ["/b.csv"]


def test_the_command_line(shared, tmp_path):
    def trainmaster(*words, code=0):
        command = [sys.executable, "-m", "trainmaster.cli", *words, "--workspace", str(shared.path)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    (tmp_path / "up").mkdir()
    for name in ("a.jpg", "b.jpg", "c.txt"):
        (tmp_path / "up" / name).write_text(name)
    said = trainmaster("data", "upload", str(tmp_path / "up"), "pictures", "--pattern", "*.jpg")
    assert said == "Dataset 'pictures' version 1 has 2 files, in datasets/pictures of datastore 'workspaceblobstore'.\n"
    assert json.loads(trainmaster("data", "show", "pictures", "--json"))["files"] == ["a.jpg", "b.jpg"]
    assert "  b.jpg\n" in trainmaster("data", "show", "pictures")
    listed = json.loads(trainmaster("data", "list", "--json"))
    assert [(each["version"], each["kind"]) for each in listed if each["name"] == "pictures"] == [(1, "file")]
    assert all(each["created_at"].endswith("Z") for each in listed)
    assert "datasets/pictures of datastore 'workspaceblobstore'" in trainmaster("data", "list")
    assert "there is no dataset 'nobody'" in trainmaster("data", "show", "nobody", code=2)
