"""conda packages that pip can stand in for: their names there, and how their versions are written.

v1 scripts say `conda_packages=['scikit-learn']`. Where no conda channel can be reached, packages that are the same
on both sides may come from pip instead; `stand_in` says which requirements those are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trainmaster.environments.requirement import package_name

SETTING = "TRAINMASTER_CONDA_TO_PIP"
"""1: pip stands in for any conda package, by the same name; 0: for none; unset: for the known ones."""

# Pure Python, or with wheels that bring all they need: the same thing to a script, whoever installs it.
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
"""conda's name to pip's, for packages that are safe to take from either."""

_OF_PIP = ("pip", "setuptools", "wheel")
_PACKAGE = re.compile(r"(?:\S+::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9._-]*)\s*(?P<rest>[^\[\]]*)")
_CLAUSE = re.compile(r"(?P<sign>===|==|>=|<=|!=|~=|>|<|=|)\s*(?P<release>\d[A-Za-z0-9.!+_]*?)(?P<any>\.?\*)?")


def needs_conda(conda_packages: Iterable[str]) -> bool:
    """Whether a conda channel is needed for them. conda files name pip because conda wants it so: pip can do that.

    >>> needs_conda(["pip"]), needs_conda(["pip", "numpy"])
    (False, True)
    """
    return any(package_name(to_pip(package) or "") not in _OF_PIP for package in conda_packages)


def stand_in(conda_packages: Iterable[str], every: bool = False) -> tuple[list[str], list[str]]:
    """pip's requirements for `conda_packages`, and those that have none; `every` takes unknown names as they are.

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
    """The requirement that asks pip for what `package` asks conda for; None where there is none.

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
    """A version as pip writes it. The build string after it is of no use to pip and is dropped."""
    text = text.strip()
    if text in ("", "*", "=*", "==*"):
        return ""
    if "|" in text:
        # "One or the other" cannot be said to pip.
        return None
    clauses = [_clause(part) for part in _without_build(text).split(",")]
    return None if None in clauses else ",".join(clause or "" for clause in clauses)


def _without_build(text: str) -> str:
    exact = re.fullmatch(r"(=\s*[^=\s,<>]+)=[^=\s,<>]+", text) or re.fullmatch(r"([^\s=<>!~,]+)\s+[^\s=<>!~,]+", text)
    # "1.2=0" after a space is a version and a build too.
    exact = exact or re.fullmatch(r"([^\s=<>!~,]+)=[^=\s,<>]+", text)
    return exact[1] if exact else text


def _clause(text: str) -> str | None:
    found = _CLAUSE.fullmatch(text.strip())
    if found is None:
        return None
    sign, release, any_ = found["sign"], found["release"], bool(found["any"])
    if sign in ("", "=", "==", "!="):
        # conda's single "=" means "begins with": =1.15 is any 1.15. A full release is meant as it stands.
        begins = any_ or (sign == "=" and release.count(".") < 2)
        return f"{sign if sign == '!=' else '=='}{release}{'.*' if begins else ''}"
    if sign == "===":
        return None
    return f"{sign}{release}"
