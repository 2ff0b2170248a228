"""What is found in scripts and cells: followed names, and text that only IPython or Python 2 understands."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from trainmaster.migration.cells import cell, modern
from trainmaster.migration.report import read

HEAD = "from azureml.core import Workspace, Experiment, Run\nws = Workspace.from_config()\n"


def found(tmp_path: Path, text: str) -> list[tuple[int, str, str]]:
    path = tmp_path / "script.py"
    path.write_text(text)
    report = read(path)
    assert report.unreadable == ()
    return [(use.line, use.name, str(use.judgement.verdict)) for use in report.uses]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("ws.compute_targets['x'].delete()", ["Workspace.compute_targets", "ComputeTarget.delete"]),
        ("ws.compute_targets()['x'].delete()", ["Workspace.compute_targets", "ComputeTarget.delete"]),
        ("ws.compute_targets.get('x').delete()", ["Workspace.compute_targets", "ComputeTarget.delete"]),
        ("for n, t in ws.compute_targets.items(): t.delete()", ["Workspace.compute_targets", "ComputeTarget.delete"]),
        ("[t.name for t in ws.compute_targets.values()]", ["Workspace.compute_targets", "ComputeTarget.name"]),
        ("next(Experiment(ws, 'a').get_runs()).cancel()", ["Experiment.get_runs", "Experiment", "Run.cancel"]),
        ("(a if ws else ws).get_details()", ["Workspace.get_details"]),
        ("other = ws; other.name", ["Workspace.name"]),
        ("with Experiment(ws, 'a').start_logging() as r: r.log('a', 1)", ["Experiment.start_logging", "Run.log"]),
        ("if (r := ws.get_run('a')): r.cancel()", ["Workspace.get_run", "Run.cancel"]),
        ("def f(w: Workspace): w.get_details()", ["Workspace.get_details"]),
        ("def f(w): w.get_details()\nf(ws)", ["Workspace.get_details"]),
        ("def f(w): return w.get_run('a')\nf(w=ws).cancel()", ["Workspace.get_run", "Run.cancel"]),
        ("class A:\n  def f(self): self.r.cancel()\n  def __init__(self): self.r = ws.get_run('a')", ["Run.cancel"]),
        ("def main(): later.name\nlater = ws", ["Workspace.name"]),
        ("ws.get_default_datastore().path('a').as_mount()", ["Datastore.path", "DataReference.as_mount"]),
    ],
)
def test_names_are_followed(tmp_path: Path, line: str, names: list[str]) -> None:
    uses = [name for number, name, _ in found(tmp_path, HEAD + line) if number > 2]
    assert [name for name in names if name not in uses] == []


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("import azureml.core as ac\nac.Workspace.from_config()", (2, "Workspace.from_config", "differs")),
        ("import azureml.core\nazureml.core.VERSION", (2, "azureml.core.VERSION", "works")),
        ("from azureml.core import *\nExperiment(ws, 'a')", (2, "Experiment", "works")),
        ("from azureml.train.dnn import PyTorch as PT\nPT('.', entry_script='a')", (2, "PyTorch", "differs")),
        ("from azureml.train.dnn import PyTorch\nPyTorch('.', framework_version='1.4')", (2, "PyTorch", "works")),
        ("from azureml.train.dnn import PyTorch\nPyTorch('.', **settings)", (2, "PyTorch", "works")),
        ("from azureml.train.dnn import PyTorch\nPyTorch('.', nothing=1)", (2, "PyTorch(nothing=)", "absent")),
        ("from azureml.core import Run\nRun.get_context().register_model('a')", (2, "Run.register_model", "works")),
        ("from azureml.core import Run\nRun.get_context().log('a', 1)", (2, "Run.log", "works")),
        ("from azureml.core import Model\nModel.register(ws)", (2, "Model.register", "works")),
        ("from azureml.pipeline.core import Pipeline", (1, "azureml.pipeline.core.Pipeline", "absent")),
        (
            "from azureml.core import Environment\nEnvironment.from_dockerfile('a', 'b')",
            (2, "Environment.from_dockerfile", "absent"),
        ),
        ("import azureml.train.automl", (1, "azureml.train.automl", "absent")),
        ("from azureml.core import Nothing", (1, "azureml.core.Nothing", "absent")),
        ("import azureml\np = ['azureml-defaults']", (2, "azureml-defaults", "differs")),
        (
            "from azureml.core import RunConfiguration\nr = RunConfiguration()\nr.environment.docker.enabled = 1",
            (3, "DockerSection.enabled", "differs"),
        ),
    ],
)
def test_verdicts(tmp_path: Path, text: str, use: tuple[int, str, str]) -> None:
    assert use in found(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "import os\nworkspace = os.environ\nworkspace.from_config()  # azureml",
        HEAD + "ws = object()\nws.anything()",
        HEAD + "def f(ws): ws.anything()",
        HEAD + "from . import azureml\nazureml.anything()",
    ],
)
def test_what_is_not_v1_is_left_alone(tmp_path: Path, text: str) -> None:
    assert [name for _, name, _ in found(tmp_path, text) if "anything" in name] == []
    assert [verdict for *_, verdict in found(tmp_path, text) if verdict == "absent"] == []


def test_folders_of_a_run_are_no_packages(tmp_path: Path) -> None:
    text = "import azureml\np = ['azureml-logs', 'azureml-logs/a.txt', 'azureml-models/a/1', 'azureml-core==1.4']"
    assert [name for _, name, _ in found(tmp_path, text) if "-" in name] == ["azureml-core==1.4"]


def test_other_words_are_no_packages(tmp_path: Path) -> None:
    text = "import azureml\np = {'author': 'azureml-user', 'needs': 'azureml-train-automl-client'}"
    assert [name for _, name, _ in found(tmp_path, text) if "-" in name] == ["azureml-train-automl-client"]


def test_what_is_kept_by_name(tmp_path: Path) -> None:
    text = HEAD + (
        "from azureml.core import Environment\n"
        "for name in Environment.list(ws): name.startswith('AzureML')\n"
        "for name in ws.compute_targets: name.upper()\n"
        "for target in ws.compute_targets.values(): target.nothing()\n"
        "for name, model in ws.models().items(): model.nothing()\n"
        "ws.webservices['a'].nothing()\n"
    )
    absent = [name for _, name, verdict in found(tmp_path, text) if verdict == "absent"]
    assert absent == ["ComputeTarget.nothing", "Model.nothing", "Webservice.nothing"]


def test_what_one_class_of_several_refuses(tmp_path: Path) -> None:
    text = HEAD + "from azureml.core.model import Model\nservice = Model.deploy(ws, 'a', [])\nservice.update(models=[])"
    assert (5, "Webservice.update", "works") in found(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "from azureml.pipeline.core import Pipeline, PipelineData\n"
            "from azureml.pipeline.steps import PythonScriptStep\n"
            "p = Pipeline(ws, [PythonScriptStep()])\np.validate()\np.submit('a').wait_for_completion()",
            [("azureml.pipeline.core.Pipeline", 8)],
        ),
        (
            "import azureml.train.automl as automl\nautoml.AutoMLConfig()\nautoml.utilities.x(1)",
            [("azureml.train.automl", 4)],
        ),
        (
            "from azureml.core import Nothing, Other\nOther.thing",
            [("azureml.core.Nothing", 1), ("azureml.core.Other", 2)],
        ),
        (
            "from azureml.core import Workspace\nws = Workspace.get('a')\nws.one()\nws.two()",
            [("Workspace.one", 1), ("Workspace.two", 1)],
        ),
    ],
)
def test_names_below_an_absent_one_are_counted_once(tmp_path: Path, text: str, told: list[tuple[str, int]]) -> None:
    path = tmp_path / "script.py"
    path.write_text(text)
    uses = [use for use in read(path).uses if str(use.judgement.verdict) == "absent"]
    assert [(use.name, use.times) for use in uses] == told
    assert [use.as_json().get("times", 1) for use in uses] == [times for _, times in told]


def test_a_call_is_one_use(tmp_path: Path) -> None:
    assert found(tmp_path, HEAD).count((2, "Workspace.from_config", "differs")) == 1


def notebook(path: Path, *sources: str) -> Path:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    book.cells.insert(0, nbformat.v4.new_markdown_cell("azureml"))
    nbformat.write(book, path)
    return path


def test_cells_share_their_names_and_tell_their_places(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "book.ipynb",
        "%matplotlib inline\n!pip install --upgrade azureml-sdk[notebooks] azureml-widgets\n" + HEAD,
        "def broken(:\n",
        "%%time\nfiles = !ls\nws.nothing()\nws?",
        "%%writefile train.py\nfrom azureml.core import Run\nws.unknown()\nRun.get_context().log('a', 1)",
        "%%writefile notes.txt\nnot azureml at all (",
        "%%bash\naz ml run submit\npip install azureml-core",
        "%time print(ws.name)\nprint('%d'\n      % 1)",
    )
    report = read(path)
    told = {(use.cell, use.line, use.name, str(use.judgement.verdict)) for use in report.uses}
    assert (2, 2, "azureml-sdk", "absent") in told
    assert (2, 2, "azureml-widgets", "absent") in told
    assert (2, 4, "Workspace.from_config", "differs") in told
    assert (4, 3, "Workspace.nothing", "absent") in told
    assert (5, 4, "Run.log", "works") in told
    assert (7, 2, "az ml", "absent") in told
    assert (7, 3, "azureml-core", "absent") in told
    assert (8, 1, "Workspace.name", "works") in told
    assert not [use for use in told if "unknown" in use[2]]
    assert [(each.cell, each.line) for each in report.unreadable] == [(3, 1)]


@pytest.mark.parametrize(
    "source",
    [
        "x = (1\n% 2)",
        "%%html\n<a>",
        "!echo \\\n  more (",
        "  %time x = 1",
        "x = %sql select",
        "?print",
        "%%capture out\nx=1",
    ],
)
def test_lines_keep_their_numbers_and_become_python(source: str) -> None:
    import libcst

    text = cell(source).text
    libcst.parse_module(text)
    assert text == "" or text.count("\n") == source.count("\n")


@pytest.mark.parametrize(
    ("source", "text", "shell"),
    [
        ("folder = './x'\n!mkdir $folder", "folder = './x'\npass", ["mkdir $folder"]),
        ("x = 'a'\n%matplotlib inline", "x = 'a'\npass", ["matplotlib inline"]),
        ("%sh\nls -l /dbfs\npip install azureml-sdk", "", ["ls -l /dbfs", "pip install azureml-sdk"]),
        ("%sh pip install azureml-sdk\nls", "", ["pip install azureml-sdk", "ls"]),
        ("%md\n# Title\nsome words here", "", []),
        ("%sql select 1\nx = 1", "pass\nx = 1", ["sql select 1"]),
        ("pip install azureml-sdk\nimport os", "pass\nimport os", ["pip install azureml-sdk"]),
        ("cd some/folder\nx = 1", "pass\nx = 1", ["cd some/folder"]),
        ("for f in fs:\n    !cp $f x\n    print(f)", "for f in fs:\n    pass\n    print(f)", ["cp $f x"]),
        ("s = '''\n%d\n!x\n'''\n!ls", "s = '''\n%d\n!x\n'''\npass", ["ls"]),
        ("x = (a\n != b)\n!ls", "x = (a\n != b)\npass", ["ls"]),
        ("# The script\n%%writefile $d/train.py\nimport os", "\n\nimport os", []),
        ("%%writefile -a train.py\n    return 5", "\nreturn 5", []),
    ],
)
def test_lines_for_a_shell(source: str, text: str, shell: list[str]) -> None:
    found = cell(source)
    assert found.text == text
    assert [line for _, line in found.shell] == shell


def test_what_a_cell_writes_is_never_unreadable(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "book.ipynb", HEAD, "%%writefile train.py\n{% raw %}\nimport azureml", "%sh\nif [ -f a ]; then b; fi"
    )
    assert read(path).unreadable == ()


def test_python_2_is_read(tmp_path: Path) -> None:
    script = HEAD + "try:\n    print ws.name, 1\n    print\nexcept ValueError, error:\n    print >>f, error\n"
    assert (4, "Workspace.name", "works") in found(tmp_path, script)
    assert modern("print('as it is')") == "print('as it is')"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("deep.py", "import azureml\nx = " + "(" * 3000 + ")" * 3000),
        ("long.py", "import azureml\nx = " + "1+" * 20000 + "1"),
        ("nul.py", "import azureml\0"),
        ("a.py", "import azureml\ndef ("),
        ("b.ipynb", "azureml {"),
        ("c.ipynb", '{"azureml": 1}'),
        ("d.ipynb", '["azureml"]'),
    ],
)
def test_what_is_broken_is_said(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    report = read(path)
    assert report.uses == ()
    assert len(report.unreadable) == 1


def test_notebooks_of_the_third_format_are_read(tmp_path: Path) -> None:
    book = nbformat.v3.new_notebook(worksheets=[nbformat.v3.new_worksheet(cells=[nbformat.v3.new_code_cell(HEAD)])])
    path = tmp_path / "old.ipynb"
    path.write_text(nbformat.v3.writes_json(book))
    assert {use.name for use in read(path).uses} >= {"Workspace.from_config"}
