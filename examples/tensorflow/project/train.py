"""Learns digits with Keras: loss and accuracy after each epoch as metrics, the model as a file."""

import argparse

import tensorflow as tf
from digits import digits

import trainmaster.onnx
from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.005)
parser.add_argument("--epochs", type=int, default=6)
options = parser.parse_args()

run = Run.get_context()


class ToRun(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1}: loss {logs['loss']:.4f}")
        run.log("loss", logs["loss"])


tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [tf.keras.Input((64,)), tf.keras.layers.Dense(96, "relu"), tf.keras.layers.Dense(10, "softmax")]
)
model.compile(tf.keras.optimizers.Adam(options.lr), "sparse_categorical_crossentropy", metrics=["accuracy"])
images, labels = digits(3000)
model.fit(images, labels, batch_size=50, epochs=options.epochs, callbacks=[ToRun()], verbose=0)
_, accuracy = model.evaluate(*digits(1000, seed=1), verbose=0)
run.log("accuracy", accuracy)
model.save("outputs/model.keras")
# Kept only if it answers as the model does.
print(trainmaster.onnx.export(model, images[:10], "outputs/model.onnx"))
print(f"accuracy on unseen digits: {accuracy:.3f}")
