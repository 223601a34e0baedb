"""Collage as an execution provider of ONNX Runtime from PyPI: what an application gets that adds two lines."""

import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

import models
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from collage import onnxruntime_provider

FOLDER = tempfile.TemporaryDirectory(prefix="provider.")


def folder(name):
    path = pathlib.Path(FOLDER.name) / name
    path.mkdir(exist_ok=True)
    return path


def session_of(model, programs, **options):
    """Providers in the order in which they are asked: Collage, then ONNX Runtime's own."""
    session_options = onnxruntime.SessionOptions()
    session_options.log_severity_level = 3
    session_options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    quick = {"budget": 1.5, "threads": 2, "cache": folder(programs), "prices": models.CACHE.name}
    onnxruntime_provider.add_to(session_options, **{**quick, **options})
    return onnxruntime.InferenceSession(model.SerializeToString(), session_options, enable_fallback=False)


def reference_of(model):
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def feeds_of(session, seed=3):
    generator = np.random.default_rng(seed)
    return {one.name: generator.standard_normal(one.shape).astype(np.float32) for one in session.get_inputs()}


def nodes_of(session):
    """How many nodes each provider has."""
    counts = collections.Counter()
    for one in session.get_provider_graph_assignment_info():
        counts[one.ep_name] += len(one.get_nodes())
    return counts


def programs_in(programs):
    return {path.name: path.stat().st_mtime_ns for path in folder(programs).glob("*.collage")}


def around_what_is_not_read():
    """hidden = Relu(x W), y = hidden V, places = where hidden is not zero: as many as there are, which Collage refuses."""
    generator = np.random.default_rng(4)
    weights = [("w", generator.standard_normal((64, 32)).astype(np.float32)), ("v", generator.standard_normal((32, 8)).astype(np.float32))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Relu", ["product"], ["hidden"]),
        helper.make_node("NonZero", ["hidden"], ["places"], name="finder"),
        helper.make_node("MatMul", ["hidden", "v"], ["y"]),
    ]
    outputs = [("y", TensorProto.FLOAT, [4, 8]), ("places", TensorProto.INT64, [2, None])]
    return models.model(nodes, [("x", TensorProto.FLOAT, [4, 64])], outputs, weights)


def assert_agrees(found, expected):
    """Within what a kernel may differ from the reference: 1e-4 of the largest value."""
    largest = np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * float(largest) if largest else 1e-4)


