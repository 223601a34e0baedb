"""Runs bench/benchmark.py on a small model: every figure is there, and a second run takes what the first has left. Of bench/demo.py:
which plans are single backends.

Usage: benchmark_test.py BINARY MODEL.onnx
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARY, MODEL = sys.argv[1:3]
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import demo  # noqa: E402
import peers  # noqa: E402


class DemoTest(unittest.TestCase):
    def test_a_single_backend_is_what_was_saved(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "dnnl (greedy).collage").touch()
            report = {"end_to_end_ms": {"chosen": 1.0, "branches one after another": 1.1, "dnnl (greedy)": 1.2}}
            self.assertEqual(demo.single_programs(report, folder), {"dnnl (greedy) alone": folder / "dnnl (greedy).collage"})


class BenchmarkTest(unittest.TestCase):
    def run_benchmark(self, folder):
        command = [sys.executable, BENCH / "benchmark.py", MODEL, "--collage", BINARY, "--output", folder, "--threads", "2"]
        command += ["--contribution", "forms", "--contribution", "xsmm", "--rounds", "6", "--slice", "0.02", "--budget", "10s"]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_model_has_its_figures_and_keeps_them(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            self.run_benchmark(folder)
            (result,) = json.loads((folder / "results.json").read_text())["results"]
            self.assertEqual(set(result["rows"]), {"collage", "collage again", "onnxruntime", "openvino"})
            for row in result["rows"].values():
                low, high = row["ratio_interval"]
                self.assertLessEqual(low, row["ratio"])
                self.assertLessEqual(row["ratio"], high)
                for field in ("median_ms", "load_ms", "first_run_ms", "peak_bytes"):
                    self.assertGreater(row[field], 0, field)
            self.assertLessEqual(result["output_difference"], 1e-4)
            self.assertGreater(result["compile_seconds"], 0)
            self.assertGreater(result["program_bytes"], 0)
            self.assertGreater(result["ceilings"]["flops_per_second"], 1e8)
            self.assertAlmostEqual(sum(result["where_time_goes"].values()), 1, delta=0.5)
            self.assertIn("above_roofline_ms", result["would_gain_next"])
            self.assertGreater(result["single_backend"]["ratio"], 0)
            self.assertEqual(list(result["contributions"]), ["forms", "xsmm"])
            self.assertIn("without xsmm", (folder / "results.md").read_text())
            self.assertIn("Geometric mean over 1 models", (folder / "results.md").read_text())
            self.assertEqual((folder / "results.png").read_bytes()[:4], b"\x89PNG")
            self.assertEqual([path.name for path in folder.glob("*.part*")], [])
            self.assertIn("mnist: known", self.run_benchmark(folder))

    def test_the_interval_of_a_median_holds_as_often_as_it_says(self):
        # Each of the values is below the median or above it, all combinations being as likely.
        for count in range(6, 13):
            holds = 0
            for signs in itertools.product((-1, 1), repeat=count):
                low, high = peers.median_interval([sign * (i + 1) for i, sign in enumerate(signs)])
                holds += low < 0 < high
            self.assertGreaterEqual(holds / 2**count, 0.95, count)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
