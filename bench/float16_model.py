"""A model of float32 as one of float16 throughout, its inputs and outputs as well."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

# Inputs that stay float32 in every version of these operators.
FLOAT32_INPUTS = {"Resize": (1, 2), "Upsample": (1,)}


def _halved(tensor):
    if tensor.data_type != TensorProto.FLOAT:
        return tensor
    values, largest = numpy_helper.to_array(tensor), np.finfo(np.float16).max
    halves = np.where(np.isinf(values), values, np.clip(values, -largest, largest))  # infinite only where it was
    return numpy_helper.from_array(halves.astype(np.float16), tensor.name)


def to_float16(model):
    """Changes the model: constants are rounded to the nearest, casts to float32 are casts to float16. Without control flow."""
    graph = model.graph
    kept = {node.input[i] for node in graph.node for i in FLOAT32_INPUTS.get(node.op_type, ()) if i < len(node.input)}
    for tensor in graph.initializer:
        if tensor.name not in kept:
            tensor.CopyFrom(_halved(tensor))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR and not kept & set(node.output):
                attribute.t.CopyFrom(_halved(attribute.t))
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.FLOAT16
    for value in [*graph.input, *graph.output]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    del graph.value_info[:]
    return model


def halved_inputs(inputs):
    return {name: value.astype(np.float16) if value.dtype == np.float32 else value for name, value in inputs.items()}
