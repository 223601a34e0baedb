#!/usr/bin/env python3
"""Times one ONNX file through Collage, ONNX Runtime and OpenVINO, as their users run them, at equal threads and precision.

Each runs in a process of its own that stays alive; the processes take turns, one working while the others wait, so that drift
of the machine meets all of them alike. Collage runs twice (A and B, the same plan): the difference between the two is what
this run can not tell from noise. The peers are timed around their Python call with float32 arithmetic, the latency hint and
the thread count set, and nothing else. With --precision bf16 Collage and OpenVINO may both compute in bfloat16; with
int8-weights OpenVINO gets the model with the weights of its products as integers and one scale a channel, rounded as Collage
rounds them. ONNX Runtime stays with float32 in both (docs/design/precision.md says why).

Inputs come from NAME.npz beside NAME.onnx where it exists, else they are seeded random values.
Exit code: 0; 1 when outputs differ by more than 1e-4 of the largest value, or twice the tolerance of --precision; 2 when a
model could not be run at all.
"""

import argparse
import importlib.util
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    sys.exit("numpy is missing: run this with .venv/bin/python (make setup creates it)")

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 1e-4
# Those of collage compile (kToleranceOfBFloat16 and kToleranceOfInt8Weights in collage/tensor/precision.h).
TOLERANCES = {"bf16": TOLERANCE + 8 / 2**8, "int8-weights": TOLERANCE + 8 / 2**7}
# Time for the thread pools of the process that has just worked to stop spinning.
PAUSE_SECONDS = 0.05
# Of each; an odd number, so that the median is one of them. Times of loads have two modes, and of three loads two are often of the rarer.
LOADS = 5


class Failure(Exception):
    """One line for the user."""


# ---------------------------------------------------------------------------------------------------------------------------
# Workers: a process reads "load", "run N" or "outputs FILE" from standard input and answers each with one line.


def onnxruntime_runner(model, inputs, threads, precision):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    feeds = {value.name: inputs[value.name] for value in session.get_inputs()}
    return lambda: dict(zip(names, session.run(None, feeds)))


def with_integer_weights(path):
    """The model's bytes with the constant weights of its products in 8 bits and a DequantizeLinear behind them."""
    import onnx

    model = onnx.load(path)
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    if opset < 13:
        raise Failure(f"{path} is of opset {opset}; one scale for each channel takes 13 or later")
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    nodes, made, kept = [], {}, {output.name for output in graph.output}
    for node in graph.node:
        tensor = weights.get(node.input[1]) if node.op_type in ("MatMul", "Gemm") else None
        if tensor is not None and len(tensor.dims) == 2 and tensor.data_type == onnx.TensorProto.FLOAT:
            transposed = any(attribute.name == "transB" and attribute.i for attribute in node.attribute)
            axis = 0 if transposed else 1
            name = f"{tensor.name}.dequantized_along_{axis}"
            if name not in made:
                values = onnx.numpy_helper.to_array(tensor)
                scale = np.abs(values).max(axis=1 - axis) / np.float32(127)
                scale[scale == 0] = 1
                integers = np.rint(values / np.expand_dims(scale, 1 - axis)).astype(np.int8)
                parts = {"integers": integers, "scales": scale, "zeros": np.zeros(scale.shape, np.int8)}
                made[name] = [onnx.numpy_helper.from_array(part, f"{name}.{key}") for key, part in parts.items()]
                nodes.append(onnx.helper.make_node("DequantizeLinear", [part.name for part in made[name]], [name], axis=axis))
            node.input[1] = name
        kept.update(node.input)
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    initializers = [tensor for tensor in graph.initializer if tensor.name in kept] + [part for parts in made.values() for part in parts]
    del graph.initializer[:]
    graph.initializer.extend(initializers)
    return model.SerializeToString()


