import io
import json
import math
import time

import matplotlib
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmaster.job.errors import TrainmasterError, UserErrorException
from trainmaster.job.script.journal import Journal, read_records
from trainmaster.job.script.pictures import is_image
from trainmaster.job.script.recorder import Recorder

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


class Bare(Recorder):
    """The least a class needs to record."""

    def __init__(self, folder):
        self.journal = Journal(folder / "j.jsonl")
        self.folder = folder

    def _journal(self):
        return self.journal

    def _files_folder(self):
        return str(self.folder / "files")


def test_a_scalar_record(run, records):
    before = time.time()
    run.log("loss", 0.5)
    run.log("loss", 7, step=3)
    fast, slow = records()
    assert before - 1e-5 <= fast.pop("t") <= slow.pop("t") <= time.time()
    assert fast == {"k": "metric", "n": "loss", "v": 0.5}
    assert slow == {"k": "metric", "n": "loss", "v": 7, "s": 3}


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=50).filter(str.strip),
    value=st.one_of(st.floats(), st.integers(), st.booleans(), st.text(), st.none(), st.floats().map(numpy.float64)),
)
def test_what_goes_in_comes_out(tmp_path_factory, name, value):
    recorder = Bare(tmp_path_factory.mktemp("any"))
    recorder.log(name, value)
    recorder.log(name, value)
    recorder.journal.close()
    for record in read_records(recorder.folder / "j.jsonl"):
        assert record["n"] == name
        assert record["v"] == value or (math.isnan(value) and math.isnan(record["v"]))
        assert isinstance(record["v"], bool) == isinstance(value, bool)


@pytest.mark.parametrize("value", [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 1e308, 5e-324, -0.0, math.inf, -math.inf])
def test_the_ends_of_the_number_line(run, records, value):
    run.log("m", value)
    assert records()[0]["v"] == value


def test_names_are_checked_on_the_fast_way_too(run, records):
    for name in ("", None, 3, ["a"], "a\n", "x" * 300):
        with pytest.raises(UserErrorException):
            run.log(name, 1.0)
    assert records() == []


def test_the_names_remembered_are_bounded(run, records):
    for n in range(2500):
        run.log(f"m{n}", n)
    assert len(run._heads) <= 1000
    assert [r["n"] for r in records()] == [f"m{n}" for n in range(2500)]


def test_a_list_is_not_a_scalar(run, records):
    with pytest.raises(UserErrorException, match="log_list"):
        run.log("m", [1, 2])
    assert records() == []


def test_lists_rows_and_tables(run, records):
    run.log_list("l", (n / 2 for n in range(3)))
    run.log_row("r", "about it", x=1, y=numpy.float32(0.5))
    run.log_table("t", {"x": [1, 2], "y": ["a", None]})
    assert [(r["k"], r["n"], r["v"]) for r in records()] == [
        ("list", "l", [0.0, 0.5, 1.0]),
        ("row", "r", {"x": 1, "y": 0.5}),
        ("table", "t", {"x": [1, 2], "y": ["a", None]}),
    ]


def test_an_image_file_is_kept_under_its_own_path(run, records, job):
    (job / "code" / "plots").mkdir()
    (job / "code" / "plots" / "roc.png").write_bytes(PNG)
    run.log_image("roc", path="plots/roc.png")
    run.log_image("roc", path=job / "code" / "plots" / "roc.png")
    (job / "code" / "plots" / "roc.png").write_bytes(PNG + b"next epoch")
    run.log_image("roc", "plots/roc.png")
    assert [r["v"] for r in records("image")] == ["plots/roc.png", "plots/roc.png", "plots/roc_1.png"]


def test_an_image_from_elsewhere_is_kept_by_its_name(run, records, tmp_path):
    (tmp_path / "roc.png").write_bytes(PNG)
    run.log_image("roc", path=str(tmp_path / "roc.png"))
    run.log_image("roc", path="../../../roc.png")
    assert [r["v"] for r in records("image")] == ["roc.png", "roc.png"]


def test_plots_of_one_second_do_not_overwrite_each_other(run, records, job):
    matplotlib.use("agg")
    from matplotlib import pyplot

    for n in range(2):
        pyplot.plot([n, 1, 5])
        run.log_image("loss/curve", plot=pyplot)
    run.log_image("axes", plot=pyplot.gca())
    pyplot.close("all")
    names = [r["v"] for r in records("image")]
    assert len(set(names)) == 3
    assert all(is_image((job / "files" / name).read_bytes()) for name in names)
    assert names[0].startswith("loss/curve_1") and names[0].endswith(".png")


