"""Tells digits apart on every rank's own data, with numpy; after each step the ranks average their gradients by MPI."""

import argparse
import os
import socket

import numpy as np
from digits import digits
from mpi4py import MPI

from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--epochs", type=int, default=8)
options = parser.parse_args()

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
node = os.environ["NODE_RANK"]
print(f"rank {rank} of {size}, on node {node}, process {os.getpid()} of {socket.gethostname()}")
run = Run.get_context()

images, labels = digits(2000, seed=rank)
wanted = np.eye(10)[labels]
random = np.random.RandomState(0)
first, second = random.normal(0, 0.3, (64, 64)), random.normal(0, 0.3, (64, 10))


def averaged(gradient):
    total = np.empty_like(gradient)
    world.Allreduce(gradient, total)
    return total / size


for epoch in range(options.epochs):
    losses = []
    for start in range(0, len(images), 50):
        batch, answers = images[start : start + 50], wanted[start : start + 50]
        hidden = np.tanh(batch @ first)
        scores = np.exp(hidden @ second)
        chances = scores / scores.sum(1, keepdims=True)
        losses.append(-np.log((chances * answers).sum(1)).mean())
        error = (chances - answers) / len(batch)
        back = (error @ second.T) * (1 - hidden**2)
        second -= options.lr * averaged(hidden.T @ error)
        first -= options.lr * averaged(batch.T @ back)
    loss = world.allreduce(float(np.mean(losses))) / size
    print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f} on my part, {loss:.4f} on all")
    if rank == 0:
        run.log("loss", loss)

if rank == 0:
    unseen, truth = digits(1000, seed=1000)
    accuracy = float(((np.tanh(unseen @ first) @ second).argmax(1) == truth).mean())
    run.log("accuracy", accuracy)
    np.savez("outputs/network.npz", first=first, second=second)
    print(f"accuracy on digits that nobody has seen: {accuracy:.3f}")