def openvino_runner(model, inputs, threads, precision):
    import openvino

    permit = precision and precision.partition("=")[0]
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
    settings["INFERENCE_PRECISION_HINT"] = "bf16" if permit == "bf16" else "f32"
    # Data stay as they are: by default it rounds those in front of weights of few bits to 8 bits, which no permit allows.
    settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    core = openvino.Core()
    if permit == "int8-weights":
        network = core.read_model(with_integer_weights(model), b"")
    else:
        network = core.read_model(model)

    def values(ports):
        # A port has every name that its tensor ever had.
        return [next(inputs[name] for name in port.names if name in inputs) for port in ports]

    if network.is_dynamic():
        network.reshape({port: list(value.shape) for port, value in zip(network.inputs, values(network.inputs))})
    compiled = core.compile_model(network, "CPU", settings)
    request = compiled.create_infer_request()
    feeds = dict(enumerate(values(compiled.inputs)))

    def run():
        results = request.infer(feeds, share_inputs=True, share_outputs=True)
        return {name: results[port] for port in compiled.outputs for name in port.names}

    return run


def resident_bytes(process="self", field="VmRSS"):
    """Of a process now, or with the field VmHWM at its peak."""
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise Failure(f"/proc/{process}/status says nothing of {field}")


def serve(peer, arguments):
    """Loading is timed from a file of the model, the library being there already, to what can run."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    module, runner = {"onnxruntime": ("onnxruntime", onnxruntime_runner), "openvino": ("openvino", openvino_runner)}[peer]
    importlib.import_module(module)
    with np.load(arguments.inputs) as archive:
        inputs = dict(archive)
    before = resident_bytes()
    start = time.perf_counter()
    run = runner(str(arguments.models[0]), inputs, arguments.threads, arguments.precision)
    load_ms = (time.perf_counter() - start) * 1e3
    for line in sys.stdin:
        command, *argument = line.split(maxsplit=1)
        if command == "load":
            print(json.dumps({"load_ms": load_ms, "bytes_before": before}), flush=True)
            continue
        if command == "outputs":
            np.savez(argument[0].strip(), **{name: np.array(value) for name, value in run().items()})
            print("{}", flush=True)
            continue
        samples = []
        for _ in range(int(argument[0])):
            start = time.perf_counter()
            run()
            samples.append((time.perf_counter() - start) * 1e3)
        print(json.dumps({"samples_ms": samples}), flush=True)


class Worker:
    """A process that times iterations on request."""

    def __init__(self, name, command, log):
        self.name = name
        self.samples = []
        self.round_medians = []
        self.load = {}
        self.loads_ms = []
        self.firsts_ms = []
        self.peak_bytes = None
        self.log = log
        self.command = command
        self.process = None

    def ask(self, request):
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.process.wait()
            raise Failure(f"{self.name} ended with code {self.process.returncode}: {last_line(self.log)}")
        return json.loads(answer)

    def run(self, iterations):
        return self.ask(f"run {iterations}")["samples_ms"]

    def start(self):
        """How long loading took, and the first run. No other process begins meanwhile: importing a package takes a core for a second."""
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.log, "wb"), text=True)
        self.load = self.ask("load")
        self.loads_ms.append(self.load["load_ms"])
        self.firsts_ms.append(self.run(1)[0])

    def close(self):
        if self.process and self.process.poll() is None:
            try:
                # What Python and its libraries take is nobody's.
                self.peak_bytes = resident_bytes(self.process.pid, "VmHWM") - self.load.get("bytes_before", 0)
            except (OSError, Failure):
                pass  # it has just ended
            self.process.stdin.close()
            try:
                self.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.process.kill()


def last_line(path):
    lines = pathlib.Path(path).read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it printed nothing"


# ---------------------------------------------------------------------------------------------------------------------------
# One model.


def make_inputs(model, shapes):
    """The npz beside the model, or seeded random values of the shapes that the model (or --shape) states."""
    beside = model.with_suffix(".npz")
    if beside.exists():
        with np.load(beside) as archive:
            return dict(archive)
    import onnx

    try:
        graph = onnx.load(str(model), load_external_data=False).graph
    except Exception as error:
        raise Failure(f"{model}: not a readable ONNX file ({type(error).__name__})") from None
    generator = np.random.default_rng(0)
    constants = {initializer.name for initializer in graph.initializer}
    inputs = {}
    for value in graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        shape = shapes.get(value.name) or [dimension.dim_value for dimension in tensor.shape.dim]
        if any(extent < 1 for extent in shape):
            raise Failure(f"{model}: input '{value.name}' has no fixed shape; give --shape {value.name}=1x3x224x224 or {beside}")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(dtype, np.floating):
            inputs[value.name] = generator.uniform(-1, 1, shape).astype(dtype)
        else:
            inputs[value.name] = generator.integers(0, 2, shape).astype(dtype)
    return inputs


def compile_plan(arguments, model, folder):
    plan = folder / "plan.collage"
    command = [arguments.collage, "compile", str(model), "-o", str(plan), "--threads", str(arguments.threads)]
    for shape in arguments.shape:
        command += ["--shape", shape]
    if arguments.cache:
        command += ["--cache", arguments.cache]
    if arguments.precision:
        command += ["--precision", arguments.precision]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure(f"collage compile {model}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return plan


def start_workers(arguments, model, plan, archive, folder):
    bench = [arguments.collage, "bench", str(plan), "--inputs", str(archive), "--threads", str(arguments.threads), "--stdin-rounds"]
    workers = [Worker("collage", bench, folder / "a.log"), Worker("collage again", bench, folder / "b.log")]
    for peer in arguments.peers:
        command = [sys.executable, __file__, "--worker", peer, str(model), "--inputs", str(archive), "--threads", str(arguments.threads)]
        command += ["--precision", arguments.precision] if arguments.precision else []
        workers.append(Worker(peer, command, folder / f"{peer}.log"))
    return workers


def start_or_refuse(workers):
    """Those that run the model, and why others do not; it is a failure where ours are among these."""
    started, refused = [], {}
    for worker in workers:
        try:
            worker.start()
            started.append(worker)
        except Failure as failure:
            if worker in workers[:2]:
                raise
            refused[worker.name] = str(failure)
    return started, refused


def load_in_turns(workers):
    """Loads all again, each alone, and leaves them running. What one load takes hangs on what memory the machine has at hand: huge pages
    that a hypervisor must lend anew took 0.3 s of ResNet-50's 0.5 in one load and nothing in the next."""
    order = list(workers)
    generator = random.Random(0)
    for worker in workers:
        worker.close()
    for _ in range(LOADS - 2):
        generator.shuffle(order)
        for worker in order:
            worker.start()
            worker.close()
    for worker in workers:
        worker.start()


