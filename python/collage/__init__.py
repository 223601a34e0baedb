"""Collage finds, by measuring, which library or compiler runs which part of an ONNX model, and runs the result.

    import collage

    collage.compile("model.onnx", "model.collage", budget=60)
    session = collage.InferenceSession("model.collage")
    (scores,) = session.run(None, {"input": image})

A script written for ONNX Runtime may say `import collage as ort` instead; a model is then compiled when its session is made.
"""

from typing import Any

from collage._backend import Backend, register_backend, unregister_backend
from collage._compile import Placement, compile, parse, place, read
from collage._errors import ArgumentError, BugError, CompileError, Error, LoadError, RunError, StoppedError
from collage._onnxruntime import (
    ExecutionMode,
    GraphOptimizationLevel,
    IOBinding,
    ModelMetadata,
    OrtValue,
    RunOptions,
    SessionOptions,
    get_all_providers,
    get_available_providers,
    get_device,
    set_default_logger_severity,
)
from collage._report import Report
from collage._session import InferenceSession, NodeArg, Step

__all__ = [
    "ArgumentError",
    "Backend",
    "BugError",
    "CompileError",
    "Error",
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoadError",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "Placement",
    "Report",
    "RunError",
    "RunOptions",
    "SessionOptions",
    "Step",
    "StoppedError",
    "compile",
    "conformance",
    "fleet",
    "forms",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "onnx_backend",
    "onnxruntime_provider",
    "parse",
    "pattern",
    "place",
    "read",
    "register_backend",
    "rules",
    "set_default_logger_severity",
    "unregister_backend",
]


def __getattr__(name: str) -> Any:
    # They bring the compiler's libraries, or ONNX Runtime, which whoever only runs programs does not need.
    if name in ("conformance", "fleet", "forms", "onnx_backend", "onnxruntime_provider", "pattern", "rules"):
        import importlib

        return importlib.import_module(f"collage.{name}")
    if name == "__version__":
        import importlib.metadata

        try:
            return importlib.metadata.version("collage")
        except importlib.metadata.PackageNotFoundError:  # not installed: a build's folder
            pass
    raise AttributeError(f"module 'collage' has no attribute '{name}'")
