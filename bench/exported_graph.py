"""Layers as PyTorch's exporter writes them in evaluation mode at opset 17.

Batch normalization behind a convolution is folded into it, layer normalization is one operator, shapes and numbers of formulas
are Constant nodes. Layers choose the variance of their weights by what they read, so that activations stay of order one.
"""

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from built_models import Graph

OPSET = 17
IR_VERSION = 8

# One over the mean square of what an activation makes of a normal: the gain of the layer that reads it. Of a standard normal, and
# for SiLU of one of deviation 1.4: a chain of layers comes to rest there, where the gain of a smaller one would make it grow.
ACTIVATION_GAINS = {"relu": 2.0, "silu": 2.5, "gelu": 2.35}
# The deviation of class scores is then two where the last layer reads order one: softmax is neither uniform nor a single class.
LOGIT_GAIN = 4.0


class ExportedGraph(Graph):
    """A graph that remembers how many channels each tensor has, and which gain makes up for the activation that gave it."""

    def __init__(self, seed, name, rank=2):
        """`rank` is how many dimensions the planes of convolutions and poolings have."""
        super().__init__(seed, name)
        self.rank = rank
        self.inputs = []
        self.channels = {}
        self.gains = {}

    def input(self, name, shape, element_type=TensorProto.FLOAT):
        self.inputs.append(helper.make_tensor_value_info(name, element_type, shape))
        self.channels[name] = shape[1] if len(shape) > 1 else shape[0]
        return name

    def exported_model(self, outputs):
        """The model with these outputs, shapes by name."""
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, results, self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="collage bench/models.py")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model)
        return model

    def integers(self, values):
        return self.node("Constant", [], value=numpy_helper.from_array(np.array(values, np.int64)))

    def nodes_of(self, op_type, inputs, outputs, **attributes):
        """A node of several outputs: their names, or how many there are."""
        if isinstance(outputs, int):
            outputs = [f"{op_type}_{len(self.nodes)}_output_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=f"{op_type}_{len(self.nodes)}", **attributes))
        return outputs

    def same(self, op_type, inputs, output=None, gain=None, **attributes):
        """A node whose result has the channels, and without `gain` the gain, of its first input."""
        output = self.node(op_type, inputs, output, **attributes)
        if inputs[0] in self.channels:
            self.channels[output] = self.channels[inputs[0]]
        self.gains[output] = gain or self.gains.get(inputs[0], 1.0)
        return output

    def reshape(self, data, shape, output=None):
        return self.node("Reshape", [data, self.integers(shape)], output)

    def transpose(self, data, permutation):
        return self.node("Transpose", [data], perm=permutation)

    def split(self, data, sizes, axis):
        parts = self.nodes_of("Split", [data, self.integers(sizes)], len(sizes), axis=axis)
        for part, size in zip(parts, sizes):
            self.channels[part] = size
            self.gains[part] = self.gains.get(data, 1.0)
        return parts

    def concat(self, parts, axis=1, output=None):
        output = self.node("Concat", parts, output, axis=axis)
        self.channels[output] = sum(self.channels.get(part, 0) for part in parts)
        self.gains[output] = max(self.gains.get(part, 1.0) for part in parts)
        return output

    def add(self, one, other, output=None):
        return self.same("Add", [one, other], output, gain=1.0)

    def relu(self, data, output=None):
        return self.same("Relu", [data], output, gain=ACTIVATION_GAINS["relu"])

    def silu(self, data):
        return self.same("Mul", [data, self.node("Sigmoid", [data])], gain=ACTIVATION_GAINS["silu"])

    def gelu(self, data):
        curve = self.node("Erf", [self.node("Div", [data, self.scalar(math.sqrt(2))])])
        product = self.same("Mul", [data, self.node("Add", [curve, self.scalar(1)])])
        return self.same("Mul", [product, self.scalar(0.5)], gain=ACTIVATION_GAINS["gelu"])

    def conv(self, data, features, kernel, stride=1, groups=1, scale=1.0, pad=None):
        """A convolution with bias; `scale` is the variance of what it gives."""
        inputs = self.channels[data] // groups
        name = f"conv{len(self.nodes)}"
        shape = [features, inputs, *[kernel] * self.rank]
        fan_in = inputs * kernel**self.rank
        weight = self.weights.he(f"{name}.weight", shape, fan_in, scale * self.gains.get(data, 1.0))
        operands = [self.initializer(f"{name}.weight", weight)]
        operands.append(self.initializer(f"{name}.bias", self.weights.normal(f"{name}.bias", [features], 0.1)))
        pad = kernel // 2 if pad is None else pad
        output = self.node(
            "Conv",
            [data, *operands],
            dilations=[1] * self.rank,
            group=groups,
            kernel_shape=[kernel] * self.rank,
            pads=[pad] * (2 * self.rank),
            strides=[stride] * self.rank,
        )
        self.channels[output] = features
        return output

    def max_pool(self, data, kernel, stride, pad):
        sizes = {"kernel_shape": [kernel] * self.rank, "strides": [stride] * self.rank, "pads": [pad] * (2 * self.rank)}
        return self.same("MaxPool", [data], ceil_mode=0, **sizes)

    def average_pool(self, data, kernel, stride, pad):
        sizes = {"kernel_shape": [kernel] * self.rank, "strides": [stride] * self.rank, "pads": [pad] * (2 * self.rank)}
        return self.same("AveragePool", [data], ceil_mode=0, count_include_pad=1, **sizes)

    def linear(self, data, name, inputs, outputs, scale=1.0, output=None):
        """A layer over the last of three dimensions and more: a product and a sum."""
        weight = self.weights.he(f"{name}.weight", [inputs, outputs], inputs, scale * self.gains.get(data, 1.0))
        bias = self.weights.normal(f"{name}.bias", [outputs], 0.05)
        product = self.node("MatMul", [data, self.initializer(f"{name}.weight", weight)])
        return self.node("Add", [self.initializer(f"{name}.bias", bias), product], output)

    def gemm(self, data, name, inputs, outputs, scale=1.0, output=None):
        """A layer over rows."""
        weight = self.weights.he(f"{name}.weight", [outputs, inputs], inputs, scale * self.gains.get(data, 1.0))
        bias = self.weights.normal(f"{name}.bias", [outputs], 0.05)
        operands = [self.initializer(f"{name}.weight", weight), self.initializer(f"{name}.bias", bias)]
        return self.node("Gemm", [data, *operands], output, alpha=1.0, beta=1.0, transB=1)

    def layer_norm(self, data, name, features, epsilon=1e-5, output=None):
        scale = self.initializer(f"{name}.weight", self.weights.uniform(f"{name}.weight", [features], 0.8, 1.2))
        shift = self.initializer(f"{name}.bias", self.weights.normal(f"{name}.bias", [features], 0.1))
        return self.node("LayerNormalization", [data, scale, shift], output, axis=-1, epsilon=epsilon)
