"""`trainmaster models to-onnx`."""

from __future__ import annotations

import os
from typing import Any

from trainmaster.cli.models import as_json, find_model
from trainmaster.cli.opening import open_workspace
from trainmaster.cli.output import show_result
from trainmaster.cli.parsing import Options, Parser
from trainmaster.job.errors import UserErrorException
from trainmaster.sdk.display.screen import note

_TYPES = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")


def to_onnx_arguments(parser: Parser) -> None:
    parser.add_argument("model", metavar="NAME[:VERSION]", help="a model; default: its newest version")
    parser.add_argument("--name", metavar="NAME", default="", help="the name of the new model (default: NAME-onnx)")
    parser.add_argument(
        "--sample", metavar="FILE", default="", help="inputs to compare answers on: .npy, .npz or .json"
    )
    parser.add_argument(
        "--input", metavar="NAME:TYPE:SIZES", action="append", help="an input, such as x:float32:batch,4 (repeatable)"
    )
    parser.add_argument(
        "--opset", metavar="N", type=int, help="the version of the ONNX operators (default: the exporter's)"
    )
    parser.add_argument("--tolerance", metavar="X", type=float, help="how much answers may differ (default: 1e-4)")
    parser.add_argument("--quantize", choices=("dynamic",), help="store weights as int8")
    parser.add_argument("--fixed-batch", action="store_true", help="accept only batches of the sample's size")
    parser.add_argument(
        "--code", metavar="FOLDER", action="append", default=[], help="a folder with modules that the model imports"
    )
    parser.add_argument("--pip", metavar="PACKAGE", action="append", default=[], help="a package that the model needs")


def to_onnx(options: Options) -> int:
    """Convert a model to ONNX, compare the answers of both on random inputs or a sample, and register the result if
    they agree.

    JSON: the new model, as in 'models list'. Its "facts" are the inputs, the outputs and the largest difference.

      trainmaster models to-onnx digits --input image:float32:batch,1,28,28
      trainmaster models to-onnx digits --sample sample.npz --quantize dynamic
    """
    from trainmaster.sdk.services.converting import Conversion, convert

    if options.sample and not os.path.isfile(options.sample):
        raise UserErrorException(
            f"file {options.sample!r} does not exist", hint="--sample takes the path of a file with inputs."
        )
    workspace = open_workspace(options.workspace)
    conversion = Conversion(
        name=options.name,
        inputs=tuple(_input(each) for each in options.input or ()),
        sample=options.sample,
        code=tuple(options.code),
        packages=tuple(options.pip),
        settings=_settings(options),
    )
    model = find_model(workspace, options.model)
    note(f"Converting {model.id} in an environment of its framework ...")
    converted, exported = convert(workspace, model, conversion)
    _, _, summary = str(exported).partition(": ")
    return show_result(options, as_json(converted), f"{converted.id}: {summary}")


def _settings(options: Options) -> dict[str, Any]:
    given = {"opset": options.opset, "tolerance": options.tolerance, "quantize": options.quantize}
    settings = {name: value for name, value in given.items() if value is not None}
    return {**settings, "dynamic_batch": False} if options.fixed_batch else settings


def _input(text: str) -> dict[str, Any]:
    """An input from its text on the command line.

    >>> _input("x:float32:batch,4")
    {'name': 'x', 'type': 'float32', 'shape': ['batch', 4]}
    """
    parts = text.split(":")
    if len(parts) != 3 or not parts[0] or parts[1] not in _TYPES:
        raise UserErrorException(
            f"--input {text!r} is not NAME:TYPE:SIZES",
            hint=f"For example x:float32:batch,4. Types: {', '.join(_TYPES)}.",
        )
    sizes = [part.strip() for part in parts[2].split(",") if part.strip()]
    return {"name": parts[0], "type": parts[1], "shape": [int(each) if each.isdecimal() else each for each in sizes]}
