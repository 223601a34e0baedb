"""What ONNX Runtime adds to a run: a program through Collage's execution provider against the same program run by Collage alone. The aim is
3%, where a run is long enough for that.

Usage: PYTHONPATH=build/release/python onnxruntime_provider.py [--budget 60] [--threads 2] MODEL...

Sessions take turns, run by run, and one of Collage takes part twice: what these two differ by is the noise (A/A)."""

import argparse
import gc
import pathlib
import statistics
import tempfile
import time

import numpy as np
import onnxruntime

import collage
from collage import onnxruntime_provider

# So long that the machine's drift, of seconds, is met by all; so many that the median of a slow model is no single run's.
SECONDS, LEAST_RUNS = 20, 30


def through_onnx_runtime(model, options, folder):
    session_options = onnxruntime.SessionOptions()
    onnxruntime_provider.add_to(session_options, budget=options.budget, threads=options.threads, cache=folder)
    start = time.monotonic()
    session = onnxruntime.InferenceSession(str(model), session_options, enable_fallback=False)
    return session, time.monotonic() - start


def feeds_of(session):
    generator = np.random.default_rng(1)
    feeds = {}
    for one in session.get_inputs():
        # At a multiple of 64 bytes, as ONNX Runtime's own tensors are.
        count = int(np.prod(one.shape))
        kind = np.float32 if one.type == "tensor(float)" else np.int64
        raw = np.zeros(count * np.dtype(kind).itemsize + 64, np.uint8)
        begin = -raw.ctypes.data % 64
        array = raw[begin : begin + count * np.dtype(kind).itemsize].view(kind).reshape(one.shape)
        array[...] = generator.standard_normal(one.shape) if kind is np.float32 else 1
        feeds[one.name] = array
    return feeds


def medians(runs):
    """Milliseconds of each, interleaved."""
    samples = [[] for _ in runs]
    for run in runs:
        run()
    begin = time.monotonic()
    gc.disable()
    while time.monotonic() - begin < SECONDS or len(samples[0]) < LEAST_RUNS:
        # Each is first as often as last.
        order = range(len(runs)) if len(samples[0]) % 2 == 0 else reversed(range(len(runs)))
        for i in order:
            start = time.perf_counter_ns()
            runs[i]()
            samples[i].append((time.perf_counter_ns() - start) / 1e6)
    gc.enable()
    return [statistics.median(one) for one in samples]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            session, _ = through_onnx_runtime(model, options, folder)
            programs = list(pathlib.Path(folder).glob("*.collage"))
            if len(programs) != 1:
                print(f"{model.stem}: {len(programs)} programs, so there is nothing to compare")
                continue
            _, second = through_onnx_runtime(model, options, folder)
            own = [collage.InferenceSession(str(programs[0])) for _ in range(2)]
            feeds = feeds_of(session)
            found, expected = session.run(None, feeds), own[0].run([one.name for one in session.get_outputs()], feeds)
            for left, right in zip(found, expected, strict=True):
                np.testing.assert_array_equal(left, right)
            provider, first, again = medians([lambda: session.run(None, feeds), lambda: own[0].run(None, feeds), lambda: own[1].run(None, feeds)])
            print(f"{model.stem}: through ONNX Runtime {provider:.3f} ms, Collage {first:.3f} ms, adds {provider / first - 1:+.2%} "
                  f"({(provider - first) * 1e3:+.1f} us); noise (A/A) {abs(again / first - 1):.2%}; second session {second:.2f} s")


if __name__ == "__main__":
    main()
