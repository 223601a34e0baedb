#!/usr/bin/env python3
"""The process of gpu_benchmark.py that runs programs of Collage and modules of PyTorch in interleaved rounds.

    gpu_race.py cuda|cpu        where PyTorch runs

A job a line on standard input, an answer a line on what was standard output; both are JSON.
"""

import json
import os
import random
import signal
import sys
import time

import numpy as np

import c_session
import peers

FEWEST_ROUNDS = 5
PROFILED_RUNS = 5
DEVICE_STEPS = ("cuda", "cublas", "cudnn", "copy", "conversion")

began = time.monotonic()


def say(text):
    print(f"[{time.monotonic() - began:6.1f} s] {text}", file=sys.stderr, flush=True)


class step:
    """Says what begins and how long it took; `seconds` has that afterwards."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        say(self.name)
        self.start = time.monotonic()
        return self

    def __exit__(self, kind, error, trace):
        self.seconds = time.monotonic() - self.start
        say(f"{self.name}: {self.seconds:.1f} s" + (f", failed: {error}" if error else ""))


def batched_inputs(inputs, batch):
    """Seeded inputs of this batch that look like those of the file: normal numbers, and integers in another order."""
    generator = np.random.default_rng(0)
    made = {}
    for name, value in inputs.items():
        if value.shape[0] != batch:
            shape = (batch, *value.shape[1:])
            if np.issubdtype(value.dtype, np.floating):
                value = generator.standard_normal(shape, np.float32).astype(value.dtype)
            else:
                value = generator.permuted(np.broadcast_to(value[:1], shape), axis=-1)
        made[name] = c_session.aligned(value.shape, value.dtype)
        made[name][...] = value
    return made


def is_torch(name):
    return name.startswith("PyTorch")


# ---------------------------------------------------------------------------------------------------------------------------
# What is raced. Each entry has run(), outputs() by name, and close().


class CollageEntry:
    def __init__(self, library, program, inputs, threads):
        self.session = c_session.Session(library, program, inputs, threads)
        self.run = self.session.run
        self.close = self.session.close

    def outputs(self):
        return {name: value.copy() for name, value in self.session.outputs.items()}

    def device_only(self):
        """Microseconds of its steps; and of those on the device together, by the events that its graph has between them."""
        steps = self.session.profile(PROFILED_RUNS)
        on_device = [us for step, us in steps.items() if step.removeprefix("kernel ") in DEVICE_STEPS]
        return {"steps_us": steps} | ({"device_ms": sum(on_device) / 1e3} if on_device else {})


class TorchEntry:
    """A module on the device with buffers that stay: pinned ones of the host, and the inputs' on the device."""

    def __init__(self, torch, module, device, inputs, output_names):
        self.torch, self.module, self.names = torch, module, output_names
        self.is_cuda = device == "cuda"
        self.sources = [torch.from_numpy(value) for value in inputs.values()]
        self.staged = [source.pin_memory() if self.is_cuda else source for source in self.sources]
        self.on_device = [source.to(device) for source in self.sources]
        results = module(*self.on_device)
        self.received = [self._host_like(result) for result in results]
        self.results = [c_session.aligned(tuple(received.shape), received.numpy().dtype) for received in self.received]
        self.targets = [torch.from_numpy(result) for result in self.results]

    def _host_like(self, result):
        return self.torch.empty(result.shape, dtype=result.dtype, pin_memory=self.is_cuda)

    def run(self):
        for source, staged, on_device in zip(self.sources, self.staged, self.on_device):
            if self.is_cuda:
                staged.copy_(source)
            on_device.copy_(staged, non_blocking=True)
        results = self.module(*self.on_device)
        for result, received in zip(results, self.received):
            received.copy_(result, non_blocking=True)
        if self.is_cuda:
            self.torch.cuda.synchronize()
        for received, target in zip(self.received, self.targets):
            target.copy_(received)

    def outputs(self):
        return {name: value.copy() for name, value in zip(self.names, self.results)}

    def device_only(self):
        """The median time between events around the module, inputs and outputs staying on the device."""
        if not self.is_cuda:
            return {}
        samples = []
        for _ in range(20):
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            self.module(*self.on_device)
            end.record()
            end.synchronize()
            samples.append(begin.elapsed_time(end))
        return {"device_ms": float(np.median(samples))}

    def close(self):
        self.module = self.on_device = self.staged = self.received = None


class TookTooLong(Exception):
    pass


class limited:
    """Ends what it holds after some seconds by TookTooLong."""

    def __init__(self, seconds):
        self.seconds = max(1, int(seconds))

    def __enter__(self):
        def end(*_):
            raise TookTooLong(f"took more than {self.seconds} s")

        self.before = signal.signal(signal.SIGALRM, end)
        signal.alarm(self.seconds)

    def __exit__(self, *_):
        signal.alarm(0)
        signal.signal(signal.SIGALRM, self.before)


