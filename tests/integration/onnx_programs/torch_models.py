"""What `trainmaster.onnx.export` does with models of torch: a script as people write it, with a look at each result."""

import os
import warnings

import torch

import trainmaster.onnx
from azureml.core import Run
from trainmaster.job.errors import OnnxException, UserErrorException

torch.manual_seed(0)
run = Run.get_context()
os.makedirs("outputs", exist_ok=True)


class Net(torch.nn.Module):
    """Dropout, and answers by name: what has to be right is the evaluation."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 64)
        self.second = torch.nn.Linear(64, 3)
        self.dropout = torch.nn.Dropout()

    def forward(self, x):
        hidden = self.dropout(torch.relu(self.first(x)))
        return {"logits": self.second(hidden), "hidden": hidden}


class Tokens(torch.nn.Module):
    """Two inputs of two types."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, tokens, weight):
        return self.table(tokens).mean(1) * weight, tokens.sum(1)


class Branch(torch.nn.Module):
    """A way that depends on values: it cannot be written down as one graph."""

    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x - 1


class Noise(torch.nn.Module):
    """Never the same twice."""

    def forward(self, x):
        return x + torch.rand_like(x)


def refused(kind, words, *arguments, **settings):
    before = sorted(os.listdir("outputs"))
    try:
        trainmaster.onnx.export(*arguments, **settings)
    except kind as error:
        assert words in error.message, error.message
    else:
        raise AssertionError("not refused: " + words)
    assert sorted(os.listdir("outputs")) == before


# One file, any batch, the same answers, and the model is left as it was.
net = Net()
exported = trainmaster.onnx.export(net, torch.randn(1, 4), "outputs/net.onnx")
print(exported)
assert net.training
assert [str(each) for each in exported.inputs] == ["x: float32, batch x 4"]
assert [str(each) for each in exported.outputs] == ["logits: float32, batch x 3", "hidden: float32, batch x 64"]
assert exported.parity.max_absolute < 1e-5 and exported.parity.batches == (1, 2, 7), exported.parity
assert os.listdir("outputs") == ["net.onnx"] and "legacy" not in exported.exporter
assert trainmaster.onnx.read("outputs/net.onnx").facts == exported.facts()
run.log("difference", exported.parity.max_absolute)

# Inputs by position and by name, of other types.
tokens, weight = torch.randint(0, 10, (3, 5)), torch.rand(3, 4)
exported = trainmaster.onnx.export(Tokens(), (tokens, weight), "outputs/tokens.onnx", output_names=["mean", "sum"])
assert [each.name for each in exported.inputs] == ["tokens", "weight"]
assert [(each.name, each.type) for each in exported.outputs] == [("mean", "float32"), ("sum", "int64")]

# TorchScript goes by the legacy exporter.
script = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 2)))
exported = trainmaster.onnx.export(script, torch.randn(2, 4), "outputs/script.onnx", opset=17)
assert exported.opset == 17 and "legacy" in exported.exporter
script.save("outputs/script.pt")

# A program of torch.export, for any batch.
varying = {"tokens": {0: torch.export.Dim("batch")}, "weight": {0: torch.export.Dim("batch")}}
torch.export.save(torch.export.export(Tokens(), (tokens, weight), dynamic_shapes=varying), "outputs/program.pt2")

# int8, with what it costs.
x = torch.randn(64, 4)
labels = net.eval()(x)["logits"].argmax(1)
exported = trainmaster.onnx.export(
    net, x[:4], "outputs/int8.onnx", quantize="static", calibration_data=[x], labelled_data=(x, labels)
)
small = exported.quantized
assert small.accuracy_before == 1.0 and 0.5 < small.accuracy_after <= 1.0, small
assert 0 < small.max_absolute < 1 and exported.parity.max_absolute < 1e-5, small

# What is not right leaves nothing.
refused(OnnxException, "fails on inputs of shape (2, 5)", net, torch.randn(2, 5), "outputs/no.onnx")
refused(OnnxException, "differ from those of the model", Noise(), x, "outputs/no.onnx")
refused(OnnxException, "tolerance 0", net, x, "outputs/no.onnx", tolerance=0)
refused(UserErrorException, "has 1 names, but the model has 2", net, x, "outputs/no.onnx", output_names=["a"])
refused(UserErrorException, "cannot be converted to ONNX", lambda x: x, x, "outputs/no.onnx")
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    refused(OnnxException, "branches on values of its input", Branch(), x[:2] + 1, "outputs/no.onnx")
assert any("legacy exporter of torch was used" in str(each.message) for each in said)
