"""Attention of 8-bit integers, whose products have two computed matrices, as quantisers write it (QDQ) and as operators on integers. They run as
integers, and give what ONNX Runtime gives but for one step. Usage: quantised_attention_test.py BINARY [unittest arguments]"""

import itertools
import json
import pathlib
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

from command_line import InOneFolderTestCase, main

# Elsewhere products of bytes may saturate: the library gets none of them, and ONNX Runtime is wrong itself.
HAS_DOT_PRODUCTS = "avx512_vnni" in pathlib.Path("/proc/cpuinfo").read_text()
HEADS, ROWS, COLUMNS, WIDTH = 3, 17, 19, 24
U8, S8 = np.uint8, np.int8
# Types and zero points of queries and keys, and of weights and values.
OPERANDS = {
    "u8_s8": ((U8, 131), (S8, -9), (U8, 0), (S8, 6)),
    "s8_s8": ((S8, 4), (S8, 0), (S8, -128), (S8, -20)),
    "u8_u8": ((U8, 131), (U8, 119), (U8, 0), (U8, 134)),
}
SCALES = {"q": 0.02, "k": 0.03, "v": 0.015, "scores": 0.05, "weights": 1 / 256, "context": 0.05}


class Writer:
    def __init__(self):
        self.nodes, self.constants = [], {}

    def node(self, operator, inputs, output, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def constant(self, name, value):
        self.constants[name] = np.asarray(value)
        return name

    def parameters(self, name, dtype, zero):
        return [self.constant(name + "_scale", np.float32(SCALES[name])), self.constant(name + "_zero", np.array(zero, dtype))]

    def model(self, inputs, outputs):
        values = [[helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape) for name, dtype, shape in group]
                  for group in (inputs, outputs)]
        graph = helper.make_graph(self.nodes, "attention", *values, [numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def attention(of_operators, operands, is_moved_late=False):
    """Queries, keys and values of bytes -> scores and context, bytes too. Keys are transposed already, or all three are split into heads and
    transposed as numbers."""
    writer = Writer()
    of = dict(zip(("q", "k", "weights", "v"), operands))
    of |= {"scores": (of["q"][0], 100 if of["q"][0] == U8 else -5), "context": (of["weights"][0], 90 if of["weights"][0] == U8 else 3)}

    orders = {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]} if is_moved_late else {}

    def numbers(x, name):
        return writer.node("DequantizeLinear", [x, *writer.parameters(name, *of[name])], x + "_numbers")

    def operand(x, name):
        """The numbers of x, in heads."""
        if x not in orders:
            return numbers(x, name)
        shape = writer.constant(x + "_shape", np.array([2, -1, HEADS, WIDTH]))
        return writer.node("Transpose", [writer.node("Reshape", [numbers(x, name), shape], x + "_split")], x + "_heads", perm=orders[x])

    def product(a, a_name, b, b_name, result):
        if of_operators:
            inputs = [a, *writer.parameters(a_name, *of[a_name]), b, *writer.parameters(b_name, *of[b_name])]
            return writer.node("QLinearMatMul", [*inputs, *writer.parameters(result, *of[result])], result)
        writer.node("MatMul", [operand(a, a_name), operand(b, b_name)], result + "_product")
        return writer.node("QuantizeLinear", [result + "_product", *writer.parameters(result, *of[result])], result)

    product("q", "q", "k", "k", "scores")
    writer.node("Softmax", [numbers("scores", "scores")], "softmax", axis=-1)
    weights = writer.node("QuantizeLinear", ["softmax", *writer.parameters("weights", *of["weights"])], "weights")
    product(weights, "weights", "v", "v", "context")
    shapes = {"q": [2, HEADS, ROWS, WIDTH], "k": [2, HEADS, WIDTH, COLUMNS], "v": [2, HEADS, COLUMNS, WIDTH]}
    if is_moved_late:
        shapes = {name: [2, COLUMNS if name in "kv" else ROWS, HEADS * WIDTH] for name in shapes}
    inputs = [(name, of[name][0], shape) for name, shape in shapes.items()]
    outputs = [("scores", of["scores"][0], [2, HEADS, ROWS, COLUMNS]), ("context", of["context"][0], [2, HEADS, ROWS, WIDTH])]
    return writer.model(inputs, outputs)


def product_of_integers(operands):
    """MatMulInteger, with zero points."""
    writer = Writer()
    (a, a_zero), (b, b_zero) = operands[:2]
    zeros = [writer.constant("a_zero", np.array(a_zero, a)), writer.constant("b_zero", np.array(b_zero, b))]
    writer.node("MatMulInteger", ["a", "b", *zeros], "sums")
    return writer.model([("a", a, [5, ROWS, WIDTH]), ("b", b, [5, WIDTH, COLUMNS])], [("sums", np.int32, [5, ROWS, COLUMNS])])


def float_attention():
    """x -> queries, keys and values of heads -> context, merged."""
    writer, random, width = Writer(), np.random.default_rng(8), HEADS * WIDTH
    split = writer.constant("split", np.array([0, ROWS, HEADS, WIDTH]))
    for name, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        weight = writer.constant("w_" + name, (random.standard_normal((width, width)) / np.sqrt(width)).astype(np.float32))
        projected = writer.node("MatMul", ["x", weight], name + "_projected")
        writer.node("Transpose", [writer.node("Reshape", [projected, split], name + "_split")], name, perm=order)
    writer.node("MatMul", ["q", "k"], "scores")
    writer.node("Mul", ["scores", writer.constant("factor", np.float32(1 / np.sqrt(WIDTH)))], "scaled")
    writer.node("MatMul", [writer.node("Softmax", ["scaled"], "weights", axis=-1), "v"], "context")
    writer.node("Transpose", ["context"], "y", perm=[0, 2, 1, 3])
    return writer.model([("x", np.float32, [2, ROWS, width])], [("y", np.float32, [2, ROWS, HEADS, WIDTH])])


class Samples(quantization.CalibrationDataReader):
    def __init__(self, count):
        self.feeds = iter([{"x": np.random.default_rng(i).standard_normal((2, ROWS, HEADS * WIDTH)).astype(np.float32)} for i in range(count)])

    def get_next(self):
        return next(self.feeds, None)


class QuantisedAttentionTest(InOneFolderTestCase):
    def compile(self, file, *words):
        program, report = file.with_suffix(".collage"), file.with_suffix(".json")
        self.collage("compile", file, "-o", program, "--cache", self.cache, "--budget", "5s", "--threads", 2, "--json", report, *words, code=0)
        return program, json.loads(report.read_text())["plan"]

    def run_both(self, file, program, feed):
        """By name of an output: what the program gives, what the reference gives, and what ONNX Runtime gives."""
        np.savez(self.folder / "in.npz", **feed)
        self.collage("run", program, "--inputs", self.folder / "in.npz", "--output", self.folder / "out", code=0)
        self.collage("run", file, "--reference", "--inputs", self.folder / "in.npz", "--output", self.folder / "reference", code=0)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        peer = session.run(None, feed)
        return {name: [np.load(self.folder / way / (name + ".npy")) for way in ("out", "reference")] + [peer[i]] for i, name in enumerate(names)}

    def bytes_of(self, model, seed):
        random = np.random.default_rng(seed)
        types = {one.name: (helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type), [d.dim_value for d in one.type.tensor_type.shape.dim])
                 for one in model.graph.input}
        return {name: random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype) for name, (dtype, shape) in types.items()}

    def assert_integers(self, plan, *groups):
        """Nodes of each group are one kernel of oneDNN, which computes of integers what makes numbers of them inside."""
        for group in groups:
            found = [entry for entry in plan if set(group) <= set(entry["nodes"])]
            self.assertEqual([entry["backend"] for entry in found], ["dnnl"], f"{group}: {plan}")

    def pins(self, *nodes):
        return [word for node in nodes for word in ("--pin", node + "=dnnl")] if HAS_DOT_PRODUCTS else []

    def test_both_products_run_as_integers_and_differ_by_one_step_at_most(self):
        for name, operands in OPERANDS.items():
            for of_operators, is_moved_late in ((False, False), (True, False), (False, True)):
                with self.subTest(operands=name, of_operators=of_operators, is_moved_late=is_moved_late):
                    model = attention(of_operators, operands, is_moved_late)
                    file = self.folder / f"{name}_{of_operators}_{is_moved_late}.onnx"
                    onnx.save(model, file)
                    first, second = ["q_numbers", "k_numbers", "scores_product", "scores"], ["weights_numbers", "v_numbers", "context_product", "context"]
                    groups = [["scores"], ["context"]] if of_operators else [first, second]
                    program, plan = self.compile(file, "--forbid", "forms", *self.pins(*sum(groups, [])))
                    if HAS_DOT_PRODUCTS:
                        self.assert_integers(plan, *groups)
                    for seed in range(2):
                        found = self.run_both(file, program, self.bytes_of(model, seed))
                        self.assertGreater(np.ptp(found["scores"][1].astype(int)), 100)
                        for output, (value, reference, peer) in found.items():
                            # A score that becomes its other neighbour moves weights by 0.05 / 4 at most, from one column to others. Values are 2
                            # at most, so that is one step of the context beside its own.
                            allowed = 1 if output == "scores" else 2
                            self.assertEqual(value.dtype, peer.dtype)
                            self.assertLessEqual(np.max(np.abs(value.astype(int) - reference.astype(int))), allowed, output)
                            if HAS_DOT_PRODUCTS:
                                self.assertLessEqual(np.max(np.abs(value.astype(int) - peer.astype(int))), allowed, output)

    def test_sums_are_equal(self):
        for name, operands in OPERANDS.items():
            with self.subTest(operands=name):
                model = product_of_integers(operands)
                file = self.folder / f"sums_{name}.onnx"
                onnx.save(model, file)
                program, plan = self.compile(file, "--forbid", "forms", *self.pins("sums"))
                if HAS_DOT_PRODUCTS:
                    self.assert_integers(plan, ["sums"])
                value, reference, peer = self.run_both(file, program, self.bytes_of(model, 3))["sums"]
                np.testing.assert_array_equal(value, reference)
                if HAS_DOT_PRODUCTS:
                    np.testing.assert_array_equal(value, peer)

    @unittest.skipUnless(HAS_DOT_PRODUCTS, "this processor's products of bytes may saturate")
    def test_what_onnxruntime_quantises_runs_as_integers(self):
        plain = self.folder / "plain.onnx"
        onnx.save(float_attention(), plain)
        kinds = itertools.product((quantization.QuantType.QInt8, quantization.QuantType.QUInt8), (["MatMul"], None))
        for activations, operators in kinds:
            with self.subTest(activations=activations, operators=operators or "all"):
                file = self.folder / f"{activations}_{'some' if operators else 'all'}.onnx"
                quantization.quantize_static(plain, file, Samples(4), quant_format=quantization.QuantFormat.QDQ, activation_type=activations,
                                             weight_type=quantization.QuantType.QInt8, op_types_to_quantize=operators)
                producers = {output: one.name for one in onnx.load(file).graph.node for output in one.output}
                readers = {one.name: [producers[value] for value in one.input] for one in onnx.load(file).graph.node if one.name in ("scores", "context")}
                groups = [[name, *inputs] for name, inputs in readers.items()]
                self.assertEqual([len(group) for group in groups], [3, 3])
                program, plan = self.compile(file, "--forbid", "forms", *self.pins(*sum(groups, [])))
                self.assert_integers(plan, *groups)
                value, reference, peer = self.run_both(file, program, Samples(1).get_next())["y"]
                for other in (reference, peer):
                    self.assertLess(np.max(np.abs(value - other)), 0.02 * np.ptp(other))


if __name__ == "__main__":
    main()
