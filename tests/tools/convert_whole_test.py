"""Plans with control flow, or with what depends on data behind them, as ONNX models.

Usage: convert_whole_test.py BINARY [unittest arguments]"""

import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from command_line import InOneFolderTestCase, main

sys.path.append(str(pathlib.Path(__file__).parent.parent / "onnx"))
import case  # noqa: E402
import make_control_flow  # noqa: E402
import remainder_test  # noqa: E402
import relay_test  # noqa: E402
from remainder_test import FLOAT, INT64, node, vector  # noqa: E402


class Collected:
    """Models of make_control_flow.py by name, each with its inputs."""

    def __init__(self):
        self.models = {}

    def add(self, name, opset, nodes, inputs, constants=None, outputs=("y",), functions=()):
        self.models[f"{name}_{opset}"] = (case.make_model(opset, nodes, inputs, constants or {}, outputs, functions), inputs)


def control_flow_models():
    collected = Collected()
    for family in (make_control_flow.conditionals, make_control_flow.loops, make_control_flow.nested, make_control_flow.scans):
        family(collected)
    return collected.models


# Name, and the inputs of which other models it is run on as well.
CONTROL_FLOW = {
    "if_positive_13": ["if_negative_13"],
    "if_two_outputs_19": [],
    "if_nested_True_True_13": ["if_nested_True_False_13", "if_nested_False_True_13"],
    "loop_scan_output_11": [],
    "loop_while_13": [],
    "loop_first_condition_13": [],
    "loop_variable_trips_3_13": ["loop_variable_trips_0_13", "loop_variable_trips_7_13"],
    "if_in_loop_21": [],
    "loop_in_loop_13": [],
    "loop_in_if_True_13": ["loop_in_if_False_13"],
    "loop_in_function_13": [],
    "scan_axes_11": [],
    "scan_recurrent_13": [],
}

# Ends in either branch, nested ifs, results that are no parameters, and a parameter that is only passed on.
TAIL_RECURSION = """def @walk(%n: int64, %x: Tensor[(4), float32], %w: Tensor[(4), float32]) -> (Tensor[(4), float32], int64) {
  if (equal(%n, 0i64)) {
    (nn.relu(%x), %n)
  } else {
    let %y = add(%x, %w);
    if (greater(sum(%y), 9f)) {
      (negative(%y), %n)
    } else {
      if (greater(%n, 4i64)) { @walk(subtract(%n, 2i64), tanh(%y), %w) } else { @walk(subtract(%n, 1i64), %y, %w) }
    }
  }
}
def @main(%n: int64, %x: Tensor[(4), float32], %w: Tensor[(4), float32]) {
  @walk(%n, multiply(%x, meta[relay.Constant][0]), %w)
}
"""

FIBONACCI = """def @fib(%n: int64) -> int64 {
  if (less(%n, 2i64)) { %n } else { add(@fib(subtract(%n, 1i64)), @fib(subtract(%n, 2i64))) }
}
def @main(%n: int64) { @fib(%n) }
"""


def behind_convolution():
    """Where a convolution gives positive numbers, and their sums by a node as opset 11 has it."""
    weights = remainder_test.random_weights(3, w=(2, 3, 3, 3))
    nodes = [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "r"), node("NonZero", "r", "places"),
             node("Transpose", "places", "rows", perm=[1, 0]), node("GatherND", "r rows", "found"),
             node("ReduceSum", "found", "sum", axes=[0])]
    return remainder_test.model(nodes, {"x": (FLOAT, [1, 3, 6, 6])}, {"places": (INT64, [4, "n"]), "sum": (FLOAT, [1])}, weights, opset=11)


# What is written does not hang on whose partitions they are, and few kernels are soon measured.
TARGETS = ["--target", "cpu -compiler=dnnl", "--target", "cpu -compiler=reference"]


