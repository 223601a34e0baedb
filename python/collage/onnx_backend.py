"""onnx.backend.base: with it ONNX's own runner, and what is written against that interface, drive Collage.

    import collage.onnx_backend as backend

    outputs = backend.run_model(model, [image], budget=60)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from collage import InferenceSession
from collage._compile import compile, read
from collage._errors import ArgumentError, CompileError


class CollageRep(BackendRep):
    """A model that is ready to run. What it gives as a sequence is a list, and an optional without a value is None."""

    def __init__(self, session: InferenceSession, outputs: Sequence[onnx.ValueInfoProto]) -> None:
        self.session = session
        self._outputs = outputs

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Inputs in the model's order, or by name."""
        feed = _named(inputs, [value.name for value in self.session.get_inputs()])
        results = dict(zip([output.name for output in self.session.get_outputs()], self.session.run(None, feed)))
        return namedtupledict("Outputs", [output.name for output in self._outputs])(*(_collected(output, results) for output in self._outputs))


class OpenRep(BackendRep):
    """A model whose shapes are not known before it runs: its inputs have symbolic dimensions or are sequences, or shapes inside depend on
    their values. Each run compiles it for what it is given."""

    def __init__(self, model: onnx.ModelProto, options: dict[str, Any]) -> None:
        self._model = model
        self._options = options

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Inputs in the model's order, or by name."""
        constants = {one.name for one in self._model.graph.initializer}
        given = _named(inputs, [value.name for value in self._model.graph.input if value.name not in constants])
        open_model = _without(self._model, {name for name, value in given.items() if value is None})
        sequences = {name: value for name, value in given.items() if isinstance(value, list)}
        tensors = {name: value for name, value in given.items() if value is not None and name not in sequences}
        elements = {f"{name}[{i}]": array for name, arrays in sequences.items() for i, array in enumerate(arrays)}
        feed = {**tensors, **elements}
        lengths = {name: (len(arrays),) for name, arrays in sequences.items()}
        problem = None
        for fixed in _fixed_inputs(tensors):
            model = _with_constants(open_model, {name: tensors[name] for name in fixed})
            shapes = lengths | {name: np.shape(array) for name, array in feed.items() if name not in fixed}
            try:
                read(model, shapes=shapes)
            except CompileError as error:
                problem = problem or error
                continue
            session = compile(model, **self._options, shapes=shapes)
            return CollageRep(session, model.graph.output).run({name: array for name, array in feed.items() if name not in fixed})
        raise problem


def _named(inputs: Any, names: list[str]) -> dict[str, Any]:
    if isinstance(inputs, dict):
        return inputs
    arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
    if len(arrays) != len(names):
        raise ArgumentError(f"{len(arrays)} inputs are given where {len(names)} are right: {', '.join(names)}")
    return dict(zip(names, arrays, strict=True))


def _fixed_inputs(feed: dict[str, Any]) -> Iterator[set[str]]:
    """Inputs whose values a model might need: none, those that look like shapes and axes, those that look like scales too, all."""
    small = {name: array for name, array in feed.items() if np.ndim(array) <= 1}
    yield set()
    yield {name for name, array in small.items() if np.asarray(array).dtype.kind in "iub"}
    yield set(small)
    yield {name for name, array in feed.items() if np.asarray(array).dtype.kind in "iub"} | set(small)
    yield set(feed)


def _collected(output: onnx.ValueInfoProto, results: dict[str, Any]) -> Any:
    """An output of the model, of the tensors that the program gives: of a sequence "name[0]", "name[1]" and so on."""
    type = output.type.optional_type.elem_type if output.type.HasField("optional_type") else output.type
    if not type.HasField("sequence_type"):
        return results.get(output.name)
    elements = []
    while (name := f"{output.name}[{len(elements)}]") in results:
        elements.append(results[name])
    return elements


def _without(model: onnx.ModelProto, absent: set[str]) -> onnx.ModelProto:
    """With no value where these inputs are read. They are optionals."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = [value for value in copy.graph.input if value.name not in absent]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    graphs = [copy.graph]  # with those of branches and bodies, which see its names
    for graph in graphs:
        for node in graph.node:
            node.input[:] = ["" if name in absent else name for name in node.input]
            graphs.extend(one for attribute in node.attribute for one in [attribute.g, *attribute.graphs] if one.node)
    return copy


def _with_constants(model: onnx.ModelProto, values: dict[str, Any]) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kept = [value for value in copy.graph.input if value.name not in values]
    del copy.graph.input[:]
    copy.graph.input.extend(kept)
    copy.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in values.items())
    return copy


class CollageBackend(Backend):
    """On the processor. Keyword arguments are those of collage.compile."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return Device(device).type == DeviceType.CPU

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        super().prepare(model, device, **kwargs)
        if not cls.supports_device(device):
            raise ValueError(f"device '{device}': there is only CPU")
        if "shapes" not in kwargs:
            if any(value.type.HasField("optional_type") for value in model.graph.input):
                return OpenRep(model, kwargs)
            try:
                read(model)
            except CompileError:
                return OpenRep(model, kwargs)
        return CollageRep(compile(model, **kwargs), model.graph.output)

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU", outputs_info: Sequence[tuple[Any, Any]] | None = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        """One node as a model of its own; its outputs' types are inferred."""
        super().run_node(node, inputs, device, outputs_info)
        names = [name for name in node.input if name]
        given = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(names, inputs, strict=True)
        ]
        graph = onnx.helper.make_graph([node], "node", given, [onnx.ValueInfoProto(name=name) for name in node.output if name])
        model = onnx.shape_inference.infer_shapes(onnx.helper.make_model(graph))
        return cls.run_model(model, inputs, device, **kwargs)


is_compatible = CollageBackend.is_compatible
prepare = CollageBackend.prepare
run_model = CollageBackend.run_model
run_node = CollageBackend.run_node
supports_device = CollageBackend.supports_device
