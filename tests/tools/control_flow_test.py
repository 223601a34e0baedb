"""Models with control flow are compiled, saved, loaded and run, and give what ONNX Runtime gives.

Usage: control_flow_test.py BINARY FOLDER, which tests/onnx/make_control_flow.py has filled."""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from command_line import InOneFolderTestCase, main

CASES = pathlib.Path(sys.argv.pop(1))

# Models by name, and the cases whose data each is run on.
MODELS = {
    "if_positive_13": ["if_positive_13", "if_negative_13"],
    "if_two_outputs_19": ["if_two_outputs_19"],
    "if_outer_value_16": ["if_outer_value_16"],
    "if_nested_True_True_13": [f"if_nested_{p}_{q}_13" for p in (False, True) for q in (False, True)],
    "loop_scan_output_13": ["loop_scan_output_13"],
    "loop_while_13": ["loop_while_13"],
    "loop_bounded_while_13": ["loop_bounded_while_13"],
    "loop_first_condition_13": ["loop_first_condition_13"],
    "if_in_loop_13": ["if_in_loop_13"],
    "loop_in_loop_13": ["loop_in_loop_13"],
    "loop_in_if_True_13": ["loop_in_if_True_13", "loop_in_if_False_13"],
    "scan_recurrent_13": ["scan_recurrent_13"],
    "scan_axes_11": ["scan_axes_11"],
    "loop_in_function_13": ["loop_in_function_13"],
}


def cancelling_model(path, place):
    """Ones, and their product with columns that add up to nothing: all that float32 gives is rounding. An If makes the ones, the product as well, or nothing."""
    random = np.random.default_rng(3)
    weight = random.standard_normal((64, 8)).astype(np.float32)
    weight[-1] = -weight[:-1].astype(np.float64).sum(axis=0)
    branches = {}
    for branch in ("then", "else"):
        ones = branch + "_ones"
        result = helper.make_tensor_value_info(branch, TensorProto.FLOAT, [2, 8 if place == "in a block" else 64])
        nodes = [
            helper.make_node("Sub", ["x", "x"], [branch + "_zeros"]),
            helper.make_node("Max", [branch + "_zeros", "one"], [ones]),
            helper.make_node("MatMul", [ones, "w"], [branch]) if place == "in a block" else helper.make_node("Identity", [ones], [branch]),
        ]
        branches[branch + "_branch"] = helper.make_graph(nodes, branch, [], [result])
    choice = [
        helper.make_node("ReduceMax", ["x"], ["largest"], keepdims=0),
        helper.make_node("Greater", ["largest", "half"], ["condition"]),
        helper.make_node("If", ["condition"], ["else"], **branches),
    ]
    product = helper.make_node("Identity", ["else"], ["y"]) if place == "in a block" else helper.make_node("MatMul", ["else", "w"], ["y"])
    nodes = [*(nodes if place == "without blocks" else choice), product]
    constants = [numpy_helper.from_array(np.array(value), name) for name, value in (("half", np.float32(0.5)), ("one", np.float32(1)), ("w", weight))]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 8])
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


class ControlFlowTest(InOneFolderTestCase):
    def compile(self, name, *words):
        program = self.folder / (name + ".collage")
        done = self.collage("compile", CASES / (name + ".onnx"), "-o", program, "--cache", self.cache, "--budget", "3s", "--threads", 1, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def assert_right(self, program, case, *words):
        arrays = np.load(CASES / (case + ".npz"))
        np.savez(self.folder / "in.npz", **{name[3:]: value for name, value in arrays.items() if name.startswith("in:")})
        output = self.folder / "out"
        done = self.collage("run", program, "--inputs", self.folder / "in.npz", "--output", output, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, expected in arrays.items():
            if name.startswith("out:"):
                np.testing.assert_allclose(np.load(output / (name[4:] + ".npy")), expected, rtol=1e-4, atol=1e-4, err_msg=f"{case} {name}")

    def test_programs_give_what_onnxruntime_gives(self):
        for name, cases in MODELS.items():
            program = self.compile(name)
            for case in cases:
                with self.subTest(model=name, case=case):
                    self.assert_right(program, case)

    def test_a_branch_that_does_not_fit_fails_where_a_run_takes_it(self):
        program = self.compile("if_one_branch_fits_16", "--json", self.folder / "report.json")
        # Random rates are none of the model's: the comparison takes those that it asks about.
        self.assertIsNotNone(json.loads((self.folder / "report.json").read_text())["difference_from_reference"].get("chosen"))
        self.assert_right(program, "if_one_branch_fits_16")
        np.savez(self.folder / "other.npz", x=np.ones((2, 8), np.float32), rate=np.int64(8000))
        done = self.collage("run", program, "--inputs", self.folder / "other.npz")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("node 'rates': the run takes a branch that does not fit the program: else_branch: node 0 giving 'n' (MatMul, opset 16)", done.stderr)
        done = self.collage("convert", program, "--to", self.folder / "plan.onnx")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("no node of ONNX only fails", done.stderr)

    def test_kernels_may_be_compiled_again(self):
        self.assert_right(self.compile("if_in_loop_13"), "if_in_loop_13", "--recompile")

    def test_a_second_compile_measures_nothing(self):
        self.compile("if_in_loop_13")
        report = self.folder / "report.json"
        second = self.compile("if_in_loop_13", "--json", report).read_bytes()
        self.assertEqual(json.loads(report.read_text())["candidates"]["variants"]["measured"], 0)
        self.assertFalse(json.loads(report.read_text())["raced"])
        self.assertEqual(second, self.compile("if_in_loop_13").read_bytes())

    def test_explains_partitions_by_their_blocks(self):
        done = self.collage("explain", self.compile("if_in_loop_13"), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        blocks = {entry["partition"].split(":")[0] for entry in json.loads(done.stdout)["plan"]}
        self.assertEqual(blocks, {"block", "block_1", "block_2", "block_3"})

    def test_what_is_right_apart_and_wrong_together_runs_on_the_reference(self):
        for place, missing in (("across blocks", "searched, block by block"), ("in a block", r"block_\d: searched"), ("without blocks", "searched")):
            with self.subTest(place):
                self.check_cancelling(place, missing)

    def check_cancelling(self, place, missing):
        path = self.folder / "cancelling.onnx"
        cancelling_model(path, place)
        program = self.folder / "cancelling.collage"
        done = self.collage("compile", path, "-o", program, "--cache", self.cache, "--budget", "5s", "--threads", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, missing + " +did not race: differs .*, although each of its (blocks|kernels) agrees")
        results = []
        for words in ([program], [path, "--reference"]):
            ran = self.collage("run", *words, "--random", 1, "--output", self.folder / "out")
            self.assertEqual(ran.returncode, 0, ran.stderr)
            results.append(np.load(self.folder / "out/y.npy"))
        np.testing.assert_array_equal(*results)

    def test_pins_hold_in_the_block_of_their_node(self):
        program = self.compile("if_in_loop_13", "--pin", "nn.matmul=reference")
        text = self.collage("explain", program, "--json").stdout
        pinned = [entry for entry in json.loads(text)["plan"] if "nn.matmul" in entry["operators"]]
        self.assertEqual([entry["backend"] for entry in pinned], ["reference"])
        self.assert_right(program, "if_in_loop_13")

    def test_a_pin_on_nothing_is_an_error(self):
        done = self.collage(
            "compile", CASES / "if_in_loop_13.onnx", "-o", self.folder / "x.collage", "--cache", self.cache, "--pin", "nowhere=reference"
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("no node and calls no operator 'nowhere'", done.stderr)


if __name__ == "__main__":
    main()
