"""Learns digits with a parameter server: it holds the weights, and each worker sends it gradients in its own time.

Worker 0 is the chief: it makes the weights, and when all workers are done it measures and keeps them.
"""

import argparse
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf
from digits import digits

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.2)
parser.add_argument("--steps", type=int, default=400, help="of each worker")
options = parser.parse_args()
tf.disable_eager_execution()

config = json.loads(os.environ["TF_CONFIG"])
cluster, job, index = tf.train.ClusterSpec(config["cluster"]), config["task"]["type"], config["task"]["index"]
print(f"{job} {index} of {config['cluster']}", flush=True)
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    # For ever; the server is ended when all workers have ended.
    server.join()

run = Run.get_context()
is_chief = index == 0
workers = cluster.num_tasks("worker")

# Variables are placed on the server, everything else on this worker.
with tf.device(tf.train.replica_device_setter(worker_device=f"/job:worker/task:{index}", cluster=cluster)):
    images, labels = tf.placeholder(tf.float32, (None, 64)), tf.placeholder(tf.int64, (None,))
    first = tf.get_variable("first", (64, 96), initializer=tf.glorot_uniform_initializer())
    bias = tf.get_variable("bias", (96,), initializer=tf.zeros_initializer())
    second = tf.get_variable("second", (96, 10), initializer=tf.glorot_uniform_initializer())
    scores = tf.matmul(tf.nn.relu(tf.matmul(images, first) + bias), second)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(scores, 1), labels), tf.float32))
    step = tf.train.GradientDescentOptimizer(options.lr).minimize(loss, tf.train.get_or_create_global_step())
    finished = tf.get_variable("finished", (), tf.int32, initializer=tf.zeros_initializer(), trainable=False)
    finish = tf.assign_add(finished, 1, use_locking=True)

supervisor = tf.train.Supervisor(is_chief=is_chief, recovery_wait_secs=1)
# A worker needs the server only: it does not wait for the other workers.
filters = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
mine, answers = digits(3000, seed=index)
random = np.random.RandomState(index)
with supervisor.prepare_or_wait_for_session(server.target, config=filters) as session:
    recent = []
    for number in range(1, options.steps + 1):
        chosen = random.randint(0, len(mine), 50)
        _, now = session.run([step, loss], {images: mine[chosen], labels: answers[chosen]})
        recent.append(float(now))
        if number % 50 == 0:
            print(f"step {number}: loss {np.mean(recent):.4f}", flush=True)
            if is_chief:
                run.log("loss", np.mean(recent))
            recent = []
    session.run(finish)
    if is_chief:
        while session.run(finished) < workers:
            time.sleep(0.1)
        unseen, truth = digits(1000, seed=1000)
        reached, steps = session.run([accuracy, supervisor.global_step], {images: unseen, labels: truth})
        run.log("accuracy", float(reached))
        run.log("steps", int(steps))
        np.savez("outputs/network.npz", *session.run([first, bias, second]))
        print(f"accuracy on unseen digits after {steps} steps of {workers} workers: {reached:.3f}")
