"""MultiWorkerMirroredStrategy: each worker takes its part of every batch. Worker 0 writes outputs/seen.json."""

import json
import os

import numpy
import tensorflow as tf

task = json.loads(os.environ["TF_CONFIG"])["task"]
strategy = tf.distribute.MultiWorkerMirroredStrategy(
    communication_options=tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
)
size = strategy.num_replicas_in_sync
random = numpy.random.RandomState(task["index"])  # Other data on each worker.
points = tf.constant(random.randn(32, 3), tf.float32)
answers = tf.matmul(points, [[1.0], [-2.0], [3.0]])
with strategy.scope():
    weights = tf.Variable(tf.random.normal((3, 1), seed=task["index"]))


def one():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(points, weights) - answers) ** 2)
    local = tape.gradient(loss, weights)
    average = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, local)
    weights.assign_sub(0.1 * average)
    return loss, local, average


@tf.function
def step():
    return strategy.run(one)


@tf.function
def gathered(value):
    return strategy.run(lambda part: tf.distribute.get_replica_context().all_gather(part[None], axis=0), (value,))


losses = []
for number in range(50):
    loss, local, average = step()
    losses.append(float(loss))
    if number == 0:
        locals_of_all, mean = gathered(local).numpy(), average.numpy()
ended = gathered(weights.read_value()).numpy()
seen = {
    "size": size,
    "local_gradients_differ": bool((locals_of_all[0] != locals_of_all[1]).any()),
    "gradients_are_the_mean": bool(numpy.allclose(mean, locals_of_all.mean(0), rtol=1e-5)),
    "weights_are_identical": bool((ended[0] == ended[1]).all()),
    "weights": [round(float(weight)) for weight in ended[0][:, 0]],
    "learned": losses[-1] < losses[0] / 100,
}
if task["index"] == 0:
    with open("outputs/seen.json", "w") as file:
        json.dump(seen, file)
