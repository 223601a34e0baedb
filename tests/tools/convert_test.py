"""Plans written as ONNX models, which other tools open and run. Usage: convert_test.py BINARY [unittest arguments]"""

import json

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import profiles_test
from command_line import CommandLineTestCase, main


def if_model(path):
    """y = x where the first of x is positive, else -x."""
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    bodies = [helper.make_graph([helper.make_node(op, ["x"], ["y"])], op, [], [value]) for op in ("Identity", "Neg")]
    graph = helper.make_graph(
        [
            helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
            helper.make_node("Greater", ["most", "zero"], ["condition"]),
            helper.make_node("If", ["condition"], ["z"], then_branch=bodies[0], else_branch=bodies[1]),
        ],
        "branch",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [4])],
        [numpy_helper.from_array(np.float32(0), "zero")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def found_model(path):
    """What of x is not zero: as many as there are."""
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("NonZero", ["y"], ["z"])],
        "found",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("z", TensorProto.INT64, [1, None])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


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
        target, _ = self.convert(self.program)
        self.assertEqual(self.collage("run", self.program, "--inputs", self.inputs, "--output", self.folder / "own").returncode, 0)
        again = self.collage("run", target, "--inputs", self.inputs, "--output", self.folder / "again", "--reference")
        self.assertEqual(again.returncode, 0, again.stderr)
        session = onnxruntime.InferenceSession(target, providers=["CPUExecutionProvider"])
        self.assertEqual([output.name for output in session.get_outputs()], ["y", "z"])
        found = [session.run(["y", "z"], {"x": self.input}), ReferenceEvaluator(str(target)).run(["y", "z"], {"x": self.input})]
        found.append([np.load(self.folder / f"again/{name}.npy") for name in ("y", "z")])
        for outputs in found:
            for name, output in zip(("y", "z"), outputs):
                np.testing.assert_allclose(output, np.load(self.folder / f"own/{name}.npy"), atol=1e-5)

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

    def test_what_is_in_no_partition_is_an_error(self):
        for write, part in ((if_model, "control flow"), (found_model, "extents that depend on data")):
            write(self.folder / "model.onnx")
            program = self.folder / "special.collage"
            done = self.compile(self.folder / "model.onnx", "--budget", "2s", output=program)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_user_error(self.collage("convert", program, "--to", "plan.onnx"), "special.collage", part)

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
