"""A trained model as one ONNX file that gives the same answers: `export` converts, compares, and only then keeps it.

    import trainmaster.onnx
    exported = trainmaster.onnx.export(network, sample, "outputs/model.onnx")
    print(exported)

It works in jobs too: the kit brings this package, which uses nothing of Trainmaster but its errors. The frameworks and
onnxruntime are those of the environment it runs in, and each is imported only when a model of its kind is met. All but
this file needs Python 3.7.
"""

import sys

if sys.version_info < (3, 7):
    raise ImportError("trainmaster.onnx needs Python 3.7 or newer; this is Python {}.{}".format(*sys.version_info[:2]))

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.exported import Exported, Parity, Quantized, Tensor
from trainmaster.job.onnx.exporting import export
from trainmaster.job.onnx.reading import Header, read

__all__ = ["Exported", "Header", "OnnxException", "Parity", "Quantized", "Tensor", "export", "read"]
