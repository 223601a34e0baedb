"""Small models as exporters write whole ones: recurrent, with experts, and in three dimensions."""

import numpy as np
from onnx.helper import make_node

from case import F, GENERATOR, I, data, ints, positive


class Nodes:
    """Nodes and their constants in the making; each call gives the name of the tensor that it adds."""

    def __init__(self):
        self.nodes = []
        self.constants = {}

    def __call__(self, op, *inputs, outputs=1, **attributes):
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        taken = [name if isinstance(name, str) else self.constant(name) for name in inputs]
        self.nodes.append(make_node(op, taken, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def add_to(self, cases, name, opset, inputs, result):
        self.nodes.append(make_node("Identity", [result], ["y"]))
        cases.add("model_" + name, opset, self.nodes, inputs, self.constants)


def lstm_language_model(cases):
    """PyTorch: an embedding, two LSTM layers over (steps, batch, features), a projection to the words."""
    n = Nodes()
    x = n("Transpose", n("Gather", data(12, 6), "words"), perm=[1, 0, 2])
    for size in (6, 5):
        zeros = np.zeros((1, 2, 5), F)
        y, _, _ = n("LSTM", x, data(1, 20, size), data(1, 20, 5), data(1, 40), "", zeros, zeros, outputs=3, hidden_size=5)
        x = n("Squeeze", y, ints(1))
    scores = n("Add", n("MatMul", x, data(5, 12)), data(12))
    words = {"words": GENERATOR.integers(0, 12, (2, 4), I)}
    n.add_to(cases, "lstm_language_model", 14, words, n("LogSoftmax", scores, axis=-1))


def mixture_of_experts(cases):
    """The best two of four experts of each token: gates of the others are zero, and all experts are one batched product."""
    n = Nodes()
    values, places = n("TopK", n("Softmax", n("MatMul", "x", data(8, 4)), axis=-1), ints(2), outputs=2, axis=-1)
    shares = n("Div", values, n("ReduceSum", values, ints(-1), keepdims=1))
    gates = n("ScatterElements", np.zeros((6, 4), F), places, shares, axis=1)
    hidden = n("MatMul", n("Unsqueeze", "x", ints(0)), data(4, 8, 16))
    active = n("Mul", hidden, n("Sigmoid", hidden))
    made = n("MatMul", active, data(4, 16, 8))
    weighted = n("Mul", made, n("Unsqueeze", n("Transpose", gates, perm=[1, 0]), ints(2)))
    n.add_to(cases, "mixture_of_experts", 13, {"x": data(6, 8)}, n("ReduceSum", weighted, ints(0), keepdims=0))


def experts_of_onehot(cases):
    """As older PyTorch exports choose experts: by OneHot of the best, one expert after the other."""
    n = Nodes()
    _, places = n("TopK", n("MatMul", "x", data(8, 3)), ints(1), outputs=2, axis=1)
    choice = n("OneHot", n("Squeeze", places, ints(1)), np.array(3, I), np.array([0, 1], F), axis=-1)
    sums = []
    for i in range(3):
        gate = n("Slice", choice, ints(i), ints(i + 1), ints(1))
        sums.append(n("Mul", n("Gelu", n("Gemm", "x", data(5, 8), data(5), transB=1)), gate))
    n.add_to(cases, "experts_of_onehot", 20, {"x": data(6, 8)}, n("Sum", *sums))


def volume_block(n, x, inner, outer, stride):
    """A bottleneck of a ResNet in three dimensions."""

    def layer(x, channels_in, channels, kernel, strides, active=True):
        pads = [kernel // 2] * 6
        y = n("Conv", x, data(channels, channels_in, kernel, kernel, kernel), strides=[strides] * 3, pads=pads)
        y = n("BatchNormalization", y, data(channels), data(channels), data(channels), positive(channels))
        return n("Relu", y) if active else y

    y = layer(layer(x, 4, inner, 1, 1), inner, inner, 3, stride)
    y = layer(y, inner, outer, 1, 1, active=False)
    return n("Relu", n("Add", y, layer(x, 4, outer, 1, stride, active=False)))


def volume_resnet(cases):
    n = Nodes()
    stem = n("Relu", n("Conv", "x", data(4, 3, 3, 5, 5), data(4), strides=[1, 2, 2], pads=[1, 2, 2, 1, 2, 2]))
    pooled = n("MaxPool", stem, kernel_shape=[3, 3, 3], strides=[2, 2, 2], pads=[1] * 6)
    block = volume_block(n, pooled, 2, 8, 2)
    flat = n("Flatten", n("GlobalAveragePool", block), axis=1)
    n.add_to(cases, "volume_resnet", 13, {"x": data(1, 3, 6, 16, 16)}, n("Gemm", flat, data(5, 8), data(5), transB=1))


def keras_recurrent(cases):
    """tf2onnx: time first, a GRU with its reset after the product, both directions of an LSTM joined, dense layers over all steps."""
    n = Nodes()
    x = n("Transpose", "x", perm=[1, 0, 2])
    y, _ = n("GRU", x, data(1, 12, 3), data(1, 12, 4), data(1, 24), "", np.zeros((1, 2, 4), F), outputs=2, hidden_size=4, linear_before_reset=1)
    x = n("Squeeze", y, ints(1))
    y = n("LSTM", x, data(2, 12, 4), data(2, 12, 3), data(2, 24), outputs=1, hidden_size=3, direction="bidirectional")
    both = n("Reshape", n("Transpose", y, perm=[2, 0, 1, 3]), ints(2, 5, 6))
    y, last = n("RNN", n("Transpose", both, perm=[1, 0, 2]), data(1, 4, 6), data(1, 4, 4), data(1, 8), outputs=2, hidden_size=4, activations=["Relu"])
    steps = n("Transpose", n("Squeeze", y, ints(1)), perm=[1, 0, 2])
    shape = n("Shape", steps)
    flat = n("Reshape", steps, n("Concat", ints(-1), n("Slice", shape, ints(2), ints(3)), axis=0))
    dense = n("Tanh", n("Add", n("MatMul", flat, data(4, 2)), data(2)))
    spread = n("Reshape", dense, n("Concat", n("Slice", shape, ints(0), ints(2)), ints(2), axis=0))
    n.add_to(cases, "keras_recurrent", 13, {"x": data(2, 5, 3)}, n("Add", spread, n("ReduceMean", last, axes=[0, 1, 2], keepdims=1)))


def keras_volumes(cases):
    """tf2onnx: channels last outside, a padded convolution, pooling, a transposed convolution, an upsampling and a global maximum."""
    n = Nodes()
    x = n("Transpose", "x", perm=[0, 4, 1, 2, 3])
    x = n("Conv", x, data(4, 2, 3, 3, 3), data(4), auto_pad="SAME_UPPER", strides=[2, 2, 2])
    x = n("Elu", x)
    x = n("AveragePool", x, kernel_shape=[2, 2, 2], strides=[1, 1, 1], auto_pad="SAME_UPPER")
    x = n("ConvTranspose", x, data(4, 3, 2, 2, 2), data(3), strides=[2, 2, 2], auto_pad="SAME_UPPER")
    x = n("Resize", x, "", np.array([1, 1, 2, 2, 2], F), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = n("Transpose", x, perm=[0, 2, 3, 4, 1])
    n.add_to(cases, "keras_volumes", 13, {"x": data(1, 4, 6, 6, 2)}, n("ReduceMax", x, axes=[1, 2, 3], keepdims=0))


def models(cases):
    lstm_language_model(cases)
    mixture_of_experts(cases)
    experts_of_onehot(cases)
    volume_resnet(cases)
    keras_recurrent(cases)
    keras_volumes(cases)
