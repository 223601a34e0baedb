"""Collage finds, by measuring, which library or compiler runs which part of an ONNX model, and runs the result.

    import collage

    collage.compile("model.onnx", "model.collage", budget=60)
    session = collage.InferenceSession("model.collage")
    (scores,) = session.run(None, {"input": image})

A script written for ONNX Runtime may say `import collage as ort` instead; a model is then compiled when its session is made.
"""

from collage._compile import compile
from collage._errors import ArgumentError, BugError, CompileError, Error, LoadError, RunError, StoppedError
from collage._session import InferenceSession, NodeArg, SessionOptions, Step

__all__ = [
    "ArgumentError",
    "BugError",
    "CompileError",
    "Error",
    "InferenceSession",
    "LoadError",
    "NodeArg",
    "RunError",
    "SessionOptions",
    "Step",
    "StoppedError",
    "compile",
]
