"""Small models, and a compile that is over soon."""

import functools
import pathlib
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import collage

CACHE = tempfile.NamedTemporaryFile(prefix="prices.", suffix=".sqlite")


def model(nodes, inputs, outputs, weights=()):
    """inputs, outputs: (name, element type, shape)."""
    values = [[helper.make_tensor_value_info(*value) for value in group] for group in (inputs, outputs)]
    graph = helper.make_graph(nodes, "small", *values, [numpy_helper.from_array(array, name) for name, array in weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def perceptron():
    """x (4, 64) -> hidden = Relu(x W + b), sums = sum of hidden over its last axis."""
    generator = np.random.default_rng(1)
    weights = [("weight", generator.standard_normal((64, 32)).astype(np.float32)), ("bias", generator.standard_normal(32).astype(np.float32)),
               ("axes", np.array([1]))]
    nodes = [helper.make_node("Gemm", ["x", "weight", "bias"], ["product"]), helper.make_node("Relu", ["product"], ["hidden"]),
             helper.make_node("ReduceSum", ["hidden", "axes"], ["sums"], keepdims=0)]
    return model(nodes, [("x", TensorProto.FLOAT, [4, 64])], [("hidden", TensorProto.FLOAT, [4, 32]), ("sums", TensorProto.FLOAT, [4])], weights)


def large_places():
    """x (2, 8) -> where (2, n): the places of what is over 0.5 after Relu; hidden = Relu(x W)."""
    weights = [("weight", np.random.default_rng(4).standard_normal((8, 6)).astype(np.float32)), ("half", np.array(0.5, np.float32))]
    nodes = [helper.make_node("MatMul", ["x", "weight"], ["product"]), helper.make_node("Relu", ["product"], ["hidden"]),
             helper.make_node("Greater", ["hidden", "half"], ["large"]), helper.make_node("NonZero", ["large"], ["where"])]
    outputs = [("where", TensorProto.INT64, [2, "n"]), ("hidden", TensorProto.FLOAT, [2, 6])]
    return model(nodes, [("x", TensorProto.FLOAT, [2, 8])], outputs, weights)


def convolutions(count=3):
    """Enough kernels to take a while."""
    generator = np.random.default_rng(2)
    nodes, weights, last = [], [], "x"
    for i in range(count):
        weights.append((f"w{i}", generator.standard_normal((16, 16, 3, 3)).astype(np.float32)))
        nodes += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]), helper.make_node("Relu", [f"c{i}"], [f"r{i}"])]
        last = f"r{i}"
    shape = [1, 16, 28, 28]
    return model(nodes, [("x", TensorProto.FLOAT, shape)], [(last, TensorProto.FLOAT, shape)], weights)


def compile_quickly(model_or_path, output=None, **options):
    return collage.compile(model_or_path, output, **{"budget": 1.5, "threads": 2, "cache": CACHE.name, **options})


@functools.cache
def perceptron_file():
    """The path of the compiled perceptron."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="collage.")) / "perceptron.collage"
    compile_quickly(perceptron(), path)
    return path
