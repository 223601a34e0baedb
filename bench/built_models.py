"""Models built node by node, as an exporter would write them."""

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from seeded_weights import SeededWeights

OPSET = 13
IR_VERSION = 7


class Graph:
    """Nodes and initializers in the making; each method gives the name of the tensor that it adds."""

    def __init__(self, seed, name):
        self.name = name
        self.weights = SeededWeights(seed, name)
        self.nodes = []
        self.initializers = []

    def node(self, op_type, inputs, output=None, **attributes):
        output = output or f"{op_type}_{len(self.nodes)}_output_0"
        self.nodes.append(helper.make_node(op_type, inputs, [output], name=f"{op_type}_{len(self.nodes)}", **attributes))
        return output

    def initializer(self, name, value):
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def scalar(self, value):
        """A Constant node, which is how PyTorch writes the numbers of a formula."""
        return self.node("Constant", [], value=numpy_helper.from_array(np.float32(value)))

    def model(self, input_name, input_shape, output_name, output_shape):
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [helper.make_tensor_value_info(input_name, TensorProto.FLOAT, input_shape)],
            [helper.make_tensor_value_info(output_name, TensorProto.FLOAT, output_shape)],
            self.initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="collage bench/models.py")
        model.ir_version = IR_VERSION
        onnx.checker.check_model(model)
        return model

    def batch_norm(self, data, prefix, channels, scale=1.0):
        parts = self.weights.batch_norm(prefix, channels, scale)
        names = ("weight", "bias", "running_mean", "running_var")
        inputs = [self.initializer(f"{prefix}.{name}", part) for name, part in zip(names, parts)]
        return self.node("BatchNormalization", [data, *inputs], epsilon=1e-5)


def mnist(seed):
    """The network of the RFC's MNIST program: two padded 5x5 convolutions with pooling, and a dense layer."""
    g = Graph(seed, "mnist")
    data = "x"
    channels = 1
    for layer, (features, pool) in enumerate(((8, 2), (16, 3))):
        pads = g.initializer(f"pads{layer}", np.array([0, 0, 2, 2, 0, 0, 2, 2], np.int64))
        data = g.node("Pad", [data, pads], mode="constant")
        weight = g.initializer(f"conv{layer}.weight", g.weights.he(f"conv{layer}", [features, channels, 5, 5], channels * 25))
        bias = g.initializer(f"conv{layer}.bias", g.weights.normal(f"bias{layer}", [features, 1, 1], 0.1))
        data = g.node("Conv", [data, weight], kernel_shape=[5, 5], strides=[1, 1], pads=[0, 0, 0, 0])
        data = g.node("Relu", [g.node("Add", [data, bias])])
        data = g.node("MaxPool", [data], kernel_shape=[pool, pool], strides=[pool, pool])
        channels = features
    data = g.node("Reshape", [data, g.initializer("shape", np.array([1, 256], np.int64))])
    data = g.node("Gemm", [data, g.initializer("dense.weight", g.weights.he("dense", [10, 256], 256))], transB=1)
    g.node("Add", [data, g.initializer("dense.bias", g.weights.normal("dense.bias", [1, 10], 0.1))], output="y")
    return g.model("x", [1, 1, 28, 28], "y", [1, 10])


