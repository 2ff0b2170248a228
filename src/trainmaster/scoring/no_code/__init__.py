"""Scoring scripts for models that need none of their own. They run in the model's environment: NumPy and its framework.

Each is copied as `score.py` beside `no_code_tensors.py` and `no_code.json`, which says what is known of the model.
Nothing here imports Trainmaster; Python 3.8.
"""
