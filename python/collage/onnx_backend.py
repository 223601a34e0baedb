"""onnx.backend.base: with it ONNX's own runner, and what is written against that interface, drive Collage.

    import collage.onnx_backend as backend

    outputs = backend.run_model(model, [image], budget=60)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, Device, DeviceType, namedtupledict

from collage import InferenceSession
from collage._compile import compile


class CollageRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session
        self._names = [output.name for output in session.get_outputs()]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Inputs in the model's order, or by name."""
        if not isinstance(inputs, dict):
            names = [value.name for value in self.session.get_inputs()]
            arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            inputs = dict(zip(names, arrays, strict=True))
        return namedtupledict("Outputs", self._names)(*self.session.run(None, inputs))


class CollageBackend(Backend):
    """On the processor. Keyword arguments are those of collage.compile."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return Device(device).type == DeviceType.CPU

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> CollageRep:
        super().prepare(model, device, **kwargs)
        if not cls.supports_device(device):
            raise ValueError(f"device '{device}': there is only CPU")
        return CollageRep(compile(model, **kwargs))

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
