"""Plans written as ONNX models, which other tools open and run. Usage: convert_test.py BINARY [unittest arguments]"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import profiles_test
import strings_test
from command_line import BINARY, CommandLineTestCase, main

sys.path.insert(0, str(pathlib.Path(BINARY).parent.parent / "python"))
import collage  # noqa: E402


def integer_model(path):
    """a = QLinearConv(x), in two groups, moved by zero points; b = MatMul of z as bytes, quantised as it comes; c = QLinearMatMul of a."""
    random = np.random.default_rng(3)
    constants = {
        "step": np.float32(0.1),
        "zero": np.uint8(7),
        "kernel": random.integers(-127, 128, (6, 2, 3, 3)).astype(np.int8),
        "kernel_steps": random.uniform(0.001, 0.002, 6).astype(np.float32),
        "kernel_zeros": np.zeros(6, np.int8),
        "middle": np.uint8(120),
        "bias": random.integers(-900, 900, 6).astype(np.int32),
        "row": np.array([1, -1]),
        "matrix": random.integers(-127, 128, (150, 5)).astype(np.int8),
        "matrix_step": np.float32(0.002),
        "matrix_zero": np.int8(0),
        "other": random.integers(-63, 64, (4, 4, 3, 3)).astype(np.int8),
    }
    nodes = [
        helper.make_node("QLinearConv", ["x", "step", "zero", "kernel", "kernel_steps", "kernel_zeros", "step", "middle", "bias"], ["a"],
                         group=2, pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Reshape", ["a", "row"], ["flat"]),
        helper.make_node("QLinearMatMul", ["flat", "step", "middle", "matrix", "matrix_step", "matrix_zero", "step", "middle"], ["c"]),
        helper.make_node("DynamicQuantizeLinear", ["z"], ["z_bytes", "z_step", "z_zero"]),
        helper.make_node("ConvInteger", ["z_bytes", "other", "z_zero"], ["sums"], pads=[1, 1, 1, 1]),
        helper.make_node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["real", "z_step"], ["b"]),
    ]
    outputs = [("a", TensorProto.UINT8, [1, 6, 5, 5]), ("b", TensorProto.FLOAT, [1, 4, 9, 9]), ("c", TensorProto.UINT8, [1, 5])]
    graph = helper.make_graph(
        nodes,
        "integers",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 4, 9, 9]), helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 4, 9, 9])],
        [helper.make_tensor_value_info(*output) for output in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def qdq_model(path):
    """y = Q(Relu(Conv(DQ(Q(x)), DQ(w)))) as numbers again."""
    random = np.random.default_rng(3)
    constants = {
        "step": np.float32(0.05),
        "zero": np.uint8(128),
        "none": np.uint8(0),
        "kernel": random.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8),
        "kernel_steps": random.uniform(0.002, 0.004, 8).astype(np.float32),
        "kernel_zeros": np.zeros(8, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["bytes"]),
        helper.make_node("DequantizeLinear", ["bytes", "step", "zero"], ["numbers"]),
        helper.make_node("DequantizeLinear", ["kernel", "kernel_steps", "kernel_zeros"], ["weights"], axis=0),
        helper.make_node("Conv", ["numbers", "weights"], ["sums"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["sums"], ["active"]),
        helper.make_node("QuantizeLinear", ["active", "step", "none"], ["y_bytes"]),
        helper.make_node("DequantizeLinear", ["y_bytes", "step", "none"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "qdq",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


class ConvertTest(CommandLineTestCase):
    def convert(self, program, *words):
        target = self.folder / "plan.onnx"
        done = self.collage("convert", program, "--to", target, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        onnx.checker.check_model(target, full_check=True)
        return target, done.stdout

    def test_each_partition_of_the_report_is_a_function_that_says_who_runs_it(self):
        target, said = self.convert(self.program)
        model, plan = onnx.load(target), json.loads(self.report.read_text())["plan"]
        nodes = {node.name: node for node in model.graph.node if node.domain == "collage"}
        self.assertEqual(sorted(nodes), sorted(partition["partition"] for partition in plan))
        functions = {function.name: function for function in model.functions}
        self.assertEqual(said, f"{target}: partitions: {len(nodes)}, functions: {len(functions)}\n")
        for partition in plan:
            node = nodes[partition["partition"]]
            remarks = {entry.key: entry.value for entry in node.metadata_props}
            self.assertEqual(remarks["collage.backend"], partition["backend"])
            self.assertEqual(remarks["collage.variant"], partition["variant"])
            self.assertEqual(remarks["collage.nodes"], ", ".join(partition["nodes"]))
            self.assertEqual(remarks["collage.target"], "cpu:0")
            self.assertEqual(float(remarks["collage.price_us"]), round(partition["cost_us"], 3))
            self.assertEqual(functions[node.op_type].domain, "collage")

    def test_onnx_runtime_the_reference_and_collage_give_the_results_of_the_program(self):
        self.assertEqual(self.collage("run", self.program, "--inputs", self.inputs, "--output", self.folder / "own").returncode, 0)
        for words in ([], ["--plain"]):
            target, _ = self.convert(self.program, *words)
            again = self.collage("run", target, "--inputs", self.inputs, "--output", self.folder / "again", "--reference")
            self.assertEqual(again.returncode, 0, again.stderr)
            session = onnxruntime.InferenceSession(target, providers=["CPUExecutionProvider"])
            self.assertEqual([output.name for output in session.get_outputs()], ["y", "z"])
            found = [session.run(["y", "z"], {"x": self.input}), ReferenceEvaluator(str(target)).run(["y", "z"], {"x": self.input})]
            found.append([np.load(self.folder / f"again/{name}.npy") for name in ("y", "z")])
            for outputs in found:
                for name, output in zip(("y", "z"), outputs):
                    np.testing.assert_allclose(output, np.load(self.folder / f"own/{name}.npy"), atol=1e-5)

    def test_plain_nodes_say_who_runs_them(self):
        target, said = self.convert(self.program, "--plain")
        model, plan = onnx.load(target), json.loads(self.report.read_text())["plan"]
        onnx.checker.check_model(target, full_check=True)
        self.assertEqual(said, f"{target}: partitions: {len(plan)}, functions: 0\n")
        self.assertEqual({node.domain for node in model.graph.node}, {""})
        backends = {entry.value for node in model.graph.node for entry in node.metadata_props if entry.key == "collage.backend"}
        self.assertEqual(backends, {partition["backend"] for partition in plan})

    def check_form(self, path, inputs, *words, tolerance=0.0):
        program = self.folder / "form.collage"
        done = self.compile(path, "--budget", "4s", *words, output=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.check_written(program, path, inputs, tolerance)

    def check_written(self, program, path, inputs, tolerance):
        """What ONNX Runtime and Collage's reference make of the written form is what ONNX Runtime makes of the model. The written nodes' types."""
        target, _ = self.convert(program)
        expected = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)
        session = onnxruntime.InferenceSession(target, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        np.savez(self.folder / "form.npz", **{name: value.astype("U") if value.dtype == object else value for name, value in inputs.items()})
        again = self.collage("run", target, "--reference", "--inputs", self.folder / "form.npz", "--output", self.folder / "form")
        self.assertEqual(again.returncode, 0, again.stderr)
        for outputs in (session.run(names, inputs), [np.load(self.folder / f"form/{name}.npy") for name in names]):
            for found, right in zip(outputs, expected):
                if right.dtype == object or right.dtype == bool:
                    self.assertEqual(found.tolist(), right.tolist())
                else:
                    np.testing.assert_allclose(found.astype(np.float64), right.astype(np.float64), rtol=0, atol=tolerance)
        return {node.op_type for function in onnx.load(target).functions for node in function.node}

    def test_products_of_integers_are_written_as_onnx_has_them(self):
        path = self.folder / "integers.onnx"
        integer_model(path)
        random = np.random.default_rng(4)
        inputs = {"x": random.integers(0, 256, (1, 4, 9, 9)).astype(np.uint8), "z": random.standard_normal((1, 4, 9, 9)).astype(np.float32)}
        # Bytes may differ by one.
        self.check_form(path, inputs, "--target", "cpu", "--forbid", "forms", tolerance=1)
        # Of kernels that cost the same whatever they hold, the fewest are taken, and those see the bytes behind the integers.
        program = self.folder / "together.collage"
        collage.compile(path, program, targets=["cpu -compiler=reference"], forbid=["forms"], estimator=lambda function, target: 1e-6)
        types = self.check_written(program, path, inputs, tolerance=1)
        self.assertTrue({"ConvInteger", "MatMulInteger", "QuantizeLinear"} <= types, types)
        self.assertTrue(types.isdisjoint({"MatMul", "Conv"}), types)

    def test_qdq_is_written_as_it_came(self):
        path = self.folder / "qdq.onnx"
        qdq_model(path)
        inputs = {"x": np.random.default_rng(4).standard_normal((1, 3, 8, 8)).astype(np.float32)}
        types = self.check_form(path, inputs, "--target", "cpu", tolerance=0.0501)
        self.assertTrue({"QuantizeLinear", "DequantizeLinear"} <= types, types)

    def test_strings_are_written(self):
        path = self.folder / "labelled.onnx"
        path.write_bytes(strings_test.labelled().SerializeToString())
        inputs = {"x": np.random.default_rng(4).standard_normal((1, 8)).astype(np.float32), "prefix": np.array(["a "], object)}
        types = self.check_form(path, inputs, tolerance=1e-4)
        self.assertIn("StringConcat", types)

    def test_what_is_no_program_and_what_cannot_be_written_are_errors(self):
        self.assert_user_error(self.collage("convert", self.model, "--to", "plan.onnx"), str(self.model), "collage compile")
        self.assert_user_error(self.collage("convert", self.folder / "none", "--to", "plan.onnx"), "none")
        self.assert_user_error(self.collage("convert", self.program, "--to", "plan.dot"), "--to plan.dot", "NAME.onnx")
        self.assert_user_error(self.collage("convert", self.program, "--to", "nowhere/plan.onnx"), "nowhere")
        self.assert_user_error(self.collage("convert", self.program), "--to")
        self.assert_user_error(self.collage("convert", self.program, "--to", "plan.onnx", "--shape", "x=2x3x16x16"), "--shape x=2x3x16x16")
        damaged = self.folder / "damaged.collage"
        damaged.write_bytes(self.program.read_bytes()[:-9])
        self.assert_user_error(self.collage("convert", damaged, "--to", "plan.onnx"), "damaged.collage")
        self.assertEqual(list(self.folder.glob("*.onnx")), [])

    def test_one_profile_is_written(self):
        profiles_test.symbolic_model(self.folder / "symbolic.onnx")
        program = self.folder / "both.collage"
        shapes = [(1, 4), (3, 7)]
        done = self.compile(self.folder / "symbolic.onnx", "--budget", "5s", *profiles_test.shapes(*shapes), output=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words, (batch, length) in (([], shapes[0]), (["--shape", f"x=3x7x{profiles_test.WIDTH}"], shapes[1])):
            target, said = self.convert(program, *words)
            self.assertIn(f"profile x={batch}x{length}x{profiles_test.WIDTH}", said)
            generator = np.random.default_rng(1)
            x, b = (generator.standard_normal(shape).astype(np.float32) for shape in ((batch, length, profiles_test.WIDTH), (length, 512)))
            (expected,) = onnxruntime.InferenceSession(self.folder / "symbolic.onnx", providers=["CPUExecutionProvider"]).run(None, {"x": x, "b": b})
            (found,) = onnxruntime.InferenceSession(target, providers=["CPUExecutionProvider"]).run(None, {"x": x, "b": b})
            np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
        wrong = self.collage("convert", program, "--to", "plan.onnx", "--shape", f"x=9x9x{profiles_test.WIDTH}")
        self.assert_user_error(wrong, "no profile", "x=9x9")


if __name__ == "__main__":
    main()
