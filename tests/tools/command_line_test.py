"""Runs the collage binary on good input. Usage: command_line_test.py BINARY [unittest arguments]"""

import csv
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from command_line import BINARY, CommandLineTestCase, main, small_model


def children_of(process):
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            # "pid (name) state parent ..."; the name may hold anything.
            parent = status.read_text().rpartition(")")[2].split()[1]
        except FileNotFoundError:
            continue
        if int(parent) == process:
            found.append(int(status.parent.name))
    return found


class GoodInputTest(CommandLineTestCase):
    def test_outputs_equal_onnx_arithmetic(self):
        done = self.collage("run", self.program, "--inputs", self.inputs, "--output", self.folder / "o")
        self.assertEqual(done.returncode, 0, done.stderr)
        reference = self.collage("run", self.model, "--reference", "--inputs", self.inputs, "--output", self.folder / "r")
        self.assertEqual(reference.returncode, 0, reference.stderr)
        for name in ("y", "z"):
            ours, truth = np.load(self.folder / f"o/{name}.npy"), np.load(self.folder / f"r/{name}.npy")
            np.testing.assert_allclose(ours, truth, atol=1e-4 * np.abs(truth).max())

    def test_run_without_the_machine_code_of_the_file(self):
        outputs = []
        for words in ([], ["--recompile"]):
            done = self.collage("run", self.program, "--inputs", self.inputs, "--output", self.folder / "o", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            outputs.append({file.name: np.load(file) for file in (self.folder / "o").iterdir()})
        self.assertEqual(outputs[0].keys(), outputs[1].keys())
        for name, value in outputs[0].items():
            np.testing.assert_array_equal(value, outputs[1][name])
        for command in ("run", "bench"):
            self.assertIn("trusted as a shared library", " ".join(self.collage(command, "--help").stdout.split()))

    def test_a_single_npy_input(self):
        np.save(self.folder / "x.npy", self.input)
        done = self.collage("run", self.program, "--input", f"x={self.folder}/x.npy")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_report_has_what_programs_read(self):
        report = json.loads(self.report.read_text())
        self.assertIn("chosen", report["end_to_end_ms"])
        self.assertTrue(report["plan"])
        for entry in report["plan"]:
            self.assertLessEqual({"backend", "variant", "operators", "cost_us"}, entry.keys())
        self.assertLessEqual({"found", "distinct", "measured", "rejected"}, report["candidates"].keys())

    def test_the_report_has_honest_totals(self):
        report = json.loads(self.report.read_text())
        measured = report["end_to_end_ms"]["chosen"] * 1e3
        self.assertAlmostEqual(report["additive_error_us"], measured - report["estimated_us"], places=6)
        self.assertGreaterEqual(report["open"], 0)
        self.assertLessEqual(report["open"], 1)
        self.assertEqual(report["not_compared"], "")
        self.assertIsNotNone(report["apparent_loss"])
        if report["winner"] == "searched":
            singles = [ratio for name, ratio in report["end_to_end_ratio"].items() if name != "chosen"]
            self.assertAlmostEqual(report["apparent_loss"], max(1 / ratio for ratio in singles) - 1, delta=0.1)
        self.assertEqual(report["budget_seconds"], 300)
        self.assertGreater(report["elapsed_seconds"], 0)
        # Forbidding a partition's backend is a stronger condition than forbidding the partition.
        margins = {entry["partition"]: entry["margin_us"] for entry in report["plan"]}
        for operator in report["operators"]:
            if operator["runner_up_extra_us"] is not None:
                self.assertLessEqual(margins[operator["partition"]], operator["runner_up_extra_us"] + 1e-6)

    def test_backends_print_transition_costs(self):
        done = self.collage("backends", "--costs", "--json", "-", "--cache", self.cache)
        self.assertEqual(done.returncode, 0, done.stderr)
        transitions = json.loads(done.stdout)["transitions"]
        for kind in ("warm", "evicted"):
            pairs = {(pair["from"], pair["to"]): pair for pair in transitions[kind]["pairs"]}
            for pair in (("dnnl", "dnnl"), ("dnnl", "openvino"), ("openvino", "dnnl")):
                self.assertGreaterEqual(pairs[pair]["cost_us"], 0)
            self.assertEqual(len(pairs), len(transitions[kind]["alone_us"]) ** 2)
        # The same again, from the cache, and as a table.
        again = self.collage("backends", "--costs", "--json", "-", "--cache", self.cache)
        self.assertEqual(again.stdout, done.stdout)
        self.assertIn("after", self.collage("backends", "--costs", "--cache", self.cache).stdout)
        (self.folder / "bad.sqlite").write_bytes(b"no database" * 100)
        self.assert_user_error(self.collage("backends", "--costs", "--cache", self.folder / "bad.sqlite"), "bad.sqlite")

    def test_a_second_compile_measures_nothing_and_plans_the_same(self):
        again = self.folder / "again.json"
        done = self.compile(self.model, "--json", again)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, second = json.loads(self.report.read_text()), json.loads(again.read_text())
        self.assertEqual(second["candidates"]["variants"]["measured"], 0)
        self.assertFalse(second["raced"])
        self.assertEqual(first["plan"], second["plan"])

    def test_single_backends_are_saved_and_run(self):
        singles = self.folder / "singles"
        done = self.compile(self.model, "--single-backends", singles)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(self.report.read_text())
        names = {path.stem for path in singles.iterdir()}
        self.assertEqual(names, {name for name, title in report["end_to_end_title"].items() if title == f"{name} alone"})
        for name in names:
            done = self.collage("run", singles / f"{name}.collage", "--inputs", self.inputs)
            self.assertEqual(done.returncode, 0, done.stderr)
            backends = {placement["backend"] for placement in json.loads(self.explain(singles / f"{name}.collage"))["plan"]}
            self.assertLessEqual(backends, {name.removesuffix(" (greedy)"), "native", "reference"})

    def explain(self, program):
        done = self.collage("explain", program, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_other_compiles_have_measured_since_changes_nothing(self):
        """The same kernels in another model: with hardly any budget this one has priced few of them."""
        cache = self.folder / "shared.sqlite"
        words = ("--cache", cache, "--json")

        def compiled(model, *more):
            done = self.collage("compile", model, "-o", self.folder / "out.collage", *words, self.folder / "r.json", *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads((self.folder / "r.json").read_text())

        first = compiled(self.model, "--budget", "0.1s")
        twice = onnx.load(self.model)
        twice.graph.output.append(twice.graph.output[0])
        onnx.save(twice, self.folder / "twice.onnx")
        self.assertGreater(compiled(self.folder / "twice.onnx", "--eager")["candidates"]["variants"]["measured"], 0)
        for more in (("--cache-only",), ("--budget", "0.1s")):
            with self.subTest(more):
                again = compiled(self.model, *more)
                self.assertEqual(again["candidates"]["variants"]["measured"], 0)
                self.assertFalse(again["raced"])
                self.assertEqual(again["plan"], first["plan"])
        self.assertTrue(compiled(self.model, "--budget", "300s")["raced"], "more time, and another plan")

    def test_cache_only_takes_everything_from_the_cache(self):
        again = self.folder / "again.json"
        done = self.compile(self.model, "--cache-only", "--json", again)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(self.report.read_text())["plan"], json.loads(again.read_text())["plan"])

    def test_cache_only_names_what_is_missing(self):
        exported = self.folder / "all.jsonl"
        self.assertEqual(self.collage("cache", "export", exported, "--cache", self.cache).returncode, 0)
        entries = [json.loads(line) for line in exported.read_text().splitlines()]
        cases = {"kernels": (lambda entry: entry["fact"] in ("kernel", "kernel_in_program", "decision"), ["the price of nn.", " by ", ", variant '"]),
                 "race": (lambda entry: entry["fact"] == "race", ["race"]),
                 "verdict": (lambda entry: entry["fact"] == "verdict", ["reference"]),
                 "programs": (lambda entry: entry["fact"] in ("decision", "kernel_in_program"), ["inside whole programs"])}
        for name, (is_missing, parts) in cases.items():
            with self.subTest(name):
                kept = "".join(json.dumps(entry) + "\n" for entry in entries if not is_missing(entry))
                (self.folder / f"{name}.jsonl").write_text(kept)
                cache = self.folder / f"{name}.sqlite"
                self.assertEqual(self.collage("cache", "import", self.folder / f"{name}.jsonl", "--cache", cache).returncode, 0)
                words = ["compile", self.model, "-o", self.folder / "out.collage", "--cache", cache, "--cache-only"]
                self.assert_user_error(self.collage(*words), "not in the cache", *parts)
                count = json.loads(self.collage("cache", "stats", "--cache", cache, "--json", "-").stdout)["entries"]
                self.assertEqual(count, len(kept.splitlines()), "something was measured")
        self.assert_user_error(
            self.collage("compile", self.model, "-o", self.folder / "out.collage", "--cache", self.folder / "none.sqlite", "--cache-only"),
            "none.sqlite")

    def test_cache_commands(self):
        exported = self.collage("cache", "export", "--cache", self.cache)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        copy = self.folder / "copy.sqlite"
        (self.folder / "e.jsonl").write_text(exported.stdout)
        self.assertEqual(self.collage("cache", "import", self.folder / "e.jsonl", "--cache", copy).returncode, 0)
        self.assertEqual(self.collage("cache", "export", "--cache", copy).stdout, exported.stdout)
        self.assertEqual(self.collage("cache", "verify", "--cache", copy).returncode, 0)
        (self.folder / "bad.jsonl").write_text(exported.stdout + "{}\n")
        line = f"line {len(exported.stdout.splitlines()) + 1}"
        self.assert_user_error(self.collage("cache", "import", self.folder / "bad.jsonl", "--cache", copy), line, "function_hash")
        self.assert_user_error(self.collage("cache", "prune", "--cache", copy), "--older-than")
        self.assertEqual(self.collage("cache", "prune", "--older-than", "1h", "--cache", copy).stdout, "0 removed\n")
        self.assertIn("removed", self.collage("cache", "prune", "--backend", "dnnl", "--cache", copy).stdout)
        connection = sqlite3.connect(copy)
        connection.execute("UPDATE kernel SET samples=x'00' WHERE backend='native'")
        connection.commit()
        connection.close()
        self.assertEqual(self.collage("cache", "verify", "--cache", copy).returncode, 1)
        for command in ("stats", "export", "verify"):
            self.assert_user_error(self.collage("cache", command, "--cache", self.folder / "none.sqlite"), "none.sqlite")

    def test_bench_writes_latency(self):
        done = self.collage("bench", self.program, "--iterations", 20, "--json", self.folder / "b.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((self.folder / "b.json").read_text())
        self.assertEqual(report["iterations"], 20)
        self.assertLessEqual({"min", "p10", "median", "mean", "p90"}, report["latency_ms"].keys())
        self.assertLessEqual(report["latency_ms"]["min"], report["latency_ms"]["p90"])

    def test_explain_names_the_nodes_of_the_model(self):
        report = json.loads(self.collage("explain", self.program, "--json").stdout)
        done = self.collage("explain", self.program)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("partitions, "))
        for line, entry in zip(lines[start + 1 :], report["plan"]):
            for part in (entry["backend"], entry["variant"], *entry["nodes"], "us", "%"):
                self.assertIn(part, line)
        self.assertEqual([node for entry in report["plan"] for node in entry["nodes"]], ["first", "second", "third"])
        done = self.collage("explain", self.program, "--operators")
        self.assertEqual(done.returncode, 0, done.stderr)
        for node, operator in (("first", "nn.conv2d"), ("second", "nn.relu"), ("third", "nn.global_avg_pool2d")):
            self.assertRegex(done.stdout, rf"(?m)^  {node} +{re.escape(operator)} ")

    def test_bench_traces_the_last_run_step_by_step(self):
        done = self.collage("bench", self.program, "--iterations", 2, "--warmup", 0, "--trace", self.folder / "t.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        steps = [event for event in events if event["ph"] == "X"]
        kernels = [event for event in steps if event["args"]["kind"] == "kernel"]
        self.assertEqual(len(kernels), len(json.loads(self.report.read_text())["plan"]))
        # One row for each device, named; steps of a row follow each other.
        names = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
        self.assertEqual(names.keys(), {event["tid"] for event in steps})
        for earlier, later in zip(steps, steps[1:]):
            self.assertGreaterEqual(later["ts"], earlier["ts"] + earlier["dur"] - 1e-3)
        for event in kernels:
            self.assertEqual(event["args"]["calls"], 2)
            self.assertTrue(event["args"]["backend"])

    def test_compare_shows_no_difference_between_a_program_and_itself_and_refuses_another_model(self):
        done = self.collage("compare", self.program, self.program, "--duration", 1, "--json", self.folder / "c.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((self.folder / "c.json").read_text())
        self.assertEqual([one["file"] for one in report["programs"]], [str(self.program)] * 2)
        self.assertGreater(report["ratio"], 0)
        if "interval" in report:
            self.assertLessEqual(report["interval"][0], report["ratio"])
            self.assertLessEqual(report["ratio"], report["interval"][1])
        other = self.folder / "other.onnx"
        onnx.save(
            helper.make_model(
                helper.make_graph(
                    [helper.make_node("Relu", ["x"], ["y"])],
                    "other",
                    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [7])],
                    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [7])],
                ),
                opset_imports=[helper.make_opsetid("", 17)],
                ir_version=8,
            ),
            other,
        )
        compiled = self.collage("compile", other, "-o", self.folder / "other.collage")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        refused = self.collage("compare", self.program, self.folder / "other.collage")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("they are not two programs of one model", refused.stderr)

    def test_bench_profiles_nodes_of_the_model(self):
        done = self.collage("bench", self.program, "--iterations", 2, "--profile", "--json", self.folder / "b.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        profile = json.loads((self.folder / "b.json").read_text())["profile"]
        self.assertEqual([node for step in profile for node in step["nodes"]], ["first", "second", "third"])
        self.assertIn("third", done.stdout)

    def test_bench_writes_tables(self):
        path = self.folder / "b.csv"
        done = self.collage("bench", self.program, "--iterations", 7, "--csv", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, newline="") as file:
            (row,) = csv.DictReader(file)
        self.assertEqual((row["iterations"], row["file"]), ("7", str(self.program)))
        self.assertLessEqual(float(row["min_ms"]), float(row["median_ms"]))
        done = self.collage("bench", self.program, "--iterations", 2, "--profile", "--csv", "-", "--json", self.folder / "b.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = json.loads((self.folder / "b.json").read_text())["profile"]
        rows = list(csv.DictReader(done.stdout.splitlines()))
        self.assertEqual([row["name"] for row in rows], [step["name"] for step in steps])
        self.assertEqual([float(row["mean_us"]) for row in rows], [step["mean_us"] for step in steps])
        self.assertIn("latency ms", done.stderr)
        self.assert_user_error(self.collage("bench", self.program, "--csv", "-", "--json", "-"), "--csv")

    def save_products(self):
        """A model whose kernels take milliseconds: when its plans run, it is nearly always one of these that runs. Gives its path."""
        path = self.folder / "products.onnx"
        weight = numpy_helper.from_array(np.random.default_rng(1).standard_normal((1024, 1024)).astype(np.float32) / 32, "w")
        nodes = [helper.make_node(*words) for words in [("MatMul", ["x", "w"], ["a"]), ("Relu", ["a"], ["b"]), ("MatMul", ["b", "w"], ["c"])]]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [256, 1024]) for name in ("x", "c")]
        graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], [weight])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
        return path

    def crash_in_a_plan(self, model, cache, seconds):
        """A compile whose process gets SIGSEGV so long after it began with whole plans. Gives its exit code and what it said, or None where
        it had ended before."""
        words = [BINARY, "compile", model, "-o", self.folder / "out.collage", "--cache", cache, "--threads", "1", "--budget", "60s"]
        supervisor = subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = []
        for line in supervisor.stderr:
            said.append(line)
            if "timing whole programs 1," in line:
                break
        time.sleep(seconds)
        compiling = children_of(supervisor.pid)
        if compiling:
            self.assertEqual(pathlib.Path(f"/proc/{compiling[0]}/comm").read_text(), "collage\n")
            os.kill(compiling[0], signal.SIGSEGV)
        said += supervisor.stderr.readlines()
        supervisor.stderr.close()
        code = supervisor.wait()
        if not compiling:
            self.assertEqual(code, 0, said)
            return None
        return code, "".join(said)

    def test_a_kernel_that_crashes_inside_a_plan_is_refused_and_the_compile_goes_on(self):
        cache = self.folder / "crashed.sqlite"
        model = self.save_products()
        seconds = 0
        for _ in range(20):
            seconds += 0.05  # building a plan takes a while, longer on slow machines; then it runs
            crashed = self.crash_in_a_plan(model, cache, seconds)
            if crashed is None:
                cache.unlink()  # so much is known by then that the plans run only for a moment
                seconds = 0
                continue
            code, said = crashed
            if code != -signal.SIGSEGV:
                break
            # Between two kernels: nobody was to blame.
            self.assertIn("ended by signal 11", said)
        else:
            self.fail("in twenty compiles no kernel was hit")
        self.assertEqual(code, 0, said)
        self.assertIn("crashed inside a whole plan (signal 11, Segmentation fault); it is not used any more", said)
        exported = self.collage("cache", "export", "--cache", cache)
        refused = [json.loads(line) for line in exported.stdout.splitlines()]
        refused = [entry for entry in refused if "inside a whole plan" in entry.get("invalid_reason", "")]
        self.assertEqual(len(refused), 1)
        self.assertRegex(self.collage("explain", self.folder / "out.collage").stdout, r"refused: \S+ \S+: crashed inside a whole plan")
        again = self.collage("bench", self.folder / "out.collage", "--iterations", 2)
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_explain_prints_why_a_kernel_was_refused(self):
        exported = self.collage("cache", "export", "--cache", self.cache).stdout.splitlines()
        refused = [json.loads(line) for line in exported]
        refused = [entry for entry in refused if entry["fact"] == "kernel" and entry["backend"] == "dnnl"]
        self.assertTrue(refused)
        for entry in refused:
            entry.update(samples=[], verified=False, invalid_reason="crashed with signal 11 (Segmentation fault)")
        (self.folder / "r.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in refused))
        cache, program = self.folder / "refused.sqlite", self.folder / "m.collage"
        self.assertEqual(self.collage("cache", "import", self.folder / "r.jsonl", "--cache", cache).returncode, 0)
        done = self.collage("compile", self.model, "-o", program, "--cache", cache, "--target", "cpu -compiler=dnnl", "--target", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.collage("explain", program).stdout
        self.assertRegex(text, r"refused: dnnl \S+: crashed with signal 11")
        report = json.loads(self.collage("explain", program, "--json").stdout)
        self.assertTrue(any(entry["rejections"] for entry in report["operators"]))

    def what_if(self, *words):
        done = self.collage("explain", self.program, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_what_if_from_recorded_prices(self):
        chosen = json.loads(self.report.read_text())["plan"]
        free = self.what_if("--penalty", "native:native=0")
        self.assertLessEqual(free["after"]["cost_us"], free["before"]["cost_us"])  # on some machines it costs half a microsecond
        backend = free["before"]["partitions"][0]["backend"]
        node, name = free["before"]["partitions"][0]["nodes"][0], chosen[0]["operators"][0]
        self.assertEqual(node, "first")
        nothing = self.what_if("--pin", f"{node}={backend}")
        self.assertEqual(nothing["before"], nothing["after"])
        self.assertEqual((nothing["changes"], nothing["difference_us"]), ([], 0))
        forbidden = self.what_if("--forbid", backend)
        self.assertNotIn(backend, [entry["backend"] for entry in forbidden["after"]["partitions"]])
        self.assertGreaterEqual(forbidden["difference_us"], 0)
        self.assertAlmostEqual(forbidden["difference_us"], forbidden["after"]["cost_us"] - forbidden["before"]["cost_us"])
        self.assertLessEqual(forbidden["lower_bound_us"], forbidden["after"]["cost_us"])
        self.assertIn(name, [change["operator"] for change in forbidden["changes"]])
        other = forbidden["after"]["partitions"][0]["backend"]
        pinned = self.what_if("--pin", f"{node}={other}")
        self.assertEqual(pinned["after"]["partitions"][0]["backend"], other)
        self.assertLessEqual(pinned["after"]["cost_us"], forbidden["after"]["cost_us"])
        # Both conditions at once, and in words.
        done = self.collage("explain", self.program, "--forbid", backend, "--penalty", f"{other}:{other}=1000")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("before:", "after:", f"--forbid {backend} --penalty {other}:{other}=1000", node, "->"):
            self.assertIn(part, done.stdout)

    def tune(self, cache, seconds, *words):
        report = self.folder / "tuned.json"
        done = self.collage("compile", self.model, "-o", self.folder / "tuned.collage", "--cache", cache, "--target", "cpu", "--json", report,
                            *(["--tune", seconds] if seconds else []), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(report.read_text())

    def cached(self, cache):
        lines = self.collage("cache", "export", "--cache", cache).stdout.splitlines()
        return {(entry["backend"], entry["variant"], entry["function_hash"]): entry for entry in map(json.loads, lines)
                if entry["fact"] == "kernel"}

    def test_tuning_keeps_its_time_goes_on_and_is_remembered(self):
        cache = self.folder / "tune.sqlite"
        untuned = self.tune(cache, None)
        self.assertFalse([key for key in self.cached(cache) if "@" in key[1]])
        start = time.monotonic()
        self.tune(cache, "3s")
        # Pricing in context and the race of the plans that are new come on top.
        self.assertLess(time.monotonic() - start, 120)
        tried = {key: entry["samples"] for key, entry in self.cached(cache).items() if "@" in key[1]}
        self.assertTrue(tried)
        # Killed while it tunes: what was tried stays, and nothing of it is measured again.
        process = subprocess.Popen([BINARY, "compile", self.model, "-o", self.folder / "k.collage", "--cache", cache, "--target", "cpu",
                                    "--threads", "1", "--tune", "60s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)
        process.kill()
        process.wait()
        self.assertEqual(self.collage("cache", "verify", "--cache", cache).returncode, 0)
        self.tune(cache, "2s")
        later = {key: entry["samples"] for key, entry in self.cached(cache).items() if "@" in key[1]}
        self.assertGreaterEqual(len(later), len(tried))
        for key, samples in tried.items():
            self.assertEqual(later[key], samples)
        # What was found serves compiles that do not tune; they measure nothing.
        tuned = self.tune(cache, None)
        self.assertEqual(tuned["candidates"]["variants"]["measured"], 0)
        self.assertEqual(self.tune(cache, None, "--cache-only")["plan"], tuned["plan"])
        self.assertTrue(untuned["plan"])
        run = self.collage("run", self.folder / "tuned.collage", "--inputs", self.inputs, "--output", self.folder / "o")
        self.assertEqual(run.returncode, 0, run.stderr)
        reference = self.collage("run", self.model, "--reference", "--inputs", self.inputs, "--output", self.folder / "r")
        self.assertEqual(reference.returncode, 0, reference.stderr)
        truth = np.load(self.folder / "r/y.npy")
        np.testing.assert_allclose(np.load(self.folder / "o/y.npy"), truth, atol=1e-4 * np.abs(truth).max())

    def test_one_target_alone(self):
        for target in ("cpu", "cpu -compiler=dnnl"):
            done = self.compile(self.model, "--target", target, "--budget", "5s")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_pins_and_what_is_forbidden(self):
        report = self.folder / "pinned.json"
        words = ["--pin", "second=native", "--forbid", "openvino", "--forbid", "dnnl:third", "--json", report, "--budget", "5s"]
        done = self.compile(self.model, *words, output=self.folder / "pinned.collage")
        self.assertEqual(done.returncode, 0, done.stderr)
        placed = {entry["operator"]: entry for entry in json.loads(report.read_text())["operators"]}
        self.assertEqual((placed["nn.relu"]["backend"], placed["nn.relu"]["pinned"]), ("native", True))
        self.assertFalse(placed["nn.conv2d"]["pinned"])
        self.assertNotIn("openvino", {entry["backend"] for entry in placed.values()})
        self.assertNotEqual(placed["nn.global_avg_pool2d"]["backend"], "dnnl")
        self.assertEqual(json.loads(report.read_text())["pins"], ["second=native"])
        self.assertIn("; pinned", self.collage("explain", self.folder / "pinned.collage").stdout)

    def test_a_searcher_and_a_rule_tree_of_ones_own(self):
        """Each operator by itself, as the tree says; which searcher chose is in the report."""
        (self.folder / "rules.json").write_text(json.dumps({"apart": {"rule": "Primitive", "of": {"rule": "OpCallByKind"}}}))
        report = self.folder / "apart.json"
        words = ["--target", "cpu -partition_rule=apart", "--partition-rules", self.folder / "rules.json", "--search", "op-level", "--json", report]
        done = self.compile(self.model, *words, output=self.folder / "apart.collage")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(report.read_text())
        self.assertEqual(found["searcher"], "op-level")
        self.assertEqual({len(entry["operators"]) for entry in found["plan"] if entry["backend"] == "native"}, {1})
        self.assertEqual(self.collage("run", self.folder / "apart.collage", "--inputs", self.inputs, "--output", self.folder / "apart").returncode, 0)

    def test_forms_of_ones_own(self):
        """A wrong one is refused; what a rule says now is not what a rule of that name has said in an earlier compile."""
        stated = self.folder / "forms.json"
        report = self.folder / "forms_report.json"

        def compiled(replacement):
            rule = {"name": "mine", "pattern": {"call": "nn.relu", "args": [{"wildcard": True, "as": "x"}]}, "replacement": replacement}
            stated.write_text(json.dumps([rule]))
            # What a rule comes to is told before anything is decided.
            words = ["--target", "cpu", "--forms", stated, "--json", report, "--budget", "5s"]
            done = self.compile(self.model, *words, output=self.folder / "forms.collage")
            self.assertEqual(done.returncode, 0, done.stderr)
            (sentence,) = json.loads(report.read_text())["stated_forms"]
            self.assertIn("  " + sentence, done.stdout)
            self.assertEqual(self.collage("run", self.folder / "forms.collage", "--inputs", self.inputs, "--output", self.folder / "forms").returncode, 0)
            return sentence

        self.assertRegex(compiled({"call": "abs", "args": ["x"]}), "form mine: refused at .*differs from the reference by")
        self.assertRegex(compiled({"call": "maximum", "args": ["x", {"constant": {"value": 0}}]}), "form mine: fits at 1 place")
        self.assertRegex(compiled({"call": "abs", "args": ["x"]}), "form mine: refused")
        stated.write_text('[{"name": "mine"}]')
        done = self.compile(self.model, "--forms", stated, output=self.folder / "forms.collage")
        self.assertEqual(done.returncode, 2)
        self.assertIn('--forms: ' + str(stated) + '[0]: the field "pattern" is missing', done.stderr)

    def test_symbolic_batch(self):
        small_model(self.folder / "m.onnx", batch="N")
        done = self.compile(self.folder / "m.onnx", "--shape", "x=2x3x16x16", "--budget", "5s", output=self.folder / "m.collage")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_extents_of_zero(self):
        program = self.folder / "empty.collage"
        small_model(self.folder / "m.onnx", batch="N")
        done = self.compile(self.folder / "m.onnx", "--shape", "x=0x3x16x16", output=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.collage("run", program, "--random", 1, "--output", self.folder / "empty")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(np.load(self.folder / "empty/y.npy").shape, (0, 8, 16, 16))

    def test_an_output_that_is_given_twice(self):
        model = onnx.load(self.model)
        model.graph.output.append(model.graph.output[0])
        onnx.save(model, self.folder / "twice.onnx")
        done = self.compile(self.folder / "twice.onnx", "--budget", "5s", output=self.folder / "twice.collage")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.collage("run", self.folder / "twice.collage", "--inputs", self.inputs, "--output", self.folder / "twice")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({path.name for path in (self.folder / "twice").iterdir()}, {"y.npy", "z.npy"})

    def test_backends_as_json(self):
        done = self.collage("backends", "--json", "-")
        names = {entry["name"] for entry in json.loads(done.stdout)["backends"]}
        self.assertLessEqual({"dnnl", "openvino", "onnxruntime", "xsmm", "xnnpack", "openblas", "native", "reference"}, names)

    def test_libraries_tell_nobody_and_leave_nothing_in_a_home(self):
        home = self.folder / "home"
        home.mkdir()
        # What may keep a library from it besides is not there.
        environment = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("ORT_")}
        done = subprocess.run([BINARY, "backends"], env=environment | {"HOME": str(home)}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"onnxruntime +\d")
        self.assertEqual([path for path in home.rglob("*") if "Microsoft" in str(path)], [])

    def test_json_on_standard_output_is_nothing_but_json(self):
        compiled = self.compile(self.model, "--json", "-")
        self.assertEqual(compiled.returncode, 0, compiled.stderr)
        self.assertIn("plan", json.loads(compiled.stdout))
        self.assertIn("saved", compiled.stderr)
        bench = self.collage("bench", self.program, "--iterations", 2, "--profile", "--json", "-")
        self.assertEqual(json.loads(bench.stdout)["iterations"], 2)

    def test_odd_names(self):
        node = helper.make_node("Relu", ["a=b/c:0"], ["/fc/Relu_output_0"])
        graph = helper.make_graph([node], "odd", [helper.make_tensor_value_info("a=b/c:0", TensorProto.FLOAT, [3])],
                                  [helper.make_tensor_value_info("/fc/Relu_output_0", TensorProto.FLOAT, [3])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), self.folder / "m.onnx")
        np.save(self.folder / "x=y.npy", np.array([-1, 0, 2], np.float32))
        done = self.collage("run", self.folder / "m.onnx", "--reference", "--input", f"a=b/c:0={self.folder}/x=y.npy", "--output", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        np.testing.assert_array_equal(np.load(self.folder / "fc/Relu_output_0.npy"), [0, 0, 2])

    def test_output_names_that_share_a_file(self):
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in ("x", "/y", "y", "../y")]
        for pair, message in (([1, 2], "'/y' and 'y'"), ([1, 3], "leads out")):
            nodes = [helper.make_node("Relu", ["x"], [values[i].name]) for i in pair]
            graph = helper.make_graph(nodes, "odd", values[:1], [values[i] for i in pair])
            onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), self.folder / "m.onnx")
            words = ["run", self.folder / "m.onnx", "--reference", "--random", 1, "--output", self.folder / "o"]
            self.assert_user_error(self.collage(*words), message)


if __name__ == "__main__":
    main()
