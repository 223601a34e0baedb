"""Compiles a network of 8-bit integers, as quantisers write it (QDQ) and as operators on integers (QLinearConv, QLinearMatMul), and holds what it
computes against the reference executor and ONNX Runtime: one step of the last scale is rounding, more is wrong. Its products must run as integers.

Usage: quantised_test.py --collage BINARY --folder FOLDER [--budget 30s]
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

INPUT_SCALE = 0.02
STEP = 0.05  # of everything between


class Writer:
    """Nodes of a model in either form."""

    def __init__(self, of_operators):
        self.of_operators = of_operators
        self.random = np.random.default_rng(5)
        self.nodes = []
        self.constants = {}

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def node(self, operator, inputs, **attributes):
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def parameters(self, scale, zero, dtype):
        return [self.constant(np.float32(scale)), self.constant(np.array(zero, dtype))]

    def dequantize(self, x, scale, zero=0, dtype=np.uint8, **attributes):
        return self.node("DequantizeLinear", [x, *self.parameters(scale, zero, dtype)], **attributes)

    def quantize(self, x, scale=STEP, zero=0):
        return self.node("QuantizeLinear", [x, *self.parameters(scale, zero, np.uint8)])

    def product(self, operator, x, shape, scale, zero, result_zero=0, **attributes):
        """A convolution or a matrix product and a bias from bytes to bytes of STEP, of which those below `result_zero` are negative; without
        negative ones it is Relu too. Weights have a scale for each channel."""
        channels, axis = (shape[0], 0) if operator == "Conv" else (shape[1], 1)
        terms = np.prod(shape) / channels
        whole = self.random.integers(-127, 128, shape).astype(np.int8)
        scales = (self.random.uniform(0.5, 1.5, channels) / (55 * np.sqrt(terms))).astype(np.float32)
        bias = self.random.integers(-500, 2000, channels).astype(np.int32)
        weights = [self.constant(scales), self.constant(np.zeros(channels, np.int8))]
        if self.of_operators:
            inputs = [x, *self.parameters(scale, zero, np.uint8), self.constant(whole), *weights, *self.parameters(STEP, result_zero, np.uint8)]
            if operator == "Conv":
                return self.node("QLinearConv", [*inputs, self.constant(bias)], **attributes)
            return self.node("QLinearMatMul", inputs)
        numbers = self.dequantize(x, scale, zero)
        dequantized = self.node("DequantizeLinear", [self.constant(whole), *weights], axis=axis)
        real_bias = self.node("DequantizeLinear", [self.constant(bias), self.constant(scales * np.float32(scale)),
                                                   self.constant(np.zeros(channels, np.int32))], axis=0)
        if operator == "Conv":
            result = self.node("Conv", [numbers, dequantized, real_bias], **attributes)
        else:
            result = self.node("Add", [self.node("MatMul", [numbers, dequantized]), real_bias])
        return self.quantize(result if result_zero else self.node("Relu", [result]), zero=result_zero)

    def add(self, a, b):
        total = self.node("Add", [self.dequantize(a, STEP), self.dequantize(b, STEP)])
        return self.quantize(self.node("Relu", [total]))

    def model(self):
        x = self.quantize("image", INPUT_SCALE, 117)
        x = self.product("Conv", x, (32, 3, 3, 3), INPUT_SCALE, 117, pads=[1, 1, 1, 1], strides=[2, 2])
        for channels in (32, 64):
            stride = 1 if channels == 32 else 2
            before = 32 if channels == 64 else channels
            inner = self.product("Conv", x, (channels, before, 3, 3), STEP, 0, pads=[1, 1, 1, 1], strides=[stride, stride])
            inner = self.product("Conv", inner, (channels, channels, 3, 3), STEP, 0, pads=[1, 1, 1, 1])
            side = x if stride == 1 else self.product("Conv", x, (channels, before, 1, 1), STEP, 0, strides=[2, 2])
            x = self.add(inner, side)
        pooled = self.node("GlobalAveragePool", [self.dequantize(x, STEP)])
        x = self.quantize(self.node("Flatten", [pooled]))
        x = self.product("MatMul", x, (64, 96), STEP, 0)
        x = self.product("MatMul", x, (96, 10), STEP, 0, result_zero=128)
        self.nodes.append(helper.make_node("DequantizeLinear", [x, *self.parameters(STEP, 128, np.uint8)], ["scores"]))
        graph = helper.make_graph(self.nodes, "quantised", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 56, 56])],
                                  [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
                                  [numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def dynamic_model():
    """A convolution, padded, and a product, whose data are quantised as they come (DynamicQuantizeLinear), as ONNX Runtime's quantize_dynamic
    writes them. Weights have 7 bits, with which no processor's products saturate."""
    random = np.random.default_rng(6)
    nodes, constants = [], {}

    def node(operator, inputs, outputs, **attributes):
        nodes.append(helper.make_node(operator, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes))

    def layer(operator, x, shape, channels, into, **attributes):
        terms = np.prod(shape) / channels
        constants[into + "_weight"] = random.integers(-63, 64, shape).astype(np.int8)
        constants[into + "_scale"] = np.float32(1 / (36 * np.sqrt(terms)))
        node("DynamicQuantizeLinear", x, f"{into}_bytes {into}_step {into}_zero")
        node(operator, f"{into}_bytes {into}_weight {into}_zero", into + "_sums", **attributes)
        node("Cast", into + "_sums", into + "_real", to=TensorProto.FLOAT)
        node("Mul", f"{into}_step {into}_scale", into + "_factor")
        node("Mul", f"{into}_real {into}_factor", into)

    layer("ConvInteger", "image", (8, 3, 3, 3), 8, "planes", pads=[1, 1, 1, 1], strides=[2, 2])
    node("Relu", "planes", "active")
    constants["row"] = np.array([1, -1])
    node("Reshape", "active row", "features")
    layer("MatMulInteger", "features", (512, 24), 24, "product")
    constants["bias"] = random.standard_normal(24).astype(np.float32)
    node("Add", "product bias", "scores")
    graph = helper.make_graph(nodes, "dynamic", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])],
                              [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 24])],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


