"""The light_* models of the PyPI package onnx with real weights.

As shipped they are graphs of well-known networks whose weights are all one number, so that they fit into a package. A wrong
kernel passes on such a model. Here each weight gets seeded values by what reads it.
"""

import os

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from seeded_weights import SeededWeights

NAMES = {
    "squeezenet": "light_squeezenet",
    "resnet50": "light_resnet50",
    "vgg19": "light_vgg19",
    "densenet121": "light_densenet121",
    "inception_v1": "light_inception_v1",
    "inception_v2": "light_inception_v2",
    "shufflenet": "light_shufflenet",
    "alexnet": "light_bvlc_alexnet",
    "zfnet512": "light_zfnet512",
}

# With this deviation of the last layer's outputs, softmax over a thousand classes is neither uniform nor a single one.
LOGIT_DEVIATION = 2.0


def _constants(graph):
    """Arrays by name: initializers, and what ConstantOfShape makes of them (only shapes and dtypes matter of those)."""
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "ConstantOfShape":
            values[node.output[0]] = np.empty(values[node.input[0]], np.float32)
    return values


class _Reseeder:
    """Chooses values for the weights of one graph, by the operator that reads them and the place at which it does."""

    def __init__(self, graph, weights):
        self.weights = weights
        self.values = _constants(graph)
        self.readers = {}
        self.producers = {output: node for node in graph.node for output in node.output}
        for node in graph.node:
            for place, name in enumerate(node.input):
                self.readers.setdefault(name, []).append((node, place))

    def _feeds_sum(self, node):
        return any(reader.op_type == "Sum" for reader, _ in self.readers.get(node.output[0], []))

    def _gain(self, node):
        """2 where the layer reads what a ReLU gives, of which half is zero; the largest of several of those makes up for it."""
        producer = self.producers.get(node.input[0])
        while producer is not None and producer.op_type in ("Concat", "Reshape", "Transpose", "Dropout", "LRN"):
            producer = self.producers.get(producer.input[0])
        return 2.0 if producer is not None and producer.op_type == "Relu" else 1.0

    def _of_batch_norm(self, name, node, place):
        channels = self.values[name].shape[0]
        # Each residual branch adds its variance to the sum: small ones keep sixteen blocks of order one.
        scale = 0.5 if self._feeds_sum(node) else 1.0
        return self.weights.batch_norm(node.output[0], channels, scale)[place - 1]

    def _of_convolution(self, name, shape, node, place):
        if place == 1:
            return self.weights.he(name, shape, int(np.prod(shape[1:])), self._gain(node))
        return self.weights.normal(name, shape, 0.05)

    def _of_gemm(self, name, shape, node, place):
        if place == 2:
            return self.weights.normal(name, shape, 0.05)
        transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
        return self.weights.he(name, shape, shape[-1] if transposed else shape[-2], self._gain(node))

    def value(self, name):
        """The seeded value of a constant; None where it is no weight."""
        node, place = self.readers[name][0]
        while node.op_type in ("Unsqueeze", "Reshape") and place == 0:
            node, place = self.readers[node.output[0]][0]
        shape = self.values[name].shape
        if node.op_type == "Conv":
            return self._of_convolution(name, shape, node, place)
        if node.op_type == "Gemm":
            return self._of_gemm(name, shape, node, place)
        if node.op_type == "BatchNormalization":
            return self._of_batch_norm(name, node, place)
        if node.op_type == "Mul":
            return self.weights.uniform(name, shape, 0.8, 1.2)
        if node.op_type == "Add":
            return self.weights.normal(name, shape, 0.1)
        return None


def _replace_constants(model, weights):
    graph = model.graph
    reseeder = _Reseeder(graph, weights)
    nodes = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    used = {name for node in nodes for name in node.input}
    initializers = []
    for name, value in reseeder.values.items():
        if name not in used:
            continue
        seeded = reseeder.value(name)
        initializers.append(numpy_helper.from_array(value if seeded is None else seeded, name))
    inputs = [value for value in graph.input if value.name in used and value.name not in reseeder.values]
    for field, items in ((graph.node, nodes), (graph.input, inputs), (graph.initializer, initializers)):
        items = [type(item).FromString(item.SerializeToString()) for item in items]
        del field[:]
        field.extend(items)
    del graph.value_info[:]
    model.ir_version = 4  # the first in which initializers need not be inputs, which would make them variable


def _logits(graph):
    """The tensor that the final softmax reads, or the output where there is none."""
    last = graph.node[-1]
    return last.input[0] if last.op_type == "Softmax" else graph.output[0].name


def _scale_last_layer(model, inputs):
    """Scales the last layer so that the classes differ."""
    graph = model.graph
    logits = _logits(graph)
    probe = onnx.ModelProto()
    probe.CopyFrom(model)
    del probe.graph.output[:]
    probe.graph.output.append(onnx.helper.make_tensor_value_info(logits, onnx.TensorProto.FLOAT, None))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(probe.SerializeToString(), options, providers=["CPUExecutionProvider"])
    deviation = float(np.std(session.run(None, inputs)[0]))
    last = [node for node in graph.node if node.op_type in ("Conv", "Gemm")][-1]
    reshaped = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Reshape"}
    weights = {reshaped.get(name, name) for name in last.input[1:]}
    for tensor in graph.initializer:
        if tensor.name in weights:
            scaled = numpy_helper.to_array(tensor) * np.float32(LOGIT_DEVIATION / deviation)
            tensor.CopyFrom(numpy_helper.from_array(scaled, tensor.name))


def shipped_folder():
    return os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")


def input_shapes(model):
    return {value.name: [d.dim_value for d in value.type.tensor_type.shape.dim] for value in model.graph.input}


def build(name, seed, make_inputs):
    """The model of that name; `make_inputs(shapes)` gives the arrays with which its last layer is scaled."""
    model = onnx.load(os.path.join(shipped_folder(), NAMES[name] + ".onnx"))
    _replace_constants(model, SeededWeights(seed, name))
    _scale_last_layer(model, make_inputs(input_shapes(model)))
    return model
