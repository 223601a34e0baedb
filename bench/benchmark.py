#!/usr/bin/env python3
"""Every model against every peer, and where the time of our plan goes.

Each model is compiled, then timed beside ONNX Runtime and OpenVINO in interleaved rounds (peers.py). Beside the ratios and their
intervals stand: what compiling took, loading, the first run, peak memory, bytes of the program, time over the roofline, and the shares of
kernels by backend, of conversions and of what is between steps. The roofline is that of the plan's own partitions at ceilings measured
here in the same minute: the rate of a large product (NumPy's BLAS) and of copying memory, by as many threads. A form of fewer operations
(Winograd inside a library) may beat the roofline of its definition. What would gain next is the group of kernels (one backend, one
first operator) that is furthest above its roofline in that run.

With --contribution WHAT the model is compiled once more with `--forbid WHAT` and the prices that are known; `collage compare` says by how
much the plan without it is slower. A plan that stays the same gains nothing by WHAT.

Results go to --output: a JSON file a model, results.json, results.md and results.png. A model that has its results from this version of
the tool is left alone, so that a run that was stopped goes on.

Exit code: 0; 1 when outputs differ by more than 1e-4 of the largest value; 2 when a model could not be run; 130 after Ctrl-C.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

import peers

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20


def write_whole(path, text):
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text)
    os.replace(part, path)


def best_rate(amount, seconds, run):
    """The highest rate seen within some time: a ceiling is what the machine can do when nothing disturbs it."""
    best, start = 0.0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        run()
        best = max(best, amount / (time.perf_counter() - begin))
    return best


def measure_ceilings(threads, seconds=0.5):
    """Operations and bytes a second. NumPy takes its number of threads when it is imported, so this runs in a process of its own."""
    extent = 1536  # 28 MB in all: the product is bound by arithmetic, and short enough to be tried some ten times
    a, b = (np.random.default_rng(i).random((extent, extent), np.float32) for i in range(2))
    result = np.empty_like(a)
    flops = best_rate(2.0 * extent**3, seconds, lambda: np.matmul(a, b, out=result))
    words = (256 * MIB) // 8  # more than the last cache of any processor
    source, target = np.ones(words), np.zeros(words)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads)))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        copied = best_rate(2.0 * source.nbytes, seconds, lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts)))
    return {"flops_per_second": flops, "bytes_per_second": copied}


def ceilings(threads):
    environment = os.environ | {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    command = [sys.executable, __file__, "--ceilings", "--threads", str(threads)]
    return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def seconds_at_least(work, limits):
    return max(work["flops"] / limits["flops_per_second"], work["bytes"] / limits["bytes_per_second"])


def roofline_ms(report, limits):
    """Of the partitions one after another; nothing where the report does not tell their work."""
    works = [entry.get("work") for entry in report.get("plan", [])]
    if not works or not all(works):
        return None
    return 1e3 * sum(seconds_at_least(work, limits) for work in works)


def collage(arguments, *words):
    done = subprocess.run([arguments.collage, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise peers.Failure(f"collage {words[0]}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout


def profile(arguments, program, archive, folder):
    file = folder / "profile.json"
    collage(arguments, "bench", program, "--inputs", archive, "--threads", arguments.threads, "--duration", 1, "--profile", "--json", file)
    return json.loads(file.read_text())


def where_time_goes(measured):
    """Shares of one run, by kind of step and backend; `between steps` is what is left of the whole."""
    shares = {}
    for step in measured["profile"]:
        name = f"{step['kind']} {step['backend']}".strip()
        shares[name] = shares.get(name, 0.0) + step["mean_us"] * 1e-3
    whole = measured["latency_ms"]["mean"]
    shares["between steps"] = max(0.0, whole - sum(shares.values()))
    return {name: milliseconds / whole for name, milliseconds in sorted(shares.items(), key=lambda share: -share[1])}


def would_gain_next(measured, report, limits):
    """The kernels of one backend and first operator that take longest beyond their roofline; nothing where no work is told."""
    works = {entry["partition"]: entry["work"] for entry in report["plan"] if entry.get("work")}
    groups = {}
    for step in measured["profile"]:
        if step["kind"] != "kernel" or step["name"] not in works:
            continue
        above = step["mean_us"] * 1e-3 - seconds_at_least(works[step["name"]], limits) * 1e3
        groups.setdefault((step["backend"], step["operators"][0]), []).append((above, step["nodes"]))
    if not groups:
        return None
    (backend, operator), kernels = max(groups.items(), key=lambda group: sum(above for above, _ in group[1]))
    above, nodes = sum(above for above, _ in kernels), max(kernels, key=lambda kernel: kernel[0])[1]
    share = above / measured["latency_ms"]["mean"]
    return {"backend": backend, "operator": operator, "above_roofline_ms": above, "share": share, "kernels": len(kernels), "most_in": nodes[:1]}


def chosen_plan(report):
    return [(entry["backend"], entry["variant"], entry["operators"], entry["nodes"]) for entry in report["plan"]]


def compare(arguments, slower, program, archive, folder):
    file = folder / "compared.json"
    collage(arguments, "compare", slower, program, "--inputs", archive, "--threads", arguments.threads, "--json", file)
    compared = json.loads(file.read_text())
    return {name: compared[name] for name in ("ratio", "interval", "noise", "is_real")}


def against_single_backend(arguments, program, report, singles, archive, folder):
    """The best of those that raced, timed beside the chosen plan again; nothing where no backend takes the whole model."""
    raced = [(ratio, name) for name, ratio in report["end_to_end_ratio"].items() if (singles / f"{name}.collage").exists()]
    if not raced:
        return None
    name = min(raced)[1]
    return {"name": name} | compare(arguments, singles / f"{name}.collage", program, archive, folder)


def contribution(arguments, what, model, program, report, archive, folder):
    """How many times as long the best plan without it takes."""
    without = folder / "without.collage"
    other = compile_model(arguments, model, without, folder / "without.json", "--forbid", what)
    if chosen_plan(other) == chosen_plan(report):
        return None
    return compare(arguments, without, program, archive, folder)


def compile_model(arguments, model, program, report, *more):
    words = ["compile", model, "-o", program, "--json", report, "--threads", arguments.threads, "--cache", arguments.cache]
    words += [*more, *(["--budget", arguments.budget] if arguments.budget else [])]
    words += ["--precision", arguments.precision] if arguments.precision else []
    done = subprocess.run([arguments.collage, *map(str, words)], stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise peers.Failure(f"collage compile {model} ended with code {done.returncode}")
    return json.loads(report.read_text())


def measure(arguments, model):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        archive = folder / "inputs.npz"
        np.savez(archive, **peers.make_inputs(model, {}))
        program = folder / "plan.collage"
        singles = folder / "single_backends"
        report = compile_model(arguments, model, program, folder / "report.json", "--single-backends", singles)
        result = peers.compare_plan(arguments, model, program, archive, folder)
        limits = ceilings(arguments.threads)
        measured = profile(arguments, program, archive, folder)
        result |= {
            "compile_seconds": report["elapsed_seconds"],
            "compile_measured": report["candidates"]["variants"]["measured"] > 0,
            "open": report["open"],
            "program_bytes": program.stat().st_size,
            "model_bytes": model.stat().st_size,
            "ceilings": limits,
            "roofline_ms": roofline_ms(report, limits),
            "where_time_goes": where_time_goes(measured),
            "would_gain_next": would_gain_next(measured, report, limits),
            "single_backend": against_single_backend(arguments, program, report, singles, archive, folder),
            "contributions": {
                what: contribution(arguments, what, model, program, report, archive, folder) for what in arguments.contribution
            },
        }
        return result


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(results):
    lines = [
        "| model | ours, ms | ONNX Runtime | OpenVINO | times the faster peer (95%) | A/A | over roofline | compile, s, and open | load + first run, ms |"
        " peak MiB | program MiB | difference |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]

    def each(rows, text):
        """Ours, then the peers'."""
        return " / ".join(text(rows[name]) if name in rows else "-" for name in ("collage", "onnxruntime", "openvino"))

    for result in results:
        rows = result["rows"]
        faster = rows.get(result["faster_peer"])
        ratio = f"{faster['ratio']:.2f} ({faster['ratio_interval'][0]:.2f} to {faster['ratio_interval'][1]:.2f})" if faster else "-"
        over = f"{rows['collage']['median_ms'] / result['roofline_ms']:.2f}" if result["roofline_ms"] else "-"
        medians = [f"{rows[name]['median_ms']:.3f}" if name in rows else "-" for name in ("collage", "onnxruntime", "openvino")]
        cells = [
            pathlib.Path(result["model"]).stem, *medians, ratio, f"{result['noise']:.1%}", over,
            f"{result['compile_seconds']:.0f}, {result['open']:.1%}" + ("" if result["compile_measured"] else " (warm)"),
            each(rows, lambda row: f"{row['load_ms'] + row['first_run_ms']:.0f}"),
            each(rows, lambda row: f"{row['peak_bytes'] / MIB:.0f}" if row["peak_bytes"] else "-"),
            f"{result['program_bytes'] / MIB:.1f} of {result['model_bytes'] / MIB:.1f}",
            f"{result['output_difference']:.1e}" if result["output_difference"] is not None else "-",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    ratios = [result["speedup"] for result in results if result["speedup"]]
    lines += ["", f"Geometric mean over {len(ratios)} models: {geometric_mean(ratios):.3f} times the faster peer.", ""]
    lines += ["| model | where the time goes | what would gain next |", "|---|---|---|"]
    for result in results:
        shares = [f"{name} {share:.0%}" for name, share in result["where_time_goes"].items() if share >= 0.005]
        lines.append(f"| {pathlib.Path(result['model']).stem} | {', '.join(shares)} | {next_text(result['would_gain_next'])} |")
    lines += table_of_choices(results)
    return "\n".join(lines) + "\n"


def next_text(gain):
    if not gain or gain["above_roofline_ms"] <= 0:
        return "-"
    nodes = f", most in {gain['most_in'][0]}" if gain["most_in"] else ""
    kernels = f"{gain['kernels']} kernels" if gain["kernels"] > 1 else "1 kernel"
    return f"{gain['operator']} of {gain['backend']}: {gain['above_roofline_ms']:.3f} ms ({gain['share']:.0%}) above the roofline in {kernels}{nodes}"


def compared_text(compared):
    low, high = compared["interval"]
    return f"{compared['ratio']:.3f} ({low:.3f} to {high:.3f})" + ("" if compared["is_real"] else ", not shown")


def table_of_choices(results):
    """What choosing among many gains: times the chosen plan that others take."""
    whats = list(dict.fromkeys(what for result in results for what in result["contributions"]))
    lines = ["", "| model | best single backend | times ours |" + "".join(f" without {what} |" for what in whats), "|---|---|---|" + "---|" * len(whats)]
    for result in results:
        single = result["single_backend"]
        cells = [pathlib.Path(result["model"]).stem, single["name"] if single else "-", compared_text(single) if single else "-"]
        for what in whats:
            known = what in result["contributions"]
            compared = result["contributions"].get(what)
            cells.append(compared_text(compared) if compared else "the same plan" if known else "-")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def draw(results, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    results = sorted((result for result in results if result["speedup"]), key=lambda result: result["speedup"])
    if not results:
        return
    figure, axes = pyplot.subplots(figsize=(9, 1.5 + 0.45 * len(results)), layout="constrained")
    # Of Okabe and Ito, which people of all kinds of sight tell apart; marks differ as well.
    looks = {"onnxruntime": ("ONNX Runtime", "#0072b2", "o", 0.12), "openvino": ("OpenVINO", "#d55e00", "s", -0.12)}
    for peer, (name, colour, mark, above) in looks.items():
        places = [(i + above, result["rows"][peer]) for i, result in enumerate(results) if peer in result["rows"]]
        ratios = np.array([row["ratio"] for _, row in places])
        ends = np.array([row["ratio_interval"] for _, row in places]).reshape(-1, 2).T
        axes.errorbar(ratios, [i for i, _ in places], xerr=abs(ends - ratios), fmt=mark, color=colour, label=name, capsize=3)
    for i, result in enumerate(results):
        axes.fill_betweenx([i - 0.3, i + 0.3], 1 - result["noise"], 1 + result["noise"], color="#bbbbbb", linewidth=0)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(results)), [pathlib.Path(result["model"]).stem for result in results])
    axes.set_xscale("log")
    ticks = [0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 6, 8]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    ends = [row["ratio_interval"] for result in results for row in result["rows"].values()]
    axes.set_xlim(0.95 * min(low for low, _ in ends), 1.05 * max(high for _, high in ends))
    axes.set_xlabel(f"time of the peer over ours, {results[0]['threads']} threads (95% intervals; grey: two runs of the same plan)")
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.legend(loc="lower right")
    part = path.with_name(f"{path.stem}.{os.getpid()}.part.png")
    figure.savefig(part, dpi=150)
    os.replace(part, path)


