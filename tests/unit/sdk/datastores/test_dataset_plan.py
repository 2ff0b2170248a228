"""What has to be done for the datasets of a run, and what its job is told."""

from pathlib import Path

import pytest

from trainmaster.job.errors import DatastoreException, UserErrorException
from trainmaster.shared.job_spec import DataBinding, DatasetDefinition, DatasetInput, DatasetOutput, DataSource
from trainmaster.shared.records import DatastoreRecord
from trainmaster.storage.staging import plan_data, read_plan, write_plan


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "store/set").mkdir(parents=True)
    (tmp_path / "store/set/a.csv").write_text("a")
    stores = {
        "local": DatastoreRecord("local", str(tmp_path / "store"), is_default=True),
        "far": DatastoreRecord("far", "memory://bucket"),
    }

    def make(*inputs, outputs=(), bindings=()):
        return plan_data(bindings, stores, tmp_path / "run-7", tmp_path / "run-7/code", inputs, outputs)

    return make


def given(name, mode, *sources, kind="file", steps=(), **more):
    return DatasetInput(name, "the-id", DatasetDefinition(kind, sources, steps=steps), mode, **more)


def test_a_whole_folder_of_this_machine_costs_nothing(plan, tmp_path):
    made = plan(given("d", "mount", DataSource("set", "local")))
    assert not made.before
    assert made.variables == {
        "d": f"{tmp_path}/store/set",
        "D": f"{tmp_path}/store/set",
        "AZUREML_DATAREFERENCE_d": f"{tmp_path}/store/set",
        "TRAINMASTER_DATASET_d": "the-id",
        "AZUREML_DATASET_ENVIRONMENT_VARS": "d:mount",
    }
    assert made.outside == (f"{tmp_path}/store/set",)


def test_directly_used_the_variable_is_the_id(plan, tmp_path):
    made = plan(given("d", "direct", DataSource("set", "local"), kind="tabular", steps=({"do": "take", "count": 1},)))
    assert (made.variables["d"], made.variables["D"]) == ("the-id", "the-id")
    facts = made.inputs["d"]
    assert facts["path"] == f"{tmp_path}/store/set"
    assert facts["definition"]["sources"] == [{"path": f"{tmp_path}/store/set"}]
    assert facts["definition"]["steps"] == [{"do": "take", "count": 1}]


@pytest.mark.parametrize(
    ("source", "last"),
    [
        (DataSource("a/b.csv", "far"), "data/d/b.csv"),
        (DataSource("a/**", "far"), "data/d/a"),
        (DataSource("a/*.csv", "far"), "data/d"),
        (DataSource("https://example.com/x/y.csv?sig=1"), "data/d/y.csv"),
        (DataSource("set/*.csv", "local"), "data/d"),
    ],
)
def test_what_is_brought_in_lies_in_the_run(plan, tmp_path, source, last):
    made = plan(given("d", "mount", source))
    assert made.before
    assert made.variables["d"] == f"{tmp_path}/run-7/{last}"


def test_a_name_that_programs_need_is_left_alone(plan, tmp_path):
    made = plan(given("path", "mount", DataSource("set", "local")))
    assert "PATH" not in made.variables
    assert made.variables["AZUREML_DATAREFERENCE_path"] == f"{tmp_path}/store/set"


def test_outputs(plan, tmp_path):
    outputs = (
        DatasetOutput("here", "", "out/{run-id}/{output-name}"),
        DatasetOutput("far", "far", "out", globs=("*.csv",)),
        DatasetOutput("later", "local", "later", "upload"),
    )
    made = plan(outputs=outputs)
    assert made.outputs["here"] == f"{tmp_path}/store/out/run-7/here"
    assert [(each.store, each.path, each.overwrite, each.globs) for each in made.uploads] == [
        ("far", "out", True, ("*.csv",)),
        ("local", "later", False, ()),
    ]
    assert made.variables["AZUREML_DATASET_FILE_OUTPUTS"] == "here,far,later"


def test_a_plan_comes_back_from_its_file(plan, tmp_path):
    made = plan(given("d", "download", DataSource("set/*", "local"), DataSource("x", "far")))
    write_plan(made, tmp_path / "data.json")
    assert read_plan(tmp_path / "data.json") == made
    assert (tmp_path / "data.json").stat().st_mode & 0o777 == 0o600


def test_what_is_refused(plan):
    with pytest.raises(DatastoreException, match="does not exist"):
        plan(given("d", "mount", DataSource("missing", "local")))
    with pytest.raises(DatastoreException, match="no datastore 'gone'"):
        plan(given("d", "mount", DataSource("x", "gone")))
    with pytest.raises(UserErrorException, match="have the same name: d"):
        plan(given("d", "mount", DataSource("set", "local")), bindings=[DataBinding("d", "local", "set")])


def test_files_are_linked_or_copied(plan, tmp_path):
    from trainmaster.storage import stage

    for mode, linked in (("mount", True), ("download", False)):
        made = plan(given(f"d_{mode}", mode, DataSource("set/*.csv", "local")))
        stage.bring_in(made, lambda line: None)
        # Once more, as after a kill.
        stage.bring_in(made, lambda line: None)
        file = Path(made.variables[f"d_{mode}"], "a.csv")
        assert (file.read_text(), file.is_symlink()) == ("a", linked)
