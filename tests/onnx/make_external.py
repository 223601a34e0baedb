#!/usr/bin/env python3
"""A model that keeps its weight in a file of its own, external.bin, and one of which an input decides a shape."""

import os
import sys

import numpy as np
import onnx
from onnx.helper import make_node

from case import make_model, write_expected


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

    nodes = [make_node("Reshape", ["x", "s"], ["y"]), make_node("Add", ["s", "s"], ["z"])]
    shaped = make_model(13, nodes, {"x": np.zeros((2, 3), np.float32), "s": np.array([3, -1])}, {}, ["y", "z"])
    onnx.save(shaped, os.path.join(folder, "shaped.onnx"))


if __name__ == "__main__":
    main()
