"""InferenceSession: in the words of ONNX Runtime, without copies, for many threads, with errors that say what is wrong."""

import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import xml.etree.ElementTree

import ml_dtypes
import models
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import collage


class OnlyDLPack:
    """An array of some other framework."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = models.perceptron_file()
        cls.session = collage.InferenceSession(cls.path)
        cls.peer = onnxruntime.InferenceSession(models.perceptron().SerializeToString(), providers=["CPUExecutionProvider"])
        cls.x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)
        cls.expected = cls.peer.run(None, {"x": cls.x})

    def check(self, results):
        self.assertEqual(len(results), 2)
        for result, expected in zip(results, self.expected):
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)

    def test_inputs_and_outputs_are_described_as_onnx_runtime_does(self):
        for ours, theirs in [(self.session.get_inputs(), self.peer.get_inputs()), (self.session.get_outputs(), self.peer.get_outputs())]:
            self.assertEqual([(one.name, one.type, one.shape) for one in ours], [(one.name, one.type, one.shape) for one in theirs])
        self.assertEqual(self.session.threads, 2)
        self.assertIn("plan", self.session.report)

    def test_outputs_whose_extents_depend_on_data_are_as_large_as_they_come_out(self):
        model = models.large_places()
        peer = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        session = models.compile_quickly(model)
        self.assertEqual([(one.name, one.type, one.shape) for one in session.get_outputs()],
                         [("where", "tensor(int64)", [2, None]), ("hidden", "tensor(float)", [2, 6])])
        x = np.random.default_rng(5).standard_normal((2, 8)).astype(np.float32)
        counts = set()
        for scale in (0, 0.2, 2):
            feed = {"x": x * np.float32(scale)}
            where, hidden = session.run(None, feed)
            expected = peer.run(None, feed)
            np.testing.assert_array_equal(where, expected[0])
            np.testing.assert_allclose(hidden, expected[1], rtol=1e-4, atol=1e-4)
            counts.add(where.shape[1])
        self.assertEqual(len(counts), 3)
        self.assertIn(0, counts)
        np.testing.assert_array_equal(session.run(["where"], feed)[0], expected[0])
        with self.assertRaisesRegex(collage.ArgumentError, "depend on data; use run"):
            session.run_into(feed, {})
        self.assertTrue(session.profile(feed))
        self.assertIn("2 × ?", session._repr_html_())

    def test_a_script_for_onnx_runtime_changes_its_import(self):
        for library in (onnxruntime, collage):
            options = library.SessionOptions()
            options.intra_op_num_threads = 1
            given = models.perceptron().SerializeToString() if library is onnxruntime else str(self.path)
            session = library.InferenceSession(given, options, providers=["CPUExecutionProvider"])
            feed = {session.get_inputs()[0].name: self.x}
            self.check(session.run(None, feed))
            (sums,) = session.run(["sums"], feed)
            np.testing.assert_allclose(sums, self.expected[1], rtol=1e-4, atol=1e-4)
            self.assertEqual([one.shape for one in session.run(["sums", "hidden"], feed)], [(4,), (4, 32)])

    def test_a_program_comes_from_bytes_too(self):
        self.check(collage.InferenceSession(self.path.read_bytes()).run(None, {"x": self.x}))

    def test_arrays_of_any_kind_will_do(self):
        self.check(self.session.run(None, {"x": OnlyDLPack(self.x)}))
        self.check(self.session.run(None, {"x": np.asfortranarray(self.x)}))
        read_only = self.x.copy()
        read_only.flags.writeable = False
        self.check(self.session.run(None, {"x": read_only}))
        self.check(self.session.run(None, {"x": np.repeat(self.x, 2, axis=0)[::2]}))

    def test_outputs_are_aligned_owned_and_other_frameworks_take_them(self):
        first = self.session.run(None, {"x": self.x})
        second = self.session.run(None, {"x": -self.x})
        self.check(first)  # the second run wrote elsewhere
        self.assertFalse(np.shares_memory(first[0], second[0]))
        self.assertEqual(first[0].ctypes.data % 64, 0)
        self.assertTrue(first[0].flags.writeable)
        self.assertEqual(np.from_dlpack(first[0]).ctypes.data, first[0].ctypes.data)

    def test_results_go_where_the_caller_wants_them(self):
        hidden, sums = np.zeros((4, 32), np.float32), np.zeros(4, np.float32)
        self.session.run_into({"x": self.x}, {"hidden": hidden, "sums": OnlyDLPack(sums)})
        self.check([hidden, sums])
        with self.assertRaisesRegex(collage.ArgumentError, r"output 'sums' \(float32 \(4\)\) is missing"):
            self.session.run_into({"x": self.x}, {"hidden": hidden})
        with self.assertRaisesRegex(collage.ArgumentError, "there is no output 'z'; there are 'hidden', 'sums'"):
            self.session.run_into({"x": self.x}, {"hidden": hidden, "sums": sums, "z": sums})
        hidden.flags.writeable = False
        with self.assertRaisesRegex(collage.ArgumentError, "output 'hidden' .* expected a writable"):
            self.session.run_into({"x": self.x}, {"hidden": hidden, "sums": sums})

    def test_wrong_inputs_are_errors_that_say_what_was_found_and_what_is_right(self):
        for feed, message in [
            ({}, r"input 'x' \(float32 \(4, 64\)\) is missing"),
            ({"x": self.x, "z": self.x}, "there is no input 'z'; there are 'x'"),
            ({"x": self.x.astype(np.float64)}, r"input 'x' is float64 \(4, 64\), expected float32 \(4, 64\)"),
            ({"x": self.x[:2]}, r"input 'x' is float32 \(2, 64\), expected float32 \(4, 64\)"),
            ({"x": [1, 2]}, r"input 'x' is float32 \(2,\), expected float32 \(4, 64\)"),
            ({"x": {1, 2}}, "input 'x' is of type set, which is no array of the host"),
        ]:
            with self.assertRaisesRegex(collage.ArgumentError, message):
                self.session.run(None, feed)
        with self.assertRaisesRegex(collage.ArgumentError, "there is no output 'z'; there are 'hidden', 'sums'"):
            self.session.run(["z"], {"x": self.x})
        self.assertTrue(issubclass(collage.ArgumentError, collage.Error) and issubclass(collage.ArgumentError, ValueError))

    def test_files_that_are_none_are_errors_that_name_them(self):
        with self.assertRaisesRegex(collage.LoadError, "/no/such.collage.*No such file"):
            collage.InferenceSession("/no/such.collage")
        with tempfile.TemporaryDirectory() as folder:
            damaged = pathlib.Path(folder) / "damaged.collage"
            damaged.write_bytes(self.path.read_bytes()[:-50])
            with self.assertRaisesRegex(collage.LoadError, "damaged.collage.*truncated"):
                collage.InferenceSession(damaged)
        with self.assertRaisesRegex(collage.LoadError, "the program in memory.*truncated"):
            collage.InferenceSession(self.path.read_bytes()[:-50])
        with self.assertRaisesRegex(collage.ArgumentError, "budget: is an option of compiling"):
            collage.InferenceSession(self.path, budget=3)

    def test_the_package_is_the_command_line_too(self):
        done = subprocess.run([sys.executable, "-m", "collage", "run", str(self.path), "--random", "1"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("hidden", done.stdout)
        self.assertEqual(subprocess.run([sys.executable, "-m", "collage", "--nothing"], capture_output=True).returncode, 2)

    def test_sixteen_threads_get_the_bits_that_one_gets(self):
        feeds = [{"x": np.random.default_rng(seed).standard_normal((4, 64)).astype(np.float32)} for seed in range(16)]
        expected = [self.session.run(None, feed) for feed in feeds]
        problems = []

        def work(feed, right):
            for _ in range(50):
                if any(not np.array_equal(one, other) for one, other in zip(self.session.run(None, feed), right)):
                    problems.append("differs")

        threads = [threading.Thread(target=work, args=pair) for pair in zip(feeds, expected)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])

    def test_a_profile_names_the_steps_and_who_ran_them(self):
        steps = self.session.profile({"x": self.x})
        kernels = [step for step in steps if step.kind == "kernel"]
        self.assertTrue(kernels and all(step.backend and step.microseconds > 0 for step in kernels), steps)

    def test_a_notebook_shows_a_session_and_its_report(self):
        report = self.session.report
        self.assertIsInstance(report, dict)
        page = self.session._repr_html_()
        self.assertIn(report._repr_html_(), page)
        for name in ("x", report["plan"][0]["backend"], "times chosen", "predicted"):
            self.assertIn(name, page)
        # Predictions are as the prices say, and why the race says another time stands beside.
        report.update(estimated_us=50.0, drift=0.8, is_estimated=False)
        self.assertIn("predicted 62.5 µs", report._repr_html_())
        self.assertIn("the machine ran 0.80 times as slowly in the race", report._repr_html_())
        # It is well formed, and names of a model are text only.
        report["plan"][0]["nodes"] = ["<script>&"]
        self.assertIn("&lt;script&gt;&amp;", report._repr_html_())
        several = collage.Report(report | {"profiles": [dict(report), dict(report)]})
        self.assertEqual(several._repr_html_().count("&lt;script&gt;"), 2)
        for text in (page, report._repr_html_(), several._repr_html_()):
            xml.etree.ElementTree.fromstring(f"<div>{text}</div>")

    def test_types_that_numpy_lacks_come_as_ml_dtypes(self):
        node = helper.make_node("Neg", ["x"], ["y"])
        session = models.compile_quickly(
            models.model([node], [("x", TensorProto.BFLOAT16, [3])], [("y", TensorProto.BFLOAT16, [3])]))
        x = np.array([1, -2, 3.5], ml_dtypes.bfloat16)
        (y,) = session.run(None, {"x": x})
        self.assertEqual(y.dtype, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(y, -x)
        with self.assertRaisesRegex(collage.ArgumentError, "input 'x' is float32"):
            session.run(None, {"x": x.astype(np.float32)})

    def test_narrow_integers_keep_their_sign(self):
        node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
        graph = models.model([node], [("x", TensorProto.INT4, [16])], [("y", TensorProto.FLOAT, [16])])
        graph.opset_import[0].version, graph.ir_version = 21, 10
        numbers = np.arange(-8, 8)
        (y,) = models.compile_quickly(graph).run(None, {"x": numbers.astype(ml_dtypes.int4)})
        np.testing.assert_array_equal(y, numbers.astype(np.float32))

    def test_strings_are_objects_as_with_onnx_runtime(self):
        nodes = [helper.make_node("StringConcat", ["x", "y"], ["z"]), helper.make_node("Equal", ["x", "y"], ["same"])]
        graph = models.model(nodes, [("x", TensorProto.STRING, [2, 2]), ("y", TensorProto.STRING, [2])],
                             [("z", TensorProto.STRING, [2, 2]), ("same", TensorProto.BOOL, [2, 2])])
        graph.opset_import[0].version, graph.ir_version = 20, 9
        session = models.compile_quickly(graph)
        self.assertEqual(session.get_inputs()[0].type, "tensor(string)")
        x = np.array([["", "z\u00fcrich"], ["b", "\u20ac"]], object)
        y = np.array(["", "\u20ac"], object)
        expected = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x, "y": y})
        bytes_of = np.vectorize(str.encode, otypes=[object])
        for feed in ({"x": x, "y": y}, {"x": x.astype(str), "y": y.astype(str)}, {"x": bytes_of(x), "y": y.tolist()}):
            z, same = session.run(None, feed)
            self.assertEqual(z.dtype, object)
            np.testing.assert_array_equal(z, expected[0])
            np.testing.assert_array_equal(same, expected[1])
        results = {"z": np.empty((2, 2), object), "same": np.empty((2, 2), bool)}
        session.run_into({"x": x, "y": y}, results)
        np.testing.assert_array_equal(results["z"], expected[0])
        (z,) = session.run(["z"], {"x": np.array([[b"\xff", b""], [b"", b""]], object), "y": y})
        self.assertEqual(z[0, 0].encode("utf-8", "surrogateescape"), b"\xff", "any bytes come back")
        with self.assertRaisesRegex(collage.ArgumentError, "input 'x' holds 1.0 of type float64, expected texts"):
            session.run(None, {"x": np.ones((2, 2)), "y": y})

    def test_a_tensor_without_elements_has_its_type(self):
        node = helper.make_node("Slice", ["x", "start", "end"], ["y"])
        bounds = [("start", np.array([1])), ("end", np.array([1]))]
        for type, expected in [(TensorProto.FLOAT, np.float32), (TensorProto.INT64, np.int64)]:
            session = models.compile_quickly(models.model([node], [("x", type, [2, 3])], [("y", type, [0, 3])], bounds))
            (y,) = session.run(None, {"x": np.zeros((2, 3), expected)})
            self.assertEqual((y.dtype, y.shape), (expected, (0, 3)))


if __name__ == "__main__":
    unittest.main()
