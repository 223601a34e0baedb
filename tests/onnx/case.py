"""Small models with inputs and expected outputs, for the tests of reader and writer."""

import os

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

onnxruntime.set_default_logger_severity(4)

F = np.float32
I = np.int64
GENERATOR = np.random.default_rng(20260101)


def data(*shape):
    return GENERATOR.standard_normal(shape).astype(F)


def ints(*values):
    return np.array(values, I)


def positive(*shape):
    return np.abs(data(*shape)) + F(0.5)


def value_info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def make_model(opset, nodes, inputs, constants, outputs, functions=(), versions=None, types=None):
    """A model whose inputs and initializers are named arrays; outputs are names. `versions` of domains: else 1. `types` of outputs where
    ONNX Runtime infers none."""
    domains = {node.domain for node in nodes if node.domain} | {function.domain for function in functions}
    graph = helper.make_graph(
        nodes,
        "case",
        [value_info(name, array) for name, array in inputs.items()],
        [helper.make_tensor_value_info(name, types[name], None) if types else onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, (versions or {}).get(domain, 1)) for domain in sorted(domains)]
    model = helper.make_model(graph, opset_imports=opsets, functions=functions)
    model.ir_version = min(model.ir_version, 10)  # the newest that ONNX Runtime reads may be older
    return model


def session(model, threads, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def evaluate(model, inputs):
    """What ONNX Runtime gives; where it does not know an operator or opset yet, ONNX's own evaluator."""
    try:
        return session(model.SerializeToString(), 1).run(None, inputs)
    except Exception:  # its errors have no common base
        return ReferenceEvaluator(model).run(None, inputs)


def evaluate_unoptimised(model, inputs):
    """What ONNX Runtime gives of each node by itself, where its optimiser makes something else of them together."""
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return session(model.SerializeToString(), 1, level).run(None, inputs)


def write_expected(path, inputs, outputs):
    """Arrays "in:NAME" and "out:NAME" in one archive."""
    arrays = {"in:" + name: value for name, value in inputs.items()}
    arrays.update({"out:" + name: np.asarray(value) for name, value in outputs.items()})
    part = path + ".part"
    with open(part, "wb") as file:
        np.savez(file, **arrays)
    os.replace(part, path)


class CaseFolder:
    """Writes cases NAME.onnx with NAME.npz."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0
        os.makedirs(folder, exist_ok=True)

    def add(self, name, opset, nodes, inputs=None, constants=None, outputs=("y",), functions=(), versions=None, expected=None, types=None):
        """`expected` of the outputs where ONNX Runtime is known to compute something else than ONNX says."""
        inputs = inputs or {}
        model = make_model(opset, nodes, inputs, constants or {}, outputs, functions, versions, types)
        path = os.path.join(self.folder, f"{name}_{opset}")
        if os.path.exists(path + ".onnx"):
            raise ValueError(f"two cases are called {name}_{opset}")
        results = evaluate(model, inputs) if expected is None else expected
        onnx.save(model, path + ".onnx")
        write_expected(path + ".npz", inputs, dict(zip(outputs, results)))
        self.count += 1


def single(cases, op, opsets, inputs, constants=None, name=None, outputs=("y",), **attributes):
    """One node that reads all inputs, then all constants, in their order; a blank name stands for one that is absent."""
    constants = constants or {}
    for opset in opsets:
        node = helper.make_node(op, [label.strip() for label in (*inputs, *constants)], list(outputs), **attributes)
        given = [{key: value for key, value in values.items() if key.strip()} for values in (inputs, constants)]
        cases.add(name or op, opset, [node], *given, outputs)
