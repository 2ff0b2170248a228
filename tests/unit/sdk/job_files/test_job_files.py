"""job.yaml: what it can say, that all mistakes are told with their lines, and that the job of a run can be written."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn

import jsonschema
import pytest
import yaml

from trainmaster.cli.parsing import parse
from trainmaster.cli.submit import job
from trainmaster.cli.sweep_file import EXAMPLE as SWEEP_EXAMPLE
from trainmaster.cli.sweep_schema import sweep_schema
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.environment.definition import Environment
from trainmaster.sdk.estimators.chainer import Chainer
from trainmaster.sdk.estimators.distributed_job import MpiConfiguration, PyTorchConfiguration
from trainmaster.sdk.estimators.distributed_training import Gloo, Mpi, Nccl, ParameterServer
from trainmaster.sdk.estimators.estimator import Estimator
from trainmaster.sdk.estimators.pytorch import PyTorch
from trainmaster.sdk.estimators.script_run_config import ScriptRunConfig
from trainmaster.sdk.estimators.tensorflow import TensorFlow
from trainmaster.sdk.job_files.building import build_estimator
from trainmaster.sdk.job_files.description import JobDescription
from trainmaster.sdk.job_files.entries import Bound
from trainmaster.sdk.job_files.keys import KEYS
from trainmaster.sdk.job_files.reading import EXAMPLE, read_job_file
from trainmaster.sdk.job_files.schema import job_schema
from trainmaster.sdk.job_files.writing import describe_job, format_job, plain_job, write_job_file
from trainmaster.shared.job_spec import DataBinding, DatasetOutput, JobSpec, dump_spec, load_spec

MISTAKES = """\
folder: .
scrypt: train.py
nodes: two
processes_per_node: 0
distributed: glo
framework: torch=2
pip: [numpy, a b]
env: [A]
hang_seconds: -1
accelerator: gpu
inputs:
  data: {datastor: x}
  other: {datastore: x, mode: mont}
max_retries: -2
user_managed: maybe
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("train.py", "a.ipynb", "run.sh"):
        (tmp_path / name).write_text("")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text("")
    return tmp_path


def no_workspace() -> NoReturn:
    raise AssertionError("no workspace is needed")


def spec_of(project: Path, text: str, *settings: str) -> JobSpec:
    """The job as `trainmaster submit job.yaml` compiles it."""
    (project / "job.yaml").write_text(text)
    return job(parse(["submit", str(project / "job.yaml"), *(f"--set={each}" for each in settings)])[1])


def error_of(project: Path, text: str, *settings: str) -> UserErrorException:
    with pytest.raises(UserErrorException) as caught:
        spec_of(project, text, *settings)
    return caught.value


def test_one_table() -> None:
    """Every key is a field of a description, and an option."""
    assert {key.name for key in KEYS} == {field.name for field in fields(JobDescription)}
    options = parse(["submit", ".", "train.py"])[1]
    assert [key.name for key in KEYS if key.name != "details" and not hasattr(options, key.name)] == []


def test_all_conflicts_are_told_with_their_lines(project: Path) -> None:
    text = "script: train.py\nuser_managed: true\npip: [numpy]\nshm_size: 8g\nnodes: 2\nmin_nodes: 1\n"
    error = error_of(project, text)
    assert error.headline == f"{project}/job.yaml has 4 mistakes"
    assert [line for line in error.cause.splitlines() if line.startswith("line ")] == [
        "line 3, pip: pip cannot be given together with user_managed",
        "line 4, shm_size: shm_size needs image",
        "line 6, min_nodes: min_nodes needs distributed: gloo or nccl",
        "line 5, nodes: nodes needs distributed",
    ]
    with pytest.raises(UserErrorException, match="2 settings do not fit the others") as caught:
        job(parse(["submit", str(project), "train.py", "--nodes", "2", "--shm-size", "8g"])[1])
    assert "--shm-size needs --image" in caught.value.cause and "--nodes needs --mpi" in caught.value.cause


def test_a_small_file(project: Path) -> None:
    spec = spec_of(project, "script: train.py\narguments: --lr 0.1 --name 'a b'\nenv: {A: 1, B: true}\n")
    assert (spec.source_directory, spec.target, spec.arguments) == (
        str(project), "local", ("--lr", "0.1", "--name", "a b"),
    )  # fmt: skip
    assert dict(spec.environment_variables) == {"A": "1", "B": "true"}


