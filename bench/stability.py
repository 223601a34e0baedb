#!/usr/bin/env python3
"""How much the chosen plan depends on the moment of its compile.

Compiles each model several times, each with an empty price cache, every second time with one core kept busy by another process; then
times all programs on the quiet machine, interleaved, each in several processes of its own (A/A: where its memory lies makes a process
a few percent faster or slower than another one of the same program). Printed for every program: its time relative to the best of them,
and the compile's own figures.

Exit code: 0; 1 when a program is more than --tolerance slower than the best (plus what equal programs differ by); 2 when a compile failed.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import peers

try:
    import numpy as np
except ImportError:
    sys.exit("numpy is missing: run this with .venv/bin/python (make setup creates it)")


def keep_busy(core):
    os.sched_setaffinity(0, {core})
    while True:
        pass


def compile_once(arguments, model, number, folder):
    is_loaded = number % 2 == 1
    kept = folder / f"{number}.json"
    if arguments.reuse and kept.exists():
        report = json.loads(kept.read_text())
        return {"program": folder / f"{number}.collage", "loaded": is_loaded, "seconds": report["elapsed_seconds"], "report": report}
    load = multiprocessing.Process(target=keep_busy, args=(max(os.sched_getaffinity(0)),), daemon=True)
    if is_loaded:
        load.start()
    program = folder / f"{number}.collage"
    report = folder / f"{number}.json"
    words = ["compile", model, "-o", program, "--json", report, "--threads", arguments.threads, "--cache", folder / f"{number}.sqlite"]
    start = time.monotonic()
    done = subprocess.run([arguments.collage, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    seconds = time.monotonic() - start
    if is_loaded:
        load.kill()
    if done.returncode != 0:
        raise peers.Failure(f"collage compile {model}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return {"program": program, "loaded": is_loaded, "seconds": seconds, "report": json.loads(report.read_text())}


def time_programs(arguments, compiles, archive, folder):
    """Time of each program relative to the best one's, what such a figure may be off by, and milliseconds.

    Each turn is compared with the median of its round, each process by the median of its turns, and each program by the median of its
    processes. These differ by more than turns do, so that their spread, divided by the square root of their number, is the noise.
    """
    programs = [compiled["program"] for compiled in compiles]
    workers = []
    for number, program in enumerate(programs * arguments.processes):
        command = [arguments.collage, "bench", str(program), "--inputs", str(archive), "--threads", str(arguments.threads), "--stdin-rounds"]
        workers.append(peers.Worker(str(number), command, folder / f"{number}.log"))
    try:
        for worker in workers:
            worker.start()
        peers.take_turns(workers, arguments.rounds, arguments.slice)
    finally:
        for worker in workers:
            worker.close()
    rounds = np.array([worker.round_medians for worker in workers])
    of_processes = np.median(rounds / np.median(rounds, axis=0), axis=1).reshape(arguments.processes, len(programs))
    times = np.median(of_processes, axis=0)
    spread = np.sqrt(of_processes.var(axis=0, ddof=1).mean()) / times.mean()
    milliseconds = np.median(np.median(rounds, axis=1).reshape(arguments.processes, len(programs)), axis=0)
    return times / times.min(), spread / arguments.processes**0.5, milliseconds, of_processes / times.min()


def study(arguments, model):
    print(f"=== {model.stem} ===", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.keep / model.stem if arguments.keep else pathlib.Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        archive = folder / "inputs.npz"
        np.savez(archive, **peers.make_inputs(model, {}))
        compiles = []
        for number in range(arguments.compiles):
            compiles.append(compile_once(arguments, model, number, folder))
            print(f"compile {number}: {compiles[-1]['seconds']:.0f} s", flush=True)
        ratios, noise, medians, of_processes = time_programs(arguments, compiles, archive, folder)
    print(f"{'':4}{'other core':>12}{'winner':>12}{'partitions':>12}{'estimate ms':>13}{'then ms':>10}{'now ms':>10}{'to the best':>13}  processes")
    for number, (compiled, ratio, now) in enumerate(zip(compiles, ratios, medians, strict=True)):
        report = compiled["report"]
        print(
            f"{number:4}{'busy' if compiled['loaded'] else 'quiet':>12}{report['winner']:>12}{len(report['plan']):12}"
            f"{report['estimated_us'] / 1e3:13.3f}{report['end_to_end_ms']['chosen']:10.3f}{now:10.3f}{ratio:13.3f}"
            f"  {of_processes[:, number].min():.3f} to {of_processes[:, number].max():.3f}"
        )
    print(f"largest: {ratios.max():.3f}; noise (A/A, {arguments.processes} processes of each program): {noise:.1%}", flush=True)
    return ratios.max() <= 1 + arguments.tolerance + noise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--compiles", type=int, default=10)
    parser.add_argument("--tolerance", type=float, default=0.03)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--processes", type=int, default=5, help="of each program, at least 2 (default 5)")
    parser.add_argument("--rounds", type=int, default=30, help="turns that each process gets (default 30)")
    parser.add_argument("--slice", type=float, default=0.03, help="seconds of one turn (default 0.03): short, because what disturbs lasts longer")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="where programs, reports and price caches are left")
    parser.add_argument("--reuse", action="store_true", help="take what an earlier run has left there instead of compiling again")
    parser.add_argument("--collage", default=str(peers.ROOT / "build/release/bin/collage"))
    arguments = parser.parse_args()
    if arguments.processes < 2:
        parser.error(f"--processes is {arguments.processes}; expected 2 or more")
    if arguments.reuse and not arguments.keep:
        parser.error("--reuse needs --keep, where the earlier run has left its programs")
    try:
        results = [study(arguments, model) for model in arguments.models]
    except peers.Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
