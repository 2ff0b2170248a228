"""Two ranks with data of their own, TensorFlow 1: a session with Horovod's hook. Rank 0 writes outputs/seen.json."""

import json

import horovod
import horovod.tensorflow as hvd
import numpy
import tensorflow as tf

hvd.init()
rank = hvd.rank()
random = numpy.random.RandomState(rank)
tf.set_random_seed(rank)
data = tf.constant(random.randn(16, 5), tf.float32)
wanted = tf.constant(random.randn(16, 1), tf.float32)
weights = tf.get_variable("weights", (5, 1), initializer=tf.random_normal_initializer(seed=rank))
loss = tf.reduce_mean((tf.matmul(data, weights) - wanted) ** 2)
optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(0.05))
local = hvd.allgather(tf.reshape(tf.gradients(loss, weights)[0], (1, -1)))
averaged = tf.reshape(optimizer.compute_gradients(loss)[0][0], (-1,))
step = optimizer.minimize(loss)
of_all = hvd.allgather(tf.reshape(weights, (1, -1)))

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    began = session.run(of_all)
    session.run(hvd.broadcast_global_variables(0))
    locals_of_all, mean, first = session.run([local, averaged, loss])
    for _ in range(50):
        session.run(step)
    ended, last = session.run([of_all, loss])

seen = {
    "framework": tf.__version__,
    "horovod": horovod.__version__,
    "size": hvd.size(),
    "began_alike": bool((began[0] == began[1]).all()),
    "local_gradients_differ": bool((locals_of_all[0] != locals_of_all[1]).any()),
    "gradients_are_the_mean": bool(numpy.allclose(mean, locals_of_all.mean(0), rtol=1e-5, atol=1e-7)),
    "weights_are_identical": bool((ended[0] == ended[1]).all()),
    "learned": bool(last < first),
}
if rank == 0:
    with open("outputs/seen.json", "w") as file:
        json.dump(seen, file)