def test_all_mistakes_are_told_with_their_lines(project: Path) -> None:
    error = error_of(project, MISTAKES)
    assert error.headline == f"{project}/job.yaml has 13 mistakes"
    lines = [line for line in error.cause.splitlines() if line.startswith("line ")]
    assert [line.split(",")[0] for line in lines] == [f"line {n}" for n in (*range(2, 11), *range(12, 16))][:13]
    for guess in ("script", "gloo", "pytorch", "datastore"):
        assert f"Did you mean {guess}?" in error.cause


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nodes: 2", "line 2, nodes: nodes needs distributed"),
        ("{framework: pytorch, distributed: ps 2:1}", "distributed: ps cannot be used with framework pytorch"),
        ("distributed: ps 2", "line 2, distributed: distributed 'ps 2' cannot be read"),
        ("{framework: sklearn, gpu: true}", "gpu: gpu cannot be used with framework sklearn"),
        ("{user_managed: true, pip: [numpy]}", "pip: pip cannot be given together with user_managed"),
        ("{environment: mine, image: x}", "environment cannot be given together with image"),
        ("conda_file: gone.yml", "line 2, conda_file: conda_file '"),
        ("pip_file: gone.txt", "line 2, pip_file: pip_file '"),
        ("python: ./no-python", "line 2, python: python '"),
        ("module: package.train", "line 2, module: cannot be given together with script"),
        ("target: ''", "line 2, target: must not be empty"),
        ("shm_size: 8g", "line 2, shm_size: shm_size needs image"),
        ("inputs: {a b: store/x}", "'a b' cannot be the name of a data reference"),
        ("inputs: {a: store/../x}", "leaves the datastore"),
        ("details: {horovid: 1}", "details.horovid: unknown key"),
        ("node_count: 2", "node_count: unknown key"),
    ],
)
def test_mistakes(project: Path, line: str, words: str) -> None:
    more = yaml.safe_load(line) if line.startswith("{") else None
    text = "script: train.py\n" + (yaml.safe_dump(more) if more else line) + "\n"
    assert words in error_of(project, text).headline


def test_a_script_that_does_not_exist(project: Path) -> None:
    error = error_of(project, "folder: .\nscript: trian.py\n")
    assert error.headline == f"{project}/job.yaml, line 2, script: script 'trian.py' does not exist in folder"
    assert error.hint == "Did you mean 'train.py'?"


def test_what_other_programs_call_a_key(project: Path) -> None:
    assert error_of(project, "script: train.py\nnode_count: 2\n").hint.startswith("Did you mean nodes?")
    assert error_of(project, "script: train.py\ngloo: true\n").hint.startswith("Did you mean distributed: gloo?")


def test_other_values(project: Path) -> None:
    text = "script: train.py\nenv: {A: 1}\narguments: --lr 1\nuser_managed: true\n"
    spec = spec_of(project, text, "nodes=3", "distributed=mpi", "env.B=x=y", "arguments=--lr 2", "max_seconds=60")
    assert (spec.node_count, spec.distribution.kind, spec.max_run_duration_seconds) == (3, "mpi", 60)
    assert (dict(spec.environment_variables), spec.arguments) == ({"A": "1", "B": "x=y"}, ("--lr", "2"))
    assert error_of(project, text, "nods=3").headline == "--set nods=3: unknown key"
    assert error_of(project, text, "nodes=x").headline == "--set nodes=x: must be a whole number, not 'x'"
    assert "is not KEY=VALUE" in error_of(project, text, "nodes").headline


def test_a_version_is_what_is_written(project: Path) -> None:
    assert (
        spec_of(project, "script: train.py\npip: [numpy]\npython_version: 3.10\n").environment.python_version == "3.10"
    )


@pytest.mark.parametrize(
    ("text", "entry", "script"),
    [
        ("module: package.train", "module", "package.train"),
        ("script: a.ipynb", "notebook", "a.ipynb"),
        ("script: run.sh", "program", "run.sh"),
        ("command: |\n  python a.py\n  python b.py", "python", ""),
    ],
)
def test_entries(project: Path, text: str, entry: str, script: str) -> None:
    spec = spec_of(project, text + "\n")
    assert (spec.entry, spec.script) == (entry, script)
    assert spec.command == (() if script else ("python a.py\npython b.py",))


def test_data(project: Path) -> None:
    text = """\
script: train.py
inputs:
  data: blobs/mnist
  more: blobs/other@download
  whole: {datastore: blobs, path: a, mode: upload, path_on_compute: out, overwrite: true}
outputs: {model: blobs/models}
resume_from: blobs/checkpoints
"""
    spec = spec_of(project, text)
    assert spec.data == (
        DataBinding("data", "blobs", "mnist"),
        DataBinding("more", "blobs", "other", "download"),
        DataBinding("whole", "blobs", "a", "upload", "out", True),
        DataBinding("MODEL_LOCATION", "blobs", "checkpoints"),
    )
    assert spec.dataset_outputs == (DatasetOutput("model", "blobs", "models"),)
    assert spec.arguments == ("--resume-from", "$AZUREML_DATAREFERENCE_MODEL_LOCATION")


