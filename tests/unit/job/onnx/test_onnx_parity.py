"""When answers count as the same."""

import numpy as np
import pytest

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx import exporting, needed, quantizing
from trainmaster.job.onnx.frameworks import framework_of
from trainmaster.job.onnx.parity import anything_finite, compare
from trainmaster.onnx import export

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        ([[1.0, 2.0]], [[1.0, 2.0]], ""),
        ([[1.0, 2.0]], [[1.00005, 2.0]], ""),
        ([[1.0, 2.0]], [[1.01, 2.0]], "output y at [0, 0] is 1.01 instead of 1"),
        ([[1000.0]], [[1000.05]], ""),
        ([[0.0]], [[0.001]], "output y at [0, 0]"),
        ([NAN, INF], [NAN, INF], ""),
        ([NAN, 1.0], [0.0, 1.0], "output y is not finite where the other is"),
        ([INF], [-INF], "output y is not finite where the other is"),
        ([1.0, 2.0], [[1.0], [2.0]], ""),
        ([1.0, 2.0], [[1.0, 2.0]], "output y has the shape (1, 2) instead of (2,)"),
        ([1, 2, 3], [1, 2, 3], ""),
        ([1, 2, 3], [1, 2, 4], "output y differs in 1 of 3 values: 4 instead of 3"),
        (["a", "b"], ["a", "b"], ""),
        (["a", "b"], ["a", "c"], "output y differs in 1 of 2 values: c instead of b"),
        ([], [], ""),
    ],
)
def test_one_output(expected, got, said):
    assert compare([np.array(expected)], [np.array(got)], ["y"], 1e-4).excess.startswith(said)
    assert bool(compare([np.array(expected)], [np.array(got)], ["y"], 1e-4).excess) == bool(said)


def test_the_largest_difference_of_all_outputs():
    found = compare([np.array([1.0, -4.0]), np.array([8.0])], [np.array([1.0, -4.5]), np.array([9.0])], ["a", "b"], 1.0)
    assert (found.absolute, found.relative, found.excess) == (1.0, 0.125, "")
    assert "3 outputs" not in found.excess
    assert "2 outputs, the ONNX file 1" in compare([1, 2], [1], ["a", "b"], 1.0).excess


def test_numbers_that_differ_are_told_apart():
    near = compare([np.array([1.0])], [np.array([1.0 + 2**-30])], ["y"], 1e-12).excess
    assert near == "output y at [0] is 1.0000000009313226 instead of 1"


def test_nothing_to_compare():
    assert not anything_finite([np.array([NAN, INF]), np.array([])])
    assert anything_finite([np.array([NAN, 1.0])]) and anything_finite([np.array(["a"])])


@pytest.mark.parametrize(
    "settings",
    [
        {"tolerance": -1},
        {"tolerance": "much"},
        {"opset": 1},
        {"opset": True},
        {"quantize": "int4"},
        {"quantize": "static"},
        {"calibration_data": [1]},
        {"labelled_data": ([1], [1])},
        {"quantize": "dynamic", "labelled_data": 3},
    ],
)
def test_settings_that_cannot_be(tmp_path, settings):
    with pytest.raises(UserErrorException):
        export(object(), [1.0], tmp_path / "m.onnx", **settings)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_converted(tmp_path):
    for thing in (object(), print, 3, "no-folder", tmp_path):
        with pytest.raises(UserErrorException):
            framework_of(thing)
    with pytest.raises(UserErrorException, match="is a folder"):
        export(object(), [1.0], tmp_path)


def test_a_place_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserErrorException, match="cannot be written: "):
        exporting._make_work_folder(str(tmp_path / "file" / "m.onnx"))


def test_a_package_that_is_missing_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setitem(needed._TOGETHER, "scikit-learn", ("json", "no_such_package"))
    with pytest.raises(OnnxException) as caught:
        needed.check("scikit-learn")
    assert "are missing: no_such_package" in caught.value.headline
    assert "pip_packages=['no_such_package']" in caught.value.hint


def test_accuracy_needs_classes():
    class Loaded:
        def get_inputs(self):
            return []

        def run(self, _names, _given):
            return [np.array([[0.1, 0.9], [0.8, 0.2]])]

    assert quantizing._accuracy(Loaded(), ([[1.0]], [1, 1])) == 0.5
    with pytest.raises(UserErrorException, match="there are 3 labels"):
        quantizing._accuracy(Loaded(), ([[1.0]], [1, 1, 0]))
