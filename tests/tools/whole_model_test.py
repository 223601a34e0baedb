"""The model as it came, beside our form of it. Usage: whole_model_test.py BINARY [unittest arguments]"""

import json

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from command_line import CommandLineTestCase, main

COMPILERS = ("openvino", "onnxruntime")


def weights():
    """Of a convolution and the batch normalization behind it, which our passes fold into one."""
    generator = np.random.default_rng(5)
    values = {
        "w": generator.standard_normal((64, 32, 3, 3)) / 17,  # large: prices draw such weights anew, verdicts must not
        "scale": generator.uniform(0.5, 2, 64),
        "shift": generator.standard_normal(64),
        "mean": generator.standard_normal(64),
        "variance": generator.uniform(0.5, 2, 64),
    }
    return [numpy_helper.from_array(value.astype(np.float32), name) for name, value in values.items()]


def tensor(name, shape, element_type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, element_type, shape)


def make_model(path, batch=1, listed=False, unread=False, as_nodes=False, external=False, ir_version=8):
    """y = HardSwish(BatchNormalization(Conv(x))), which ONNX of the version that we write has no single operators for; z = Mean(y).

    `listed`: its initializers are inputs, too. `unread`: it has an input that nobody reads. `as_nodes`: weights are nodes of type Constant.
    """
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"], name="second"),
        helper.make_node("HardSwish", ["n"], ["y"], name="third"),
        helper.make_node("GlobalAveragePool", ["y"], ["z"], name="fourth"),
    ]
    inputs = [tensor("x", [batch, 32, 10, 10])]
    initializers = weights()
    if unread:
        inputs.insert(0, tensor("nobody", [3]))
    if listed:
        inputs += [tensor(one.name, list(one.dims)) for one in initializers]
    if as_nodes:
        nodes = [helper.make_node("Constant", [], [one.name], value=one) for one in initializers] + nodes
        initializers = []
    graph = helper.make_graph(nodes, "whole", inputs, [tensor("z", None), tensor("y", None)], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=ir_version)
    if external:
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=100)
    else:
        path.write_bytes(model.SerializeToString())


def save_packed_products(path):
    """y = Relu(MatMulNBits(x)): of another domain, whose large weights a compiler may ask for while it reads the model. z = Mean(y)."""
    generator = np.random.default_rng(7)
    inner, columns, block = 256, 1024, 32
    weights = [
        numpy_helper.from_array(generator.integers(0, 256, (columns, inner // block, block // 2), dtype=np.uint8), "bits"),
        numpy_helper.from_array(generator.uniform(0.01, 0.02, columns * inner // block).astype(np.float32), "scales"),
    ]
    nodes = [
        helper.make_node(
            "MatMulNBits", ["x", "bits", "scales"], ["p"], name="product", domain="com.microsoft", K=inner, N=columns, bits=4, block_size=block
        ),
        helper.make_node("Relu", ["p"], ["y"], name="relu"),
        helper.make_node("ReduceMean", ["y"], ["z"], name="mean", axes=[1], keepdims=0),
    ]
    graph = helper.make_graph(nodes, "packed", [tensor("x", [1, 16, inner])], [tensor("z", None), tensor("y", None)], weights)
    domains = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=domains, ir_version=8).SerializeToString())


class WholeModelTest(CommandLineTestCase):
    @classmethod
    def setUpClass(cls):
        """Nothing is compiled for all."""

    def compiled(self, *words, compilers=COMPILERS):
        """Compiles model.onnx; the prices of the given compilers' variants, by both names."""
        targets = [word for name in compilers for word in ("--target", f"cpu -compiler={name}")]
        cache = self.folder / "prices.sqlite"
        done = self.collage(
            "compile", "model.onnx", "-o", "out.collage", "--cache", cache, "--threads", "1", "--budget", "20s", *targets, *words
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        exported = self.folder / "prices.jsonl"
        self.assertEqual(self.collage("cache", "export", exported, "--cache", cache).returncode, 0)
        lines = [json.loads(line) for line in exported.read_text().splitlines()]
        prices = {}
        for line in lines:
            if line.get("backend") in compilers and line.get("fact", "kernel") == "kernel":
                prices.setdefault((line["backend"], line["variant"]), []).append(line)
        return prices

    def assert_offered(self, prices, times=1):
        for name in COMPILERS:
            originals = prices.get((name, "original"), [])
            self.assertEqual(len(originals), times, name)
            for line in originals:
                self.assertEqual(line.get("invalid_reason", ""), "", name)
                self.assertTrue(line["samples"], name)

    def assert_right(self, **inputs):
        np.savez(self.folder / "in.npz", **inputs)
        done = self.collage("run", "out.collage", "--inputs", "in.npz", "--output", "o")
        self.assertEqual(done.returncode, 0, done.stderr)
        session = onnxruntime.InferenceSession(self.folder / "model.onnx", providers=["CPUExecutionProvider"])
        for name, expected in zip(("z", "y"), session.run(["z", "y"], inputs)):
            found = np.load(self.folder / "o" / f"{name}.npy")
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.abs(expected).max())

    @staticmethod
    def image(batch=1):
        return np.random.default_rng(6).standard_normal((batch, 32, 10, 10)).astype(np.float32)

    def test_both_forms_are_priced_and_the_program_needs_no_model(self):
        make_model(self.folder / "model.onnx")
        prices = self.compiled()
        self.assert_offered(prices)
        for name in COMPILERS:
            self.assertIn((name, "rewritten"), prices)
        self.assert_right(x=self.image())

    def test_initializers_that_are_inputs_are_weights(self):
        make_model(self.folder / "model.onnx", listed=True, ir_version=3)
        self.assert_offered(self.compiled())
        self.assert_right(x=self.image())

    def test_inputs_that_nobody_reads_are_left_out(self):
        make_model(self.folder / "model.onnx", unread=True)
        self.assert_offered(self.compiled())
        self.assert_right(nobody=np.zeros(3, np.float32), x=self.image())

    def test_weights_may_be_nodes(self):
        make_model(self.folder / "model.onnx", as_nodes=True)
        self.assert_offered(self.compiled())
        self.assert_right(x=self.image())

    def test_weights_may_lie_beside_the_model(self):
        make_model(self.folder / "model.onnx", external=True)
        self.assert_offered(self.compiled())
        (self.folder / "weights.bin").rename(self.folder / "elsewhere.bin")
        (self.folder / "model.onnx").rename(self.folder / "elsewhere.onnx")
        make_model(self.folder / "model.onnx")
        self.assert_right(x=self.image())

    def test_products_of_packed_weights_are_given_to_compilers_as_they_came(self):
        save_packed_products(self.folder / "model.onnx")
        self.assert_offered(self.compiled())
        self.assert_right(x=np.random.default_rng(6).standard_normal((1, 16, 256)).astype(np.float32))

    def test_each_profile_has_the_model_in_its_shapes(self):
        make_model(self.folder / "model.onnx", batch="batch")
        self.assert_offered(self.compiled("--shape", "x=1x32x10x10", "--shape", "x=2x32x10x10"), times=2)
        for batch in (1, 2):
            self.assert_right(x=self.image(batch))

    def test_a_forbid_leaves_no_whole_model(self):
        make_model(self.folder / "model.onnx")
        prices = self.compiled("--forbid", "openvino:first")
        self.assertNotIn(("openvino", "original"), prices)
        self.assertIn(("onnxruntime", "original"), prices)


if __name__ == "__main__":
    main()
