"""Reads facts from a model's files: an ONNX file has its inputs, its outputs, and the results of its export."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from trainmaster.job.errors import OnnxException
from trainmaster.job.onnx.reading import read
from trainmaster.snapshots.model_contents import Contents


def facts_of(contents: Contents, manifest: str) -> dict[str, Any]:
    """The facts of the model's single ONNX file; empty for other models."""
    files = [file for file in contents.manifest(manifest).files if file.path.lower().endswith(".onnx")]
    if len(files) != 1:
        return {}
    try:
        header = read(contents.path_of(files[0]))
    except OnnxException:
        # Deploying the model reports the error.
        return {}
    if header.facts:
        return header.facts
    return {
        "opset": header.opset,
        "inputs": [asdict(each) for each in header.inputs],
        "outputs": [asdict(each) for each in header.outputs],
    }
