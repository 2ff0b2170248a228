"""ParameterServerStrategy with a coordinator: weights on the server, steps on the worker. The chief writes the file."""

import json

import numpy
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    # For ever: the coordinator sends the work.
    server.join()

strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
random = numpy.random.RandomState(0)
points = random.randn(64, 3).astype("float32")
answers = points @ numpy.float32([[1], [-2], [3]])
with strategy.scope():
    weights = tf.Variable(tf.zeros((3, 1)))


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(points, weights) - answers) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


losses = []
for _ in range(60):
    losses.append(coordinator.schedule(step))
coordinator.join()
values = coordinator.fetch(losses)
seen = {
    "cluster": {kind: len(hosts) for kind, hosts in resolver.cluster_spec().as_dict().items()},
    "weights_on_the_server": "/job:ps/" in weights.device,
    "steps_on_the_worker": all("/job:worker/" in loss._get_values().device for loss in losses[:3]),
    "learned": bool(values[-1] < values[0] / 100),
    "weights": [round(float(weight)) for weight in weights.read_value()[:, 0]],
}
with open("outputs/seen.json", "w") as file:
    json.dump(seen, file)
