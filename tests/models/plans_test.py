"""Compiles a model for all backends with an empty cache and holds every plan that races against the reference executor, then runs the
saved file in a fresh process and holds its outputs against ONNX Runtime's. The plan written as an ONNX model gives the same there."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-4


def collage(arguments, *words):
    done = subprocess.run([arguments.collage, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"collage {words[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def random_inputs(model):
    generator = np.random.default_rng(7)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        inputs[value.name] = generator.standard_normal(shape).astype(np.float32)
    return inputs


def relative_difference(found, expected):
    return float(np.max(np.abs(found - expected)) / max(np.max(np.abs(expected)), 1e-30))


def present_backends(arguments):
    """Those that compete: all that are there but the reference, the skeleton and what runs partitions of others."""
    listed = json.loads(collage(arguments, "backends", "--json", "-"))
    entries = listed if isinstance(listed, list) else listed["backends"]
    return {entry["name"] for entry in entries if entry["present"]} - {"reference", "null", "side_by_side"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--collage", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--budget", default="20s")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--every-backend", action="store_true", help="hold those that did not race in time against the reference, too")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.folder, ignore_errors=True)
    arguments.folder.mkdir(parents=True)

    failures = []

    def compile_model(program, budget, *words):
        report_file = program.with_suffix(".json")
        collage(arguments, "compile", arguments.model, "-o", program, "--cache", arguments.folder / "prices.sqlite", "--json", report_file,
                "--threads", arguments.threads, "--budget", budget, *words)
        report = json.loads(report_file.read_text())
        if report["winner"] == "reference":
            failures.append(f"{program.stem}: the searched plan {report['missing']['searched']}")
        for name, difference in report["difference_from_reference"].items():
            print(f"{program.stem}, {name}: {report['end_to_end_ms'][name]:.3f} ms, differs from the reference by {difference}")
            if difference is None or not difference <= TOLERANCE:
                failures.append(f"{program.stem}: the plan of {name} differs from the reference by {difference}")
        return report

    program = arguments.folder / "model.collage"
    report = compile_model(program, arguments.budget)
    # A budget may end before every backend had its own plan. Some libraries have few operators, and a model may have none of them.
    missing = present_backends(arguments) - {"openblas", "xnnpack", "xsmm"} - report["end_to_end_ms"].keys()
    for name in sorted(missing) if arguments.every_backend else []:
        single = arguments.folder / f"{name}.collage"
        compile_model(single, "2s", "--target", "cpu" if name == "native" else f"cpu -compiler={name}")
        single.unlink()

    inputs = random_inputs(onnx.load(arguments.model, load_external_data=False))
    np.savez(arguments.folder / "inputs.npz", **inputs)
    session = onnxruntime.InferenceSession(str(arguments.model), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    expected = dict(zip(names, session.run(names, inputs)))
    collage(arguments, "run", program, "--inputs", arguments.folder / "inputs.npz", "--output", arguments.folder / "outputs")
    for name, value in expected.items():
        difference = relative_difference(np.load(arguments.folder / "outputs" / f"{name}.npy"), value)
        print(f"{name}: differs from ONNX Runtime by {difference:.1e}")
        if not difference <= TOLERANCE:
            failures.append(f"output {name} differs from ONNX Runtime by {difference:.1e}")

    plan = arguments.folder / "plan.onnx"
    print(collage(arguments, "convert", program, "--to", plan), end="")
    onnx.checker.check_model(plan, full_check=True)
    called = {node.name for node in onnx.load(plan).graph.node if node.domain == "collage"}
    if called != {partition["partition"] for partition in report["plan"]}:
        failures.append(f"the written plan has {len(called)} partitions, the report {len(report['plan'])}")
    for name, value in zip(names, onnxruntime.InferenceSession(plan, providers=["CPUExecutionProvider"]).run(names, inputs)):
        difference = relative_difference(value, expected[name])
        print(f"{name} of the written plan: differs from the model's by {difference:.1e}")
        if not difference <= TOLERANCE:
            failures.append(f"output {name} of the written plan differs from the model's by {difference:.1e}")
    plan.unlink()
    program.unlink()
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
