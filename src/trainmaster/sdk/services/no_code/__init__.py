"""Services for models that need no scoring script: ONNX, scikit-learn, TorchScript, SavedModel, MLflow's format.

`scoring_for` inspects a model and returns the parts of a service: a ready-made script with what is known of the model,
and the packages that its kind needs.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.job.errors import OnnxException, WebserviceException
from trainmaster.job.onnx.reading import read
from trainmaster.sdk.backend.backend import ContentStore
from trainmaster.sdk.estimators.inherited import select_inherited
from trainmaster.sdk.services.environment import with_server
from trainmaster.sdk.services.no_code.inputs import fact, find_inputs
from trainmaster.sdk.services.no_code.kinds import Kind, Recognised, recognise
from trainmaster.sdk.services.no_code.packages import environment_for
from trainmaster.shared.service_spec import ServiceCode, ServiceSpec

if TYPE_CHECKING:
    from trainmaster.sdk.models.model import Model
    from trainmaster.sdk.workspace.workspace import Workspace

_SCRIPTS = Path(__file__).parents[3] / "scoring" / "no_code"
_SCRIPT_OF = {
    Kind.ONNX: "onnx_model.py",
    Kind.SKLEARN: "sklearn_model.py",
    Kind.TORCHSCRIPT: "torch_model.py",
    Kind.TORCH_PROGRAM: "torch_model.py",
    Kind.SAVED_MODEL: "tensorflow_model.py",
    Kind.MLFLOW: "mlflow_model.py",
}
_COMPANIONS = {Kind.ONNX: ("onnx_messages.py",)}
ENTRY = "score.py"


def scoring_for(workspace: Workspace, model: Model) -> ServiceSpec:
    """The parts of a service for `model`. Raises WebserviceException if its kind needs a script."""
    found = recognise(model)
    known = {"model": model.id, "kind": str(found.kind), "path": found.path, **_ends(model, found)}
    return ServiceSpec(
        code=_code(workspace.backend.contents, found.kind, known),
        models=(model.id,),
        environment=with_server(environment_for(workspace, model, found)),
        inherited_variables=select_inherited(os.environ),
    )


def write_code(folder: Path, kind: Kind, known: dict[str, Any]) -> None:
    """Copies the script of a kind, with the modules it needs, into an empty folder."""
    shutil.copyfile(_SCRIPTS / _SCRIPT_OF[kind], folder / ENTRY)
    for name in ("no_code_tensors.py", *_COMPANIONS.get(kind, ())):
        shutil.copyfile(_SCRIPTS / name, folder / name)
    (folder / "no_code.json").write_text(json.dumps(known, indent=1) + "\n")


def _code(contents: ContentStore, kind: Kind, known: dict[str, Any]) -> ServiceCode:
    with tempfile.TemporaryDirectory(prefix="trainmaster-") as place:
        write_code(Path(place), kind, known)
        snapshot = contents.take_snapshot(Path(place))
    return ServiceCode(snapshot.id, ENTRY)


def _ends(model: Model, found: Recognised) -> dict[str, Any]:
    """Inputs and outputs: from the file if it describes them, else from the facts of the model."""
    if found.kind is Kind.ONNX:
        try:
            header = read(model.materialise() / found.path)
        except OnnxException as error:
            raise WebserviceException(
                f"model {model.id} cannot be deployed: its file is not ONNX", cause=error.message
            ) from None
        return {
            "inputs": [asdict(each) for each in header.inputs],
            "outputs": [asdict(each) for each in header.outputs],
        }
    return {"inputs": find_inputs(model), "outputs": fact(model, "outputs")}
