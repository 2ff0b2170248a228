"""Our changes to Horovod's source: small replacements, each with the exact number of matches.

Horovod's last release is older than today's compilers, frameworks and Open MPI.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from trainmaster.job.errors import EnvironmentException

_ADDITIONS = Path(__file__).parent / "additions"


@dataclass(frozen=True)
class Edit:
    """Replaces a regular expression in one file exactly `times` times."""

    file: str
    pattern: str
    replacement: str
    times: int = 1

    def apply(self, source: Path) -> None:
        path = source / self.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        changed, times = re.subn(self.pattern, self.replacement, text, flags=re.MULTILINE)
        if times != self.times:
            raise EnvironmentException(
                f"Horovod's {self.file} is not as expected and cannot be patched",
                cause=f"{self.pattern!r} was found {times} times instead of {self.times}.",
                hint="This is a bug in Trainmaster's recipe for this release of Horovod: please report it.",
            )
        path.write_text(changed, encoding="utf-8")


@dataclass(frozen=True)
class Addition:
    """A file that we add to the source."""

    file: str
    name: str

    @property
    def text(self) -> str:
        return (_ADDITIONS / self.name).read_text(encoding="utf-8")

    def apply(self, source: Path) -> None:
        (source / self.file).write_text(self.text, encoding="utf-8")


# torch 2.1 and newer require C++17.
CXX17 = (
    Edit("CMakeLists.txt", r"^set\(CMAKE_CXX_STANDARD 14\)", "set(CMAKE_CXX_STANDARD 17)"),
    Edit("horovod/torch/CMakeLists.txt", r"set\(CMAKE_CXX_STANDARD 14\)", "set(CMAKE_CXX_STANDARD 17)"),
)

# The wheel finds Open MPI and the framework by relative paths in any environment.
RELOCATABLE = (
    Edit(
        "CMakeLists.txt",
        r"^set\(CMAKE_CXX_STANDARD_REQUIRED ON\)",
        "set(CMAKE_CXX_STANDARD_REQUIRED ON)\n"
        "set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)\n"
        "set(CMAKE_INSTALL_RPATH_USE_LINK_PATH OFF)\n"
        'set(CMAKE_INSTALL_RPATH "$ORIGIN/../../../..;$ORIGIN/../../torch/lib;$ORIGIN/../../tensorflow")',
    ),
)

# Without debug information the wheel is twenty times smaller.
SMALL = (Edit("setup.py", "'RelWithDebInfo'", "'Release'"),)

# CMake 4 rejects a lower minimum version.
CMAKE4 = (
    Edit(
        "third_party/gloo/CMakeLists.txt",
        r"^cmake_minimum_required\(VERSION 2[0-9.]+ FATAL_ERROR\)",
        "cmake_minimum_required(VERSION 3.13 FATAL_ERROR)",
    ),
)

# Open MPI 5 misreads long options with one dash.
DOUBLE_DASHES = (Edit("horovod/runner/mpi_run.py", r"(?<=['\"])-(?=(?:mca|bind-to|map-by|rank-by) )", "--", 11),)

# TensorFlow 2.14 and newer do not ship the XLA headers, so the XLA operations are dropped.
WITHOUT_XLA = (Edit("horovod/tensorflow/CMakeLists.txt", r"^list\(APPEND TF_SOURCES .*/xla_mpi_ops\.cc\"\)$", ""),)

# A framework that requires C++17 gets a second Gloo. The first is then compiled only if something links to it.
UNUSED_GLOO = (
    Edit(
        "CMakeLists.txt",
        r"^    add_subdirectory\(third_party/gloo\)$",
        "    add_subdirectory(third_party/gloo EXCLUDE_FROM_ALL)",
    ),
)

# TensorFlow removed tf.estimator.
SESSION_HOOK = (
    Edit("horovod/tensorflow/__init__.py", r"tf\.estimator\.SessionRunHook", "tf.compat.v1.train.SessionRunHook"),
)

# Uses the active Keras: Keras 3 or, with TF_USE_LEGACY_KERAS=1, tf_keras.
KERAS_IN_USE = (
    Edit("horovod/tensorflow/keras/__init__.py", r"^    from keras import backend as K$", "    K = keras.backend"),
    Edit("horovod/tensorflow/keras/callbacks.py", r"^    from keras import backend as K$", "    K = keras.backend"),
)

_CALLBACKS = "horovod/_keras/callbacks.py"
KERAS3 = (
    Addition("horovod/_keras/keras3.py", "keras3.py.txt"),
    Edit(
        "horovod/_keras/__init__.py",
        r"^    class _DistributedOptimizer\(",
        "    from horovod._keras import keras3\n"
        "    if keras3.is_keras3(optimizer):\n"
        "        keras3.check(backward_passes_per_step)\n"
        "        average = hvd._make_allreduce_grads_fn(\n"
        "            name or 'Distributed' + type(optimizer).__name__, device_dense, device_sparse, compression,\n"
        "            sparse_as_dense, op, gradient_predivide_factor, groups, process_set=process_set)\n"
        "        return keras3.distributed(optimizer, average, process_set.size() if scale_local_gradients else 1)\n"
        "\n"
        "    class _DistributedOptimizer(",
    ),
    Edit(
        "horovod/_keras/__init__.py",
        r"^    if legacy_opts:$",
        "    from horovod._keras import keras3\n    keras3.refuse_load_model(keras)\n    if legacy_opts:",
    ),
    Edit(_CALLBACKS, r"^import tensorflow as tf$", "import tensorflow as tf\nfrom horovod._keras import keras3"),
    Edit(_CALLBACKS, r"in self\.model\.variables if", "in keras3.tensors(self.model.variables) if"),
    Edit(_CALLBACKS, r"self\.model\.optimizer\.variables\(\)", "keras3.optimizer_tensors(self.model.optimizer)"),
    Edit(_CALLBACKS, r"self\.backend\.constant\(value, name=metric\)", "tf.constant(value, name=metric)"),
    Edit(
        _CALLBACKS,
        r"self\.backend\.get_value\(self\.model\.optimizer\.lr\)",
        "keras3.read(self.backend, self.model.optimizer, 'lr')",
        4,
    ),
    Edit(
        _CALLBACKS,
        r"self\.backend\.get_value\(self\.model\.optimizer\.momentum\)",
        "keras3.read(self.backend, self.model.optimizer, 'momentum')",
    ),
    Edit(
        _CALLBACKS,
        r"self\.backend\.set_value\(self\.model\.optimizer\.(lr|momentum),",
        r"keras3.write(self.backend, self.model.optimizer, '\1',",
        3,
    ),
)
