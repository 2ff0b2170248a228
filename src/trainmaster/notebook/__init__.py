"""Views of runs in notebooks, and TensorBoard."""
