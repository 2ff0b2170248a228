"""Learns digits with Keras: the accuracy on unseen digits after each epoch as a metric, the model as a file."""

import argparse

import tensorflow as tf
from digits import digits

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--hidden", type=int, default=64)
parser.add_argument("--epochs", type=int, default=3)
options = parser.parse_args()

run = Run.get_context()


class ToRun(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        run.log("accuracy", logs["val_accuracy"])
        print(f"epoch {epoch + 1}: accuracy {logs['val_accuracy']:.3f}", flush=True)


tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [tf.keras.Input((64,)), tf.keras.layers.Dense(options.hidden, "relu"), tf.keras.layers.Dense(10, "softmax")]
)
model.compile(tf.keras.optimizers.Adam(options.lr), "sparse_categorical_crossentropy", metrics=["accuracy"])
images, labels = digits(3000)
model.fit(
    images, labels, validation_data=digits(1000, seed=1), batch_size=50, epochs=options.epochs,
    callbacks=[ToRun()], verbose=0,
)  # fmt: skip
model.save("outputs/model.keras")
