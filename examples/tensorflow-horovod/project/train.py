"""Learns digits with Keras and Horovod: every rank fits its part of the data, with averaged gradients."""

import argparse

import horovod.tensorflow.keras as hvd
import tensorflow as tf
from digits import digits

import trainmaster.onnx
from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.0025)
parser.add_argument("--epochs", type=int, default=6)
options = parser.parse_args()

hvd.init()
print(f"rank {hvd.rank()} of {hvd.size()}")
run = Run.get_context()


class ToRun(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1}: loss {logs['loss']:.4f}")
        if hvd.rank() == 0:
            run.log("loss", logs["loss"])


tf.keras.utils.set_random_seed(hvd.rank())
images, labels = digits(3000)
images, labels = images[hvd.rank() :: hvd.size()], labels[hvd.rank() :: hvd.size()]
model = tf.keras.Sequential(
    [tf.keras.Input((64,)), tf.keras.layers.Dense(96, "relu"), tf.keras.layers.Dense(10, "softmax")]
)
# Twice the ranks, twice the data in each step: the step may be twice as long.
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(options.lr * hvd.size()))
model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    # Before the callback that logs, which then gets the mean of all ranks.
    hvd.callbacks.MetricAverageCallback(),
    ToRun(),
]
model.fit(images, labels, batch_size=50, epochs=options.epochs, callbacks=callbacks, verbose=0)
if hvd.rank() == 0:
    _, accuracy = model.evaluate(*digits(1000, seed=1), verbose=0)
    run.log("accuracy", accuracy)
    model.save_weights("outputs/model.weights.h5")
    # Kept only if it answers as the model does.
    print(trainmaster.onnx.export(model, images[:10], "outputs/model.onnx"))
    print(f"accuracy on unseen digits: {accuracy:.3f}")
