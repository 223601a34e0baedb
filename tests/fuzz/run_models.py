"""Compiles and runs random models and holds every output against ONNX Runtime's. A seed gives the same model, inputs and targets each time.

Usage: run_models.py --collage BINARY --folder FOLDER [--seeds 0:20] [--budget 3s] [--reference]
"""

import argparse
import collections
import pathlib
import random
import shutil
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime
import random_models

TOLERANCE = 1e-4
TARGETS = ["cpu -compiler=dnnl", "cpu -compiler=openvino", "cpu -compiler=onnxruntime", "cpu -compiler=openblas", "cpu -compiler=xsmm", "cpu -compiler=xnnpack", "cpu"]


def expected_outputs(model, inputs):
    """What ONNX Runtime gives, or None where it refuses the model or overflows: such a seed says nothing."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        outputs = dict(zip(names, session.run(names, inputs)))
    except Exception as error:  # its exceptions have no common base
        return None, str(error).splitlines()[0]
    if not all(np.all(np.isfinite(value)) for value in outputs.values()):
        return None, "not finite"
    return outputs, ""


class Failure(Exception):
    pass


def collage(arguments, *words):
    try:
        done = subprocess.run([arguments.collage, *map(str, words)], capture_output=True, text=True, check=False, timeout=arguments.timeout)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{words[0]} hangs") from error
    if done.returncode != 0:
        raise Failure(f"{words[0]} ends with {done.returncode}: {done.stderr.strip()[-600:]}")
    if "although each of its" in done.stderr:
        raise Failure(f"{words[0]} finds no right plan: {done.stderr.strip()[-600:]}")
    return done


def compare(folder, expected):
    for name, value in expected.items():
        found = np.load((folder / f"{name}.npy").resolve())
        if found.shape != value.shape or found.dtype != value.dtype:
            raise Failure(f"output {name} is {found.dtype}{found.shape} where {value.dtype}{value.shape} is right")
        if value.size == 0:
            continue
        scale = max(float(np.max(np.abs(value))), 1e-30)
        difference = float(np.max(np.abs(found.astype(np.float64) - value)))
        if not difference <= TOLERANCE * scale:
            raise Failure(f"output {name} differs by {difference / scale:.1e} of its largest value {scale:.2g}")


def run_seed(arguments, seed, folder):
    """"passed", or "skipped" with a reason; raises Failure."""
    maker = random_models.ModelMaker(seed)
    model = maker.make()
    inputs = maker.random_inputs()
    expected, reason = expected_outputs(model, inputs)
    if expected is None:
        return f"skipped: {reason}"
    file = folder / "model.onnx"
    onnx.save(model, file)
    words = []
    for i, (name, value) in enumerate(inputs.items()):
        np.save(folder / f"input{i}.npy", value)
        words += ["--input", f"{name}={folder / f'input{i}.npy'}"]
    shapes = maker.shape_flags()
    if arguments.reference:
        collage(arguments, "run", file, "--reference", *shapes, *words, "--output", folder / "reference")
        compare(folder / "reference", expected)
        return "passed"
    for run, targets in enumerate([[], ["--target", random.Random(seed).choice(TARGETS)]]):
        if run == 1 and arguments.only_all:
            break
        program = folder / f"model{run}.collage"
        cache = arguments.folder / "prices.sqlite"
        try:
            collage(arguments, "compile", file, "-o", program, "--cache", cache, "--threads", 2, "--budget", arguments.budget, *shapes,
                    *targets)
            collage(arguments, "run", program, *words, "--threads", 2, "--output", folder / f"outputs{run}")
            compare(folder / f"outputs{run}", expected)
        except Failure as failure:
            raise Failure(f"[{' '.join(targets) or 'all targets'}] {failure}") from failure
    return "passed"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collage", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", default="0:20", help="FIRST:END or a list with commas")
    parser.add_argument("--budget", default="3s")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--limit", type=float, default=1e9, help="stop after so many seconds")
    parser.add_argument("--reference", action="store_true", help="only read the models and run them on the reference executor")
    parser.add_argument("--only-all", action="store_true", help="no second compile for one target alone")
    arguments = parser.parse_args()
    first, _, end = arguments.seeds.partition(":")
    seeds = range(int(first), int(end)) if end else [int(seed) for seed in arguments.seeds.split(",")]
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)
    counts, failures, start = collections.Counter(), [], time.monotonic()
    for seed in seeds:
        if time.monotonic() - start > arguments.limit:
            print(f"stopped before seed {seed}")
            break
        folder = arguments.folder / f"seed{seed}"
        folder.mkdir()
        try:
            outcome = run_seed(arguments, seed, folder)
        except Failure as failure:
            outcome = "failed"
            failures.append(f"seed {seed}: {failure}")
            print(failures[-1], flush=True)
        else:
            shutil.rmtree(folder)
        counts[outcome.partition(":")[0]] += 1
        if outcome.startswith("skipped"):
            print(f"seed {seed}: {outcome[:200]}", flush=True)
    print(f"{dict(counts)} in {time.monotonic() - start:.0f} s")
    sys.exit(1 if failures or counts["passed"] == 0 else 0)


if __name__ == "__main__":
    main()
