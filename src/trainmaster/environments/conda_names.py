"""conda packages that pip can install instead: their pip names, and how pip writes their versions.

v1 scripts use `conda_packages=['scikit-learn']`. If no conda channel can be reached, pip installs the packages that
are the same in both worlds; `stand_in` translates them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trainmaster.environments.requirement import package_name

SETTING = "TRAINMASTER_CONDA_TO_PIP"
"""1: pip replaces any conda package by the same name; 0: none; unset: only the known ones."""

# Pure Python packages, or packages with self-contained wheels: a script sees no difference.
_SAME_NAME = """
    absl-py astropy attrs beautifulsoup4 bokeh boto3 bottleneck cffi click cloudpickle configparser coverage
    cryptography cycler cython dask dill distributed filelock flask fsspec future gensim gpy grpcio h5py imageio
    ipykernel ipython jinja2 joblib jsonschema jupyter keras lightgbm lxml markdown markupsafe matplotlib mlflow
    mock networkx nltk notebook numba numexpr numpy onnx onnxruntime openpyxl packaging pandas paramiko patsy pillow
    pip plotly protobuf psutil psycopg2-binary pyarrow pydantic pymongo pyparsing pytest python-dateutil
    pytorch-lightning pytz pywavelets pyyaml pyzmq regex requests scikit-image scikit-learn scipy seaborn setuptools
    shap six sklearn-pandas spacy sqlalchemy statsmodels sympy tabulate tensorboard tensorboardx tensorflow
    tensorflow-hub tensorflow-probability tifffile torchaudio torchvision tornado tqdm transformers
    typing-extensions ujson urllib3 wheel xgboost xlrd
"""
_OTHER_NAME = {
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
    "opencv": "opencv-python-headless",
    "py-opencv": "opencv-python-headless",
    "py-xgboost": "xgboost",
    "py-xgboost-cpu": "xgboost",
    "pytables": "tables",
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "seaborn-base": "seaborn",
    "tensorflow-base": "tensorflow",
    "tensorflow-cpu": "tensorflow-cpu",
    "tensorflow-mkl": "tensorflow",
    "torchvision-cpu": "torchvision",
}
KNOWN: Mapping[str, str] = {**{name: name for name in _SAME_NAME.split()}, **_OTHER_NAME}
"""Maps conda names to pip names, for packages that are the same in both."""

_OF_PIP = ("pip", "setuptools", "wheel")
_PACKAGE = re.compile(r"(?:\S+::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]*)\s*(?P<rest>[^\[\]]*)")
_CLAUSE = re.compile(r"(?P<sign>===|==|>=|<=|!=|~=|>|<|=|)\s*(?P<release>\d[A-Za-z0-9.!+_]*?)(?P<any>\.?\*)?")


def needs_conda(conda_packages: Iterable[str]) -> bool:
    """Whether the packages need a conda channel. `pip` and `setuptools`, which conda files list, do not.

    >>> needs_conda(["pip"]), needs_conda(["pip", "numpy"])
    (False, True)
    """
    return any(package_name(to_pip(package) or "") not in _OF_PIP for package in conda_packages)


def stand_in(conda_packages: Iterable[str], every: bool = False) -> tuple[list[str], list[str]]:
    """pip requirements for `conda_packages`, and the packages without one; `every` keeps unknown names unchanged.

    >>> stand_in(["scikit-learn=0.20.3", "opencv", "gcc_linux-64"])
    (['scikit-learn==0.20.3', 'opencv-python-headless'], ['gcc_linux-64'])
    """
    requirements, without = [], []
    for package in conda_packages:
        requirement = to_pip(package, every)
        if requirement is None:
            without.append(package)
        else:
            requirements.append(requirement)
    return requirements, without


def to_pip(package: str, every: bool = False) -> str | None:
    """The pip requirement equivalent to a conda package; None if there is none.

    >>> to_pip("pytorch>=1.4,<2"), to_pip("numpy=1.15"), to_pip("cudatoolkit=10.1")
    ('torch>=1.4,<2', 'numpy==1.15.*', None)
    """
    found = _PACKAGE.fullmatch(package.strip())
    if found is None:
        return None
    name = KNOWN.get(found["name"].lower()) or KNOWN.get(package_name(found["name"]))
    if name is None and not every:
        return None
    version = _version(found["rest"])
    return None if version is None else f"{name or found['name'].lower()}{version}"


def _version(text: str) -> str | None:
    """The version in pip's form, without the build string."""
    text = text.strip()
    if text in ("", "*", "=*", "==*"):
        return ""
    if "|" in text:
        # pip has no syntax for alternatives.
        return None
    clauses = [_clause(part) for part in _without_build(text).split(",")]
    return None if None in clauses else ",".join(clause or "" for clause in clauses)


def _without_build(text: str) -> str:
    exact = re.fullmatch(r"(=\s*[^=\s,<>]+)=[^=\s,<>]+", text) or re.fullmatch(r"([^\s=<>!~,]+)\s+[^\s=<>!~,]+", text)
    # "1.2=0" after a space is also a version and a build.
    exact = exact or re.fullmatch(r"([^\s=<>!~,]+)=[^=\s,<>]+", text)
    return exact[1] if exact else text


def _clause(text: str) -> str | None:
    found = _CLAUSE.fullmatch(text.strip())
    if found is None:
        return None
    sign, release, any_ = found["sign"], found["release"], bool(found["any"])
    if sign in ("", "=", "==", "!="):
        # conda's single "=" means "starts with": =1.15 is any 1.15. A full release stays exact.
        begins = any_ or (sign == "=" and release.count(".") < 2)
        return f"{sign if sign == '!=' else '=='}{release}{'.*' if begins else ''}"
    if sign == "===":
        return None
    return f"{sign}{release}"
