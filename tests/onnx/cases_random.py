"""Cases of random numbers."""

import numpy as np
from onnx import TensorProto
from onnx.helper import make_node

from case import F


def randoms(cases):
    """No runtime draws the same numbers, so what is compared are ends, means and deviations of many of them, rounded."""

    def drawn(name, opset, node, inputs=None, constants=None):
        nodes = [
            node,
            make_node("Cast", ["r"], ["x"], to=TensorProto.FLOAT),
            make_node("ReduceMean", ["x"], ["mean"], keepdims=0),
            make_node("Sub", ["x", "mean"], ["d"]),
            make_node("ReduceL2", ["d"], ["length"], keepdims=0),
            make_node("Div", ["length", "root"], ["deviation"]),
            make_node("Round", ["mean"], ["y"]),
            make_node("Round", ["deviation"], ["z"]),
        ]
        cases.add(name, opset, nodes, inputs, {"root": np.array(100, F), **(constants or {})}, ("y", "z"))

    normal = {"mean": 7.0, "scale": 3.0}
    drawn("RandomNormal", 11, make_node("RandomNormal", [], ["r"], shape=[10, 1000], **normal))
    drawn("RandomNormalLike", 11, make_node("RandomNormalLike", ["a"], ["r"], **normal), {"a": np.zeros((10, 1000), F)})
    uniform = {"low": -20.0, "high": 50.0, "seed": 3.0}  # deviation 20.2
    drawn("RandomUniform", 11, make_node("RandomUniform", [], ["r"], shape=[10, 1000], dtype=TensorProto.DOUBLE, **uniform))
    drawn("RandomUniformLike", 11, make_node("RandomUniformLike", ["a"], ["r"], **uniform), {"a": np.zeros((10, 1000), F)})
    # ONNX Runtime lacks what its opset 22 expands to; in earlier ones it draws 1 where the definition says 0.
    drawn("Bernoulli", 22, make_node("Bernoulli", ["a"], ["r"]), {"a": np.full((10, 1000), 0.9, F)})
    logits = np.log(np.array([[0.01, 0.09, 0.9]], F)).repeat(10, 0)
    drawn("Multinomial", 11, make_node("Multinomial", ["a"], ["r"], sample_size=1000), {"a": logits})
