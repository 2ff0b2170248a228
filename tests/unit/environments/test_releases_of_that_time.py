"""Which releases go with packages of v1's time, where nobody names one."""

import doctest

import pytest

from trainmaster.environments import frameworks, other_python, requirement, v1_releases
from trainmaster.environments.frameworks import pins_beside
from trainmaster.environments.other_python import limits_for
from trainmaster.shared.job_spec import EnvironmentSpec


@pytest.mark.parametrize("module", [frameworks, other_python, requirement, v1_releases])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0


def test_a_name_without_a_version_keeps_the_limits():
    """`azureml-defaults` stands for numpy in any release, and scikit-learn 0.22 cannot be imported with numpy 1.24."""
    named = ("flask", "numpy", "requests", "scikit-learn==0.22.1")
    assert pins_beside(named) == ("numpy<1.20",)
    assert limits_for("3.8", EnvironmentSpec(pip_packages=named)) == ("numpy<1.20", "scipy<1.9", "protobuf<3.21")
    assert pins_beside(["numpy==1.18.5", "scikit-learn==0.22.1"]) == ()
    assert pins_beside(["torch==2.13.0", "numpy"]) == ()