# Expansion, channels, repetitions, stride of the first: table 2 of Sandler et al., MobileNetV2 (2018).
_MOBILENET_BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def _convolution_block(g, data, prefix, inputs, outputs, kernel, stride=1, groups=1, activates=True, scale=1.0):
    """Convolution, batch normalization and, where it activates, ReLU6."""
    gain = 2.0 if activates else 1.0
    fan_in = inputs // groups * kernel * kernel
    weight = g.weights.he(f"{prefix}.weight", [outputs, inputs // groups, kernel, kernel], fan_in, gain)
    pad = kernel // 2
    data = g.node(
        "Conv",
        [data, g.initializer(f"{prefix}.conv.weight", weight)],
        kernel_shape=[kernel, kernel],
        strides=[stride, stride],
        pads=[pad, pad, pad, pad],
        dilations=[1, 1],
        group=groups,
    )
    data = g.batch_norm(data, f"{prefix}.bn", outputs, scale)
    return g.node("Clip", [data, "relu6.min", "relu6.max"]) if activates else data


def mobilenet_v2(seed):
    """MobileNet v2 of width 1.0 on 224x224 images."""
    g = Graph(seed, "mobilenet_v2")
    g.initializer("relu6.min", np.float32(0))
    g.initializer("relu6.max", np.float32(6))
    data = _convolution_block(g, "input", "stem", 3, 32, 3, stride=2)
    channels = 32
    for index, (expansion, features, repetitions, first_stride) in enumerate(_MOBILENET_BLOCKS):
        for repetition in range(repetitions):
            prefix = f"features.{index}.{repetition}"
            stride = first_stride if repetition == 0 else 1
            is_residual = stride == 1 and channels == features
            inner = channels * expansion
            branch = data
            if expansion != 1:
                branch = _convolution_block(g, branch, prefix + ".expand", channels, inner, 1)
            branch = _convolution_block(g, branch, prefix + ".depthwise", inner, inner, 3, stride, groups=inner)
            branch = _convolution_block(
                g, branch, prefix + ".project", inner, features, 1, activates=False, scale=0.7 if is_residual else 1.4
            )
            data = g.node("Add", [data, branch]) if is_residual else branch
            channels = features
    data = _convolution_block(g, data, "head", channels, 1280, 1)
    data = g.node("Flatten", [g.node("GlobalAveragePool", [data])], axis=1)
    weight = g.initializer("classifier.weight", g.weights.he("classifier.weight", [1000, 1280], 1280, gain=8.0))
    bias = g.initializer("classifier.bias", g.weights.normal("classifier.bias", [1000], 0.05))
    g.node("Gemm", [data, weight, bias], output="output", alpha=1.0, beta=1.0, transB=1)
    return g.model("input", [1, 3, 224, 224], "output", [1, 1000])


def dcgan(seed):
    """A DCGAN generator (Radford et al. 2015) of 256x256 images: 4x4 transposed convolutions that double the plane."""
    g = Graph(seed, "dcgan")
    data = "noise"
    channels = (100, 1024, 1024, 512, 256, 128, 64, 3)
    for layer in range(len(channels) - 1):
        inputs, outputs = channels[layer], channels[layer + 1]
        is_first, is_last = layer == 0, layer == len(channels) - 2
        # With stride 2 an output element sees 2x2 of the 4x4 taps; over a plane of one element, one.
        fan_in = inputs * (1 if is_first else 4)
        prefix = f"main.{layer}"
        gain = 1.0 if is_first or is_last else 2.0
        weight = g.weights.he(prefix, [inputs, outputs, 4, 4], fan_in, gain)
        stride, pad = (1, 0) if is_first else (2, 1)
        data = g.node(
            "ConvTranspose",
            [data, g.initializer(prefix + ".weight", weight)],
            kernel_shape=[4, 4],
            strides=[stride, stride],
            pads=[pad] * 4,
            dilations=[1, 1],
            group=1,
        )
        if not is_last:
            data = g.node("Relu", [g.batch_norm(data, prefix + ".bn", outputs)])
    g.node("Tanh", [data], output="image")
    return g.model("noise", [1, 100, 1, 1], "image", [1, 3, 256, 256])


class _Encoder:
    """The layers of a BERT encoder (Devlin et al. 2018), normalized after each residual sum."""

    def __init__(self, g, sequence, hidden, heads, inner):
        self.g = g
        self.hidden, self.inner = hidden, inner
        head = hidden // heads
        self.split = g.initializer("shape.split", np.array([1, sequence, heads, head], np.int64))
        self.merge = g.initializer("shape.merge", np.array([1, sequence, hidden], np.int64))
        self.root = math.sqrt(head)

    def dense(self, data, name, inputs, outputs, gain=1.0):
        g = self.g
        weight = g.initializer(f"{name}.weight", g.weights.he(f"{name}.weight", [inputs, outputs], inputs, gain))
        bias = g.initializer(f"{name}.bias", g.weights.normal(f"{name}.bias", [outputs], 0.05))
        return g.node("Add", [g.node("MatMul", [data, weight]), bias])

    def heads(self, data, name, permutation):
        split = self.g.node("Reshape", [self.dense(data, name, self.hidden, self.hidden, 2.0), self.split])
        return self.g.node("Transpose", [split], perm=permutation)

    def attention(self, data, prefix):
        g = self.g
        query = self.heads(data, f"{prefix}.query", [0, 2, 1, 3])
        key = self.heads(data, f"{prefix}.key", [0, 2, 3, 1])
        value = self.heads(data, f"{prefix}.value", [0, 2, 1, 3])
        scores = g.node("Div", [g.node("MatMul", [query, key]), g.scalar(self.root)])
        context = g.node("MatMul", [g.node("Softmax", [scores], axis=-1), value])
        merged = g.node("Reshape", [g.node("Transpose", [context], perm=[0, 2, 1, 3]), self.merge])
        return self.dense(merged, f"{prefix}.output", self.hidden, self.hidden)

    def gelu(self, data):
        g = self.g
        curve = g.node("Erf", [g.node("Div", [data, g.scalar(math.sqrt(2))])])
        product = g.node("Mul", [data, g.node("Add", [curve, g.scalar(1)])])
        return g.node("Mul", [product, g.scalar(0.5)])

    def layer_norm(self, data, name, output=None):
        g = self.g
        centered = g.node("Sub", [data, g.node("ReduceMean", [data], axes=[-1], keepdims=1)])
        variance = g.node("ReduceMean", [g.node("Pow", [centered, g.scalar(2)])], axes=[-1], keepdims=1)
        deviation = g.node("Sqrt", [g.node("Add", [variance, g.scalar(1e-5)])])
        scale = g.initializer(f"{name}.weight", g.weights.uniform(f"{name}.weight", [self.hidden], 0.8, 1.2))
        shift = g.initializer(f"{name}.bias", g.weights.normal(f"{name}.bias", [self.hidden], 0.1))
        scaled = g.node("Mul", [g.node("Div", [centered, deviation]), scale])
        return g.node("Add", [scaled, shift], output=output)

    def layer(self, data, prefix, output=None):
        g = self.g
        attended = g.node("Add", [self.attention(data, f"{prefix}.attention"), data])
        data = self.layer_norm(attended, f"{prefix}.attention.norm")
        inner = self.gelu(self.dense(data, f"{prefix}.intermediate", self.hidden, self.inner))
        outer = self.dense(inner, f"{prefix}.output", self.inner, self.hidden, 2.0)
        return self.layer_norm(g.node("Add", [outer, data]), f"{prefix}.norm", output)


def bert_encoder(seed, layers=8, sequence=64, hidden=256, heads=8, inner=1024):
    """A BERT encoder over hidden states, LayerNorm and GELU in primitive operators."""
    g = Graph(seed, "bert_encoder")
    encoder = _Encoder(g, sequence, hidden, heads, inner)
    data = "hidden_states"
    for index in range(layers):
        data = encoder.layer(data, f"layer.{index}", "last_hidden_state" if index == layers - 1 else None)
    shape = [1, sequence, hidden]
    return g.model("hidden_states", shape, "last_hidden_state", shape)


def _conv1d(g, data, prefix, inputs, outputs, kernel, dilation=1, gain=1.0):
    """A causal convolution: what is padded lies before the first sample."""
    weight = g.initializer(f"{prefix}.weight", g.weights.he(f"{prefix}.weight", [outputs, inputs, kernel], inputs * kernel, gain))
    bias = g.initializer(f"{prefix}.bias", g.weights.normal(f"{prefix}.bias", [outputs], 0.05))
    return g.node(
        "Conv",
        [data, weight, bias],
        kernel_shape=[kernel],
        dilations=[dilation],
        strides=[1],
        pads=[(kernel - 1) * dilation, 0],
        group=1,
    )


def wavenet(seed, samples=2048, channels=64, skip=128, stacks=2, layers=10):
    """WaveNet (van den Oord et al., 2016): stacks of gated, dilated, causal convolutions with residuals and a sum of skips."""
    g = Graph(seed, "wavenet")
    data = _conv1d(g, "audio", "start", 1, channels, 1)
    total = None
    for index in range(stacks * layers):
        prefix = f"layers.{index}"
        dilation = 2 ** (index % layers)
        filtered = g.node("Tanh", [_conv1d(g, data, prefix + ".filter", channels, channels, 2, dilation)])
        gate = g.node("Sigmoid", [_conv1d(g, data, prefix + ".gate", channels, channels, 2, dilation)])
        inner = g.node("Mul", [filtered, gate])
        part = _conv1d(g, inner, prefix + ".skip", channels, skip, 1)
        total = part if total is None else g.node("Add", [total, part])
        data = g.node("Add", [_conv1d(g, inner, prefix + ".residual", channels, channels, 1), data])
    data = _conv1d(g, g.node("Relu", [total]), "end.0", skip, skip, 1, gain=2.0)
    data = _conv1d(g, g.node("Relu", [data]), "end.1", skip, 256, 1, gain=2.0)
    g.node("Softmax", [data], output="output", axis=1)
    return g.model("audio", [1, 1, samples], "output", [1, 256, samples])


BUILDERS = {"mnist": mnist, "mobilenet_v2": mobilenet_v2, "dcgan": dcgan, "bert_encoder": bert_encoder, "wavenet": wavenet}
