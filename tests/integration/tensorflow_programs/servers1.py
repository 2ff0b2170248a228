"""TensorFlow 1 as it was written: a server for each task, variables on the parameter server, one chief.

Each worker adds to one variable; worker 0 waits for all and writes outputs/seen.json.
"""

import json
import os
import time

import tensorflow as tf

config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]["type"], config["task"]["index"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name=task[0], task_index=task[1])
if task[0] == "ps":
    server.join()

workers = cluster.num_tasks("worker")
with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{task[1]}", cluster=cluster)):
    random = tf.random_normal((16, 3), seed=task[1])
    weights = tf.get_variable("weights", (3, 1), initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((tf.matmul(random, weights) - tf.matmul(random, [[1.0], [-2.0], [3.0]])) ** 2)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
    finished = tf.get_variable("finished", (), tf.int32, initializer=tf.zeros_initializer(), trainable=False)
    finish = tf.assign_add(finished, 1, use_locking=True)
# Workers wait for the server only, not for each other.
own = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task[1]}"])
# A worker that comes before the chief looks again after a second; MonitoredTrainingSession would after thirty.
supervisor = tf.train.Supervisor(is_chief=task[1] == 0, recovery_wait_secs=1)
with supervisor.prepare_or_wait_for_session(server.target, config=own) as session:
    for _ in range(100):
        session.run(step)
    session.run(finish)
    while task[1] == 0 and session.run(finished) < workers:
        time.sleep(0.05)
    last, ended, steps = session.run([loss, weights, supervisor.global_step])

if task[1] == 0:
    seen = {
        "framework": tf.__version__,
        "environment": config["environment"],
        "weights_on_the_server": "/job:ps/" in weights.device,
        "steps": int(steps),
        "weights": [round(float(weight)) for weight in ended[:, 0]],
        # It is 14 or so at first, for whichever worker comes first.
        "learned": bool(last < 0.1),
    }
    with open("outputs/seen.json", "w") as file:
        json.dump(seen, file)