def earlier_result(path, version, arguments):
    if arguments.again or not path.exists():
        return None
    result = json.loads(path.read_text())
    told = (result["version"], result["threads"], result["rounds"], result.get("precision"), list(result.get("contributions", {})))
    return result if told == (version, arguments.threads, arguments.rounds, arguments.precision, arguments.contribution) else None


def write_all(results, output):
    write_whole(output / "results.json", json.dumps({"results": results}, indent=2) + "\n")
    write_whole(output / "results.md", table(results))
    draw(results, output / "results.png")


def run(arguments):
    arguments.output.mkdir(parents=True, exist_ok=True)
    arguments.shape = []
    arguments.cache = arguments.cache or arguments.output / "prices.sqlite"
    arguments.peers = ["onnxruntime", "openvino"]
    version = collage(arguments, "--version").strip()
    results, failed = [], False
    for number, model in enumerate(arguments.models, 1):
        path = arguments.output / f"{model.stem}.json"
        result = earlier_result(path, version, arguments)
        print(f"[{number}/{len(arguments.models)}] {model.stem}" + (": known" if result else ""), flush=True)
        try:
            if not result:
                result = measure(arguments, model) | {"version": version}
                write_whole(path, json.dumps(result, indent=2) + "\n")
            results.append(result)
            peers.print_table(result)
        except peers.Failure as failure:
            print(failure, file=sys.stderr)
            failed = True
        if results:
            write_all(results, arguments.output)
    if results:
        print(table(results))
        print(f"{arguments.output}: results.json, results.md, results.png")
    return 2 if failed else 0 if all(result["outputs_agree"] for result in results) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=pathlib.Path, metavar="MODEL.onnx", help="default: all of build/models")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all processors of this process")
    parser.add_argument("--rounds", type=int, default=20, help="turns that each process gets (default 20)")
    parser.add_argument("--slice", type=float, default=0.3, help="seconds of one turn (default 0.3)")
    parser.add_argument("--budget", help="of each compile (default: that of collage compile)")
    parser.add_argument("--precision", metavar="PERMIT[=TOLERANCE]", help="bf16 or int8-weights, for collage compile and OpenVINO")
    parser.add_argument("--contribution", action="append", default=[], metavar="WHAT", help="what `collage compile --forbid` takes (repeat)")
    parser.add_argument("--cache", help="price cache (default: prices.sqlite in the output folder)")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "build/bench", help="default: build/bench")
    parser.add_argument("--again", action="store_true", help="measure models that have their results, too")
    parser.add_argument("--collage", default=str(ROOT / "build/release/bin/collage"), help="the command line tool")
    parser.add_argument("--ceilings", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ceilings:
        print(json.dumps(measure_ceilings(arguments.threads)))
        return 0
    if not os.access(arguments.collage, os.X_OK):
        print(f"{arguments.collage} is not there; run: make program", file=sys.stderr)
        return 2
    arguments.models = arguments.models or sorted((ROOT / "build/models").glob("*.onnx"))
    try:
        return run(arguments)
    except KeyboardInterrupt:
        print("stopped; what was measured is kept, and the same command goes on from there", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
