#!/usr/bin/env python3
"""Runs ONNX Runtime on the models that a test wrote and compares with what is expected of them: WRITTEN EXPECTED TOLERANCE."""

import glob
import os
import sys

import numpy as np

from case import session


def difference(found, expected):
    """Largest difference relative to the largest expected value; infinite where types differ."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return float("inf")
    if expected.size == 0:
        return 0.0
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    scale = np.max(np.abs(expected)) or 1.0
    return float(np.max(np.abs(found - expected)) / scale)


def check(path, expected):
    arrays = dict(np.load(expected))
    runner = session(path, 1)
    inputs = {value.name: arrays["in:" + value.name] for value in runner.get_inputs()}
    names = [value.name for value in runner.get_outputs()]
    outputs = runner.run(names, inputs)
    return max(difference(np.asarray(output), arrays["out:" + name]) for name, output in zip(names, outputs))


def main():
    written, expected, tolerance = sys.argv[1], sys.argv[2], float(sys.argv[3])
    failures = 0
    paths = sorted(glob.glob(os.path.join(written, "*.onnx")))
    for path in paths:
        name = os.path.basename(path)[: -len(".onnx")]
        try:
            error = check(path, os.path.join(expected, name + ".npz"))
        except Exception as problem:  # ONNX Runtime's errors have no common base
            print(f"{name}: {problem}")
            failures += 1
            continue
        if not error <= tolerance:
            print(f"{name}: differs by {error:.3g}")
            failures += 1
    print(f"{len(paths)} models, {failures} failures")
    return 1 if failures or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
