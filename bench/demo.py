#!/usr/bin/env python3
"""Shows the main job on real models: compile, print the plan, compare with every single backend, ONNX Runtime and OpenVINO, save,
load in a fresh process, run, and compare with the reference executor.

Exit code: 0 only if all of it holds; 1 when outputs differ or the plan is slower than a single backend beyond the noise of the same run;
2 when a step could not be done.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

import peers

ROOT = pathlib.Path(__file__).resolve().parent.parent


def collage(arguments, *words):
    done = subprocess.run([arguments.collage, *map(str, words)], check=False)
    if done.returncode != 0:
        raise peers.Failure(f"collage {' '.join(map(str, words))} ended with code {done.returncode}")


def compile_model(arguments, model, program, report, singles):
    words = ["compile", model, "-o", program, "--json", report, "--single-backends", singles, "--threads", arguments.threads]
    if arguments.cache:
        words += ["--cache", arguments.cache]
    collage(arguments, *words)


def load_outputs(folder):
    return {path.relative_to(folder).as_posix()[: -len(".npy")]: np.load(path) for path in folder.rglob("*.npy")}


def compare_with_reference(arguments, model, program, archive, folder):
    """The saved program in a fresh process against the reference executor on the model itself."""
    collage(arguments, "run", program, "--inputs", archive, "--output", folder / "ours", "--threads", arguments.threads)
    print("running the reference executor ...", flush=True)
    collage(arguments, "run", model, "--reference", "--inputs", archive, "--output", folder / "reference")
    difference = peers.relative_difference(load_outputs(folder / "ours"), load_outputs(folder / "reference"))
    print(f"largest difference from the reference executor, relative to the largest value: {difference:.1e}")
    return difference <= peers.TOLERANCE


def race(arguments, model, programs, archive, folder):
    """All programs and peers in interleaved rounds: rows of (name, median ms, p10 ms, time relative to the chosen plan), and the noise."""
    workers = []
    for name, program in programs.items():
        command = [arguments.collage, "bench", str(program), "--inputs", str(archive), "--threads", str(arguments.threads), "--stdin-rounds"]
        workers.append(peers.Worker(name, command, folder / f"{name.replace(' ', '_')}.log"))
    for peer in ("onnxruntime", "openvino"):
        command = [sys.executable, peers.__file__, "--worker", peer, str(model), "--inputs", str(archive), "--threads", str(arguments.threads)]
        workers.append(peers.Worker(f"{peer} (peer)", command, folder / f"peer_{peer}.log"))
    try:
        for worker in workers:
            worker.start()
        peers.take_turns(workers, arguments.rounds, arguments.slice)
    finally:
        for worker in workers:
            worker.close()
    chosen = np.array(workers[0].round_medians)
    rows = []
    for worker in workers:
        rounds = np.array(worker.round_medians)
        rows.append((worker.name, float(np.median(rounds)), float(np.percentile(worker.samples, 10)), float(np.median(rounds / chosen))))
    return rows, peers.equal_pair_noise(np.array(workers[1].round_medians) / chosen)


def print_race(rows):
    print(f"  {'end to end, interleaved':32}{'median ms':>12}{'p10 ms':>12}{'times chosen':>14}")
    for name, median, low, ratio in rows:
        print(f"  {name:32}{median:12.3f}{low:12.3f}{ratio:14.3f}")


def single_programs(report, singles):
    """The plans that raced and are of one backend: those that were saved. What raced beside them, such as the chosen plan with its branches
    one after another, is no other choice."""
    paths = {f"{name} alone": singles / f"{name}.collage" for name in report["end_to_end_ms"]}
    return {name: path for name, path in paths.items() if path.exists()}


def show(arguments, model):
    print(f"\n=== {model.stem} ===", flush=True)
    folder = arguments.output / model.stem
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "inputs.npz"
    np.savez(archive, **peers.make_inputs(model, {}))
    program = folder / f"{model.stem}.collage"
    singles = folder / "single_backends"
    compile_model(arguments, model, program, folder / "report.json", singles)
    report = json.loads((folder / "report.json").read_text())
    programs = {"chosen": program, "chosen again": program}
    programs |= single_programs(report, singles)
    rows, noise = race(arguments, model, programs, archive, folder)
    print_race(rows)
    agrees = compare_with_reference(arguments, model, program, archive, folder)
    times = {name: ratio for name, _, _, ratio in rows}
    best_single = min((ratio for name, ratio in times.items() if name.endswith(" alone")), default=1.0)
    best_peer = min(ratio for name, ratio in times.items() if name.endswith("(peer)"))
    allowed = max(noise, arguments.noise)
    print(f"  against the best single backend {best_single:.3f}x, against the faster peer {best_peer:.3f}x; noise of this run (A/A): {noise:.1%}")
    if not agrees:
        print("  OUTPUTS DIFFER FROM THE REFERENCE")
    if best_single < 1 - allowed:
        print("  THE CHOSEN PLAN IS SLOWER THAN A SINGLE BACKEND")
    return agrees and best_single >= 1 - allowed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=20, help="turns that each process gets (default 20)")
    parser.add_argument("--slice", type=float, default=0.2, help="seconds of one turn (default 0.2)")
    parser.add_argument("--noise", type=float, default=0.05, help="difference between processes that is called noise at least (default 0.05)")
    parser.add_argument("--cache", help="price cache (default: that of collage compile)")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/demo", help="where programs and reports go")
    parser.add_argument("--collage", default=str(ROOT / "build/release/bin/collage"))
    arguments = parser.parse_args()
    try:
        results = [show(arguments, model) for model in arguments.models]
    except peers.Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