class ProviderTest(unittest.TestCase):
    def check_same(self, model, session, seed=3):
        reference = reference_of(model)
        feeds = feeds_of(reference, seed)
        for found, expected in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
            self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
            assert_agrees(found, expected)

    def test_whole_models_give_what_the_other_provider_gives(self):
        for name, model in [("perceptron", models.perceptron()), ("convolutions", models.convolutions())]:
            with self.subTest(name):
                session = session_of(model, "whole")
                self.assertEqual(session.get_providers()[0], onnxruntime_provider.NAME)
                self.check_same(model, session)
                self.check_same(model, session, seed=4)

    def test_attributes_of_every_kind_arrive(self):
        """Strings and lists of them, numbers and lists of them."""
        generator = np.random.default_rng(5)
        weights = [("w", generator.standard_normal((4, 3, 3, 3)).astype(np.float32))] + [
            (name, generator.standard_normal(shape).astype(np.float32)) for name, shape in (("W", (1, 8, 16)), ("R", (1, 8, 8)), ("B", (1, 16)))]
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["c"], auto_pad="SAME_UPPER", strides=[2, 2]),
            helper.make_node("LeakyRelu", ["c"], ["l"], alpha=0.3),
            helper.make_node("Reshape", ["l", "shape"], ["s"]),
            helper.make_node("RNN", ["s", "W", "R", "B"], ["y"], hidden_size=8, activations=["Relu"]),
        ]
        model = models.model(nodes, [("x", TensorProto.FLOAT, [1, 3, 8, 8])], [("y", TensorProto.FLOAT, [4, 1, 1, 8])],
                             [*weights, ("shape", np.array([4, 1, 16]))])
        session = session_of(model, "attributes")
        self.assertEqual(nodes_of(session)["CPUExecutionProvider"], 0)
        self.check_same(model, session)

    def test_a_second_session_finds_the_program(self):
        model = models.perceptron()
        session_of(model, "found")
        before = programs_in("found")
        self.assertEqual(len(before), 1)
        # Prices are forbidden to be taken, so a compile would be an error.
        session = session_of(model, "found", cache_only=True, prices=folder("found") / "no_prices")
        self.check_same(model, session)
        self.assertEqual(programs_in("found"), before)

    def test_other_weights_and_other_threads_are_other_programs(self):
        model = models.perceptron()
        session_of(model, "others")
        session_of(model, "others", threads=1)
        self.assertEqual(len(programs_in("others")), 2)
        other = models.perceptron()
        other.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((64, 32), np.float32), other.graph.initializer[0].name))
        self.check_same(other, session_of(other, "others"))
        self.assertEqual(len(programs_in("others")), 3)

    def test_a_damaged_program_is_compiled_again(self):
        model = models.perceptron()
        session_of(model, "damaged")
        (program,) = folder("damaged").glob("*.collage")
        program.write_bytes(program.read_bytes()[:1000])
        self.check_same(model, session_of(model, "damaged"))
        self.assertGreater(program.stat().st_size, 1000)

    def test_a_wrong_option_is_an_error_that_says_what_is_right(self):
        for options, message in [
            ({"bugdet": 3}, "unknown option 'bugdet'; there are 'budget'"),
            ({"budget": 0}, "option 'budget' is '0', expected a number of seconds above zero"),
            ({"threads": "many"}, "option 'threads' is 'many', expected a whole number"),
            ({"shapes": {"x": "4x64"}}, "option 'shapes' is "),
            ({"eager": "perhaps"}, "option 'eager' is 'perhaps'"),
        ]:
            with self.subTest(message), self.assertRaises(Exception) as caught:
                session_of(models.perceptron(), "wrong", **options)
            self.assertIn(message, str(caught.exception))

    def test_what_the_compile_refuses_is_an_error_of_the_session(self):
        with self.assertRaises(Exception) as caught:
            session_of(models.perceptron(), "refused", targets="cpu -compiler=nobody")
        self.assertIn("nobody", str(caught.exception))
        self.assertEqual(list(folder("refused").glob("*.onnx")), [])

    def test_what_is_not_read_stays_with_the_other_provider(self):
        model = around_what_is_not_read()
        session = session_of(model, "partly")
        self.check_same(model, session)
        self.assertEqual(len(programs_in("partly")), 1)
        nodes = nodes_of(session)
        self.assertEqual((nodes[onnxruntime_provider.NAME], nodes["CPUExecutionProvider"]), (3, 1))

    def test_a_model_of_nothing_that_is_read_runs_as_ever(self):
        nodes = [helper.make_node("NonZero", ["x"], ["y"])]
        model = models.model(nodes, [("x", TensorProto.FLOAT, [4, 4])], [("y", TensorProto.INT64, [2, None])])
        self.check_same(model, session_of(model, "nothing"))
        self.assertEqual(programs_in("nothing"), {})

    def test_symbolic_shapes_are_given_as_profiles(self):
        model = models.perceptron()
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
        for output in model.graph.output:
            output.type.tensor_type.shape.dim[0].dim_param = "batch"
        session = session_of(model, "profiles", shapes=[{"x": [4, 64]}, {"x": [2, 64]}])
        self.assertEqual(len(programs_in("profiles")), 1)
        reference = reference_of(model)
        for rows in (2, 4, 2):
            feeds = {"x": np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32)}
            for found, expected in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
                assert_agrees(found, expected)
        with self.assertRaisesRegex(Exception, "x=3x64, and option 'shapes' has no such profile"):
            session.run(None, {"x": np.ones((3, 64), np.float32)})

    def test_symbolic_shapes_without_profiles_are_left_alone(self):
        model = models.perceptron()
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
        for output in model.graph.output:
            output.type.tensor_type.shape.dim[0].dim_param = "batch"
        session = session_of(model, "symbolic")
        self.assertEqual(programs_in("symbolic"), {})
        self.assertEqual(session.run(["sums"], {"x": np.ones((7, 64), np.float32)})[0].shape, (7,))

    def test_control_flow_is_taken_whole(self):
        def branch(name, operator):
            output = helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 64])
            return helper.make_graph([helper.make_node(operator, ["x"], [name])], name, [], [output])

        nodes = [helper.make_node("If", ["condition"], ["chosen"], then_branch=branch("then", "Relu"), else_branch=branch("else", "Neg")),
                 helper.make_node("Tanh", ["chosen"], ["y"])]
        model = models.model(nodes, [("x", TensorProto.FLOAT, [4, 64]), ("condition", TensorProto.BOOL, [])], [("y", TensorProto.FLOAT, [4, 64])])
        session, reference = session_of(model, "control"), reference_of(model)
        self.assertEqual(len(programs_in("control")), 1)
        for condition in (True, False):
            feeds = {"x": np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32), "condition": np.array(condition)}
            assert_agrees(session.run(None, feeds)[0], reference.run(None, feeds)[0])

    def test_an_initializer_that_may_be_overridden_stays_an_input(self):
        inputs = [("x", TensorProto.FLOAT, [2, 3]), ("offset", TensorProto.FLOAT, [3])]
        model = models.model([helper.make_node("Add", ["x", "offset"], ["y"])], inputs, [("y", TensorProto.FLOAT, [2, 3])],
                             [("offset", np.array([1, 2, 3], np.float32))])
        session = session_of(model, "overridden")
        x = np.zeros((2, 3), np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0][0], [1, 2, 3])
        np.testing.assert_array_equal(session.run(None, {"x": x, "offset": np.array([7, 8, 9], np.float32)})[0][0], [7, 8, 9])

    def test_threads_of_an_application_run_one_session(self):
        model = models.convolutions()
        session = session_of(model, "whole")
        feeds = [feeds_of(session, seed) for seed in range(8)]
        serial = [session.run(None, one)[0] for one in feeds]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for found, expected in zip(pool.map(lambda one: session.run(None, one)[0], feeds * 10), serial * 10):
                np.testing.assert_array_equal(found, expected)

    def test_onnx_runtime_inside_of_onnx_runtime(self):
        """A program whose kernels are those of ONNX Runtime, in the process of ONNX Runtime."""
        model = models.convolutions()
        session = session_of(model, "inside", targets="cpu -compiler=onnxruntime")
        self.check_same(model, session)

    def test_processes_at_once_compile_once(self):
        script = textwrap.dedent(f"""
            import sys
            sys.path.insert(0, {os.path.dirname(__file__)!r})
            import numpy, onnxruntime, models
            from collage import onnxruntime_provider
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 2
            onnxruntime_provider.add_to(options, budget=1.5, threads=2, cache={str(folder("at_once"))!r}, prices={models.CACHE.name!r})
            session = onnxruntime.InferenceSession(models.perceptron().SerializeToString(), options)
            print(session.run(["sums"], {{"x": numpy.ones((4, 64), numpy.float32)}})[0].shape)
            """)
        processes = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        outputs = [process.communicate(timeout=120) for process in processes]
        self.assertEqual([(process.returncode, output) for process, (output, _) in zip(processes, outputs)], [(0, "(4,)\n")] * 2, outputs)
        self.assertEqual(sum("compiles for at most" in errors for _, errors in outputs), 1, outputs)


if __name__ == "__main__":
    unittest.main()
