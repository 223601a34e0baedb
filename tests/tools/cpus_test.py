"""Several CPUs on the command line: stated, pinned to, chosen; right results, and a trace in which they overlap.

Usage: cpus_test.py BINARY"""

import json
import os
import unittest

import numpy as np
import onnx

from command_line import InOneFolderTestCase, main
from inception_block import inception

USABLE = sorted(os.sched_getaffinity(0))
BRANCH = ("i0_b2_reduce", "i0_b2_reduce_relu", "i0_b2", "i0_b2_relu")


class CpusTest(InOneFolderTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        model, shape = inception(divisor=4)
        onnx.save(model, cls.folder / "model.onnx")
        cls.input = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
        np.savez(cls.folder / "in.npz", x=cls.input)

    def collage(self, *words, processors=None):
        def keep():
            if processors:
                os.sched_setaffinity(0, processors)

        return super().collage(*words, preexec_fn=keep)

    def compile(self, program, *words):
        done = self.collage("compile", "model.onnx", "-o", program, "--cache", "prices.sqlite", "--budget", "20s", "--target", "cpu",
                            "--json", program + ".json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.folder / (program + ".json")).read_text())

    def result(self, *words):
        done = self.collage("run", *words, "--inputs", "in.npz", "--output", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.concatenate([np.load(file).ravel() for file in sorted((self.folder / "out").glob("*.npy"))])

    def assert_right(self, program):
        expected = self.result("model.onnx", "--reference")
        np.testing.assert_allclose(self.result(program), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())

    def overlaps(self, program):
        done = self.collage("bench", program, "--iterations", 3, "--warmup", 1, "--random", 1, "--trace", "trace.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        rows = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
        self.assertEqual(set(rows.values()), {"cpu:0", "cpu:1"})
        kernels = [event for event in events if event["ph"] == "X" and event["args"]["kind"] == "kernel"]
        on = {name: [(e["ts"], e["ts"] + e["dur"]) for e in kernels if rows[e["tid"]] == name] for name in rows.values()}
        return any(a < d and c < b for a, b in on["cpu:0"] for c, d in on["cpu:1"])

    @unittest.skipIf(len(USABLE) < 2, "one processor")
    def test_a_pinned_branch_runs_beside_the_others(self):
        report = self.compile("pinned", "--processors", f"cpu:1={USABLE[1]}", *[word for node in BRANCH for word in ("--pin", node + "=cpu:1")])
        there = {node for entry in report["plan"] if entry.get("device") == "cpu:1" for node in entry["nodes"]}
        self.assertEqual(there, set(BRANCH))
        self.assert_right("pinned")
        # Who shares the machine may keep one of the two waiting for longer than a run takes.
        self.assertTrue(any(self.overlaps("pinned") for _ in range(20)))

    @unittest.skipIf(len(USABLE) < 2, "one processor")
    def test_what_is_chosen_raced_both_ways_and_the_report_says_so(self):
        report = self.compile("chosen", "--processors", f"cpu:1={USABLE[1]}", "--choose-devices")
        ratios = report["end_to_end_ratio"]
        spread = any(entry.get("device") == "cpu:1" for entry in report["plan"])
        self.assertEqual(report["winner"] == "side by side", spread)
        self.assertIn("one after another" if spread else "side by side", ratios)
        text = self.collage("explain", "chosen").stdout
        self.assertIn("times as fast as one after another" if spread else "times the chosen plan's time", text)
        self.assert_right("chosen")

    @unittest.skipIf(len(USABLE) < 2, "one processor")
    def test_a_program_whose_processors_are_not_there_is_an_error(self):
        self.compile("elsewhere", "--processors", f"cpu:1={USABLE[1]}", "--pin", "i0_b2=cpu:1")
        done = self.collage("run", "elsewhere", "--random", 1, processors=USABLE[:1])
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"elsewhere: cpu:1: processor {USABLE[1]} is not there, or this process may not use it", done.stderr)

    @unittest.skipIf(len(USABLE) < 2, "one processor")
    def test_other_processors_may_be_stated_where_a_program_runs(self):
        self.compile("moved", "--processors", f"cpu:1={USABLE[1]}", "--pin", "i0_b2=cpu:1")
        np.testing.assert_array_equal(self.result("moved"), self.result("moved", "--processors", f"cpu:1={USABLE[0]}"))
        done = self.collage("run", "moved", "--random", 1, "--processors", f"cpu:2={USABLE[0]}")
        self.assertEqual(done.returncode, 2)
        self.assertIn("moved: has no kernels on cpu:2, for which processors are stated", done.stderr)

    @unittest.skipIf(len(USABLE) < 2, "one processor")
    def test_programs_of_several_cpus_are_compared(self):
        self.compile("beside", "--processors", f"cpu:1={USABLE[1]}", "--pin", "i0_b2=cpu:1")
        self.compile("alone")
        for words in (["beside", "alone"], ["alone", "beside"], ["beside", "beside"]):
            done = self.collage("compare", *words, "--duration", 1, "--processors", f"cpu:1={USABLE[0]}", "--json", "compared.json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([one["file"] for one in json.loads((self.folder / "compared.json").read_text())["programs"]], words)
        # With the processors that the file keeps it cannot run here; with others it can.
        for words, code in (([], 2), (["--processors", f"cpu:1={USABLE[0]}"], 0)):
            done = self.collage("compare", "beside", "alone", "--duration", 1, *words, processors=[*USABLE[:1], *USABLE[2:]])
            self.assertEqual(done.returncode, code if len(USABLE) > 2 else 2, done.stderr)
        done = self.collage("compare", "beside", "alone", "--processors", f"cpu:2={USABLE[0]}")
        self.assertEqual(done.returncode, 2)
        self.assertIn("neither beside nor alone has kernels on cpu:2", done.stderr)
        done = self.collage("compare", "beside", "alone", "--processors", "cpu:1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--processors cpu:1: expected a CPU and its processors", done.stderr)

    def test_what_cannot_be_stated_is_an_error(self):
        everything = ",".join(map(str, USABLE))
        for words, message in (
            (["--processors", "cpu:1"], "expected a CPU and its processors"),
            (["--processors", "opencl:0=1"], "expected a CPU and its processors"),
            (["--processors", "cpu:1=x"], "'x' is no list of processors"),
            (["--processors", "cpu:1=1023"], "processor 1023 is not there"),
            (["--processors", f"cpu:0={USABLE[0]}"], "cpu:0 is the host"),
            (["--processors", f"cpu:1={everything}"], "no processor is left for cpu:0"),
            (["--target", "cpu:1"], "cpu:1 has no processors"),
        ):
            done = self.collage("compile", "model.onnx", "-o", "none.collage", "--cache", "prices.sqlite", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stderr.strip().count("\n"), 0, done.stderr)


if __name__ == "__main__":
    main()
