"""What a model says of its inputs and outputs, and of itself."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from collage._compile import Model, model_file
from collage._errors import ArgumentError
from collage._onnxruntime import ModelMetadata

# By name: the element type ("" of what is no tensor), and the shape; an extent that is open is a name or None, as is an unknown rank.
Values = dict[str, tuple[str, "list[int | str | None] | None"]]


class Signature(NamedTuple):
    inputs: Values
    outputs: Values
    metadata: ModelMetadata

    @staticmethod
    def of(model: Model, constants: str | os.PathLike | None = None) -> Signature:
        from collage import _placement

        with model_file(model) as path:
            described = _placement.describe(path, os.fspath(constants or ""))
        inputs, outputs = ({name: (type, shape) for name, type, shape in described.pop(values)} for values in ("inputs", "outputs"))
        return Signature(inputs, outputs, ModelMetadata(**described))

    def with_extents(self, known: Mapping[str, int]) -> Signature:
        """With numbers for the names of some extents."""
        inputs = {name: (type, shape and [known.get(extent, extent) if isinstance(extent, str) else extent for extent in shape])
                  for name, (type, shape) in self.inputs.items()}
        return self._replace(inputs=inputs)

    def is_open(self) -> bool:
        """Whether runs have to tell shapes of its inputs. Of what is no tensor they cannot: the compile's error names it."""
        shapes = [shape for _, shape in self.inputs.values()]
        return all(type for type, _ in self.inputs.values()) and not all(_is_known(shape) for shape in shapes)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the tensors of one that is not open."""
        return {name: tuple(shape) for name, (type, shape) in self.inputs.items() if type and _is_known(shape)}

    def shapes_of(self, feed: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """Of a run's inputs, which have to be such as the model takes: nothing is compiled for others."""
        for name in feed:
            if name not in self.inputs:
                raise ArgumentError(f"there is no input '{name}'; there are {', '.join(map(repr, self.inputs))}")
        return {name: _shape_of(name, feed, *value) for name, value in self.inputs.items()}


def _is_known(shape: list[Any] | None) -> bool:
    return shape is not None and all(isinstance(extent, int) for extent in shape)


def _shape_of(name: str, feed: Mapping[str, Any], type: str, shape: list[int | str | None] | None) -> tuple[int, ...]:
    declared = f"{type} ({', '.join('?' if extent is None else str(extent) for extent in shape)})" if shape is not None else type
    if name not in feed:
        raise ArgumentError(f"input '{name}' ({declared}) is missing")
    value = feed[name]
    found = tuple(np.shape(value))
    dtype = getattr(value, "dtype", None)
    is_of_type = not isinstance(dtype, np.dtype) or type == "string" or dtype.name == type
    is_of_rank = shape is None or len(found) == len(shape)
    if not is_of_type or not is_of_rank or any(isinstance(want, int) and want != extent for want, extent in zip(shape or [], found)):
        raise ArgumentError(f"input '{name}' is {dtype if isinstance(dtype, np.dtype) else 'an array'} {found}, expected {declared}")
    return found
