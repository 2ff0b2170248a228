"""Finds and imports the scoring script and calls its `init`. Errors are reported with the script's own traceback."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from types import ModuleType, TracebackType
from typing import Any, Callable, Dict, List, Optional

from . import raw
from .settings import Settings

_HERE = os.path.dirname(os.path.abspath(__file__))
_NAMES = ("azureml.contrib.services.aml_request", "azureml.contrib.services.aml_response")


class ScriptError(Exception):
    """The script cannot be used; has a headline and, if there is one, a traceback."""

    def __init__(self, headline: str, details: str = "", hint: str = "") -> None:
        super().__init__(headline)
        self.headline = headline
        self.details = details
        self.hint = hint


class Script:
    """A script whose `init` was called. The signature of `run` determines how it gets its data."""

    def __init__(self, run: Callable[..., Any], batched: bool, schemas: Optional[Dict[str, Any]] = None) -> None:
        self.run = run
        self.schemas = schemas or {}
        """The script's own OpenAPI schemas of its `input` and `output`."""
        self.raw = raw.is_raw(run)
        self.schema = _Schema.read(run)
        self.asynchronous = inspect.iscoroutinefunction(_innermost(run))
        self.code = getattr(_innermost(run), "__code__", None)
        if batched and (self.raw or self.schema or self.asynchronous):
            way = "is asynchronous" if self.asynchronous else "has a decorator for single requests"
            raise ScriptError(
                "run does not support batches: it {}".format(way),
                hint="With batching, a plain run(data) gets a list of bodies. Change run, or disable batching.",
            )

    def fault_of_the_request(self, trace: Optional[TracebackType]) -> bool:
        """Whether an error came from the decorators, which parse the request before `run` itself starts."""
        return not any(frame.f_code is self.code for frame, _ in traceback.walk_tb(trace))


class _Schema:
    """The schemas of `run` from the decorators of inference-schema."""

    def __init__(self, given: Dict[str, Any], returned: Dict[str, Any]) -> None:
        self.given = given
        self.returned = returned
        self.names = set(given.get("properties", {}))

    @classmethod
    def read(cls, run: Callable[..., Any]) -> "Optional[_Schema]":
        # If the script uses it, it is already imported.
        known = sys.modules.get("inference_schema.schema_util")
        if known is None or not known.is_schema_decorated(run):
            return None
        given = _read_schema(known.get_input_schema, run)
        return cls(given, _read_schema(known.get_output_schema, run)) if given else None


def _read_schema(question: Callable[..., Dict[str, Any]], run: Callable[..., Any]) -> Dict[str, Any]:
    try:
        return question(run) or {}
    except (AttributeError, KeyError, ValueError):
        # Only the input or only the output is decorated.
        return {}


def load(settings: Settings) -> Script:
    """Import the script and call its `init`, in its working folder. Raises ScriptError."""
    for name in _NAMES:
        sys.modules[name] = raw
    if settings.model_dir:
        os.environ["AZUREML_MODEL_DIR"] = settings.model_dir
    module = _import(settings)
    run = getattr(module, "run", None)
    if not callable(run):
        raise ScriptError(
            "{} has no function run".format(settings.entry_script),
            hint="Define run(data). It is called for every request, and its return value is the answer.",
        )
    _check_takes_data(run, settings.entry_script)
    init = getattr(module, "init", None)
    if init is not None:
        _call_script("init() of {} failed".format(settings.entry_script), init)
    return Script(run, batched=settings.max_batch_size > 1, schemas=_read_openapi(module))


def _check_takes_data(run: Callable[..., Any], script: str) -> None:
    """Check that `run` takes an argument. Functions wrapped by schema decorators accept anything."""
    try:
        parameters = inspect.signature(run, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return
    if not any(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in parameters):
        raise ScriptError(
            "run() of {} takes no argument".format(script), hint="Define run(data): data is the body of the request."
        )


def _read_openapi(module: ModuleType) -> Dict[str, Any]:
    """Call the script's function `openapi()`, which the built-in scripts for known model formats have."""
    describe = getattr(module, "openapi", None)
    found: List[Dict[str, Any]] = []
    if callable(describe):
        _call_script("openapi() of {} failed".format(module.__name__), lambda: found.append(describe()))
    return found[0] if found and isinstance(found[0], dict) else {}


def _import(settings: Settings) -> ModuleType:
    path = os.path.join(settings.code, settings.entry_script)
    if not os.path.isfile(path):
        raise ScriptError(
            "{} does not exist".format(settings.entry_script), hint="Check entry_script and source_directory."
        )
    working = settings.working or settings.code
    os.chdir(working)
    for folder in (settings.code, os.path.dirname(path)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    if working not in sys.path:
        sys.path.append(working)
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = spec.loader
    _call_script("{} cannot be imported".format(settings.entry_script), lambda: loader.exec_module(module))
    return module


def _call_script(headline: str, function: Callable[[], Any]) -> None:
    try:
        function()
    except (Exception, SystemExit) as error:  # noqa: BLE001 (any script may fail in any way)
        raise ScriptError("{}: {}".format(headline, summarize(error)), own_traceback(error), _hint(error)) from None


def _hint(error: BaseException) -> str:
    if not isinstance(error, ModuleNotFoundError):
        return ""
    if str(error).startswith("No module named 'azureml."):
        # The error itself names the replacement.
        return ""
    package = (error.name or "").partition(".")[0]
    if package != error.name and package in sys.modules:
        return (
            "The environment's release of '{}' does not have this module. Pin the release that the script or the "
            "model was made with.".format(package)
        )
    return "Add the package to the environment of the service: pip_packages, or --requirements."


def summarize(error: BaseException) -> str:
    """The error in one line, like the last line of a traceback."""
    lines = str(error).strip().splitlines()
    return "{}: {}".format(type(error).__name__, lines[0]) if lines else type(error).__name__


def own_traceback(error: BaseException) -> str:
    """The traceback, starting with the script's own code."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def _is_ours(filename: str) -> bool:
    return filename.startswith((_HERE, "<frozen importlib"))


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    innermost: Callable[..., Any] = inspect.unwrap(function)
    return innermost
