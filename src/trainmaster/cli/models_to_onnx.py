"""`trainmaster models to-onnx`."""

from __future__ import annotations

import os
from typing import Any

from trainmaster.cli import exits
from trainmaster.cli.models import as_json, find_model
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note, say, say_json

_TYPES = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")


def to_onnx_arguments(parser: Parser) -> None:
    parser.add_argument("model", metavar="NAME[:VERSION]", help="the newest version unless one is given")
    parser.add_argument("--name", metavar="NAME", default="", help="of the new model (default: NAME-onnx)")
    parser.add_argument("--sample", metavar="FILE", default="", help="inputs to try it with: .npy, .npz or .json")
    parser.add_argument(
        "--input", metavar="NAME:TYPE:SIZES", action="append", help="such as x:float32:batch,4; may be repeated"
    )
    parser.add_argument("--opset", metavar="N", type=int, help="release of ONNX's operators (default: the exporter's)")
    parser.add_argument("--tolerance", metavar="X", type=float, help="how far answers may differ (default: 1e-4)")
    parser.add_argument("--quantize", choices=("dynamic",), help="keep weights as int8")
    parser.add_argument("--fixed-batch", action="store_true", help="the batch has the size of the sample, always")
    parser.add_argument("--code", metavar="FOLDER", action="append", default=[], help="modules that the model needs")
    parser.add_argument("--pip", metavar="PACKAGE", action="append", default=[], help="a package that the model needs")


def to_onnx(options: Options) -> int:
    """Convert a model to ONNX, compare both on random inputs, and register the result if they agree. JSON: the new
    model, as in `models list`; its facts have the inputs, the outputs and the largest difference.
    """
    from trainmaster.sdk.services.converting import Conversion, convert

    if options.sample and not os.path.isfile(options.sample):
        raise UserErrorException(f"there is no file {options.sample!r}", hint="--sample is the path of a sample.")
    workspace = open_workspace(options.workspace)
    wanted = Conversion(
        name=options.name,
        inputs=tuple(_input(each) for each in options.input or ()),
        sample=options.sample,
        code=tuple(options.code),
        packages=tuple(options.pip),
        settings=_settings(options),
    )
    model = find_model(workspace, options.model)
    note(f"Converting {model.id} in an environment of its framework ...")
    converted, exported = convert(workspace, model, wanted)
    if options.json:
        say_json(as_json(converted))
        return exits.OK
    _, _, rest = str(exported).partition(": ")
    say(f"{converted.id}: {rest}")
    return exits.OK


def _settings(options: Options) -> dict[str, Any]:
    given = {"opset": options.opset, "tolerance": options.tolerance, "quantize": options.quantize}
    settings = {name: value for name, value in given.items() if value is not None}
    return {**settings, "dynamic_batch": False} if options.fixed_batch else settings


def _input(text: str) -> dict[str, Any]:
    """An input as it is written on the command line.

    >>> _input("x:float32:batch,4")
    {'name': 'x', 'type': 'float32', 'shape': ['batch', 4]}
    """
    parts = text.split(":")
    if len(parts) != 3 or not parts[0] or parts[1] not in _TYPES:
        raise UserErrorException(
            f"--input {text!r} is not NAME:TYPE:SIZES",
            hint=f"Such as x:float32:batch,4. Types: {', '.join(_TYPES)}.",
        )
    sizes = [part.strip() for part in parts[2].split(",") if part.strip()]
    return {"name": parts[0], "type": parts[1], "shape": [int(each) if each.isdecimal() else each for each in sizes]}
