"""Collage inside of ONNX Runtime, as an execution provider that it loads.

    options = onnxruntime.SessionOptions()
    collage.onnxruntime_provider.add_to(options, budget=60)
    session = onnxruntime.InferenceSession("model.onnx", options)

The first session of a model compiles it; later ones, of any process, find the program. Nodes that Collage does not read stay with ONNX
Runtime, whose log says which and why.
"""

import json
import pathlib
from typing import Any

import onnxruntime

NAME = "CollageExecutionProvider"


def library_path() -> str:
    """The library, for `onnxruntime.register_execution_provider_library` and RegisterExecutionProviderLibrary of C."""
    package = pathlib.Path(__file__).resolve().parent
    # Of a wheel, and of a build.
    places = [package / "lib" / "libcollage_onnxruntime.so", package.parent.parent / "lib" / "libcollage_onnxruntime.so"]
    for place in places:
        if place.exists():
            return str(place)
    raise FileNotFoundError(f"libcollage_onnxruntime.so is at none of {', '.join(map(str, places))}")


def add_to(session_options: onnxruntime.SessionOptions, **options: Any) -> None:
    """Makes Collage the first provider of sessions with these options.

    `options` are those of `collage.compile` (budget, threads, targets, shapes, tune, cache_only, eager, pin, forbid, search, plugins, processors,
    choose_devices, precision), but for
    two paths: `cache` is the folder of compiled programs, ~/.cache/collage/onnxruntime where nothing is said, and `prices` the file of prices.
    A wrong one is an error when a session is made. ONNX Runtime's sessions in Python print errors of providers and go on without them, unless
    they are made with `enable_fallback=False`.
    """
    if not _devices():
        onnxruntime.register_execution_provider_library(NAME, library_path())
    texts = {name: str(value) if isinstance(value, (str, pathlib.PurePath)) else json.dumps(value) for name, value in options.items()}
    # One device: processors of a machine are one for Collage.
    session_options.add_provider_for_devices(_devices()[:1], texts)


def _devices() -> list[Any]:
    return [device for device in onnxruntime.get_ep_devices() if device.ep_name == NAME]