def torch_entries(job, model, inputs, failures):
    import torch

    import torch_graph

    device = job["torch_device"]
    names = [value.name for value in model.graph.output]
    with device_memory(torch, device) as weights:
        module = torch_graph.torch_module(model).to(device)
    entries = {}
    for kind in job["torch"]:
        name = "PyTorch" if kind == "eager" else f"PyTorch {kind}"
        try:
            with step(name), limited(job["torch_seconds"]), device_memory(torch, device) as memory:
                runs = module if kind == "eager" else torch.compile(module, mode=kind, dynamic=False)
                entries[name] = TorchEntry(torch, runs, device, inputs, names)
                for _ in range(3):  # CUDA graphs are recorded in the second
                    entries[name].run()
            entries[name].device_mib = weights.mib + memory.mib if memory.mib is not None else None
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
            entries.pop(name, None)
    return entries


class device_memory:
    """What the device has less of afterwards, MiB, as the driver says; None without one."""

    def __init__(self, torch, device):
        self.torch, self.is_cuda = torch, device == "cuda"

    def __enter__(self):
        if self.is_cuda:
            self.torch.cuda.empty_cache()
            self.before = self.torch.cuda.mem_get_info()[0]
        return self

    def __exit__(self, *_):
        self.mib = (self.before - self.torch.cuda.mem_get_info()[0]) / 2**20 if self.is_cuda else None


def collage_entries(job, inputs, failures):
    import torch

    library = c_session.Library(job["runtime"])
    entries = {}
    for name, program in job["programs"].items():
        try:
            with step(f"loading {name}"), device_memory(torch, job["torch_device"]) as memory:
                entry = CollageEntry(library, program, inputs, job["threads"])
                for _ in range(3):  # from the second on a run is recorded
                    entry.run()
            entry.device_mib = memory.mib
            entries[name] = entry
        except c_session.Error as error:
            failures[name] = str(error)
    return entries


def race(entries, rounds, seconds):
    """Milliseconds by name, one a round. A round or two before are not counted."""
    order, generator = list(entries), random.Random(0)
    samples = {name: [] for name in entries}
    start = time.perf_counter()
    for number in range(-2, rounds):
        generator.shuffle(order)
        for name in order:
            begin = time.perf_counter()
            entries[name].run()
            if number >= 0:
                samples[name].append((time.perf_counter() - begin) * 1e3)
        if number + 1 >= FEWEST_ROUNDS and time.perf_counter() - start > seconds:
            break
    return samples


def reference_outputs(job, entries):
    """Those that were expected, else PyTorch's; and whose they are."""
    if job["expected"]:
        with np.load(job["expected"]) as archive:
            return dict(archive), "ONNX Runtime on the CPU"
    name = next((name for name in entries if is_torch(name)), None)
    return (entries[name].outputs(), name) if name else (None, None)


def measure(job):
    """Of one model, in the process that runs them."""
    import onnx
    import torch

    model = onnx.load(job["model"])
    with np.load(job["inputs"]) as archive:
        inputs = batched_inputs(dict(archive), job["batch"])
    inputs = {value.name: inputs[value.name] for value in model.graph.input if value.name in inputs}
    failures = {}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = job["tf32"]
    with torch.inference_mode():
        entries = collage_entries(job, inputs, failures)
        try:
            entries |= torch_entries(job, model, inputs, failures)
        except NotImplementedError as error:
            failures["PyTorch"] = str(error)
        if "collage" not in entries:
            raise peers.Failure(f"collage: {failures.get('collage', 'did not load')}")
        with step("race"):
            samples = race(entries, job["rounds"], job["race_seconds"])
        expected, source = reference_outputs(job, entries)
        rows = {}
        ours = np.array(samples["collage"])
        with step("comparing outputs, times on the device"):
            for name, entry in entries.items():
                ratios = np.array(samples[name]) / ours
                rows[name] = {
                    "median_ms": float(np.median(samples[name])),
                    "p10_ms": float(np.percentile(samples[name], 10)),
                    "ratio": float(np.median(ratios)),
                    "ratio_interval": [float(end) for end in peers.median_interval(ratios)],
                    "samples_ms": samples[name],
                    "device_mib": entry.device_mib,
                } | entry.device_only()
                if expected:
                    rows[name]["difference"] = peers.relative_difference(entry.outputs(), expected)
    for entry in entries.values():
        entry.close()
    torch.compiler.reset()
    if job["torch_device"] == "cuda":
        torch.cuda.empty_cache()
    noise = peers.equal_pair_noise(np.array(samples["collage again"]) / ours) if "collage again" in samples else None
    return {"rows": rows, "failures": failures, "noise": noise, "rounds": len(ours), "compared_with": source}


# ---------------------------------------------------------------------------------------------------------------------------
# Jobs and answers.


def torch_facts(torch, device):
    facts = {"torch": torch.__version__, "device": "cpu"}
    if device == "cuda":
        facts |= {"device": torch.cuda.get_device_name(0), "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    return facts


def serve(device):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is for people
    import torch

    torch.backends.cudnn.benchmark = True
    if device == "cuda" and not torch.cuda.is_available():
        failure = "PyTorch finds no CUDA device here; --torch-device cpu tries this program without one"
        answers.write(json.dumps({"failure": failure}) + "\n")
        return 2
    answers.write(json.dumps(torch_facts(torch, device)) + "\n")
    answers.flush()
    for line in sys.stdin:
        try:
            answer = measure(json.loads(line))
        except Exception as error:  # whatever it is, the other models go on
            answer = {"failure": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(serve(sys.argv[1]))
