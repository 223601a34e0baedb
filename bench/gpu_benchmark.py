#!/usr/bin/env python3
"""Models on a GPU: what Collage compiles, its single backends, and PyTorch with the same weights, in interleaved rounds.

Needs a folder of scripts/gpu_bundle, or a build tree, and a Python with numpy, onnx and torch; nothing else of ours. Models are
names of bench/models.py, which makes them (and wants onnxruntime), or ONNX files. A batch other than the file's is set in its
inputs, its outputs and the shapes of its Reshapes. PyTorch runs eager and compiled (max-autotune). --precision says in what both
sides compute: float32, float32 with TF32 permitted, or float16, which is the model with all of its tensors rounded.

A run is timed from arrays of NumPy to arrays of NumPy; PyTorch goes through pinned buffers that are kept. Beside that stand
PyTorch's time between events on the device, and of Collage the times of its steps, one by one. Each round runs every entry once,
in an order that is shuffled with a seed. Ratios are medians over rounds, with 95% intervals (peers.py); "collage again" is the
same program once more.

One process runs the models, and is started again after a failure. Results are written after each model: results.json, results.md.

Exit code: 0; 1 when outputs differ by more than the precision lets them; 2 when a model could not be run.
"""

import argparse
import json
import os
import pathlib
import select
import subprocess
import sys
import time

import numpy as np

import demo
import float16_model
import peers
from gpu_race import batched_inputs, began, is_torch, say, step

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of the largest value of an output, against float32 on the CPU. float32 as of benchmark.py; the others keep 11 bits of each
# number, and errors of a hundred layers add up to some tens of the last one.
TOLERANCES = {"float32": 1e-4, "tf32": 1e-2, "float16": 2e-2}
MODELS = ["squeezenet", "mobilenet_v2", "resnet50", "vgg19", "bert_encoder"]
# Of the seconds of a compile. A budget ends in time, but not what loads and saves: ResNet-50 with 25 s took more than 28.
RACING_SHARE = 0.3

# ---------------------------------------------------------------------------------------------------------------------------
# Models and inputs.


def with_batch(model, batch):
    """The model for inputs of another first extent, which all inputs share. Where a Reshape or an output states that extent
    first, it is taken for the batch; a model for which that does not hold is refused when it is read."""
    import onnx
    from onnx import numpy_helper

    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    extents = {value.type.tensor_type.shape.dim[0].dim_value for value in inputs}
    if len(extents) != 1:
        raise peers.Failure(f"its inputs have the first extents {sorted(extents)}; a batch is one for all")
    before, = extents
    if before == batch:
        return model
    for value in [*inputs, *graph.output]:
        if value.type.tensor_type.shape.dim[0].dim_value == before:
            value.type.tensor_type.shape.dim[0].dim_value = batch
    del graph.value_info[:]
    constants = dict(weights)
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            constants[node.output[0]] = node.attribute[0].t
    for name in {node.input[1] for node in graph.node if node.op_type == "Reshape"} & constants.keys():
        values = numpy_helper.to_array(constants[name]).copy()
        if values.size and values[0] == before:
            values[0] = batch
            constants[name].CopyFrom(numpy_helper.from_array(values, constants[name].name))
    return model


