"""What ONNX Runtime adds to a run: a program through Collage's execution provider against the same program run by Collage alone. The aim is
3%, where a run is long enough for that.

Usage: PYTHONPATH=build/release/python onnxruntime_provider.py [--budget 60] [--threads 2] MODEL...

Several sessions of each kind take turns, run by run. Where the memory of a session lies is worth some percent of a short run, so one
session of each would compare two such places. What the sessions of Collage differ by among themselves is the noise (A/A); beside it stands
what a run costs where the program does next to nothing, which shows ONNX Runtime's part alone."""

import argparse
import gc
import pathlib
import statistics
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import collage
from collage import onnxruntime_provider

# So long that the machine's drift, of seconds, is met by all; so many that the median of a slow model is no single run's.
SECONDS, LEAST_RUNS = 30, 30
# Of each kind. Where its memory lies makes one session up to 8% faster than another of the same program; the mean of four halves that.
SESSIONS = 4


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


def next_to_nothing():
    """A model of one operator on four numbers."""
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "relu", ends[:1], ends[1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def compare(models, options):
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            session, _ = through_onnx_runtime(model, options, folder)
            programs = list(pathlib.Path(folder).glob("*.collage"))
            if len(programs) != 1:
                print(f"{model.stem}: {len(programs)} programs, so there is nothing to compare")
                continue
            through, own, load_seconds = [session], [], 0.0
            while len(own) < SESSIONS:
                own.append(collage.InferenceSession(str(programs[0])))
                if len(through) < SESSIONS:
                    another, load_seconds = through_onnx_runtime(model, options, folder)
                    through.append(another)
            feeds = feeds_of(session)
            found, expected = session.run(None, feeds), own[0].run([one.name for one in session.get_outputs()], feeds)
            for left, right in zip(found, expected, strict=True):
                np.testing.assert_array_equal(left, right)
            times = medians([lambda one=one: one.run(None, feeds) for pair in zip(through, own) for one in pair])
            provider, alone = times[::2], times[1::2]
            adds = statistics.mean(provider) / statistics.mean(alone) - 1
            print(f"{model.stem}: through ONNX Runtime {statistics.mean(provider):.4f} ms ({min(provider):.3f} to {max(provider):.3f}), Collage "
                  f"{statistics.mean(alone):.4f} ms ({min(alone):.3f} to {max(alone):.3f}), adds {adds:+.2%}; noise (A/A) "
                  f"{max(alone) / min(alone) - 1:.2%}; another session {load_seconds:.2f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--budget", type=float, default=60)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        least = pathlib.Path(folder) / "relu.onnx"
        onnx.save(next_to_nothing(), least)
        compare([least], options)
    compare(options.models, options)


if __name__ == "__main__":
    main()
