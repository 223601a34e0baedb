#!/usr/bin/env python3
"""How much the chosen plan depends on the moment of its compile.

Compiles each model several times, each with an empty price cache, every second time with one core kept busy by another process; then
times all programs on the quiet machine, interleaved, each in a process of its own, the first one twice (A/A). Printed for every
program: its time relative to the best of them, and the compile's own figures.

Exit code: 0; 1 when a program is more than --tolerance slower than the best (plus what the A/A pair differs by); 2 when a compile failed.
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
    """Time of each program relative to the best one's, and what the A/A pair differs by; medians over rounds of paired turns."""
    programs = [compiled["program"] for compiled in compiles]
    workers = []
    for number, program in enumerate([*programs, programs[0]]):
        command = [arguments.collage, "bench", str(program), "--inputs", str(archive), "--threads", str(arguments.threads), "--stdin-rounds"]
        workers.append(peers.Worker(str(number), command, folder / f"{number}.log"))
    try:
        peers.take_turns(workers, arguments.rounds, arguments.slice)
    finally:
        for worker in workers:
            worker.close()
    rounds = np.array([worker.round_medians for worker in workers])
    to_first = np.median(rounds / rounds[0], axis=1)
    return to_first[:-1] / to_first[:-1].min(), peers.equal_pair_noise(rounds[-1] / rounds[0]), np.median(rounds, axis=1)[:-1]


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
        ratios, noise, medians = time_programs(arguments, compiles, archive, folder)
    print(f"{'':4}{'other core':>12}{'winner':>12}{'partitions':>12}{'estimate ms':>13}{'then ms':>10}{'now ms':>10}{'to the best':>13}")
    for number, (compiled, ratio, now) in enumerate(zip(compiles, ratios, medians)):
        report = compiled["report"]
        print(
            f"{number:4}{'busy' if compiled['loaded'] else 'quiet':>12}{report['winner']:>12}{len(report['plan']):12}"
            f"{report['estimated_us'] / 1e3:13.3f}{report['end_to_end_ms']['chosen']:10.3f}{now:10.3f}{ratio:13.3f}"
        )
    print(f"largest: {ratios.max():.3f}; noise of this run (A/A): {noise:.1%}", flush=True)
    return ratios.max() <= 1 + arguments.tolerance + noise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL.onnx")
    parser.add_argument("--compiles", type=int, default=10)
    parser.add_argument("--tolerance", type=float, default=0.03)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=100, help="turns that each program gets (default 100)")
    parser.add_argument("--slice", type=float, default=0.03, help="seconds of one turn (default 0.03): short, because what disturbs lasts longer")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="where programs, reports and price caches are left")
    parser.add_argument("--collage", default=str(peers.ROOT / "build/release/bin/collage"))
    arguments = parser.parse_args()
    try:
        results = [study(arguments, model) for model in arguments.models]
    except peers.Failure as failure:
        print(failure, file=sys.stderr)
        return 2
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
