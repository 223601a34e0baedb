"""compile --precision: what is permitted, what it gave, and what is refused. Usage: precision_test.py BINARY [unittest arguments]"""

import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from command_line import InOneFolderTestCase, main


WIDE = 2048


def make_decode_model(path):
    """One step of a model of a few wide layers, whose weights no second-level cache holds: reading them is what takes its time."""
    generator = np.random.default_rng(6)

    def weights(name, *shape):
        return numpy_helper.from_array((generator.standard_normal(shape) / np.sqrt(WIDE)).astype(np.float32), name)

    graph = helper.make_graph(
        [
            helper.make_node("Gemm", ["x", "w1", "b1"], ["c1"], name="first"),
            helper.make_node("Relu", ["c1"], ["r1"], name="second"),
            helper.make_node("MatMul", ["r1", "w2"], ["c2"], name="third"),
            helper.make_node("Add", ["c2", "x"], ["a2"], name="fourth"),
            helper.make_node("Gemm", ["a2", "w3"], ["y"], name="fifth", transB=1),
        ],
        "decode",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, WIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2 * WIDE])],
        [weights("w1", WIDE, WIDE), weights("b1", WIDE), weights("w2", WIDE, WIDE), weights("w3", 2 * WIDE, WIDE)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def make_model(path):
    """Convolutions that are worth computing with fewer bits where the processor has that, and a product."""
    generator = np.random.default_rng(3)

    def weights(name, *shape):
        return numpy_helper.from_array((generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32), name)

    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w1"], ["c1"], name="first", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c1"], ["r1"], name="second"),
            helper.make_node("Conv", ["r1", "w2"], ["c2"], name="third", pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["c2"], ["r2"], name="fourth"),
            helper.make_node("GlobalAveragePool", ["r2"], ["p"], name="fifth"),
            helper.make_node("Flatten", ["p"], ["f"], name="sixth"),
            helper.make_node("Gemm", ["f", "w3"], ["y"], name="seventh", transB=1),
        ],
        "precision",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64, 56, 56])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10])],
        [weights("w1", 128, 64, 3, 3), weights("w2", 128, 128, 3, 3), weights("w3", 10, 128)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


class PrecisionTest(InOneFolderTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make_model(cls.folder / "model.onnx")
        np.savez(cls.folder / "x.npz", x=np.random.default_rng(4).standard_normal((1, 64, 56, 56)).astype(np.float32))

    def compile(self, output, *words, code=0):
        arguments = ["--cache", "prices.sqlite", "--threads", "1", "--budget", "60s", "--json", output + ".json"]
        done = self.collage("compile", "model.onnx", "-o", output, *arguments, *words, code=code)
        path = pathlib.Path(self.folder, output + ".json")
        return done, json.loads(path.read_text()) if code == 0 else None

    def outputs(self, program, *words):
        self.collage("run", program, "--inputs", "x.npz", "--output", program + ".out", *words, code=0)
        return np.load(self.folder / (program + ".out") / "y.npy")

    def test_permitted(self):
        usual, without = self.compile("usual.collage")
        self.assertNotIn("precision", without)
        self.assertNotIn("bf16", usual.stdout)
        self.assertEqual([entry for entry in without["plan"] if "precision" in entry], [])
        prices = self.prices()
        self.assertGreater(len(prices), 5)

        done, report = self.compile("permitted.collage", "--precision", "bf16=0.03")
        precision = report["precision"]
        self.assertEqual((precision["permitted"], precision["tolerance"]), ("bf16", 0.03))
        taken = [entry for entry in report["plan"] if entry.get("precision") == "bf16"]
        self.assertEqual(len(taken), precision["taken"])
        difference = report["difference_from_reference"]["chosen"]
        self.assertLess(difference, 0.03)
        self.assertIn("bf16 permitted to a tolerance of 3.0e-02", done.stdout)
        processor = pathlib.Path("/proc/cpuinfo").read_text()
        if "amx_bf16" in processor:
            # Products of 16 times as many numbers: where they lost, something is wrong.
            self.assertGreater(precision["taken"], 0, done.stdout)
            self.assertGreater(difference, 1e-4)
            self.assertIn("in float32", report["end_to_end_ms"])
        if "avx512" in processor:
            self.assertGreater(precision["offered"], 0)

        # What was saved runs as any program does, and says so.
        found, expected = self.outputs("permitted.collage"), self.outputs("usual.collage")
        self.assertLess(np.abs(found - expected).max() / np.abs(expected).max(), 0.03 + 1e-4)
        explained = self.collage("explain", "permitted.collage", code=0).stdout
        self.assertIn("bf16 permitted to a tolerance of 3.0e-02", explained)
        self.assertEqual(json.loads(self.collage("explain", "permitted.collage", "--json", code=0).stdout)["precision"], precision)
        self.collage("bench", "permitted.collage", "--random", "1", "--json", "-", code=0)

        # Prices of before are as they were, and a compile without the permit takes none of the others.
        after = self.prices()
        self.assertEqual({key: after[key] for key in prices}, prices)
        _, report = self.compile("again.collage")
        self.assertEqual([entry["variant"] for entry in report["plan"] if "bf16" in entry["variant"]], [])
        self.assertNotIn("precision", report)

    def prices(self):
        """Of kernels alone, by what they are of."""
        (self.folder / "prices.jsonl").unlink(missing_ok=True)
        self.collage("cache", "export", "prices.jsonl", "--cache", "prices.sqlite", code=0)
        lines = [json.loads(line) for line in (self.folder / "prices.jsonl").read_text().splitlines()]
        kernels = [line for line in lines if line.get("fact", "kernel") == "kernel" and "samples" in line]
        return {(line["function_hash"], line["backend"], line["variant"]): line["samples"] for line in kernels}

    def test_permitted_in_branches(self):
        """Blocks of control flow are placed one by one; the whole is held to the same tolerance, and the report sums them up."""
        generator = np.random.default_rng(5)
        shape = [1, 128, 56, 56]

        def branch(name, weight):
            nodes = [helper.make_node("Conv", ["x", weight], [name + "c"], pads=[1, 1, 1, 1]), helper.make_node("Relu", [name + "c"], [name])]
            return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)])

        weights = [numpy_helper.from_array((generator.standard_normal((128, 128, 3, 3)) / 34).astype(np.float32), name) for name in ("w", "v")]
        graph = helper.make_graph(
            [helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "w"), else_branch=branch("b", "v"))], "branches",
            [helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), self.folder / "branches.onnx")
        arguments = ["--cache", "prices.sqlite", "--threads", "1", "--budget", "20s", "--json", "branches.json"]
        self.collage("compile", "branches.onnx", "-o", "branches.collage", "--precision", "bf16=0.03", *arguments, code=0)
        report = json.loads((self.folder / "branches.json").read_text())
        precision = report["precision"]
        self.assertEqual(precision["taken"], sum(entry.get("precision") == "bf16" for entry in report["plan"]))
        self.assertLess(report["difference_from_reference"]["chosen"], 0.03)
        if "amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text():
            self.assertGreater(precision["taken"], 0)
            self.assertGreater(report["difference_from_reference"]["chosen"], 1e-4)

    def test_integer_weights(self):
        make_decode_model(self.folder / "decode.onnx")
        np.savez(self.folder / "row.npz", x=np.random.default_rng(7).standard_normal((1, WIDE)).astype(np.float32))

        def compile_decode(output, *words):
            arguments = ["--cache", "prices.sqlite", "--threads", "1", "--budget", "30s", "--json", "decode.json"]
            self.collage("compile", "decode.onnx", "-o", output, *arguments, *words, code=0)
            self.collage("run", output, "--inputs", "row.npz", "--output", output + ".out", code=0)
            bytes_of_file = (self.folder / output).stat().st_size
            return json.loads((self.folder / "decode.json").read_text()), np.load(self.folder / (output + ".out") / "y.npy"), bytes_of_file

        without, expected, whole = compile_decode("whole.collage")
        self.assertNotIn("precision", without)
        self.assertGreater(whole, 16 * WIDE**2)
        report, found, rounded = compile_decode("rounded.collage", "--precision", "int8-weights")
        self.assertEqual(report["precision"]["permitted"], "int8-weights")
        self.assertGreater(report["precision"]["offered"], 0)
        # A quarter of the bytes: where that lost, something is wrong.
        self.assertGreater(report["precision"]["taken"], 0, report["plan"])
        self.assertEqual(sum(entry.get("precision") == "int8-weights" for entry in report["plan"]), report["precision"]["taken"])
        self.assertIn("in float32", report["end_to_end_ms"])
        difference = report["difference_from_reference"]["chosen"]
        self.assertGreater(difference, 1e-4)
        self.assertLess(difference, report["precision"]["tolerance"])
        self.assertLess(np.abs(found - expected).max() / np.abs(expected).max(), report["precision"]["tolerance"] + 1e-4)
        self.assertLess(rounded, whole)
        products = [entry for entry in report["plan"] if {"nn.dense", "nn.matmul"} & set(entry["operators"])]
        if all("precision" in entry for entry in products):
            self.assertLess(rounded, whole / 3)

        # Kernels that are compiled again are those of the same integers.
        self.collage("run", "rounded.collage", "--recompile", "--inputs", "row.npz", "--output", "again.out", code=0)
        np.testing.assert_array_equal(np.load(self.folder / "again.out" / "y.npy"), found)

        # What cannot be met is done in float32.
        report, found, bytes_of_file = compile_decode("strict.collage", "--precision", "int8-weights=0.0005")
        self.assertEqual(report["precision"]["taken"], 0)
        self.assertLess(report["difference_from_reference"]["chosen"], 1e-4)
        self.assertGreater(bytes_of_file, 16 * WIDE**2)

    def test_too_strict(self):
        """A tolerance that only float32 keeps."""
        done, report = self.compile("strict.collage", "--precision", "bf16=1e-5")
        self.assertEqual(report["precision"]["taken"], 0, done.stdout)
        self.assertLess(report["difference_from_reference"]["chosen"], 1e-4)

    def test_bad_values(self):
        for value, part in [("fp8", "expected bf16 or int8-weights"), ("bf16=2", "above 0 and below 1"), ("bf16=x", "above 0 and below 1")]:
            done = self.collage("compile", "model.onnx", "-o", "bad.collage", "--precision", value, code=2)
            self.assertIn(f"--precision is '{value}'", done.stderr)
            self.assertIn(part, done.stderr)
            self.assertFalse((self.folder / "bad.collage").exists())


if __name__ == "__main__":
    main()
