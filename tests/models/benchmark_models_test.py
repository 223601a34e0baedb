"""Builds the small ones of the benchmark's models, counts their parameters, and holds the reference executor against ONNX Runtime."""

import argparse
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import models

TOLERANCE = 1e-4
# What is published, batch normalization folded, without what was cut off and with the constants that are no parameters.
PARAMETERS = {
    # 25 028 904 without stem (9 536) and classifier (2 049 000), and one number less for each of 34 048 normalized channels.
    "resnext50_32x4d": 25_028_904 - 9_536 - 2_049_000 - 34_048,
    # 7 763 041, and one number less for each of 2 944 normalized channels.
    "unet": 7_763_041 - 2_944,
    # 3 151 904 once normalization is folded; middles and strides of 8400 places, and the scales of Resize.
    "yolov8n": 3_151_904 + 3 * 8_400 + 4,
    # Table and scores of 10 000 words, two layers of eight 650x650 matrices and biases.
    "lstm_language_model": 10_000 * 650 + 10_000 * 651 + 2 * 8 * 650 * 651,
    # 26 tables of 16 columns, the two perceptrons, the places of 351 pairs.
    "dlrm": 840_543 * 16 + (14 * 512 + 513 * 256 + 257 * 64 + 65 * 16) + (368 * 512 + 513 * 256 + 257) + 351,
}


def check(name, collage, folder):
    """The failures of one model, as lines."""
    model, inputs = models.build(name, seed=0)
    onnx.checker.check_model(model, full_check=True)
    failures = []
    count = sum(int(np.prod(tensor.dims)) for tensor in model.graph.initializer)
    if count != PARAMETERS[name]:
        failures.append(f"{name}: {count} parameters, expected {PARAMETERS[name]}")
    path, arrays = folder / f"{name}.onnx", folder / f"{name}.npz"
    onnx.save(model, path)
    np.savez(arrays, **inputs)
    output = folder / name
    words = [collage, "run", path, "--reference", "--inputs", arrays, "--output", output]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return [*failures, f"{name}: collage run ended with {done.returncode}: {done.stderr.strip()}"]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for value, expected in zip(session.get_outputs(), session.run(None, inputs)):
        largest = float(np.max(np.abs(expected)))
        if not 1e-3 < largest < 1e3 or not float(np.std(expected)) > 1e-3:
            failures.append(f"{name}: {value.name} is of no sensible size, its largest is {largest:g}")
        difference = float(np.max(np.abs(np.load(output / f"{value.name}.npy") - expected))) / largest
        if not difference <= TOLERANCE:
            failures.append(f"{name}: {value.name} differs by {difference:g} of its largest")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collage", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    failures = [line for name in PARAMETERS for line in check(name, arguments.collage, arguments.folder)]
    shutil.rmtree(arguments.folder)
    print("\n".join(failures) or f"{len(PARAMETERS)} models agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
