"""`trainmaster.onnx.export(...)`: one ONNX file of a model, compared with the model. The code is in `job/onnx`."""

from trainmaster.job.onnx import *  # noqa: F403
from trainmaster.job.onnx import __all__ as __all__
