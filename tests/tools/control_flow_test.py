"""Models with control flow are compiled, saved, loaded and run, and give what ONNX Runtime gives.

Usage: control_flow_test.py BINARY FOLDER, which tests/onnx/make_control_flow.py has filled."""

import json
import pathlib
import sys

import numpy as np

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


class ControlFlowTest(InOneFolderTestCase):
    def compile(self, name, *words):
        program = self.folder / (name + ".collage")
        done = self.collage("compile", CASES / (name + ".onnx"), "-o", program, "--cache", self.cache, "--budget", "10s", "--threads", 1, *words)
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