def jobs(folder: Path) -> list[Any]:
    """What programs submit."""
    one: dict[str, Any] = {"entry_script": "train.py", "compute_target": "local"}
    image = Environment.from_docker_image("own", "org/image:1")
    config = ScriptRunConfig(folder, command=["make", "model"], compute_target="cpu-cluster")
    config.run_config.communicator = "IntelMpi"
    edited = PyTorch(folder, **one, distributed_training=PyTorchConfiguration("Gloo", 2, 2), node_count=2)
    edited.conda_dependencies.set_python_version("3.12")
    conda = Estimator(folder, **one, conda_packages=["openmpi"], pip_packages=["--pre", "numpy<3"], vm_priority="low")
    conda.conda_dependencies.add_channel("conda-forge")
    placed = ScriptRunConfig(folder, "train.py", ["--x", ""], distributed_job_config=MpiConfiguration(2, 3))
    return [
        Estimator(folder, **one, script_params={"--lr": 0.1, "--flag": ""}, user_managed=True, max_retries=2),
        Estimator(folder, **one, user_managed=True, hang_seconds=60, environment_variables={"A": "b c", "N": "1"}),
        Estimator(folder, entry_module="package.train", vm_size="STANDARD_D2_V2", pip_packages=["numpy"]),
        Estimator(folder, entry_script="a.ipynb", compute_target="local", pip_packages=["pandas"]),
        Estimator(folder, entry_script="run.sh", compute_target="local", max_run_duration_seconds=7),
        Estimator(folder, **one, custom_docker_image="org/x", shm_size="8g", inputs=[Bound(DataBinding("d", "s"))]),
        PyTorch(folder, **one, framework_version="1.4", distributed_training=Mpi(2), node_count=2),
        PyTorch(folder, **one, distributed_training=Nccl(), node_count=3, use_gpu=True),
        PyTorch(folder, **one, distributed_training=Gloo()),
        PyTorch(folder, **one, distributed_training=Gloo(min_nodes=1), node_count=3),
        PyTorch(folder, **one, distributed_training=Nccl(min_nodes=1, max_nodes=3, wait_seconds=0)),
        TensorFlow(folder, **one, distributed_training=ParameterServer(3, 2), node_count=2),
        Chainer(folder, **one),
        ScriptRunConfig(folder, "train.py", environment=image),
        config, edited, conda, placed,
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(18))
def test_the_job_of_a_run_gives_the_same_job_again(project: Path, number: int) -> None:
    spec = load_spec(dump_spec(jobs(project)[number].compile({})))
    write_job_file(project / "again.yaml", describe_job(spec))
    assert spec_of(project, (project / "again.yaml").read_text()) == spec
    jsonschema.validate(yaml.safe_load((project / "again.yaml").read_text()), job_schema())


def test_the_lock_of_a_rerun_is_kept(project: Path) -> None:
    spec = Estimator(project, entry_script="train.py", compute_target="local", pip_packages=["six"]).compile({})
    locked = replace(spec, environment=replace(spec.environment, lock="six==1.17.0\n    # via nothing\n"))
    write_job_file(project / "again.yaml", describe_job(locked))
    assert spec_of(project, (project / "again.yaml").read_text()) == locked


def test_a_saved_file_has_paths_from_its_own_folder(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "jobs").mkdir()
    (project / "packages.txt").write_text("numpy\n")
    monkeypatch.chdir(project)
    saved = JobDescription(script="train.py", pip_file="packages.txt", name="first", tags={"a": "b"}, command=())
    write_job_file(Path("jobs/job.yaml"), saved, "A comment")
    text = Path("jobs/job.yaml").read_text()
    assert text == "# A comment\nfolder: ..\nscript: train.py\nname: first\ntags: {a: b}\npip_file: ../packages.txt\n"
    read, _ = read_job_file(Path("jobs/job.yaml"))
    assert format_job(JobDescription(script="a.py", nodes=2)) == "folder: .\nscript: a.py\nnodes: 2\n"
    assert build_estimator(read, no_workspace).compile({}).environment.pip_packages == ("numpy",)


def test_the_schema_describes_what_is_read(project: Path) -> None:
    schema = job_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    good = yaml.safe_load(EXAMPLE)
    jsonschema.validate(good, schema)
    for wrong in ({"nods": 2}, {"nodes": 0}, {"distributed": "glo"}, {"module": "a"}, {"accelerator": "gpu"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**good, **wrong}, schema)
    assert all(value["description"] for value in schema["properties"].values())
    assert plain_job(replace(JobDescription(), script="a.py")) == {"folder": ".", "script": "a.py"}


def test_the_schema_of_sweeps() -> None:
    schema = sweep_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    good = yaml.safe_load(SWEEP_EXAMPLE)
    jsonschema.validate(good, schema)
    for wrong in ({"goal": "up"}, {"policy": {"kind": "bandit", "slack": 1}}, {"job": {"script": "a", "name": "b"}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**good, **wrong}, schema)


def test_the_guide_has_every_key() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "guide" / "job-files.md").read_text()
    assert [key.name for key in KEYS if f"| `{key.name}` | {key.meaning} |" not in guide] == []