def take_turns(workers, rounds, slice_seconds):
    """Warm-up, then `rounds` turns of about `slice_seconds` each in an order that is shuffled every time."""
    iterations = {}
    for worker in workers:
        worker.run(1)
        typical = float(np.median(worker.run(3)))
        iterations[worker.name] = max(3, int(slice_seconds * 1e3 / typical))
        time.sleep(PAUSE_SECONDS)
    order = list(workers)
    generator = random.Random(0)
    for _ in range(rounds):
        generator.shuffle(order)
        for worker in order:
            # The first iterations after a pause find cold caches and sleeping threads.
            samples = worker.run(iterations[worker.name] + 1)[1:]
            worker.samples += samples
            worker.round_medians.append(float(np.median(samples)))
            time.sleep(PAUSE_SECONDS)


def equal_pair_noise(ratios):
    """What two processes of one program differ by (an A/A pair), from their ratio in each round: what the median ratio says, and no less
    than what chance lets a median of so many rounds differ by. That is taken from the 90th percentile, which a few bad rounds do not move."""
    ratios = np.asarray(ratios)
    return max(abs(float(np.median(ratios)) - 1), float(np.percentile(abs(ratios - 1), 90)) / len(ratios) ** 0.5)


def median_interval(values, confidence=0.95):
    """Ends between which the median lies, whatever the distribution is: the k-th least and the k-th greatest value for the largest k that
    the binomial distribution of how many values are below it allows (Conover, Practical Nonparametric Statistics, 1999, section 3.2). Of
    few values the least and the greatest."""
    ordered = sorted(values)
    count = len(ordered)

    def is_outside(k):
        return 2 * sum(math.comb(count, below) for below in range(k)) / 2**count

    k = 1
    while k + 1 <= count // 2 and 1 - is_outside(k + 1) >= confidence:
        k += 1
    return ordered[k - 1], ordered[count - k]


