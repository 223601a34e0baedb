"""A backend of one's own: a pattern, a kernel, and prices by a function of one's own. The plan of a model changes, and nothing is timed."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import collage
from collage.pattern import is_constant, is_op, wildcard


def model():
    """Three layers of relu(x W), then a softmax."""
    generator = np.random.default_rng(1)
    nodes, weights = [], []
    for i in range(3):
        weights.append(numpy_helper.from_array(generator.standard_normal((32, 32)).astype(np.float32), f"w{i}"))
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"m{i}"]), helper.make_node("Relu", [f"m{i}"], [f"x{i + 1}"])]
    nodes.append(helper.make_node("Softmax", ["x3"], ["y"]))
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 32])] for name in ("x0", "y"))
    graph = helper.make_graph(nodes, "layers", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def estimate(function, target):
    """A microsecond an operator; the third of it where the backend of one's own runs it."""
    return len(function.operators) * (0.3e-6 if "numpy" in target else 1e-6)


backend = collage.register_backend("numpy")
product = is_op("nn.matmul")(wildcard(), is_constant())


@backend.kernel("matmul_relu", is_op("nn.relu")(product), check=lambda match: match.root.dtype == "float32" or "float32 only")
def matmul_relu(function):
    (weight,) = function.constants
    return lambda x: np.maximum(x @ weight, 0)


for targets in (["cpu"], ["cpu -compiler=numpy", "cpu"]):
    session = collage.compile(model(), targets=targets, estimator=estimate)
    print(f"{targets}: {session.report['estimated_us']:.1f} us")
    for partition in session.report["plan"]:
        print(f"  {partition['backend']:<8}{partition['cost_us']:>6.1f} us  {' '.join(partition['operators'])}")
    (y,) = session.run(None, {"x0": np.ones((4, 32), np.float32)})
assert np.allclose(y.sum(axis=1), 1, atol=1e-5)
