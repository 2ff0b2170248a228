"""What `trainmaster.onnx.export` does with models of TensorFlow."""

import os

import numpy as np
import tensorflow as tf

import trainmaster.onnx
from azureml.core import Run
from trainmaster.job.errors import OnnxException, UserErrorException

run = Run.get_context()
os.makedirs("outputs", exist_ok=True)
tf.keras.utils.set_random_seed(0)
layers = tf.keras.layers
picture = np.random.default_rng(0).random((1, 8, 8, 1)).astype("float32")

# A model of Keras, its dropout and batch normalisation as they are in use.
model = tf.keras.Sequential(
    [
        tf.keras.Input((8, 8, 1)),
        layers.Conv2D(4, 3),
        layers.BatchNormalization(),
        layers.Dropout(0.5),
        layers.Flatten(),
        layers.Dense(10, activation="softmax"),
    ]
)
exported = trainmaster.onnx.export(model, picture, "outputs/keras.onnx", output_names=["digits"])
print(exported)
assert [str(each) for each in exported.inputs] == ["input: float32, batch x 8 x 8 x 1"]
assert [str(each) for each in exported.outputs] == ["digits: float32, batch x 10"]
assert exported.parity.max_absolute < 1e-5 and exported.parity.batches == (1, 2, 7)
run.log("difference", exported.parity.max_absolute)

# The folder that it is served from.
model.export("outputs/saved", verbose=False)
exported = trainmaster.onnx.export("outputs/saved", picture, "outputs/saved.onnx", opset=17)
assert exported.opset == 17 and exported.outputs[0].shape == ("batch", 10)


# A function, with inputs and outputs by name.
@tf.function
def both(a, b):
    return {"sum": a + b, "product": a * b}


ones = np.ones((2, 3), "float32")
exported = trainmaster.onnx.export(both, {"a": ones, "b": ones + 1}, "outputs/function.onnx")
assert [each.name for each in exported.inputs] == ["a", "b"]
assert [each.name for each in exported.outputs] == ["product", "sum"]


def refused(kind, words, *arguments):
    try:
        trainmaster.onnx.export(*arguments)
    except kind as error:
        assert words in error.message, error.message
    else:
        raise AssertionError("not refused: " + words)


refused(OnnxException, "fails on inputs of shape (2, 3)", model, ones, "outputs/no.onnx")
refused(UserErrorException, "has 1 inputs", "outputs/saved", (picture, picture), "outputs/no.onnx")
refused(UserErrorException, "no saved_model.pb", "outputs", picture, "outputs/no.onnx")
refused(
    OnnxException,
    "differ from those of the model",
    tf.function(lambda x: x + tf.random.uniform(tf.shape(x))),
    ones,
    "outputs/no.onnx",
)
assert sorted(os.listdir("outputs")) == ["function.onnx", "keras.onnx", "saved", "saved.onnx"]
