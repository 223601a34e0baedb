#!/usr/bin/env python3
"""A model that keeps its weight in a file of its own, external.bin, and one of which an input decides a shape."""

import os
import shutil
import sys

import numpy as np
import onnx
from onnx.helper import make_node

from case import make_model, write_expected


def write_places(folder):
    """One sum of weights that are kept in every way: outside at an aligned place and at another, raw, in typed fields, and sparse."""
    values = {name: np.random.default_rng(i).standard_normal((3, 40)).astype(np.float32) for i, name in enumerate("abcdef")}
    for name in "ef":
        values[name][np.random.default_rng(9).random((3, 40)) < 0.8] = 0
    nodes = [make_node("Add", [last, name], [output]) for last, name, output in zip("xpqrst", "abcdef", "pqrsty")]
    x = np.ones((3, 40), np.float32)
    model = make_model(13, nodes, {"x": x}, {name: values[name] for name in "abc"}, ["y"])
    data = b""
    for tensor, offset in zip(model.graph.initializer, (4096, 5001)):
        data = data.ljust(offset, b"\0") + tensor.raw_data
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in {"location": "deeper/places.bin", "offset": offset, "length": 480}.items():
            tensor.external_data.add(key=key, value=str(value))
    model.graph.initializer.append(onnx.helper.make_tensor("d", onnx.TensorProto.FLOAT, (3, 40), values["d"].flatten()))
    for name, rows in (("e", False), ("f", True)):
        at = np.argwhere(values[name]) if rows else np.flatnonzero(values[name])
        kept = onnx.numpy_helper.from_array(values[name][values[name] != 0], name)
        sparse = onnx.SparseTensorProto(dims=[3, 40], values=kept, indices=onnx.numpy_helper.from_array(at.astype(np.int64)))
        model.graph.sparse_initializer.append(sparse)
    os.makedirs(os.path.join(folder, "deeper"), exist_ok=True)
    with open(os.path.join(folder, "deeper", "places.bin"), "wb") as file:
        file.write(data)
    with open(os.path.join(folder, "places.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    write_expected(os.path.join(folder, "places.npz"), {"x": x}, {"y": x + sum(values.values())})


def write_links(folder):
    """external.onnx as the cache of Hugging Face lays models out: names of a snapshot lead to files that are named by their content."""
    snapshot, blobs = os.path.join(folder, "snapshot"), os.path.join(folder, "blobs")
    for path in (snapshot, blobs):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
    for i, name in enumerate(("external.onnx", "external.bin")):
        shutil.copy(os.path.join(folder, name), os.path.join(blobs, f"{i}"))
        os.symlink(os.path.join("..", "blobs", f"{i}"), os.path.join(snapshot, name))


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    w = np.linspace(0, 5, 20, dtype=np.float32).reshape(4, 5)
    model = make_model(13, [make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, {"w": w}, ["y"])
    path = os.path.join(folder, "external.onnx")
    data = os.path.join(folder, "external.bin")
    if os.path.exists(data):
        os.remove(data)  # onnx.save appends
    onnx.save(model, path, save_as_external_data=True, location="external.bin", size_threshold=0)
    write_expected(os.path.join(folder, "external.npz"), {"x": x}, {"y": x @ w})

    write_places(folder)
    write_links(folder)

    nodes = [make_node("Reshape", ["x", "s"], ["y"]), make_node("Add", ["s", "s"], ["z"])]
    shaped = make_model(13, nodes, {"x": np.zeros((2, 3), np.float32), "s": np.array([3, -1])}, {}, ["y", "z"])
    onnx.save(shaped, os.path.join(folder, "shaped.onnx"))

    # x times scale, and y behind it: x is (N, 2), y is (N, M), z is (M, N); scale is 3 where it is not given.
    nodes = [make_node("Mul", ["x", "scale"], ["s"]), make_node("Concat", ["s", "y"], ["c"], axis=1), make_node("Identity", ["z"], ["d"])]
    open_model = make_model(13, nodes, {}, {"scale": np.array([3], np.float32)}, ["c", "d"])
    for name, shape in {"x": ["N", 2], "y": ["N", "M"], "z": ["M", "N"], "scale": [1]}.items():
        open_model.graph.input.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape))
    onnx.save(open_model, os.path.join(folder, "open.onnx"))


if __name__ == "__main__":
    main()
