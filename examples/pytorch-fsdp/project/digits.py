"""Handwriting made on the spot: the ten digits on 8 x 8 pixels, each a little elsewhere, with noise."""

import numpy as np

# Five rows of three pixels, from the top.
_SHAPES = (
    "111101101101111",
    "010110010010111",
    "111001111100111",
    "111001011001111",
    "101101111001001",
    "111100111001111",
    "111100111101111",
    "111001010010010",
    "111101111101111",
    "111101111001111",
)


def digits(count, seed=0):
    """`count` images with 64 numbers each, and which digits they show. The same seed gives the same images."""
    random = np.random.RandomState(seed)
    labels = random.randint(0, 10, count)
    images = random.normal(0.0, 0.25, (count, 8, 8))
    for number, label in enumerate(labels):
        shape = np.array(list(_SHAPES[label]), float).reshape(5, 3)
        row, column = random.randint(1, 3), random.randint(2, 4)
        images[number, row : row + 5, column : column + 3] += shape
    return images.reshape(count, 64).astype("float32"), labels
