#!/usr/bin/env python3
"""Writes ONNX's own backend tests (node, simple, pytorch-converted, pytorch-operator) and what ONNX Runtime makes of them.

FOLDER/NAME.onnx is the model of a test. FOLDER/NAME.SET.data is an ONNX model, too, whose constant outputs are the inputs
("in:NAME"), the expected outputs in order ("out:0", ...) and "tolerance" (relative, absolute): unlike .npz this holds every element type.
A sequence is its tensors, "in:NAME[0]" and so on, and its length, "length:NAME"; an optional without a value is "absent:NAME".
FOLDER/onnxruntime.txt names the tests that ONNX Runtime passes, one a line.
"""

import glob
import os
import shutil
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def load_set(folder, model):
    """The inputs and outputs of a test that lies on disk."""
    values = []
    for prefix, infos in (("input", model.graph.input), ("output", model.graph.output)):
        arrays = []
        for i in range(len(glob.glob(os.path.join(folder, prefix + "_*.pb")))):
            with open(os.path.join(folder, f"{prefix}_{i}.pb"), "rb") as file:
                content = file.read()
            if infos[i].type.WhichOneof("value") != "tensor_type":
                raise ValueError(f"{folder}: {infos[i].name} is no tensor")
            tensor = onnx.TensorProto()
            tensor.ParseFromString(content)
            arrays.append(numpy_helper.to_array(tensor))
        values.append(arrays)
    return values


def sets_of(test, model):
    if test.data_sets is not None:
        return list(test.data_sets)
    folders = sorted(glob.glob(os.path.join(test.model_dir, "test_data_set_*")))
    return [load_set(folder, model) for folder in folders]


def as_tensor(value, name):
    if isinstance(value, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
        tensor.name = name
        return tensor
    return numpy_helper.from_array(np.asarray(value), name)


def input_tensors(value, info):
    if value is None:
        return [as_tensor(np.array(True), "absent:" + info.name)]
    if not isinstance(value, (list, tuple)):
        return [as_tensor(value, "in:" + info.name)]
    length = as_tensor(np.array([len(value)]), "length:" + info.name)
    return [length] + [as_tensor(element, f"in:{info.name}[{i}]") for i, element in enumerate(value)]


def output_tensors(value, name):
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        return [as_tensor(value, name)]
    return [as_tensor(element, f"{name}[{i}]") for i, element in enumerate(value)]


def write_set(path, model, inputs, outputs, rtol, atol):
    tensors = [numpy_helper.from_array(np.array([rtol, atol], np.float64), "tolerance")]
    for info, value in zip(model.graph.input, inputs):
        tensors += input_tensors(value, info)
    for i, value in enumerate(outputs):
        tensors += output_tensors(value, f"out:{i}")
    infos = [onnx.ValueInfoProto(name=tensor.name) for tensor in tensors]
    graph = helper.make_graph([], "data", [], infos, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def same(found, expected, rtol, atol):
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(same(f, e, rtol, atol) for f, e in zip(found, expected))
    if expected is None:
        return found is None
    expected = numpy_helper.to_array(expected) if isinstance(expected, onnx.TensorProto) else np.asarray(expected)
    found = np.asarray(found)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "OUS":
        return np.array_equal(found.astype(object), expected.astype(object))
    if found.dtype != expected.dtype:
        return False
    kind = np.float64 if expected.dtype.kind not in "biu" else expected.dtype
    return np.allclose(found.astype(kind), expected.astype(kind), rtol=rtol, atol=atol, equal_nan=True)


def onnxruntime_passes(model, sets, rtol, atol):
    newest = onnx.ModelProto()
    newest.CopyFrom(model)
    newest.ir_version = min(newest.ir_version, 11)
    try:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(newest.SerializeToString(), options, providers=["CPUExecutionProvider"])
        for inputs, outputs in sets:
            values = [numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value for value in inputs]
            feeds = {info.name: value for info, value in zip(session.get_inputs(), values)}
            found = session.run(None, feeds)
            if not all(same(f, e, rtol, atol) for f, e in zip(found, outputs)):
                return False
        return True
    except Exception:  # its errors have no common base
        return False


def main():
    warnings.filterwarnings("ignore")
    onnxruntime.set_default_logger_severity(4)
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    passed = []
    count = 0
    for kind in KINDS:
        for test in load_model_tests(kind=kind):
            model = test.model or onnx.load(os.path.join(test.model_dir, "model.onnx"))
            name = f"{kind}.{test.name}"
            sets = sets_of(test, model)
            onnx.save(model, os.path.join(folder, name + ".onnx"))
            for i, (inputs, outputs) in enumerate(sets):
                write_set(os.path.join(folder, f"{name}.{i}.data"), model, inputs, outputs, test.rtol, test.atol)
            if onnxruntime_passes(model, sets, test.rtol, test.atol):
                passed.append(name)
            count += 1
    with open(os.path.join(folder, "onnxruntime.txt"), "w", encoding="utf-8") as file:
        file.writelines(name + "\n" for name in passed)
    print(f"{count} tests, of which ONNX Runtime {onnxruntime.__version__} passes {len(passed)}")


if __name__ == "__main__":
    main()
