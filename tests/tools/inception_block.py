"""An Inception block (Szegedy et al., "Going Deeper with Convolutions", 2015): four branches of one tensor, joined.

Usage: inception_block.py FILE [BLOCKS], to be compiled for several CPUs by hand (docs/measured.md)."""

import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Results of the branches: 1x1; 1x1 and 3x3; 1x1 and 5x5; 1x1 behind a pooling. Of blocks 3a and 3b.
WIDTHS = ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64))


class Builder:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes = []
        self.weights = []

    def convolution(self, name, source, channels, results, size):
        scale = np.sqrt(2 / (channels * size * size))
        weight = self.random.standard_normal((results, channels, size, size)) * scale
        bias = self.random.standard_normal(results) / 10
        for part, values in (("w", weight), ("b", bias)):
            self.weights.append(numpy_helper.from_array(values.astype(np.float32), f"{name}_{part}"))
        inputs = [source, f"{name}_w", f"{name}_b"]
        self.nodes.append(helper.make_node("Conv", inputs, [f"{name}_c"], name, pads=[size // 2] * 4))
        self.nodes.append(helper.make_node("Relu", [f"{name}_c"], [f"{name}_y"], f"{name}_relu"))
        return f"{name}_y"

    def block(self, name, source, channels, widths):
        one, before_three, three, before_five, five, pooled = widths
        first = self.convolution(f"{name}_b1", source, channels, one, 1)
        second = self.convolution(f"{name}_b2_reduce", source, channels, before_three, 1)
        second = self.convolution(f"{name}_b2", second, before_three, three, 3)
        third = self.convolution(f"{name}_b3_reduce", source, channels, before_five, 1)
        third = self.convolution(f"{name}_b3", third, before_five, five, 5)
        pool = f"{name}_pool"
        self.nodes.append(helper.make_node("MaxPool", [source], [pool], pool, kernel_shape=[3, 3], pads=[1] * 4))
        fourth = self.convolution(f"{name}_b4", pool, channels, pooled, 1)
        self.nodes.append(helper.make_node("Concat", [first, second, third, fourth], [f"{name}_y"], f"{name}_join", axis=1))
        return f"{name}_y", one + three + five + pooled


def inception(blocks=1, channels=192, extent=28, divisor=1, seed=1):
    """Blocks one after another; `divisor` makes all of them narrower."""
    builder = Builder(seed)
    source, channels = "x", channels // divisor
    shape = [1, channels, extent, extent]
    for i in range(blocks):
        source, channels = builder.block(f"i{i}", source, channels, [width // divisor for width in WIDTHS[i % 2]])
    types = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, count, extent, extent])
             for name, count in (("x", shape[1]), (source, channels))]
    graph = helper.make_graph(builder.nodes, "inception", types[:1], types[1:], builder.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), shape


if __name__ == "__main__":
    onnx.save(inception(int(sys.argv[2]) if len(sys.argv) > 2 else 1)[0], sys.argv[1])
