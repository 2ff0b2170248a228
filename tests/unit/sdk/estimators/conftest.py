import pytest


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n")
    (folder / "requirements.txt").write_text("# ours\nnumpy==2.0  # pinned\n\npandas>=2 \\\n  ,<3\n")
    (folder / "conda.yml").write_text("name: x\n")
    return folder


@pytest.fixture
def make(project):
    """Makes an estimator of a class that would run, but for what a test changes."""

    def made(kind, **settings):
        return kind(project, **{"compute_target": "local", "entry_script": "train.py", **settings})

    return made
