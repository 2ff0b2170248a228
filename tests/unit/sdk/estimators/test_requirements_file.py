"""pip_requirements_file: what is read, and what is refused."""

import pytest

from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.estimators.requirements import merge, read_requirements


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("# only a comment\n\n   \n", []),
        ("numpy\r\npandas==2.0 # why\r\n", ["numpy", "pandas==2.0"]),
        ("\ufeffnumpy\n", ["numpy"]),
        ("a==1 \\\n  --hash=sha256:x\nb", ["a==1 --hash=sha256:x", "b"]),
        ("a==1 \\", ["a==1"]),
        ("--extra-index-url https://x.example/simple\ntorch", ["--extra-index-url https://x.example/simple", "torch"]),
        ("x @ https://x.example/x.whl", ["x @ https://x.example/x.whl"]),
        ("git+https://x.example/r.git#egg=r", ["git+https://x.example/r.git#egg=r"]),
        ("numpy; python_version < '3.12'", ["numpy; python_version < '3.12'"]),
        ("requests-extra\neditables", ["requests-extra", "editables"]),
    ],
)
def test_lines(project, text, lines):
    (project / "r.txt").write_bytes(text.encode())
    assert read_requirements(str(project), "r.txt") == lines


@pytest.mark.parametrize(
    "line",
    [
        "-r other.txt",
        "-rother.txt",
        "--requirement other.txt",
        "-e .",
        "--editable=.",
        "-c limits.txt",
        "./package",
        "/opt/package",
        "~/package",
        "file:///opt/x.whl",
        "x @ file:///opt/x",
        "wheels/x-1.0.whl",
        ".",
    ],
)
def test_what_cannot_be_built_elsewhere_is_refused_with_its_line(project, line):
    (project / "r.txt").write_text(f"numpy\n{line}\n")
    with pytest.raises(UserErrorException, match=r"line 2 of pip_requirements_file 'r.txt'"):
        read_requirements(str(project), "r.txt")


def test_a_file_that_is_no_text_is_refused(project):
    (project / "r.txt").write_bytes(b"\xff\xfe\x00n")
    with pytest.raises(UserErrorException, match="cannot be read"):
        read_requirements(str(project), "r.txt")


def test_a_link_out_of_the_folder_is_refused(project, tmp_path):
    (tmp_path / "outside.txt").write_text("numpy")
    (project / "r.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(UserErrorException, match="inside source_directory"):
        read_requirements(str(project), "r.txt")


def test_the_programs_packages_go_first():
    assert merge(["Torch==2"], ["torch==1", "numpy", "--pre"]) == ["Torch==2", "numpy", "--pre"]
