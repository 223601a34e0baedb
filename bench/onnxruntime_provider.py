"""What ONNX Runtime adds to a run: a program through Collage's execution provider against the same program run by Collage alone. The aim is
3%, where a run is long enough for that.

Usage: PYTHONPATH=build/release/python onnxruntime_provider.py [--budget 60] [--threads 2] MODEL...

Where the memory of a session lies is worth some percent of a short run. So each round has sessions of its own: one through ONNX Runtime and two
of Collage, which take turns, run by run. What is said is the mean of the rounds' ratios of medians, with its 95% interval; that of the two
sessions of Collage is the noise (A/A). Beside it stands what a run costs where the program does next to nothing, which shows ONNX Runtime's
part alone."""

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

# Of a round: many runs of each session, so that its median is no single run's, and much shorter than the machine's drift.
SECONDS, LEAST_RUNS = 3, 10
# Sessions of one program differ by up to 8%; the mean of sixteen ratios of such is known to a percent or so.
ROUNDS = 16
# Of Student's t distribution at 15 degrees of freedom: 95% lie between this and its negative.
QUANTILE = 2.131


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


def change(ratios):
    """Mean of the ratios less one, and how far its 95% interval reaches to both sides."""
    return f"{statistics.mean(ratios) - 1:+.2%} (+-{QUANTILE * statistics.stdev(ratios) / ROUNDS**0.5:.2%})"


def compare(models, options):
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            through_onnx_runtime(model, options, folder)
            programs = list(pathlib.Path(folder).glob("*.collage"))
            if len(programs) != 1:
                print(f"{model.stem}: {len(programs)} programs, so there is nothing to compare")
                continue
            rounds, load_seconds = [], []
            for _ in range(ROUNDS):
                through, seconds = through_onnx_runtime(model, options, folder)
                load_seconds.append(seconds)
                own = [collage.InferenceSession(str(programs[0])) for _ in range(2)]
                feeds = feeds_of(through)
                found, expected = through.run(None, feeds), own[0].run([one.name for one in through.get_outputs()], feeds)
                for left, right in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(left, right)
                rounds.append(medians([lambda one=one: one.run(None, feeds) for one in (own[0], through, own[1])]))
            alone, provider, again = zip(*rounds, strict=True)
            adds = change([after / before for after, before in zip(provider, alone, strict=True)])
            noise = change([after / before for after, before in zip(again, alone, strict=True)])
            print(f"{model.stem}: through ONNX Runtime {statistics.mean(provider):.4f} ms, Collage {statistics.mean(alone):.4f} ms, adds {adds}; "
                  f"noise (A/A) {noise}; another session {statistics.median(load_seconds):.2f} s", flush=True)


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
