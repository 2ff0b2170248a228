"""The inputs that models are tried with."""

import numpy as np
import pytest

from trainmaster.job.errors import OnnxException, UserErrorException
from trainmaster.job.onnx.samples import check_batch, random_like, resize, samples_of
from trainmaster.job.onnx.sampling import random_array, read_sample, sample_for


def test_the_forms_of_a_sample():
    one = np.ones((2, 3), "float32")
    assert len(samples_of(one).arrays) == 1
    assert len(samples_of([[1.0, 2.0], [3.0, 4.0]]).arrays) == 1
    assert len(samples_of((one, one)).arrays) == 2
    named = samples_of({"a": one, "b": one})
    assert named.names == ("a", "b") and named.by_keyword and named.batch == 2


@pytest.mark.parametrize("given", [(), {}, {1: [1.0]}, object(), [object()], [[1.0], [2.0, 3.0]]])
def test_what_is_no_sample(given):
    with pytest.raises(UserErrorException):
        samples_of(given)


def test_random_inputs_stay_in_the_range_of_the_sample():
    table = np.array([[0.0, 100.0, 5.0], [1.0, 200.0, 5.0]], "float32")
    tokens = np.array([[1, 9]])
    flags = np.array([[True, False]])
    words = np.array([["a", "b"]], dtype=object)
    rows, numbers, truths, texts = random_like(samples_of((table, tokens, flags, words)), 50, seed=1)
    assert rows.shape == (50, 3) and rows.dtype == np.float32
    assert rows[:, 0].min() >= 0 and rows[:, 0].max() <= 1 and rows[:, 1].min() >= 100
    # A column that is always the same says nothing of its range.
    assert len(set(rows[:, 2])) > 1
    assert numbers.min() >= 1 and numbers.max() <= 9 and numbers.dtype == tokens.dtype
    assert truths.dtype == bool and set(texts.reshape(-1)) == {"a", "b"}
    again = random_like(samples_of(table), 50, seed=1)
    assert (again[0] == rows).all()


def test_those_that_reach_further_leave_the_range():
    sample = samples_of(np.random.default_rng(0).random((4, 3)))
    far = [random_like(sample, 1, seed, reach=1.0)[0].mean() for seed in range(20)]
    assert min(far) < 0 < 1 < max(far)


def test_batches():
    assert resize(samples_of(np.arange(3).reshape(1, 3)), 2).arrays[0].tolist() == [[0, 1, 2], [0, 1, 2]]
    assert check_batch(samples_of(np.ones((5, 2)))) == 5
    for wrong in ((np.ones((5, 2)), np.ones((4, 2))), np.float32(1.0), np.ones((0, 2))):
        with pytest.raises(OnnxException, match="the batch as their first dimension"):
            check_batch(samples_of(wrong))


def test_samples_out_of_files(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 2)))
    np.savez(tmp_path / "x.npz", a=np.ones(1), b=np.zeros(1))
    (tmp_path / "x.json").write_text('{"a": [[1.5, 2.0]], "b": [[1, 2]]}')
    assert read_sample(str(tmp_path / "x.npy")).shape == (1, 2)
    assert sorted(read_sample(str(tmp_path / "x.npz"))) == ["a", "b"]
    found = read_sample(str(tmp_path / "x.json"))
    assert found["a"].dtype == np.float32 and found["b"].dtype == np.int64
    (tmp_path / "broken.npy").write_bytes(b"no array")
    with pytest.raises(UserErrorException, match=r"the sample broken.npy cannot be read"):
        read_sample(str(tmp_path / "broken.npy"))


def test_made_up_samples():
    assert random_array("float32", ["batch", 3]).shape == (2, 3)
    assert set(random_array("int64", [None, 50]).reshape(-1)) == {0, 1}
    made = sample_for(None, "torchscript", [{"name": "x", "type": "float32", "shape": ["batch", 4]}], "")
    assert made["x"].shape == (2, 4)
    with pytest.raises(OnnxException, match="the inputs of the model are unknown"):
        sample_for(None, "torchscript", [], "")
    for kind, shape in (("object", [1]), ("float32", None)):
        with pytest.raises(OnnxException):
            random_array(kind, shape)