class ConvertWholeTest(InOneFolderTestCase):
    def compile(self, model, *words):
        self.collage("compile", model, "-o", "p.collage", "--cache", self.cache, "--budget", "1s", "--threads", 1, *TARGETS, *words, code=0)

    def convert(self, *words):
        self.collage("convert", "p.collage", "--to", "p.onnx", *words, code=0)
        onnx.checker.check_model(self.folder / "p.onnx", full_check=True)
        return onnx.load(self.folder / "p.onnx")

    def run_own(self, model, inputs, *words):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        np.savez(self.folder / "in.npz", **inputs)
        self.collage("run", model, "--inputs", "in.npz", "--output", "out", *words, code=0)
        return {path.stem: np.load(path) for path in (self.folder / "out").iterdir()}

    def assert_same(self, found, expected):
        self.assertEqual(found.keys(), expected.keys())
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4, err_msg=name)

    def assert_right(self, feeds):
        """ONNX Runtime and Collage's reference give of p.onnx what p.collage gives."""
        session = onnxruntime.InferenceSession(self.folder / "p.onnx", providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        for inputs in feeds:
            expected = self.run_own("p.collage", inputs)
            self.assert_same(dict(zip(names, session.run(names, inputs))), expected)
            self.assert_same(self.run_own("p.onnx", inputs, "--reference"), expected)

    def operators(self, graph):
        for one in graph.node:
            yield one.op_type
            for attribute in one.attribute:
                yield from self.operators(attribute.g)

    def calls(self, graph):
        for one in graph.node:
            if one.domain == "collage":
                yield one
            for attribute in one.attribute:
                yield from self.calls(attribute.g)

    def save(self, model):
        (self.folder / "m.onnx").write_bytes(model.SerializeToString())
        return "m.onnx"

    def test_control_flow(self):
        models = control_flow_models()
        for name, others in CONTROL_FLOW.items():
            with self.subTest(model=name):
                self.compile(self.save(models[name][0]))
                types = list(self.operators(self.convert().graph))
                # A loop comes back as it was; only an If that chooses among values is one.
                for op_type, is_there in (("Loop", "loop" in name or "scan" in name), ("If", "if" in name)):
                    self.assertEqual(op_type in types, is_there, types)
                self.assert_right([models[one][1] for one in [name, *others]])

    def test_it_is_compiled_again(self):
        models = control_flow_models()
        self.compile(self.save(models["if_in_loop_13"][0]))
        self.convert()
        expected = self.run_own("p.collage", models["if_in_loop_13"][1])
        self.compile("p.onnx")
        self.assert_same(self.run_own("p.collage", models["if_in_loop_13"][1]), expected)

    def test_partitions_in_graphs_say_who_runs_them(self):
        self.compile(self.save(control_flow_models()["if_in_loop_13"][0]))
        plan = json.loads(self.collage("explain", "p.collage", "--json", code=0).stdout)["plan"]
        calls = list(self.calls(self.convert().graph))
        found = [{entry.key: entry.value for entry in call.metadata_props} for call in calls]
        self.assertTrue({"collage.backend", "collage.variant", "collage.price_us"} <= found[0].keys(), found[0])
        prices = sorted((one["collage.nodes"], one["collage.price_us"]) for one in found)
        self.assertEqual(prices, sorted((", ".join(entry["nodes"]), f"{entry['cost_us']:.3f}") for entry in plan))

    def test_recursion_in_relay(self):
        (self.folder / "p.relay").write_text(TAIL_RECURSION)
        np.savez(self.folder / "p.npz", **{"0": vector(1, 2, 3, 4)})
        self.compile("p.relay")
        types = list(self.operators(self.convert().graph))
        self.assertEqual(types.count("Loop"), 1, types)
        x, w = vector(-1, 0, 1, 0.1), vector(0.1, 0.2, 0.3, 0.4)
        self.assert_right([{"n": np.array(n), "x": scale * x, "w": w} for n, scale in ((0, 1), (1, 1), (3, 2), (8, -1), (8, 4))])
        (self.folder / "p.relay").write_text(relay_test.BRANCHES)
        np.savez(self.folder / "p.npz", **{"0": 2 * np.eye(8, dtype=np.float32)})
        self.compile("p.relay")
        for words in ([], ["--plain"]):
            self.convert(*words)
            self.assert_right([{"x": np.full((2, 8), sign, np.float32)} for sign in (1, -1)])

    def test_a_recursion_that_goes_on_computing_is_an_error(self):
        (self.folder / "p.relay").write_text(FIBONACCI)
        (self.folder / "p.npz").unlink(missing_ok=True)
        self.compile("p.relay")
        done = self.collage("convert", "p.collage", "--to", "fib.onnx", code=2)
        self.assertRegex(done.stderr, "p.collage: @fib is called by @fib_else, which goes on computing then")
        self.assertFalse((self.folder / "fib.onnx").exists())

    def test_what_depends_on_data(self):
        cases = dict(remainder_test.CASES)
        cases["behind_convolution"] = (behind_convolution(), [{"x": remainder_test.image(seed)[:, :, :6, :6]} for seed in (1, 2)])
        cases["detector"] = (remainder_test.detector(heavy_tail=True),
                             [{"x": remainder_test.image(), "threshold": vector(value)} for value in remainder_test.THRESHOLDS])
        cases["box_head"] = (remainder_test.box_head(), [remainder_test.boxes_of(count) for count in (0, 5, 33)])
        # Its output has another rank in each branch, and the checker wants one of any model.
        del cases["branch"]
        for name, (model, feeds) in cases.items():
            with self.subTest(model=name):
                self.compile(self.save(model))
                self.convert()
                self.assert_right(feeds)

    def test_extents_that_only_a_run_tells_have_no_number(self):
        self.compile(self.save(remainder_test.detector()))
        graph = self.convert().graph
        extents = {output.name: [dim.dim_param or dim.dim_value for dim in output.type.tensor_type.shape.dim] for output in graph.output}
        self.assertEqual(extents, {"best_boxes": ["k", 4], "best_scores": ["k"], "best_labels": ["k"], "scores": [1, 3, 80]})

    def test_each_profile_is_written(self):
        for name in ("detector", "cut_in_one", "loop", "branch"):
            make, shapes, feeds = remainder_test.PROFILES[name]
            self.compile(self.save(make()), *remainder_test.shape_flags(shapes))
            for profile in shapes:
                with self.subTest(model=name, profile=profile):
                    self.convert(*remainder_test.shape_flags([profile]))
                    extents = {shape.split("=")[0]: tuple(map(int, shape.split("=")[1].split("x"))) for shape in profile}
                    feeds_of_profile = [feed for feed in feeds if all(feed[key].shape == shape for key, shape in extents.items())]
                    self.assertTrue(feeds_of_profile)
                    self.assert_right(feeds_of_profile)

    def test_older_and_younger_operator_sets_behind_the_cut(self):
        for opset in (9, 12, 17, 18, 22):
            with self.subTest(opset=opset):
                axes = {"axes": [1]} if opset < 13 else {}
                nodes = [node("Relu", "x", "h"), node("ReduceMax", "h", "most"), node("Gather", "h first", "column", axis=1),
                         node("Cast", "column", "chosen", to=remainder_test.BOOL), node("Compress", "h chosen", "y", axis=0),
                         node("Sub", "y most", "d"), node("Softmax", "d", "s", **({"axis": 1} if opset < 13 else {})),
                         node("ReduceSum", "s" if axes else "s one", "z", keepdims=0, **axes)]
                model = remainder_test.model(nodes, {"x": (FLOAT, [3, 4])}, {"s": (FLOAT, ["n", 4]), "z": (FLOAT, ["n"])},
                                             {"first": np.array(0), **({} if axes else {"one": np.array([1])})}, opset)
                self.compile(self.save(model))
                written = self.convert()
                self.assertEqual({one.domain: one.version for one in written.opset_import}[""], max(opset, 17))
                self.assert_right([{"x": np.array([[1, 2, 3, 4], [-1, 2, 3, 4], [2, -5, 6, last]], np.float32)} for last in (7, 8)])

    def test_what_no_younger_operator_set_has_is_an_error(self):
        values = [[helper.make_tensor_value_info(name, FLOAT, None) for name in names] for names in (("s", "e"), ("n",))]
        body = helper.make_graph([node("Add", "s e", "n")], "body", *values)
        nodes = [node("Relu", "x", "h"), node("Cast", "h", "k", to=INT64), node("Reshape", "y k", "b"),
                 helper.make_node("Scan", ["", "s0", "b"], ["z"], "old", body=body, num_scan_inputs=1)]
        inputs = {"x": (FLOAT, [3]), "y": (FLOAT, [1, 4, 2]), "s0": (FLOAT, [1, 2])}
        model = remainder_test.model(nodes, inputs, {"z": (FLOAT, [1, 2])}, {}, opset=8)
        self.compile(self.save(model))
        done = self.collage("convert", "p.collage", "--to", "old.onnx", code=2)
        self.assertIn("p.collage: node 'old' (Scan, opset 8): has no form in opset 17", done.stderr)


if __name__ == "__main__":
    main()
