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
from collage._report import Report
from collage._session import InferenceSession, NodeArg, SessionOptions, Step

__all__ = [
    "ArgumentError",
    "Backend",
    "BugError",
    "CompileError",
    "Error",
    "InferenceSession",
    "LoadError",
    "NodeArg",
    "Placement",
    "Report",
    "RunError",
    "SessionOptions",
    "Step",
    "StoppedError",
    "compile",
    "conformance",
    "onnxruntime_provider",
    "parse",
    "pattern",
    "place",
    "read",
    "register_backend",
    "rules",
    "unregister_backend",
]


def __getattr__(name: str) -> Any:
    # They bring the compiler's libraries, or ONNX Runtime, which whoever only runs programs does not need.
    if name in ("conformance", "onnxruntime_provider", "pattern", "rules"):
        import importlib

        return importlib.import_module(f"collage.{name}")
    raise AttributeError(f"module 'collage' has no attribute '{name}'")
