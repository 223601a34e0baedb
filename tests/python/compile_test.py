"""collage.compile: options, progress, what stops it, and what a compile says when it cannot."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import models
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import collage

# Without a stop it would take as long as a test may.
LONG = {"budget": 900, "tune": 900, "eager": True}


class CompileTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.output = self.folder / "model.collage"

    def check(self, session, model):
        x = np.random.default_rng(1).standard_normal(session.get_inputs()[0].shape).astype(np.float32)
        (expected,) = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
        (y,) = session.run(None, {"x": x})
        self.assertLess(np.abs(y - expected).max(), 1e-3 * np.abs(expected).max())

    def test_a_model_that_is_no_file_is_called_the_model_in_errors(self):
        for asked in (lambda: collage.compile(b"no model", budget=1), lambda: collage.InferenceSession(b"no model"),
                      lambda: collage.read(b"no model")):
            with self.assertRaisesRegex(collage.CompileError, "^the model: "):
                asked()

    def test_a_model_comes_as_a_file_as_bytes_and_as_a_message(self):
        model = models.convolutions(1)
        path = self.folder / "model.onnx"
        path.write_bytes(model.SerializeToString())
        for given in (path, str(path), model.SerializeToString(), model):
            self.check(models.compile_quickly(given), model)
        self.check(collage.InferenceSession(model, threads=2, budget=1.5, cache=models.CACHE.name), model)

    def test_a_program_in_text_with_its_constants(self):
        path = self.folder / "p.relay"
        path.write_text("fn (%x: Tensor[(2, 8), float32]) { let %y = nn.relu(%x); (add(%y, meta[relay.Constant][0]), %y) }")
        x = np.random.default_rng(1).standard_normal((2, 8)).astype(np.float32)
        beside, elsewhere = self.folder / "p.npz", self.folder / "other.npz"
        for archive, given in ((elsewhere, {"constants": elsewhere}), (beside, {})):
            np.savez(archive, **{"0": np.full(8, 3, np.float32)})
            for session in (models.compile_quickly(path, **given),
                            collage.InferenceSession(path, threads=2, budget=1.5, cache=models.CACHE.name, **given)):
                self.assertEqual([(value.name, value.shape) for value in session.get_inputs()], [("x", [2, 8])])
                sums, y = session.run(["output0", "output1"], {"x": x})
                np.testing.assert_array_equal(y, np.maximum(x, 0))
                np.testing.assert_array_equal(sums, y + 3)
            archive.unlink()
        with self.assertRaisesRegex(collage.CompileError, "1:67: constant 0 is not in .*p.npz, which is not there"):
            collage.read(path)

    def test_a_run_takes_the_profile_of_its_inputs(self):
        x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
        nodes = [helper.make_node("Relu", ["x"], ["y"])]
        symbolic = models.model(nodes, [("x", TensorProto.FLOAT, ["n", 8])], [("y", TensorProto.FLOAT, ["n", 8])])
        session = models.compile_quickly(symbolic, shapes=[{"x": (2, 8)}, {"x": (3, 8)}])
        for rows in (3, 2, 3):
            (y,) = session.run(None, {"x": x[:rows]})
            np.testing.assert_array_equal(y, np.maximum(x[:rows], 0))
        with self.assertRaisesRegex(collage.ArgumentError, "no profile takes these inputs"):
            session.run(None, {"x": x[:1]})

    def test_a_shape_without_a_profile_is_compiled_on_demand(self):
        x = np.random.default_rng(1).standard_normal((3, 8)).astype(np.float32)
        nodes = [helper.make_node("Relu", ["x"], ["y"])]
        symbolic = models.model(nodes, [("x", TensorProto.FLOAT, ["n", 8])], [("y", TensorProto.FLOAT, ["n", 8])])
        path = self.folder / "model.onnx"
        path.write_bytes(symbolic.SerializeToString())
        models.compile_quickly(path, self.output, shapes={"x": (2, 8)})
        stages = []
        on_demand = {"compile_on_demand": path, "budget": 1.5, "cache": models.CACHE.name}
        session = collage.InferenceSession(self.output, progress=lambda stage, *_: stages.append(stage), **on_demand)

        def check(session, rows):
            (y,) = session.run(None, {"x": x[:rows]})
            np.testing.assert_array_equal(y, np.maximum(x[:rows], 0))

        check(session, 2)
        self.assertEqual(stages, [], "the file has that profile")
        check(session, 3)
        self.assertIn("saving", stages)
        stages.clear()
        for rows in (3, 2, 3):
            check(session, rows)
        result = np.empty((3, 8), np.float32)
        session.run_into({"x": x}, {"y": result})
        np.testing.assert_array_equal(result, np.maximum(x, 0))
        self.assertTrue(session.profile({"x": x}))
        check(collage.InferenceSession(self.output, progress=lambda stage, *_: stages.append(stage), **on_demand), 3)
        self.assertNotIn("saving", stages, "it was kept")

        with self.assertRaisesRegex(collage.ArgumentError, "input 'x' .* is missing"):
            session.run(None, {})
        with self.assertRaisesRegex(collage.ArgumentError, "shapes: is no option of compiling on demand"):
            collage.InferenceSession(self.output, shapes={"x": (1, 8)}, **on_demand)
        with self.assertRaisesRegex(collage.ArgumentError, "kept beside a file"):
            collage.InferenceSession(self.output.read_bytes(), **on_demand)
        with self.assertRaisesRegex(collage.ArgumentError, "is of compiled files"):
            collage.InferenceSession(path, **on_demand)
        other = self.folder / "other.onnx"
        other.write_bytes(models.convolutions(1).SerializeToString())
        with self.assertRaisesRegex(collage.Error, "is not the model that"):
            collage.InferenceSession(self.output, compile_on_demand=other).run(None, {"x": x[:1]})

    def test_profiles_of_a_model_whose_extents_depend_on_data(self):
        nodes = [helper.make_node("Relu", ["x"], ["hidden"]), helper.make_node("NonZero", ["hidden"], ["where"])]
        outputs = [("where", TensorProto.INT64, [2, "m"]), ("hidden", TensorProto.FLOAT, ["n", 8])]
        path = self.folder / "model.onnx"
        path.write_bytes(models.model(nodes, [("x", TensorProto.FLOAT, ["n", 8])], outputs).SerializeToString())
        models.compile_quickly(path, self.output, shapes=[{"x": (2, 8)}, {"x": (3, 8)}])
        session = collage.InferenceSession(self.output, compile_on_demand=path, budget=1.5, cache=models.CACHE.name)
        x = np.random.default_rng(1).standard_normal((5, 8)).astype(np.float32)
        for rows in (3, 2, 5, 3):  # five are compiled on demand
            where, hidden = session.run(None, {"x": x[:rows]})
            np.testing.assert_array_equal(where, np.nonzero(x[:rows] > 0))
            np.testing.assert_array_equal(hidden, np.maximum(x[:rows], 0))
        self.assertEqual(len(list(self.folder.glob("*.profiles/*.collage"))), 1)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "one processor")
    def test_a_cpu_beside_the_host_has_processors_of_its_own(self):
        first, *_, last = sorted(os.sched_getaffinity(0))
        model = models.convolutions(1)
        options = {"targets": ["cpu"], "processors": [f"cpu:1={last}"], "pin": ["nn.relu=cpu:1"]}
        session = models.compile_quickly(model, self.output, **options)
        devices = {name: entry.get("device", "") for entry in session.report["plan"] for name in entry["operators"]}
        self.assertEqual(devices, {"nn.conv2d": "", "nn.relu": "cpu:1"})
        self.check(session, model)
        self.check(collage.InferenceSession(self.output, processors=[f"cpu:1={first}"]), model)
        self.check(collage.InferenceSession(model, budget=1.5, cache=models.CACHE.name, choose_devices=True, **options), model)
        with self.assertRaisesRegex(collage.LoadError, "has no kernels on cpu:2, for which processors are stated"):
            collage.InferenceSession(self.output, processors=[f"cpu:2={first}"])
        for wrong, says in (("cpu:1", "expected a CPU and its processors"), ("cpu:1=x", "'x' is no list of processors")):
            with self.assertRaisesRegex(collage.ArgumentError, says):
                collage.compile(model, processors=[wrong])
            with self.assertRaisesRegex(collage.ArgumentError, says):
                collage.InferenceSession(self.output, processors=[wrong])

    def test_forms_in_json_go_to_the_process_that_compiles(self):
        model = models.convolutions(1)
        relu = {"call": "nn.relu", "args": [{"wildcard": True, "as": "x"}]}
        stated = [{"name": "right", "pattern": relu, "replacement": {"call": "maximum", "args": ["x", {"constant": {"value": 0}}]}},
                  {"name": "wrong", "pattern": relu, "replacement": {"call": "abs", "args": ["x"]}}]
        session = collage.compile(model, targets=["cpu"], cache=self.folder / "prices.sqlite", budget=20, forms=stated)
        right, wrong = session.report["stated_forms"]
        self.assertRegex(right, "form right: fits at 1 place")
        self.assertRegex(wrong, "form wrong: refused at .*differs from the reference")
        self.check(session, model)
        with self.assertRaisesRegex(collage.ArgumentError, r"forms\[0\]: unknown field \"condition\""):
            collage.compile(model, forms=[{**stated[0], "condition": 1}])

    def test_progress_is_told_in_the_thread_that_compiles(self):
        heard = []
        models.compile_quickly(models.convolutions(), self.output, cache=self.folder / "prices",
                               progress=lambda *event: heard.append((threading.current_thread(), *event)))
        self.assertGreater(len(heard), 3)
        self.assertEqual({event[0] for event in heard}, {threading.current_thread()})
        self.assertTrue(all(isinstance(event[1], str) and event[1] and event[2] <= max(event[2], event[3]) for event in heard))
        self.check(collage.InferenceSession(self.output), models.convolutions())

    def test_other_threads_run_meanwhile(self):
        count, stop = 0, threading.Event()

        def work():
            nonlocal count
            while not stop.is_set():
                count += 1
                stop.wait(0.01)

        counts = []
        thread = threading.Thread(target=work)
        thread.start()
        models.compile_quickly(models.convolutions(), cache=self.folder / "prices", progress=lambda *event: counts.append(count) and None)
        stop.set()
        thread.join()
        self.assertGreater(counts[-1], counts[0])

    def test_a_true_answer_ends_it_with_the_best_plan(self):
        events = []
        session = models.compile_quickly(models.convolutions(), cache=self.folder / "prices", **LONG,
                                         progress=lambda *event: events.append(event) or len(events) > 3)
        self.check(session, models.convolutions())

    def test_what_progress_raises_comes_out_and_nothing_is_saved(self):
        def fail(*event):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            models.compile_quickly(models.convolutions(), self.output, progress=fail, **LONG)
        self.assertFalse(self.output.exists())

    def interrupt(self, times):
        """A script that compiles, interrupted when it measures. Gives it when it has ended. It waits to be interrupted, since a compile
        that is to end may have ended before the next signal."""
        model = self.folder / "model.onnx"
        model.write_bytes(models.convolutions().SerializeToString())
        script = (
            "import collage, time\n"
            "calls = []\n"
            "def show(*event):\n"
            "    calls.append(event)\n"
            f"    if 4 <= len(calls) < {4 + times}:\n"
            "        print('measuring', flush=True)\n"
            "        time.sleep(60)\n"
            f"collage.compile({str(model)!r}, {str(self.output)!r}, threads=2, cache={str(self.folder / 'prices')!r}, progress=show, **{LONG})\n"
            "print('done', flush=True)\n"
        )
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(times):
            self.assertEqual(process.stdout.readline(), "measuring\n")
            process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=300)
        return process.returncode, out, errors

    def test_ctrl_c_ends_the_measuring_with_the_best_plan(self):
        code, out, errors = self.interrupt(1)
        self.assertEqual((code, out.splitlines()[-1]), (0, "done"), errors)
        self.check(collage.InferenceSession(self.output), models.convolutions())

    def test_ctrl_c_pressed_again_ends_it(self):
        code, _, errors = self.interrupt(2)
        self.assertNotEqual(code, 0)
        self.assertIn("KeyboardInterrupt", errors)
        self.assertFalse(self.output.exists())

    def test_what_is_wrong_is_said(self):
        with self.assertRaisesRegex(collage.CompileError, "/no/such.onnx.*No such file"):
            collage.compile("/no/such.onnx")
        with self.assertRaisesRegex(collage.ArgumentError, "option 'budget' is -1"):
            collage.compile("/no/such.onnx", budget=-1)
        with self.assertRaisesRegex(collage.CompileError, "gpu"):
            models.compile_quickly(models.perceptron(), targets=["gpu"])
        for given in (None, 3, [1]):
            with self.assertRaisesRegex(collage.ArgumentError, "onnx.ModelProto is expected, not"):
                collage.compile(given)
        for budget in (float("nan"), float("inf")):
            with self.assertRaisesRegex(collage.ArgumentError, "budget: a number of seconds is expected"):
                collage.compile("/no/such.onnx", budget=budget)
        for shape in ("2y8", 3, (1, "N")):
            with self.assertRaisesRegex(collage.ArgumentError, "shapes: of 'x' extents are expected"):
                collage.compile("/no/such.onnx", shapes={"x": shape})

    def test_one_word_is_a_list_of_one(self):
        session = models.compile_quickly(models.perceptron(), targets="cpu -compiler=native", forbid="forms")
        self.assertEqual({entry["backend"] for entry in session.report["plan"]}, {"native"})
        with self.assertRaisesRegex(collage.CompileError, "nn.nothing"):
            models.compile_quickly(models.perceptron(), pin="nn.nothing=native")


if __name__ == "__main__":
    unittest.main()
