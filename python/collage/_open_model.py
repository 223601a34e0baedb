"""Models that leave extents of their inputs open: compiled for the shapes that runs have."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from collage import _collage
from collage._compile import Model, as_file
from collage._errors import ArgumentError
from collage._onnxruntime import ModelMetadata

Shapes = Mapping[str, Sequence[int]]
# By name: the element type, and the shape with names or None for what is open; None for a rank that is unknown.
Values = dict[str, tuple[str, list[Any] | None]]


class OpenModel:
    """Compiles a model for the shapes of each run that has new ones, and keeps the programs."""

    def __init__(self, inputs: Values, outputs: Values, compiled: Callable[[Shapes], _collage.Program]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.last: _collage.Program | None = None
        self._compiled = compiled
        self._programs: dict[tuple[tuple[int, ...], ...], _collage.Program] = {}
        self._lock = threading.Lock()

    def program_for(self, feed: Mapping[str, Any]) -> _collage.Program:
        shapes = {name: _fitting(name, feed, *value) for name, value in self.inputs.items()}
        for name in feed:
            if name not in shapes:
                raise ArgumentError(f"there is no input '{name}'; there are {', '.join(map(repr, shapes))}")
        key = tuple(shapes.values())
        if key not in self._programs:
            with self._lock:  # threads that want the same one wait for it
                if key not in self._programs:
                    self.last = self._programs[key] = self._compiled(shapes)
        return self._programs[key]


def of_open_extents(model: Model, known: Mapping[str, int], compiled: Callable[[Shapes], _collage.Program]) -> OpenModel | Shapes | None:
    """None for a model whose inputs have shapes; their shapes where the names of what is open are among the known; else what compiles it
    for runs."""
    described = _describe(model)
    inputs: Values = {name: (type, shape) for name, type, shape in described["inputs"]}
    is_open = any(shape is None or not all(isinstance(extent, int) for extent in shape) for _, shape in inputs.values())
    # What is no tensor the reader names in its error.
    if not is_open or not all(type for type, _ in inputs.values()):
        return None
    given = {name: (type, shape and [known.get(extent, extent) if isinstance(extent, str) else extent for extent in shape])
             for name, (type, shape) in inputs.items()}
    if all(shape is not None and all(isinstance(extent, int) for extent in shape) for _, shape in given.values()):
        return {name: list(shape or []) for name, (_, shape) in given.items()}
    return OpenModel(given, {name: (type, shape) for name, type, shape in described["outputs"]}, compiled)


def metadata_of(model: Model) -> ModelMetadata:
    described = _describe(model)
    return ModelMetadata(**{field: described[field] for field in ModelMetadata._fields})


def _describe(model: Model) -> dict[str, Any]:
    from collage import _placement

    with tempfile.TemporaryDirectory(prefix="collage.") as folder:
        return _placement.describe(as_file(model, folder))


def _fitting(name: str, feed: Mapping[str, Any], type: str, shape: list[Any] | None) -> tuple[int, ...]:
    """The shape of an input, which has to be one of those that the model takes: nothing is compiled for others."""
    declared = f"{type} ({', '.join('?' if extent is None else str(extent) for extent in shape)})" if shape is not None else type
    if name not in feed:
        raise ArgumentError(f"input '{name}' ({declared}) is missing")
    value = feed[name]
    found = tuple(np.shape(value))
    dtype = getattr(value, "dtype", None)
    is_of_type = not isinstance(dtype, np.dtype) or type == "string" or dtype.name == type
    is_of_shape = shape is None or len(found) == len(shape) and all(not isinstance(want, int) or want == is_ for want, is_ in zip(shape, found))
    if not is_of_type or not is_of_shape:
        raise ArgumentError(f"input '{name}' is {dtype if isinstance(dtype, np.dtype) else 'an array'} {found}, expected {declared}")
    return found