def check_dynamic(arguments):
    """Targets are oneDNN and generated code, which has no products of integers, and forms in float32 are forbidden: so each must be oneDNN's."""
    folder = arguments.folder / "dynamic"
    folder.mkdir(parents=True)
    file, program, report = folder / "model.onnx", folder / "model.collage", folder / "report.json"
    onnx.save(dynamic_model(), file)
    collage(arguments, "compile", file, "-o", program, "--cache", arguments.folder / "prices.sqlite", "--threads", 1, "--budget", arguments.budget,
            "--json", report, "--target", "cpu -compiler=dnnl", "--target", "cpu", "--forbid", "forms")
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    failures = []
    for shift in (0, 1, -4):  # with zero points in the middle and at both ends
        image = (np.random.default_rng(2).uniform(-1, 1, (1, 3, 16, 16)) + shift).astype(np.float32)
        np.savez(folder / "in.npz", image=image)
        expected = session.run(None, {"image": image})[0]
        for way, words in {"compiled": [program], "reference": [file, "--reference"]}.items():
            collage(arguments, "run", *words, "--inputs", folder / "in.npz", "--output", folder / way)
            difference = np.max(np.abs(np.load(folder / way / "scores.npy") - expected)) / np.ptp(expected)
            print(f"dynamic, shift {shift}: {way} differs from ONNX Runtime by {difference:.1e} of the range")
            # A number near the middle between two integers may become either: 1 of 255 steps of one of 512 terms.
            if difference > 2e-3:
                failures.append(f"{way} differs by {difference:.1e}")
    products = [entry for entry in json.loads(report.read_text())["plan"] if {"nn.conv2d", "nn.matmul"} & set(entry["operators"])]
    failures += [f"{entry['nodes']} is of {entry['backend']}" for entry in products if entry["backend"] != "dnnl"]
    if len(products) != 2:
        failures.append(f"{len(products)} products were placed")
    return [f"dynamic: {failure}" for failure in failures]


def collage(arguments, *words):
    done = subprocess.run([arguments.collage, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"collage {words[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def check(arguments, name, model):
    folder = arguments.folder / name
    folder.mkdir(parents=True)
    file, program, report = folder / "model.onnx", folder / "model.collage", folder / "report.json"
    onnx.save(model, file)
    image = np.random.default_rng(1).uniform(-2.2, 2.6, (1, 3, 56, 56)).astype(np.float32)
    np.savez(folder / "in.npz", image=image)
    collage(arguments, "compile", file, "-o", program, "--cache", arguments.folder / "prices.sqlite", "--threads", 1, "--budget", arguments.budget,
            "--json", report)
    print(collage(arguments, "explain", program))
    failures = []
    results = {}
    for way, words in {"compiled": [program], "reference": [file, "--reference"]}.items():
        collage(arguments, "run", *words, "--inputs", folder / "in.npz", "--output", folder / way)
        results[way] = np.load(folder / way / "scores.npy")
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    results["ONNX Runtime"] = session.run(None, {"image": image})[0]
    if np.ptp(results["reference"]) < 10 * STEP:
        failures.append("the model gives too little to compare")
    steps = {way: np.max(np.abs(results["compiled"] - results[way])) / STEP for way in ("reference", "ONNX Runtime")}
    # On processors without dot products of bytes ONNX Runtime's sums saturate. Then it is wrong itself, and few products may run as integers.
    saturates = np.max(np.abs(results["ONNX Runtime"] - results["reference"])) / STEP > 1.001
    for way, count in steps.items():
        print(f"{name}: {count:.2f} steps from {way}" + (", which saturates on this processor" if saturates and way != "reference" else ""))
        if count > 1.001 and not (saturates and way != "reference"):
            failures.append(f"{count:.1f} steps from {way}")
    taken = [entry for entry in json.loads(report.read_text())["plan"] if any(node.startswith(("Conv", "QLinear", "MatMul")) for node in entry["nodes"])]
    # ONNX Runtime takes whole regions, often the whole model as it came: whichever library was fastest here is a fair choice.
    of_integers = [entry for entry in taken if entry["backend"] in ("dnnl", "openvino", "onnxruntime")]
    print(f"{name}: {len(of_integers)} of {len(taken)} kernels with products are a library's")
    if not saturates:
        ends = ("QuantizeLinear", "DequantizeLinear", "QLinear")
        in_float = [entry for entry in of_integers if not any(node.startswith(ends) for node in entry["nodes"])]
        failures += [f"{entry['partition']} computes in float32" for entry in in_float]
        if not of_integers:
            failures.append("no product runs as integers")
    return [f"{name}: {failure}" for failure in failures]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collage", required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--budget", default="30s")
    arguments = parser.parse_args()
    shutil.rmtree(arguments.folder, ignore_errors=True)
    failures = []
    for name, of_operators in {"qdq": False, "qoperator": True}.items():
        failures += check(arguments, name, Writer(of_operators).model())
    failures += check_dynamic(arguments)
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
