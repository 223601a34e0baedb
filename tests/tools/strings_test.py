"""Models that work on strings are compiled, saved and run beside kernels of numbers, and give what ONNX Runtime gives.

Usage: strings_test.py BINARY"""

import json

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from command_line import InOneFolderTestCase, main

FLOAT, STRING, BOOL = TensorProto.FLOAT, TensorProto.STRING, TensorProto.BOOL
CLASSES = np.array(["cat", "dog", "", "z\u00fcrich"], object)


def labelled():
    """x (1, 8) and prefix (1) -> label (1): the prefix and the name of the class with the highest score; known (1): whether that is one of
    those asked for; scores (1, 4)."""
    generator = np.random.default_rng(5)
    weights = [
        numpy_helper.from_array(generator.standard_normal((8, 4)).astype(np.float32), "weight"),
        helper.make_tensor("classes", STRING, [4], [text.encode() for text in CLASSES]),
        helper.make_tensor("asked", STRING, [1], [b"a dog"]),
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        helper.make_node("Gather", ["classes", "best"], ["name"]),
        helper.make_node("StringConcat", ["prefix", "name"], ["label"]),
        helper.make_node("Equal", ["label", "asked"], ["known"]),
    ]
    inputs = [helper.make_tensor_value_info("x", FLOAT, [1, 8]), helper.make_tensor_value_info("prefix", STRING, [1])]
    outputs = [helper.make_tensor_value_info(*value) for value in (("label", STRING, [1]), ("known", BOOL, [1]), ("scores", FLOAT, [1, 4]))]
    graph = helper.make_graph(nodes, "labelled", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def trees():
    """x (6, 2) -> label (6): one of three words; scores (6, 3)."""
    attributes = {
        "nodes_treeids": [0, 0, 0, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 0, 1, 2],
        "nodes_featureids": [0, 0, 0, 1, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
        "nodes_values": [0.25, 0.0, 0.0, -0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
        "class_treeids": [0, 0, 1, 1],
        "class_nodeids": [1, 2, 1, 2],
        "class_ids": [0, 1, 1, 2],
        "class_weights": [1.0, 0.5, 0.75, 2.0],
        "classlabels_strings": ["ash", "birch", "z\u00fcrich"],
    }
    node = helper.make_node("TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **attributes)
    outputs = [helper.make_tensor_value_info("label", STRING, [6]), helper.make_tensor_value_info("scores", FLOAT, [6, 3])]
    graph = helper.make_graph([node], "trees", [helper.make_tensor_value_info("x", FLOAT, [6, 2])], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=9)


class StringsTest(InOneFolderTestCase):
    def test_labels_beside_a_classifier(self):
        model = self.folder / "labelled.onnx"
        model.write_bytes(labelled().SerializeToString())
        report_file = self.folder / "report.json"
        program = self.folder / "labelled.collage"
        words = ["compile", model, "-o", program, "--threads", 1, "--budget", "5s", "--cache", self.folder / "prices.sqlite", "--json", report_file]
        self.collage(*words, code=0)
        report = json.loads(report_file.read_text())
        self.assertLess(report["difference_from_reference"]["chosen"], 1e-4)
        backends = {name: part["backend"] for part in report["plan"] for name in part["operators"]}
        self.assertEqual((backends["strings.concat"], backends["equal"]), ("reference", "reference"), "elements are numbers of a process")
        self.assertNotEqual(backends["nn.softmax"], "reference")
        peer = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        generator = np.random.default_rng(6)
        for prefix in ("a ", "", "\u00e4"):
            inputs = {"x": generator.standard_normal((1, 8)).astype(np.float32), "prefix": np.array([prefix])}
            np.savez(self.folder / "inputs.npz", **inputs)
            label, known, scores = peer.run(None, {**inputs, "prefix": inputs["prefix"].astype(object)})
            for words in ([program], [model, "--reference"]):
                self.collage("run", *words, "--inputs", self.folder / "inputs.npz", "--output", self.folder / "outputs", code=0)
                self.assertEqual(np.load(self.folder / "outputs/label.npy").tolist(), label.tolist())
                self.assertEqual(np.load(self.folder / "outputs/known.npy").tolist(), known.tolist())
                np.testing.assert_allclose(np.load(self.folder / "outputs/scores.npy"), scores, rtol=1e-4)

    def test_labels_of_decision_trees(self):
        model = self.folder / "trees.onnx"
        model.write_bytes(trees().SerializeToString())
        program = self.folder / "trees.collage"
        self.collage("compile", model, "-o", program, "--threads", 1, "--budget", "5s", "--cache", self.folder / "prices.sqlite", code=0)
        x = np.random.default_rng(7).standard_normal((6, 2)).astype(np.float32)
        np.savez(self.folder / "inputs.npz", x=x)
        label, scores = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).run(None, {"x": x})
        self.assertGreater(len(set(label)), 1)
        self.collage("run", program, "--inputs", self.folder / "inputs.npz", "--output", self.folder / "outputs", code=0)
        self.assertEqual(np.load(self.folder / "outputs/label.npy").tolist(), label.tolist())
        np.testing.assert_allclose(np.load(self.folder / "outputs/scores.npy"), scores, rtol=1e-5)

    def test_categories(self):
        node = helper.make_node("OneHotEncoder", ["x"], ["y"], domain="ai.onnx.ml", cats_strings=["ash", "z\u00fcrich"])
        values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in (("x", STRING, [2, 2]), ("y", FLOAT, [2, 2, 2]))]
        graph = helper.make_graph([node], "categories", values[:1], values[1:])
        model = self.folder / "categories.onnx"
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)]
        model.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())
        np.savez(self.folder / "inputs.npz", x=np.array([["z\u00fcrich", "ash"], ["", "ash"]]))
        self.collage("run", model, "--reference", "--inputs", self.folder / "inputs.npz", "--output", self.folder / "outputs", code=0)
        self.assertEqual(np.load(self.folder / "outputs/y.npy").tolist(), [[[0, 1], [1, 0]], [[0, 0], [1, 0]]])

    def test_nobody_else_can_be_made_to_take_strings(self):
        model = self.folder / "pinned.onnx"
        model.write_bytes(labelled().SerializeToString())
        done = self.collage("compile", model, "-o", self.folder / "pinned.collage", "--pin", "equal=native", code=2)
        self.assertIn("--pin equal=native: native does not take", done.stderr)
        self.assertIn("kernels for strings are the reference's alone", done.stderr)

    def test_the_same_model_gives_the_same_file(self):
        model = self.folder / "warm.onnx"
        model.write_bytes(labelled().SerializeToString())
        files = []
        for words in ([], ["--cache-only"], ["--cache-only"]):
            program = self.folder / "warm.collage"
            self.collage("compile", model, "-o", program, "--threads", 1, "--cache", self.folder / "warm.sqlite", *words, code=0)
            files.append(program.read_bytes())
        self.assertEqual(files[1], files[2])


if __name__ == "__main__":
    main()