def make_models(arguments):
    """Those of bench/models.py, all at once: processors are what there is enough of. Paths by name, and failures."""
    running, paths, failures = {}, {}, {}
    for name in dict.fromkeys(arguments.models):
        if name.endswith(".onnx"):
            paths[name] = pathlib.Path(name)
            if not paths[name].exists():
                failures[name] = f"{name}: there is no such file"
            continue
        command = [sys.executable, ROOT / "bench/models.py", "--output", arguments.models_folder, "--models", name]
        running[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for name, process in running.items():
        message = process.communicate()[1]
        if process.returncode == 0:
            paths[name] = arguments.models_folder / f"{name}.onnx"
        else:
            failures[name] = f"bench/models.py: {(message.strip().splitlines() or ['no message'])[-1]}"
    return paths, failures


def prepare(source, batch, folder, precision):
    """The model and its inputs at this batch, and what ONNX Runtime gives for it in float32: paths."""
    import onnx

    folder.mkdir(parents=True, exist_ok=True)
    path, archive = folder / "model.onnx", folder / "inputs.npz"
    model = with_batch(onnx.load(source), batch)
    inputs = batched_inputs(peers.make_inputs(source, {}), batch)
    onnx.save(model, path)
    np.savez(archive, **inputs)
    with step("what ONNX Runtime gives"):
        expected = expected_outputs(path, archive, folder / "expected.npz")
    if precision == "float16":
        onnx.save(float16_model.to_float16(model), path)
        np.savez(archive, **float16_model.halved_inputs(inputs))
    return path, archive, expected


def expected_outputs(model, archive, path):
    """Saves what ONNX Runtime gives on the CPU: a path, or None where it is not installed. Not for the process that races."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError:
        return None
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    with np.load(archive) as inputs:
        feeds = {value.name: inputs[value.name] for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    np.savez(path, **dict(zip(names, session.run(names, feeds))))
    return str(path)


def compile_model(arguments, model, folder, seconds):
    """The program, those of single backends, and the report."""
    program, report, singles = folder / "plan.collage", folder / "report.json", folder / "single_backends"
    words = ["compile", model, "-o", program, "--json", report, "--single-backends", singles, "--cache", arguments.cache,
             "--threads", arguments.threads, "--budget", f"{min(arguments.budget, (1 - RACING_SHARE) * seconds):.0f}s"]
    for target in arguments.target:
        words += ["--target", target]
    if arguments.torch_device == "cuda":
        words.append("--choose-devices")
    if arguments.precision == "tf32":
        words += ["--precision", f"bf16={TOLERANCES['tf32']}"]
    words += arguments.compile_option
    with open(folder / "compile.log", "w") as log:
        try:
            done = subprocess.run([arguments.collage, *map(str, words)], stdout=log, stderr=subprocess.STDOUT, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise peers.Failure(f"collage compile took more than {seconds:.0f} s; see {log.name}") from None
    if done.returncode != 0:
        raise peers.Failure(f"collage compile: {peers.last_line(log.name)}")
    return program, singles, json.loads(report.read_text())


# ---------------------------------------------------------------------------------------------------------------------------
# The process that runs models (gpu_race.py).


class Runner:
    """That process, from outside."""

    def __init__(self, device):
        self.device = device
        self.process = None

    def start(self):
        """Does not wait: PyTorch is imported meanwhile."""
        command = [sys.executable, ROOT / "bench/gpu_race.py", self.device]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.facts = None

    def _answer(self, seconds):
        line, end = b"", time.monotonic() + seconds
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                self.close()
                raise peers.Failure(f"no answer within {seconds:.0f} s")
            part = os.read(self.process.stdout.fileno(), 1 << 20)
            if not part:
                code = self.process.wait()
                self.process = None
                raise peers.Failure(f"the process that ran it ended with code {code}")
            line += part
        answer = json.loads(line)
        if "failure" in answer:
            self.close()
            raise peers.Failure(answer["failure"])
        return answer

    def ready(self, seconds):
        """Versions, once it has started."""
        if not self.process or self.process.poll() is not None:
            self.start()
        if not self.facts:
            self.facts = self._answer(seconds)
        return self.facts

    def ask(self, job, seconds):
        self.ready(seconds)
        self.process.stdin.write(json.dumps(job).encode() + b"\n")
        self.process.stdin.flush()
        return self._answer(seconds)

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


# ---------------------------------------------------------------------------------------------------------------------------
# Results.


def milliseconds(row, key="median_ms"):
    return f"{row[key]:.3f}" if row and key in row else "-"


def ratio_text(row):
    return f"{row['ratio']:.3f} ({row['ratio_interval'][0]:.3f} to {row['ratio_interval'][1]:.3f})" if row else "-"


def best(rows, chosen):
    names = [name for name in rows if chosen(name)]
    return min(names, key=lambda name: rows[name]["ratio"]) if names else None


def is_single(name):
    return name.endswith(" alone")


def table(facts, results):
    lines = [f"{key}: {value}" for key, value in facts.items() if not isinstance(value, (dict, list))]
    lines += [f"{entry['name']} {entry['device']}: {entry['version']}" for entry in facts["gpu_backends"]]
    lines = ["- " + line for line in lines]
    lines += ["", "Milliseconds from host to host; ratios are times ours, with 95% intervals.", ""]
    lines += ["| model | batch | ours | best single backend | times ours | fastest PyTorch | times ours | on the device | A/A |"
              " difference | compile, s | again, s | kernels measured again |"]
    lines += ["|" + "---|" * 13]
    for result in results:
        rows = result.get("rows")
        if not rows:
            lines.append(f"| {result['model']} | {result['batch']} | failed: {result['failure']} |" + " - |" * 10)
            continue
        single, peer = best(rows, is_single), best(rows, is_torch)
        difference = rows["collage"].get("difference")
        cells = [
            result["model"], str(result["batch"]), milliseconds(rows["collage"]),
            f"{single}: {milliseconds(rows[single])}" if single else "-", ratio_text(rows.get(single)),
            f"{peer}: {milliseconds(rows[peer])}" if peer else "-", ratio_text(rows.get(peer)),
            milliseconds(rows.get(peer), "device_ms"), f"{result['noise']:.1%}" if result["noise"] is not None else "-",
            f"{difference:.1e}" if difference is not None else "-", f"{result['compile_seconds']:.0f}",
            f"{result['compile_again_seconds']:.1f}", str(result["measured_again"]),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| model | batch | entry | median ms | p10 ms | times ours | on the device, ms | difference |"
              " device memory, MiB |"]
    lines += ["|" + "---|" * 9]
    for result in results:
        for name, row in result.get("rows", {}).items():
            difference = f"{row['difference']:.1e}" if "difference" in row else "-"
            memory = f"{row['device_mib']:.0f}" if row["device_mib"] is not None else "-"
            cells = [result["model"], str(result["batch"]), name, milliseconds(row), milliseconds(row, "p10_ms"), ratio_text(row),
                     milliseconds(row, "device_ms"), difference, memory]
            lines.append("| " + " | ".join(cells) + " |")
        for name, failure in result.get("failures", {}).items():
            lines.append(f"| {result['model']} | {result['batch']} | {name} | failed: {failure} |" + " - |" * 5)
    lines += ["", "| model | batch | steps of ours one by one, us |", "|---|---|---|"]
    for result in results:
        steps = result.get("rows", {}).get("collage", {}).get("steps_us", {})
        shares = ", ".join(f"{name} {us:.0f}" for name, us in sorted(steps.items(), key=lambda share: -share[1]))
        lines.append(f"| {result['model']} | {result['batch']} | {shares or '-'} |")
    return "\n".join(lines) + "\n"


def driver():
    """Of NVIDIA, in words; nothing where there is none."""
    try:
        words = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no nvidia-smi"


def commit_here():
    try:
        return subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def our_facts(arguments):
    def said(*words):
        done = subprocess.run([arguments.collage, *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise peers.Failure(f"collage {words[0]}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return done.stdout

    backends = json.loads(said("backends", "--json"))["backends"]
    found = []
    for entry in backends:
        for device in entry["devices"]:
            version = device["version"] if device["present"] else f"absent: {device['reason']}"
            found.append({"name": entry["name"], "device": device["device"], "version": version})
    return {"collage": said("--version").strip(), "commit": arguments.commit or commit_here(), "gpu": driver(),
            "threads": arguments.threads, "gpu_backends": found, "backends": backends}


def programs_of(program, singles, report):
    alone = {name: str(path) for name, path in demo.single_programs(report, singles).items()}
    return {"collage": str(program), "collage again": str(program)} | alone


def one(arguments, runner, source, name, batch, seconds_left):
    """Of one model at one batch."""
    folder = arguments.output / f"{name}_b{batch}"
    with step("model and inputs"):
        model, archive, expected = prepare(source, batch, folder, arguments.precision)
    with step("collage compile") as compiled:
        program, singles, report = compile_model(arguments, model, folder, seconds_left())
    with step("collage compile, prices known") as again:
        (folder / "again").mkdir(exist_ok=True)
        measured_again = compile_model(arguments, model, folder / "again", seconds_left())[2]["candidates"]["variants"]["measured"]
    job = {"model": str(model), "inputs": str(archive), "expected": expected, "batch": batch,
           "programs": programs_of(program, singles, report),
           "runtime": str(arguments.runtime), "threads": arguments.threads, "rounds": arguments.rounds,
           "tf32": arguments.precision == "tf32", "race_seconds": arguments.race_seconds, "torch": arguments.torch,
           "torch_device": arguments.torch_device,
           "torch_seconds": min(arguments.torch_seconds, seconds_left())}
    with step("running"):
        result = runner.ask(job, min(seconds_left(), arguments.model_seconds))
    if not arguments.keep:
        for path in (model, archive, folder / "expected.npz", *folder.rglob("*.collage")):
            path.unlink(missing_ok=True)
    return {"compile_seconds": compiled.seconds, "compile_again_seconds": again.seconds, "measured_again": measured_again,
            "raced_by_compile": report["end_to_end_ms"]} | result


def run(arguments):
    arguments.output.mkdir(parents=True, exist_ok=True)
    arguments.cache = arguments.cache or arguments.output / "prices.sqlite"

    def seconds_left():
        return max(1.0, arguments.seconds - (time.monotonic() - began))

    facts = {"precision": arguments.precision} | our_facts(arguments)
    runner = Runner(arguments.torch_device)
    runner.start()
    with step("models"):
        paths, failures = make_models(arguments)
    with step("PyTorch"):
        facts |= runner.ready(seconds_left())
    results = []
    for name in arguments.models:
        for batch in arguments.batch:
            label = pathlib.Path(name).stem
            result = {"model": label, "batch": batch}
            say(f"=== {label}, batch {batch}; {seconds_left():.0f} s left")
            try:
                if name in failures:
                    raise peers.Failure(failures[name])
                if seconds_left() < arguments.least_seconds:
                    raise peers.Failure("not begun: the time is over")
                result |= one(arguments, runner, paths[name], label, batch, seconds_left)
                print(table(facts, [result]), file=sys.stderr, flush=True)
            except Exception as error:  # whatever it is, the other models go on
                result["failure"] = str(error) if isinstance(error, peers.Failure) else f"{type(error).__name__}: {error}"
                say(f"{label}, batch {batch}: {result['failure']}")
            results.append(result)
            (arguments.output / "results.json").write_text(json.dumps({"facts": facts, "results": results}, indent=1) + "\n")
            (arguments.output / "results.md").write_text(table(facts, results))
    runner.close()
    print(table(facts, results))
    if any("failure" in result for result in results):
        return 2
    tolerance = TOLERANCES[arguments.precision]
    return 0 if all(result["rows"]["collage"].get("difference", 0) <= tolerance for result in results) else 1


def numbers(text):
    return [int(number) for number in text.split(",")]


def words(text):
    return [word for word in text.split(",") if word]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL", help=f"default: {' '.join(MODELS)}")
    parser.add_argument("--batch", type=numbers, default=[1, 16], help="sizes, separated by commas (default: 1,16)")
    parser.add_argument("--precision", choices=list(TOLERANCES), default="float32", help="default: %(default)s")
    parser.add_argument("--bundle", type=pathlib.Path, default=ROOT / "build/gpu",
                        help="with bin/collage and lib (default: build/gpu)")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/gpu_bench", help="default: build/gpu_bench")
    parser.add_argument("--models-folder", type=pathlib.Path, default=ROOT / "build/models", help="default: build/models")
    parser.add_argument("--make-models", action="store_true", help="make the models, and nothing else")
    parser.add_argument("--commit", help="what was built (default: that of the checkout)")
    parser.add_argument("--target", action="append", default=[],
                        help="of collage compile (repeat; default: all backends on all devices)")
    parser.add_argument("--compile-option", action="append", default=[],
                        help="another of collage compile, such as --compile-option=--eager (repeat)")
    parser.add_argument("--cache", help="price cache (default: prices.sqlite in the output folder)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)),
                        help="default: all processors of this process")
    parser.add_argument("--budget", type=float, default=40, help="seconds of each compile (default: %(default)s)")
    parser.add_argument("--torch", type=words, default=["eager", "max-autotune"],
                        help="eager, default or modes of torch.compile, separated by commas (default: eager,max-autotune)")
    parser.add_argument("--torch-seconds", type=float, default=90, help="for making each of these (default: %(default)s)")
    parser.add_argument("--torch-device", choices=["cuda", "cpu"], default="cuda", help="cpu: to try this program without a GPU")
    parser.add_argument("--rounds", type=int, default=100, help="at most (default: %(default)s)")
    parser.add_argument("--race-seconds", type=float, default=8, help="of the rounds of one model (default: %(default)s)")
    parser.add_argument("--model-seconds", type=float, default=240, help="of one model behind its compile (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3600,
                        help="for everything; what is measured by then is there (default: %(default)s)")
    parser.add_argument("--least-seconds", type=float, default=20, help="left, or no model is begun (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="keep models, inputs and programs")
    arguments = parser.parse_args()
    if arguments.make_models:
        failures = make_models(arguments)[1]
        for name, failure in failures.items():
            say(f"{name}: {failure}")
        return 2 if failures else 0
    arguments.collage = arguments.bundle / "bin/collage"
    arguments.runtime = arguments.bundle / "lib/libcollage_runtime.so.1"
    for file in (arguments.collage, arguments.runtime):
        if not file.exists():
            print(f"{file} is not there; run scripts/gpu_bundle, or name a build tree with --bundle", file=sys.stderr)
            return 2
    try:
        return run(arguments)
    except peers.Failure as failure:
        print(failure, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
