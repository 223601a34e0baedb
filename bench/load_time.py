"""How long a session takes to be there: a compiled program, against ONNX Runtime with the model.

Usage: PYTHONPATH=build/release/python load_time.py [--threads 2] [--rounds 11] MODEL.onnx PROGRAM.collage

Each load is in a process of its own, which has imported its library before; the two take turns, and files are in the memory of the operating
system. Medians, with the lowest."""

import argparse
import pathlib
import statistics
import subprocess
import sys

SCRIPT = """
import sys, time
import {library} as library
options = library.SessionOptions()
options.intra_op_num_threads = int(sys.argv[2])
start = time.perf_counter()
session = library.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
print(time.perf_counter() - start)
"""


def load_seconds(library, path, threads):
    words = [sys.executable, "-c", SCRIPT.format(library=library), str(path), str(threads)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    peers = {"collage": options.program, "onnxruntime": options.model}
    samples = {library: [] for library in peers}
    for _ in range(options.rounds):
        for library, path in peers.items():
            samples[library].append(load_seconds(library, path, options.threads))
    for library, seconds in samples.items():
        print(f"{library}: {statistics.median(seconds):.3f} s (lowest {min(seconds):.3f})")


if __name__ == "__main__":
    main()
