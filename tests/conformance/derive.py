"""Makes `v1.json` from the facts about v1 that the project was given (a Markdown file that is not in this repository).

    python -m tests.conformance.derive path/to/sdk-v1-api.md > tests/conformance/v1.json

Kept so that the table can be made again when the facts are corrected. The test reads `v1.json` alone.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any

UNTOLD = "UNTOLD"
"""Stands for a default that the facts do not tell."""

_HEADING = re.compile(r"^### `(azureml[\w.]+)`(?:\s+\(base: ([^)]*)\))?")
_ESTIMATORS = {
    "A": "azureml.train.estimator.Estimator",
    "B": "azureml.train.dnn.PyTorch",
    "C": "azureml.train.dnn.TensorFlow",
    "D": "azureml.train.dnn.Chainer",
    "E": "azureml.train.sklearn.SKLearn",
}
# Names that stand for a default in the facts, and their values as the same facts tell them.
_SYMBOLS = {
    "MAX_DURATION_SECONDS_DEFAULT": "2592000",
    "MAX_DURATION_MINUTES": "10080",
    "_DEFAULT_SHM_SIZE": "'2g'",
    "ViewType.ActiveOnly": "'ActiveOnly'",
    "CPU": "'cpu'",
    "DIRECT_MODE": "'direct'",
    "KeyVaultContentType.not_provided": UNTOLD,
    "PYTHON_DEFAULT_VERSION": UNTOLD,
}
_KINDS = {"": "method", "prop": "property"}
_USE = re.compile(r"\[(seed|core \d+|rare)\]")

# What the facts say in prose, with the section it is from.
_PROSE: dict[str, Any] = {
    "fields": {
        "azureml.core.runconfig.RunConfiguration": {
            "target": "'local'",
            "framework": "'Python'",
            "communicator": "'None'",
            "node_count": "1",
            "script": "None",
            "arguments": None,
            "command": "None",
            "max_run_duration_seconds": None,
            "environment": None,
            "environment_variables": None,
            "history.output_collection": "True",
            "history.snapshot_project": "True",
            "history.directories_to_watch": "['logs']",
            "environment.name": "'default-environment'",
            "docker": None,
            "mpi": None,
            "tensorflow": None,
            "pytorch": None,
            "amlcompute.vm_size": None,
            "amlcompute.vm_priority": None,
            "data_references": "{}",
            "data": "{}",
            "output_data": "{}",
            "source_directory_data_store": None,
            "spark": None,
            "hdi": None,
            "priority": None,
            "credential_passthrough": "False",
            "services": None,
            "prepare_environment": None,
            "auto_prepare_environment": "True",
            "container_instance.region": None,
            "container_instance.cpu_cores": None,
            "container_instance.memory_gb": None,
            "batchai.node_count": None,
        },
        "azureml.core.Environment": {
            "name": None,
            "version": None,
            "environment_variables": None,
            "inferencing_stack_version": None,
            "python.user_managed_dependencies": "False",
            "python.interpreter_path": "'python'",
            "python.conda_dependencies": None,
            "python.conda_dependencies_file": None,
            "docker.enabled": "False",
            "docker.base_image": None,
            "docker.base_dockerfile": None,
            "docker.base_image_registry.address": None,
            "docker.base_image_registry.username": None,
            "docker.base_image_registry.password": None,
            "docker.shm_size": "'2g'",
            "docker.shared_volumes": "True",
            "docker.arguments": None,
            "docker.gpu_support": None,
            "docker.platform": None,
        },
    },
    "functions": [
        {
            "path": "azureml.telemetry.set_diagnostics_collection",
            "section": 1,
            "use": "core 35",
            "signature": "(send_diagnostics=True)",
        },
        {
            "path": "azureml.tensorboard.export.export_to_tensorboard",
            "section": 1,
            "use": "core 20",
            "signature": "(run_data, logsdir, logger=None, recursive=True)",
        },
    ],
    "classes": [
        (
            "azureml.tensorboard.Tensorboard",
            1,
            [],
            "(runs, local_root=None, port=6006, use_display_name=False)",
            {"runs": "core 20"},
            {"start": ("", "(start_browser=False)", "core 20"), "stop": ("", "()", "core 20")},
        ),
        (
            "azureml.core.compute.BatchAiCompute",
            1,
            ["ComputeTarget"],
            None,
            {},
            {
                "provisioning_configuration": (
                    "static",
                    "(vm_size=UNTOLD, vm_priority=UNTOLD, autoscale_enabled=UNTOLD, cluster_min_nodes=UNTOLD,"
                    " cluster_max_nodes=UNTOLD, location=UNTOLD, tags=UNTOLD, description=UNTOLD)",
                    "seed",
                )
            },
        ),
        (
            "azureml.train.hyperdrive.HyperDriveRunConfig",
            5,
            [],
            "(estimator, hyperparameter_sampling, primary_metric_name, primary_metric_goal, max_total_runs,"
            " max_concurrent_runs=None, max_duration_minutes=10080, policy=None)",
            {"estimator": "core 1"},
            {},
        ),
    ],
    "estimator members": {
        "source_directory": ("prop", "()", "core 1"),
        "run_config": ("prop", "()", "core 1"),
        "conda_dependencies": ("prop", "()", "core 1"),
    },
    "framework members": {
        "framework_version": ("prop", "()", "core 1"),
        "get_supported_versions": ("class", "()", "core 1"),
    },
}


def main(path: str) -> None:
    text = Path(path).read_text(encoding="utf-8")
    sections = {
        int(part.split(".", 1)[0]): part for part in re.split(r"^## ", text, flags=re.M)[1:] if part[0].isdigit()
    }
    imports, jobs = _imports(sections)
    classes = [each for number in sorted(sections) for each in _classes(number, sections[number])]
    classes += [_class(*each) for each in _PROSE["classes"]]
    classes += _estimators(sections[2]) + _helpers(sections[2])
    table = {
        "imports": imports,
        "imports in jobs": jobs,
        "functions": [*_expressions(sections[5]), *map(_function, _PROSE["functions"])],
        "classes": classes,
        "exceptions": _exceptions(sections[3]),
        "fields": _PROSE["fields"],
    }
    print(_dump(table))


# Section 1: import paths


def _imports(sections: dict[int, str]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    found: dict[str, set[str]] = {}
    jobs: dict[str, set[str]] = {}
    for line in sections[1].splitlines():
        if not line.startswith("| ") or line.startswith(("| import", "|--")):
            continue
        cell = line.split(" | ")[0].lstrip("| ")
        target = jobs if cell.startswith("in jobs") else found
        for part in cell.replace("from azureml.core import Run", "azureml.core.Run").split("; "):
            _note_part(part, target)
        if "submodules" in cell:
            parent = re.findall(r"`(azureml[\w.]+)`", cell)[0]
            for module in re.findall(r"\.(\w+)", cell.split("submodules")[1]):
                found.setdefault(f"{parent}.{module}", set())
    for name in _exceptions(sections[3]):
        home = "azureml.train.hyperdrive.exceptions" if name.startswith("HyperDrive") else "azureml.exceptions"
        found.setdefault(home, set()).add(name)
    plain = ({module: sorted(names) for module, names in sorted(each.items())} for each in (found, jobs))
    return next(plain), next(plain)


def _note_part(part: str, found: dict[str, set[str]]) -> None:
    listed = re.match(r"`?\**(azureml[\w.]+)`: (.*)", part.strip())
    if listed:
        names = re.sub(r"\([^)]*\)", "", listed[2]).split(",")
        found.setdefault(listed[1], set()).update(name.strip() for name in names if name.strip())
        return
    for path in re.findall(r"`\**(azureml[^`]*)`", part):
        path = re.sub(r"\(.*", "", path).strip("*")
        group = re.match(r"([\w.]+)\.\{([\w,]+)\}", path)
        if group:
            found.setdefault(group[1], set()).update(group[2].split(","))
            continue
        module, _, name = path.rstrip(".*").rpartition(".")
        if name[:1].isupper() or name in ("set_diagnostics_collection", "export_to_tensorboard"):
            found.setdefault(module, set()).add(name)
        else:
            found.setdefault(path.rstrip(".*"), set())


# Section 2: estimators


def _estimators(section: str) -> list[dict[str, Any]]:
    found: dict[str, dict[str, str]] = {path: {} for path in _ESTIMATORS.values()}
    uses: dict[str, dict[str, str]] = {path: {} for path in _ESTIMATORS.values()}
    for line in section.splitlines():
        row = re.match(r"\| `(\w+)` \| ([^|]+) \| ([A-E· ]+) \| [\d.]+ \|.*", line)
        if not row:
            continue
        default = "" if row[2].strip() == "required" else "=" + row[2].strip().strip("`")
        for path in (_ESTIMATORS[letter] for letter in row[3].split() if letter in _ESTIMATORS):
            found[path][row[1]] = default
            uses[path][row[1]] = _use(line)
    return [_estimator(path, found[path], uses[path]) for path in found]


def _estimator(path: str, parameters: dict[str, str], uses: dict[str, str]) -> dict[str, Any]:
    first, *others = [name + default for name, default in parameters.items()]
    members = dict(_PROSE["estimator members"])
    if not path.endswith(".Estimator"):
        members.update(_PROSE["framework members"])
    return _class(path, 2, [], f"({', '.join([first, '*', *others])})", uses, members)


def _helpers(section: str) -> list[dict[str, Any]]:
    rows = re.findall(r"^\| `(\w+)` \| `(\(.*?\))` \|", section, flags=re.M)
    return [_class(f"azureml.train.dnn.{name}", 2, [], signature, {"": "core 10"}, {}) for name, signature in rows]


# Section 3: exceptions


def _exceptions(section: str) -> dict[str, str]:
    text = section[section.index("Exceptions (`azureml.exceptions`") :].split("\n\n")[0].replace("\n", " ")
    found = {"AzureMLException": "Exception"}
    for name, _, base in re.findall(r"(\w+(?:Exception|Error))(\((\w+)\))?", text):
        found.setdefault(name, base or "AzureMLException")
    found.pop("Exception", None)
    return found


# Section 5: functions


def _expressions(section: str) -> list[dict[str, Any]]:
    found = []
    for line in section.split("Rules:")[0].splitlines():
        row = re.match(r"\| ((?:`\w+`(?: / )?)+) \| (.+?) \| .*\[(seed|core \d+|rare)\] \|$", line)
        if not row or "arguments" in row[1]:
            continue
        signature = "(*options)" if "*options" in row[2] else f"({row[2].strip('`')})"
        for name in re.findall(r"`(\w+)`", row[1]):
            found.append(
                _function(
                    {"path": f"azureml.train.hyperdrive.{name}", "section": 5, "use": row[3], "signature": signature}
                )
            )
    return found


def _function(each: dict[str, Any]) -> dict[str, Any]:
    return {**each, "signature": _signature(each["signature"])}


# Sections 5 to 11: classes


def _classes(number: int, section: str) -> list[dict[str, Any]]:
    found = []
    for block in re.split(r"(?=^### )", section, flags=re.M)[1:]:
        heading = _HEADING.match(block)
        if heading:
            bases = [base.strip() for base in (heading[2] or "").split(",") if base.strip()]
            found.append(_class(heading[1], number, bases, *_constructor(block), _members(block)))
    return found


def _constructor(block: str) -> tuple[str | None, dict[str, str]]:
    if "Constructor:" not in block:
        return None, {}
    words, uses = [], {}
    for cells in _rows(block, 4):
        name = cells[0].strip("`")
        words.append(name if cells[1] == "—" else f"{name}={cells[1].strip('`')}")
        uses[name] = _use(cells[3])
    return f"({', '.join(words)})", uses


def _members(block: str) -> dict[str, tuple[str, str, str]]:
    return {cells[0].strip("`"): (cells[1], cells[2].strip("`"), _use(cells[4])) for cells in _rows(block, 5)}


def _rows(block: str, width: int) -> list[list[str]]:
    rows = [line.strip("|").split(" | ") for line in block.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in row] for row in rows if len(row) == width]


def _class(
    path: str,
    section: int,
    bases: list[str],
    constructor: str | None,
    uses: dict[str, str],
    members: dict[str, tuple[str, str, str]],
) -> dict[str, Any]:
    """A row of the table. A class is used if its constructor or a member is; a constructor, if a parameter is."""
    seen = {name: use for name, use in uses.items() if use != "rare"}
    used = bool(seen) or any(use != "rare" for _, _, use in members.values())
    row: dict[str, Any] = {"path": path, "section": section, "bases": bases, "use": "core" if used else "rare"}
    if constructor is not None:
        row["constructor"] = _signature(constructor)
        row["used parameters"] = seen
    row["members"] = {
        name: {
            "kind": _KINDS.get(kind, kind),
            "use": use,
            **({} if kind == "prop" else {"signature": _signature(text)}),
        }
        for name, (kind, text, use) in members.items()
    }
    return row


def _signature(text: str) -> str:
    """`text` with values in place of the names of values."""
    function = ast.parse(f"def function{text}: pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    for defaults in (function.args.defaults, function.args.kw_defaults):
        for position, default in enumerate(defaults):
            value = _SYMBOLS.get(ast.unparse(default)) if default is not None else None
            if value is not None:
                defaults[position] = ast.parse(value, mode="eval").body
    return f"({ast.unparse(function.args)})"


def _use(text: str) -> str:
    found = _USE.search(text)
    return found[1] if found else "rare"


def _dump(table: dict[str, Any]) -> str:
    """JSON with one line for each row and member, so that changes can be read."""
    text = json.dumps(table, indent=1, ensure_ascii=False)
    inner = re.compile(r"\{\n {4,}[^{}]*\}|\[\n {3,}[^\[\]{}]*\]")
    return inner.sub(lambda found: re.sub(r"\n\s*", " ", found[0]), text)


if __name__ == "__main__":
    main(sys.argv[1])
