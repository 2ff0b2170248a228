"""Framework estimators with nothing but their constructor, in real environments from the user's own package sources.

On a new machine this fills 4 GB of uv's cache, a good part of it torch 1.4. The releases of v1's time need a Python
of that time.
"""

from __future__ import annotations

import sys

import pytest
from tests.conftest import ended

from azureml.train import dnn, sklearn
from trainmaster import Experiment, PyTorch, SKLearn, TensorFlow
from trainmaster.environments.pythons import all_pythons

pytestmark = pytest.mark.timeout(1200)

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
BUILD_LOG = "azureml-logs/20_image_build_log.txt"

# What v1's scripts begin with, on whichever Python.
BEGIN = """
import sys
from azureml.core import Run
run = Run.get_context()
run.tag('python', '%d.%d' % sys.version_info[:2])
"""

TORCH = """
import torch
x = torch.ones(3, requires_grad=True)
(x * x).sum().backward()
run.tag('version', torch.__version__)
run.log('answer', float(x.grad.sum()))
run.log('numpy', float(x.detach().numpy().sum()))
"""

TORCHVISION = """
import torchvision
from torch.utils.tensorboard import SummaryWriter
run.tag('torchvision', torchvision.__version__)
image = torchvision.transforms.ToPILImage()(torch.zeros(3, 4, 4))
run.log('pixels', image.size[0] * image.size[1])
with SummaryWriter('logs') as writer:
    writer.add_scalar('loss', 0.5, 1)
"""

TENSORFLOW = """
import tensorflow as tf
run.tag('version', tf.__version__)
x = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = x * x
run.log('answer', float(tape.gradient(y, x)))
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile('sgd', 'mse')
model.fit(tf.ones((4, 2)), tf.ones((4, 1)), verbose=0)
"""

TENSORFLOW1 = """
import numpy as np
import tensorflow as tf
run.tag('version', tf.__version__)
x = tf.placeholder(tf.float32)
with tf.Session() as session:
    run.log('answer', float(session.run(tf.gradients(x * x, x)[0], {x: 3.0})))
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
model.compile('sgd', 'mse')
model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
model.save('outputs/model.h5')
tf.keras.models.load_model('outputs/model.h5')
"""

SKLEARN = """
import joblib, sklearn
from sklearn.linear_model import LinearRegression
run.tag('version', sklearn.__version__)
model = LinearRegression().fit([[0.0], [1.0]], [1.0, 3.0])
joblib.dump(model, 'outputs/model.pkl')
run.log('answer', round(model.predict([[2.5]])[0], 6))
"""

SKLEARN0 = """
from sklearn.externals import joblib
"""

OLD = "3.7"

# By the names of v1 it is the release that v1 took.
RUNS = [
    (PyTorch, TORCH, HERE, "2.13.0", 6.0),
    (TensorFlow, TENSORFLOW, HERE, "2.21.0", 6.0),
    (SKLearn, SKLEARN, HERE, "1.9.1", 6.0),
    (dnn.PyTorch, TORCH + TORCHVISION, OLD, "1.4.0", 6.0),
    (dnn.TensorFlow, TENSORFLOW1, OLD, "1.13.1", 6.0),
    (sklearn.SKLearn, SKLEARN + SKLEARN0, OLD, "0.20.3", 6.0),
]


@pytest.mark.parametrize(
    ("kind", "script", "python", "version", "answer"),
    [
        pytest.param(
            *row, marks=pytest.mark.skipif(row[2] not in all_pythons(), reason=f"there is no Python {row[2]} here")
        )
        for row in RUNS
    ],
    ids=[f"{row[0].__name__}-{row[3]}" for row in RUNS],
)
def test_the_constructor_is_enough(frameworks, project, kind, script, python, version, answer):
    source = project(train=BEGIN + script)
    estimator = kind(str(source), entry_script="train.py", compute_target="local")
    run = Experiment(frameworks, "frameworks").submit(estimator)
    details = ended(run)
    assert details["status"] == "Completed", details.get("error")
    tags = run.get_tags()
    assert tags["python"] == python
    assert tags["version"].partition("+")[0] == version
    assert run.get_metrics()["answer"] == answer
    assert "nvidia" not in run.get_details_with_logs()["logFiles"].get(BUILD_LOG, "")
    if version == "1.4.0":
        assert tags["torchvision"].partition("+")[0] == "0.5.0"
    if version == "2.13.0":
        # With torchvision, or with a warning that names the index that has it.
        warnings = [each["message"] for each in details["warnings"]]
        told = [text for text in warnings if "torchvision is not installed" in text]
        assert ("\ntorchvision==" in run.get_environment().lock) == (not told)
        assert all("https://download.pytorch.org/whl/cpu" in text for text in told)


def test_the_same_constructor_does_not_build_again(frameworks, project):
    source = project(train="import sklearn")
    runs = []
    for _ in range(2):
        estimator = SKLearn(str(source), entry_script="train.py", compute_target="local")
        runs.append(Experiment(frameworks, "frameworks").submit(estimator))
        assert ended(runs[-1])["status"] == "Completed"
    assert BUILD_LOG not in runs[1].get_file_names()