@pytest.mark.parametrize("arguments", [{}, {"path": "a.png", "plot": object()}, {"plot": object()}])
def test_exactly_one_of_path_and_plot(run, records, arguments):
    with pytest.raises(TrainmasterError):
        run.log_image("m", **arguments)
    assert records() == []


def test_what_is_no_image(run, job):
    (job / "code" / "a.png").write_text("not at all")
    for path in ("a.png", "absent.png", "outputs"):
        with pytest.raises(UserErrorException):
            run.log_image("m", path=path)


@pytest.mark.parametrize(
    ("beginning", "image"),
    [
        (PNG, True),
        (b"\xff\xd8\xff\xe0JFIF", True),
        (b"GIF87a", True),
        (b"BM\x36", True),
        (b"RIFF\x24\0\0\0WEBPVP8", True),
        (b"II*\0", True),
        (b"MM\0*", True),
        (b"<svg xmlns=", True),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- x --><svg>", True),
        (b"<?xml version='1.0'?><html>", False),
        (b"RIFF\x24\0\0\0WAVE", False),
        (b"", False),
        (b"%PDF", False),
    ],
)
def test_images_by_their_first_bytes(beginning, image):
    assert is_image(beginning) is image


MATRIX = {"schema_type": "confusion_matrix", "schema_version": "v1", "data": {"matrix": [[1, 0], [0, 1]]}}


def test_structured_metrics_are_files(run, records, job):
    run.log_confusion_matrix("cm", MATRIX)
    run.log_confusion_matrix("cm", json.dumps({**MATRIX, "data": {"matrix": [[2]]}}))
    run.log_accuracy_table("at", {"schema_type": "accuracy_table", "data": {"x": numpy.arange(2)}})
    run.log_residuals("re", {"schema_type": "residuals", "data": {}})
    run.log_predictions("pr", {"schema_type": "predictions", "data": {}})
    kept = [json.loads((job / "files" / r["v"]).read_text())["data"] for r in records("json")]
    assert kept == [{"matrix": [[1, 0], [0, 1]]}, {"matrix": [[2]]}, {"x": [0, 1]}, {}, {}]


@pytest.mark.parametrize(
    "value", ["no json", "[1]", 5, {}, {**MATRIX, "schema_type": "residuals"}, {**MATRIX, "data": [object()]}]
)
def test_structured_metrics_are_checked(run, records, value):
    with pytest.raises(UserErrorException):
        run.log_confusion_matrix("cm", value)
    assert records() == []


def test_uploads(run, job):
    (job / "code" / "a.txt").write_text("a")
    run.upload_file("x/a.txt", "a.txt")
    assert run.upload_files(["b", "c"], ["a.txt", io.BytesIO(b"c")], return_artifacts=True) == ["b", "c"]
    (job / "code" / "tree" / "deep").mkdir(parents=True)
    (job / "code" / "tree" / "deep" / "d.txt").write_text("d")
    run.upload_folder("outputs/t", "tree")
    assert run.get_file_names() == ["b", "c", "outputs/t/deep/d.txt", "x/a.txt"]


def test_uploads_are_checked(run, job):
    (job / "code" / "a.txt").write_text("a")
    for wrong in (
        lambda: run.upload_files(["a"], ["a.txt", "a.txt"]),
        lambda: run.upload_files("a", "a.txt"),
        lambda: run.upload_folder("x", "absent"),
        lambda: run.upload_folder("../x", "."),
        lambda: run.upload_file("a.txt", "a.txt", datastore_name="elsewhere"),
    ):
        with pytest.raises(UserErrorException):
            wrong()
    run.upload_file("a.txt", "a.txt", datastore_name="workspaceartifactstore")
    assert run.flush() is None


def test_a_class_of_ones_own_can_record(tmp_path):
    recorder = Bare(tmp_path)
    recorder._about = "child"
    recorder.log("m", 1)
    recorder.log_list("l", [1])
    recorder.upload_file("a", io.BytesIO(b"x"))
    assert [r["r"] for r in recorder.journal.records()] == ["child", "child"]
    assert (tmp_path / "files" / "a").read_bytes() == b"x"
