"""Two ranks with data of their own, TensorFlow 2: a gradient tape, then Keras. Rank 0 writes outputs/seen.json."""

import json

import horovod
import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy
import tensorflow as tf

hvd.init()
rank = hvd.rank()
tf.keras.utils.set_random_seed(rank)  # Other weights and other data on each rank.
data = tf.random.normal((16, 5))
wanted = tf.random.normal((16, 1))


def made():
    return tf.keras.Sequential([tf.keras.Input((5,)), tf.keras.layers.Dense(8, "tanh"), tf.keras.layers.Dense(1)])


def everyones(tensors):
    flat = numpy.concatenate([numpy.reshape(tensor, -1) for tensor in tensors])
    return hvd.allgather(tf.constant(flat[None])).numpy()


def loss_of(model):
    return tf.reduce_mean((model(data) - wanted) ** 2)


# The tape: gradients are the mean of the local ones.
model = made()
began = everyones(model.get_weights())
model.set_weights([hvd.broadcast(weight, 0).numpy() for weight in model.get_weights()])
variables = [getattr(weight, "_value", weight) for weight in model.trainable_weights]
with tf.GradientTape() as tape:
    loss = loss_of(model)
locals_of_all = everyones(tape.gradient(loss, variables))
with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
    loss = loss_of(model)
averaged = numpy.concatenate([numpy.reshape(gradient, -1) for gradient in tape.gradient(loss, variables)])

# Keras: fit with a distributed optimizer and Horovod's callbacks, begun with other weights on each rank.
seen = {}
for name, optimizer in (("sgd", tf.keras.optimizers.SGD(0.05, 0.9)), ("adam", tf.keras.optimizers.Adam(0.01))):
    model = made()
    model.compile(optimizer=hvd_keras.DistributedOptimizer(optimizer), loss="mse")
    callbacks = [
        hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd_keras.callbacks.MetricAverageCallback(),
        hvd_keras.callbacks.LearningRateWarmupCallback(initial_lr=0.02, warmup_epochs=3),
    ]
    history = model.fit(data, wanted, batch_size=8, epochs=10, callbacks=callbacks, verbose=0)
    weights = everyones(model.get_weights())
    told = everyones([history.history["loss"][-1:]])
    seen[name] = {
        "weights_are_identical": bool((weights[0] == weights[1]).all()),
        "losses_are_averaged": bool((told[0] == told[1]).all()),
        "learned": bool(history.history["loss"][-1] < history.history["loss"][0]),
        "rate": round(float(model.optimizer.learning_rate.numpy()), 6),
    }

seen.update(
    framework=tf.__version__,
    horovod=horovod.__version__,
    size=hvd.size(),
    began_alike=bool((began[0] == began[1]).all()),
    local_gradients_differ=bool((locals_of_all[0] != locals_of_all[1]).any()),
    gradients_are_the_mean=bool(numpy.allclose(averaged, locals_of_all.mean(0), rtol=1e-5, atol=1e-7)),
)
if rank == 0:
    with open("outputs/seen.json", "w") as file:
        json.dump(seen, file)