def collage_outputs(arguments, plan, archive, folder):
    target = folder / "outputs"
    command = [arguments.collage, "run", str(plan), "--inputs", str(archive), "--output", str(target), "--threads", str(arguments.threads)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure(f"collage run: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return outputs_in(target)


def outputs_in(folder):
    """What `collage run --output` wrote, by the names of outputs, which may hold slashes."""
    return {path.relative_to(folder).as_posix()[: -len(".npy")]: np.load(path) for path in folder.rglob("*.npy")}


def relative_difference(ours, theirs):
    """Largest |a - b| over all outputs, relative to the largest |b| of each."""
    worst = 0.0
    for name, value in ours.items():
        if name not in theirs:
            raise Failure(f"collage run wrote '{name}', which is no output of the peer: {sorted(theirs)}")
        if value.shape != theirs[name].shape:
            raise Failure(f"output '{name}' has shape {value.shape}, the peer's {theirs[name].shape}")
        reference = theirs[name].astype(np.float64)
        largest = float(np.max(np.abs(reference), initial=0.0)) or 1.0
        difference = float(np.max(np.abs(value.astype(np.float64) - reference), initial=0.0)) / largest
        worst = max(worst, difference) if difference == difference else float("inf")
    if not ours:
        raise Failure("collage run wrote no outputs")
    return worst


def tolerance(precision):
    """Of outputs beside a peer's, both of which may be off by what is permitted."""
    if not precision:
        return TOLERANCE
    permit, _, declared = precision.partition("=")
    return 2 * float(declared or TOLERANCES[permit])


def compare(arguments, model):
    shapes = dict(shape.split("=", 1) for shape in arguments.shape)
    shapes = {name: [int(extent) for extent in text.split("x")] for name, text in shapes.items()}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        archive = folder / "inputs.npz"
        np.savez(archive, **make_inputs(model, shapes))
        return compare_plan(arguments, model, compile_plan(arguments, model, folder), archive, folder)


def compare_plan(arguments, model, plan, archive, folder):
    """A program that is there, beside the peers."""
    ours = collage_outputs(arguments, plan, archive, folder)
    workers = start_workers(arguments, model, plan, archive, folder)
    try:
        started, refused = start_or_refuse(workers)
        load_in_turns(started)
        take_turns(started, arguments.rounds, arguments.slice)
        differences = {}
        for worker in started[2:]:
            theirs = folder / f"{worker.name}.npz"
            worker.ask(f"outputs {theirs}")
            with np.load(theirs) as outputs:
                differences[worker.name] = relative_difference(ours, dict(outputs))
    finally:
        for worker in workers:
            worker.close()
    return summarise(model, arguments, started, differences) | {"refused": refused}


def summarise(model, arguments, workers, differences):
    rows = {}
    for worker in workers:
        # Of medians of the same round, so that drift between rounds cancels.
        ratios = np.array(worker.round_medians) / np.array(workers[0].round_medians)
        rows[worker.name] = {
            "median_ms": float(np.median(worker.samples)),
            "p10_ms": float(np.percentile(worker.samples, 10)),
            "iterations": len(worker.samples),
            "ratio": float(np.median(ratios)),
            "ratio_interval": [float(end) for end in median_interval(ratios)],
            "load_ms": float(np.median(worker.loads_ms)),
            "first_run_ms": float(np.median(worker.firsts_ms)),
            "peak_bytes": worker.peak_bytes,
        }
        if worker.name in differences:
            rows[worker.name]["output_difference"] = differences[worker.name]
    peers = [worker.name for worker in workers[2:]]
    faster = min(peers, key=lambda peer: rows[peer]["ratio"]) if peers else None
    return {
        "model": str(model),
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "rows": rows,
        "again_ratio": rows["collage again"]["ratio"],
        "noise": equal_pair_noise(np.array(workers[1].round_medians) / np.array(workers[0].round_medians)),
        "faster_peer": faster,
        "speedup": rows[faster]["ratio"] if faster else None,
        "output_difference": max(differences.values(), default=None),
        "precision": arguments.precision,
        "tolerance": tolerance(arguments.precision),
        "outputs_agree": all(difference <= tolerance(arguments.precision) for difference in differences.values()),
    }


def print_table(result):
    print(f"{result['model']}  ({result['threads']} threads, {result['rounds']} rounds)")
    print(f"  {'':16}{'median ms':>12}{'p10 ms':>12}{'times ours':>12}{'load ms':>12}{'first run ms':>14}{'output difference':>20}")
    for name, row in result["rows"].items():
        difference = f"{row['output_difference']:.1e}" if "output_difference" in row else ""
        print(f"  {name:16}{row['median_ms']:12.3f}{row['p10_ms']:12.3f}{row['ratio']:12.3f}{row['load_ms']:12.1f}{row['first_run_ms']:14.1f}{difference:>20}")
    if result["faster_peer"]:
        print(f"  {result['speedup']:.3f}x the faster peer ({result['faster_peer']}); noise of this run (A/A): {result['noise']:.1%}")
    for name, reason in result.get("refused", {}).items():
        print(f"  {name} does not run it: {reason}")
    if not result["outputs_agree"]:
        print(f"  OUTPUTS DIFFER by more than {result['tolerance']}")
    print(flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all processors of this process")
    parser.add_argument("--rounds", type=int, default=10, help="turns that each process gets (default 10)")
    parser.add_argument("--slice", type=float, default=0.5, help="seconds of one turn (default 0.5)")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1x3x224x224", help="shape of an input that has none")
    parser.add_argument("--cache", help="price cache for collage compile (its own default otherwise)")
    parser.add_argument("--precision", metavar="PERMIT[=TOLERANCE]", help="bf16 or int8-weights, for collage compile and OpenVINO")
    parser.add_argument("--collage", default=str(ROOT / "build/release/bin/collage"), help="the command line tool")
    parser.add_argument("--json", type=pathlib.Path, help="also write the results here")
    parser.add_argument("--worker", choices=["onnxruntime", "openvino"], help=argparse.SUPPRESS)
    parser.add_argument("--inputs", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.worker:
        serve(arguments.worker, arguments)
        return 0
    if not os.access(arguments.collage, os.X_OK):
        print(f"{arguments.collage} is not there; run: make build", file=sys.stderr)
        return 2
    arguments.peers = [peer for peer in ("onnxruntime", "openvino") if importlib.util.find_spec(peer)]
    for peer in ("onnxruntime", "openvino"):
        if peer not in arguments.peers:
            print(f"{peer} is not installed for {sys.executable}: not compared", file=sys.stderr)
    results, failed = [], False
    for model in arguments.models:
        try:
            results.append(compare(arguments, model))
            print_table(results[-1])
        except Failure as failure:
            print(failure, file=sys.stderr)
            failed = True
    if arguments.json:
        arguments.json.write_text(json.dumps({"results": results}, indent=2) + "\n")
    if failed:
        return 2
    return 0 if all(result["outputs_agree"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
