"""Programs of several profiles, as users meet them. Usage: profiles_test.py BINARY [unittest arguments]"""

import json
import os
import pathlib
import pty
import subprocess
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from command_line import BINARY, CommandLineTestCase, main

WIDTH = 96


def symbolic_model(path):
    """y = Relu(x w), in rows that a Reshape to a computed shape flattens first; z = y + b."""
    generator = np.random.default_rng(3)
    weight = numpy_helper.from_array(generator.standard_normal((WIDTH, 512)).astype(np.float32) / 9, "w")
    minus_one = numpy_helper.from_array(np.array([-1, WIDTH], np.int64), "rows")
    first = numpy_helper.from_array(np.array([0], np.int64), "first")
    one = numpy_helper.from_array(np.array([1], np.int64), "one")
    last = numpy_helper.from_array(np.array([512], np.int64), "last")
    graph = helper.make_graph(
        [
            helper.make_node("Reshape", ["x", "rows"], ["flat"], name="flatten"),
            helper.make_node("MatMul", ["flat", "w"], ["product"], name="product"),
            helper.make_node("Relu", ["product"], ["clipped"], name="clip"),
            helper.make_node("Shape", ["x"], ["extents"], name="extents"),
            helper.make_node("Slice", ["extents", "first", "one"], ["batch"], name="batch"),
            helper.make_node("Concat", ["batch", "minus", "last"], ["back"], name="back", axis=0),
            helper.make_node("Reshape", ["clipped", "back"], ["y"], name="unflatten"),
            helper.make_node("Add", ["y", "b"], ["z"], name="shift"),
        ],
        "symbolic",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "length", WIDTH]),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, ["length", 512]),
        ],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [weight, minus_one, first, one, last, numpy_helper.from_array(np.array([-1], np.int64), "minus")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def shapes(*profiles):
    """--shape flags for profiles of (batch, length)."""
    words = []
    for batch, length in profiles:
        words += ["--shape", f"x={batch}x{length}x{WIDTH}", "--shape", f"b={length}x512"]
    return words


class ProfilesTest(CommandLineTestCase):
    PROFILES = [(1, 4), (3, 7)]

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.shared.cleanup)
        folder = pathlib.Path(cls.shared.name)
        cls.cache = folder / "prices.sqlite"
        cls.model = folder / "symbolic.onnx"
        symbolic_model(cls.model)
        cls.program = folder / "both.collage"
        cls.report = folder / "both.json"
        cls.compiled = cls.collage_in(
            folder, "compile", cls.model, "-o", cls.program, "--cache", cls.cache, "--json", cls.report, "--budget", "20s", *shapes(*cls.PROFILES)
        )
        assert cls.compiled.returncode == 0, cls.compiled.stderr

    def inputs(self, batch, length):
        generator = np.random.default_rng(batch)
        arrays = {
            "x": generator.standard_normal((batch, length, WIDTH)).astype(np.float32),
            "b": generator.standard_normal((length, 512)).astype(np.float32),
        }
        np.savez(self.folder / "in.npz", **arrays)
        return ["--inputs", self.folder / "in.npz"]

    def outputs(self, program, inputs, *words):
        done = self.collage("run", program, *inputs, "--output", self.folder / "out", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.load(self.folder / "out/z.npy")

    def test_each_profile_gives_what_the_reference_gives(self):
        for profile in self.PROFILES:
            for words in ([], ["--recompile"]):
                inputs = self.inputs(*profile)
                expected = self.outputs(self.model, inputs, "--reference", *shapes(profile))
                np.testing.assert_allclose(self.outputs(self.program, inputs, *words), expected, atol=1e-4 * np.abs(expected).max())

    def test_another_shape_is_an_error_that_lists_the_profiles(self):
        done = self.collage("run", self.program, *self.inputs(2, 4))
        self.assert_user_error(done, "x=2x4x96", "[x=1x4x96 b=4x512], [x=3x7x96 b=7x512]")
        # Each input is of some profile, but not both of one.
        np.savez(self.folder / "mixed.npz", x=np.zeros((1, 4, WIDTH), np.float32), b=np.zeros((7, 512), np.float32))
        self.assert_user_error(self.collage("run", self.program, "--inputs", self.folder / "mixed.npz"), "x=1x4x96", "b=7x512", "it has")
        self.assert_user_error(self.collage("run", self.program, "--random", 1, "--shape", "x=9x9x96"), "--shape x=9x9x96", "it has")

    def test_another_shape_is_compiled_on_demand_once_and_kept(self):
        program = self.folder / "one.collage"
        words = ["--target", "cpu -compiler=reference", "--cache", self.cache, "--threads", 1]
        self.assertEqual(self.compile(self.model, *words[:2], *shapes((1, 4)), output=program).returncode, 0)
        on_demand = [*words, "--compile-on-demand", self.model]
        inputs = self.inputs(2, 5)
        expected = self.outputs(self.model, inputs, "--reference", *shapes((2, 5)))
        # Two at once want the same; one of them compiles.
        racing = [
            subprocess.Popen([str(word) for word in [BINARY, "run", program, *inputs, "--output", self.folder / f"out{i}", *on_demand]], stderr=subprocess.PIPE)
            for i in range(2)
        ]
        for i, process in enumerate(racing):
            self.assertEqual(process.wait(), 0, process.stderr.read())
            process.stderr.close()
            np.testing.assert_allclose(np.load(self.folder / f"out{i}/z.npy"), expected, atol=1e-4 * np.abs(expected).max())
        kept = list((self.folder / "one.collage.profiles").glob("*.collage"))
        self.assertEqual(len(kept), 1)
        written = kept[0].stat().st_mtime_ns
        np.testing.assert_allclose(self.outputs(program, inputs, *on_demand), expected, atol=1e-4 * np.abs(expected).max())
        done = self.collage("bench", program, "--iterations", 2, *on_demand, *shapes((2, 5)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([path.stat().st_mtime_ns for path in kept], [written], "it was compiled again")
        # What it has is taken from the file itself, and without the option other shapes are errors as before.
        self.outputs(program, self.inputs(1, 4), *on_demand)
        self.assertEqual(len(list(kept[0].parent.glob("*.collage"))), 1)
        self.assert_user_error(self.collage("run", program, *self.inputs(2, 5)), "expected")

    def shown_on_a_terminal(self, *words):
        """What standard error shows there: elsewhere the first second of progress is silent."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        shown = b""
        with subprocess.Popen([BINARY, *map(str, words)], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=theirs) as process:
            os.close(theirs)
            try:
                while part := os.read(ours, 4096):
                    shown += part
            except OSError:
                pass  # nobody writes there any more
        self.assertEqual(process.returncode, 0, shown)
        return shown.decode()

    def test_on_demand_is_compiled_as_the_run_says(self):
        program = self.folder / "one.collage"
        words = ["--target", "cpu", "--cache", self.cache]
        self.assertEqual(self.compile(self.model, *words[:2], "--budget", "2s", *shapes((1, 4)), output=program).returncode, 0)
        on_demand = [*words, "--compile-on-demand", self.model, "--budget", "1s", "--pin", "product=reference"]
        shown = self.shown_on_a_terminal("run", program, "--random", 1, *shapes((2, 5)), *on_demand)
        self.assertIn("at most 1 s left", shown)
        [kept] = (self.folder / "one.collage.profiles").glob("*.collage")
        plan = self.collage("explain", kept).stdout
        self.assertRegex(plan, "reference .*product; pinned")
        done = self.collage("run", program, "--random", 1, *shapes((2, 6)), *on_demand[:-1], "product=nobody")
        self.assert_user_error(done, "--pin", "nobody")

    def test_only_the_model_of_the_file_is_compiled_on_demand(self):
        other = self.folder / "other.onnx"
        other.write_bytes(self.model.read_bytes() + b"\x1a\x01x")  # another domain
        done = self.collage("run", self.program, *self.inputs(2, 5), "--compile-on-demand", other)
        self.assert_user_error(done, "other.onnx", "is not the model that", "both.collage")
        np.savez(self.folder / "typed.npz", x=np.zeros((2, 5, WIDTH), np.float64), b=np.zeros((5, 512), np.float32))
        done = self.collage("run", self.program, "--inputs", self.folder / "typed.npz", "--compile-on-demand", self.model)
        self.assert_user_error(done, "float64")
        self.assertFalse(pathlib.Path(f"{self.program}.profiles").exists())

    def test_a_shape_or_one_input_chooses_the_profile_of_random_inputs(self):
        self.assertIn("(1, 4, 512)", self.collage("run", self.program, "--random", 1).stdout)
        self.assertIn("(3, 7, 512)", self.collage("run", self.program, "--random", 1, "--shape", "b=7x512").stdout)
        np.save(self.folder / "b.npy", np.zeros((7, 512), np.float32))
        self.assertIn("(3, 7, 512)", self.collage("run", self.program, "--random", 1, "--input", f"b={self.folder}/b.npy").stdout)

    def test_bench_times_one_profile(self):
        for batch, length in self.PROFILES:
            done = self.collage(
                "bench", self.program, "--iterations", 3, "--profile", "--json", self.folder / "b.json", "--shape", f"x={batch}x{length}x{WIDTH}"
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"profile x={batch}x{length}x{WIDTH}", done.stdout)
            report = json.loads((self.folder / "b.json").read_text())
            self.assertEqual(report["inputs"]["x"], [batch, length, WIDTH])
            self.assertTrue(report["profile"])
            self.assertTrue(all(step["calls"] > 0 for step in report["profile"]))

    def test_report_and_explanation_have_every_profile(self):
        report = json.loads(self.report.read_text())
        self.assertEqual([profile["inputs"]["x"] for profile in report["profiles"]], [[1, 4, WIDTH], [3, 7, WIDTH]])
        self.assertEqual(report["budget_seconds"], 20)
        self.assertGreaterEqual(report["elapsed_seconds"], sum(profile["elapsed_seconds"] for profile in report["profiles"]) - 1e-6)
        for profile in report["profiles"]:
            self.assertTrue(profile["plan"])
            self.assertIn("chosen", profile["end_to_end_ms"])
        for words in ([], ["--operators"], ["--forbid", report["profiles"][0]["plan"][0]["backend"]]):
            text = self.collage("explain", self.program, *words).stdout
            self.assertIn("profile x=1x4x96 b=4x512\n", text)
            self.assertIn("profile x=3x7x96 b=7x512\n", text)
        saved = json.loads(self.collage("explain", self.program, "--json").stdout)
        self.assertEqual([profile["plan"] for profile in saved["profiles"]], [profile["plan"] for profile in report["profiles"]])
        runner = next(entry["backend"] for entry in report["profiles"][0]["plan"] if "product" in entry["nodes"])
        answer = json.loads(self.collage("explain", self.program, "--json", "--pin", f"product={runner}").stdout)
        self.assertEqual([profile["inputs"]["b"] for profile in answer["profiles"]], [[4, 512], [7, 512]])
        for line in ("profile x=1x4x96 b=4x512", "profile x=3x7x96 b=7x512", "budget:"):
            self.assertIn(line, self.compiled.stdout)

    def test_shapes_are_folded_in_each_profile(self):
        report = json.loads(self.report.read_text())
        for profile in report["profiles"]:
            operators = {operator["operator"] for operator in profile["operators"]}
            self.assertFalse(operators & {"shape_of", "strided_slice", "concatenate"}, operators)

    def test_the_file_holds_common_weights_once(self):
        alone = self.folder / "alone.collage"
        words = ["--target", "cpu -compiler=reference"]
        self.assertEqual(self.compile(self.model, *words, *shapes((1, 4)), output=alone).returncode, 0)
        both = self.folder / "both.collage"
        self.assertEqual(self.compile(self.model, *words, *shapes((1, 4), (3, 7)), output=both).returncode, 0)
        weights = WIDTH * 512 * 4
        self.assertGreater(alone.stat().st_size, weights)
        self.assertLess(both.stat().st_size - alone.stat().st_size, weights / 2)

    def test_a_second_compile_measures_nothing_and_writes_the_same_file(self):
        again, report = self.folder / "again.collage", self.folder / "again.json"
        for path in (again, self.folder / "third.collage"):
            done = self.compile(self.model, *shapes(*self.PROFILES), "--cache-only", "--json", report, output=path)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(report.read_text())["candidates"]["variants"]["measured"], 0)
        self.assertEqual(again.read_bytes(), (self.folder / "third.collage").read_bytes())

    def test_an_input_given_once_is_the_same_in_all_profiles(self):
        words = ["--shape", f"x=1x4x{WIDTH}", "--shape", "b=4x512", "--shape", f"x=2x4x{WIDTH}", "--target", "cpu -compiler=reference"]
        done = self.compile(self.model, *words, output=self.folder / "p.collage")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("profile x=2x4x96 b=4x512\n", done.stdout)

    def test_counts_that_do_not_fit_and_equal_profiles_are_errors(self):
        words = [*shapes((1, 4), (3, 7)), "--shape", f"x=5x4x{WIDTH}"]
        self.assert_user_error(self.compile(self.model, *words), "--shape", "'b' is given 2 shapes", "3")
        self.assert_user_error(self.compile(self.model, *shapes((1, 4), (1, 4))), "--shape", "two profiles are the same", "x=1x4x96 b=4x512")
        self.assert_user_error(self.compile(self.model, *shapes((1, 4), (3, 7)), "--single-backends", self.folder / "s"), "--single-backends")

    def test_an_error_in_the_last_profile_comes_before_any_measuring(self):
        words = [*shapes((1, 4)), "--shape", "x=2x4x95", "--shape", "b=4x512"]
        self.assert_user_error(self.compile(self.model, *words), "input 'x'", "95", "96")


if __name__ == "__main__":
    main()
