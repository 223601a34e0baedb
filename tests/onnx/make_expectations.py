#!/usr/bin/env python3
"""What whole models give: MODELS, the folder of bench/models.py, then the folder to write to.

NAME.npz has the inputs of each seeded model and what ONNX Runtime computes; light_NAME.npz the inputs of the models that the
package onnx ships and the outputs that it ships for them.
"""

import glob
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

from case import session, write_expected


def is_newer(path, source):
    return os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(source)


def expect_seeded(model, target):
    inputs = dict(np.load(model[: -len(".onnx")] + ".npz"))
    runner = session(model, 1)
    names = [value.name for value in runner.get_outputs()]
    write_expected(target, inputs, dict(zip(names, runner.run(names, inputs))))


def ramp(shape):
    """The input that the package's own tests use for these models."""
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def expect_shipped(path, target):
    graph = onnx.load(path).graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = {
        value.name: ramp([d.dim_value for d in value.type.tensor_type.shape.dim])
        for value in graph.input
        if value.name not in constants
    }
    tensor = onnx.TensorProto()
    with open(path[: -len(".onnx")] + "_output_0.pb", "rb") as file:
        tensor.ParseFromString(file.read())
    write_expected(target, inputs, {graph.output[0].name: numpy_helper.to_array(tensor)})


def main():
    models, folder = sys.argv[1], sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    shipped = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
    for paths, expect in ((glob.glob(os.path.join(models, "*.onnx")), expect_seeded), (glob.glob(os.path.join(shipped, "*.onnx")), expect_shipped)):
        for path in sorted(paths):
            target = os.path.join(folder, os.path.basename(path)[: -len(".onnx")] + ".npz")
            if not is_newer(target, path):
                expect(path, target)


if __name__ == "__main__":
    main()
