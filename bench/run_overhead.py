"""What a run from Python adds to one from C, and one from C to the executor: under 5 us and 0.5 us is the aim.

Usage: PYTHONPATH=build/release/python run_overhead.py [--bench build/release/bin/bench_run_overhead]

On a model of one kernel of a microsecond, so that what is added can be seen. Lowest medians of rounds; Python and C take turns."""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np
from onnx import TensorProto, helper

import collage

ROUNDS, TURNS, RUNS = 10, 3, 500


def write_model(path):
    shape = [1, 16]
    values = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)] for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "small", *values)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString())


def median_microseconds(run):
    samples = []
    for _ in range(RUNS):
        start = time.perf_counter_ns()
        run()
        samples.append(time.perf_counter_ns() - start)
    return statistics.median(samples) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=pathlib.Path, default=pathlib.Path("build/release/bin/bench_run_overhead"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_model(folder / "small.onnx")
        session = collage.compile(folder / "small.onnx", folder / "small.collage", budget=2, threads=1, cache=folder / "prices")
        feed, result = {"x": np.ones((1, 16), np.float32)}, {"y": np.zeros((1, 16), np.float32)}
        clock = min(median_microseconds(lambda: None) for _ in range(ROUNDS))
        turns = []
        for _ in range(TURNS):
            c = json.loads(subprocess.run([options.bench, folder / "small.collage"], check=True, capture_output=True, text=True).stdout)
            new = min(median_microseconds(lambda: session.run(None, feed)) for _ in range(ROUNDS)) - clock
            into = min(median_microseconds(lambda: session.run_into(feed, result)) for _ in range(ROUNDS)) - clock
            turns.append({**c, "python_us": new, "python_into_us": into})
    best = {key: min(turn[key] for turn in turns) for key in turns[0]}
    print(f"executor {best['executor_us']:.2f} us; C {best['c_us']:.2f} us, adds {best['c_us'] - best['executor_us']:+.2f} us")
    for what, key in (("into arrays of the caller", "python_into_us"), ("into new arrays", "python_us")):
        print(f"Python {what} {best[key]:.2f} us, adds {best[key] - best['c_us']:+.2f} us")


if __name__ == "__main__":
    main()
