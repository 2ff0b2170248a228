"""Exports a trained model as one ONNX file with the same answers: `export` converts, compares, and only then keeps it.

    import trainmaster.onnx
    exported = trainmaster.onnx.export(network, sample, "outputs/model.onnx")
    print(exported)

It works in jobs too: the kit contains this package, which uses only the errors of Trainmaster. The frameworks and
onnxruntime come from the environment, and a framework is imported only for a model of its kind. All files but this one
need Python 3.7.
"""

import sys

if sys.version_info < (3, 7):
    raise ImportError("trainmaster.onnx needs Python 3.7 or newer; this is Python {}.{}".format(*sys.version_info[:2]))

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.exported import Exported, Parity, Quantized, Tensor
from trainmaster.job.onnx.exporting import export
from trainmaster.job.onnx.reading import Header, read

__all__ = ["Exported", "Header", "OnnxException", "Parity", "Quantized", "Tensor", "export", "read"]
