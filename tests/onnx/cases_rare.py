"""Forms of operators that few exporters write, and results without elements."""

import numpy as np
from onnx import TensorProto
from onnx.helper import make_node

from case import F, I, data, evaluate, ints, make_model, single


def rare(cases):
    empty_results(cases)
    batches_behind(cases)
    masks(cases)
    scores(cases)
    microsoft_rest(cases)
    integers(cases)
    many_dimensions(cases)
    line = {name: np.array([value], F) for name, value in zip("sbmv", (2, 0.5, 0.1, 0.7))}
    single(cases, "BatchNormalization", (15,), {"x": data(4)}, line, "BatchNormalization_1d")


def microsoft(cases, op, name, inputs, constants=None, outputs=("y",), **attributes):
    single(cases, op, (17,), inputs, constants, f"microsoft_{op}_{name}", outputs, domain="com.microsoft", **attributes)


def empty_results(cases):
    """As detectors that find nothing meet them. An input's extent of 0 stands for one that is open, so that a node takes all away."""

    def add(op, name, opset, axis, constants=None, inputs=("e",), outputs=("y",), **attributes):
        nodes = [make_node("Slice", ["x", "zero", "zero", "axis"], ["e"]), make_node(op, list(inputs), list(outputs), **attributes)]
        constants = {"zero": ints(0), "axis": ints(axis), **(constants or {})}
        cases.add(f"{op}_{name}_of_none", opset, nodes, {"x": data(1, 2, 4, 5)}, constants, outputs)

    for axis, name in ((0, "batch"), (2, "rows")):
        sizes = [1, 2, 8, 7]
        sizes[axis] = 0
        for mode in ("nearest", "linear", "cubic"):
            scales = {"s": np.array([1, 1, 2, 2], F)}
            add("Resize", f"{mode}_{name}_scales", 13, axis, scales, ("e", "", "s"), mode=mode)
            add("Resize", f"{mode}_{name}_sizes", 13, axis, {"s": ints(*sizes)}, ("e", "", "", "s"), mode=mode)
        add("Resize", f"old_{name}", 10, axis, {"s": np.array([1, 1, 2, 3], F)}, ("e", "s"))
        add("MeanVarianceNormalization", name, 13, axis)
    node = make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    cases.add("Resize_to_none", 13, [node], {"x": data(1, 2, 4, 5)}, {"s": np.array([1, 1, 0.1, 2], F)})
    add("DynamicQuantizeLinear", "all", 11, 0, outputs=("y", "s", "z"))
    add("MaxPool", "batch", 12, 0, outputs=("y", "i"), kernel_shape=[2, 2])
    for op in ("ReduceMax", "ReduceMin"):
        nodes = [make_node("Slice", ["x", "zero", "zero", "axis"], ["e"]), make_node(op, ["e", "axis"], ["y"], keepdims=0)]
        whole = np.arange(6, dtype=np.int64).reshape(2, 3)
        cases.add(f"{op}_of_no_int64", 20, nodes, {"x": whole}, {"zero": ints(0), "axis": ints(1)}, ("y",))


def batches_behind(cases):
    """The first dimension of an operand behind those of its batch."""
    a, b = data(2, 3, 4, 5), data(2, 3, 5, 6)
    for trans_a in (0, 1):
        for trans_b in (0, 1):
            for batch_a, batch_b in ((1, 0), (0, 1), (1, 1)):
                left = a.swapaxes(-1, -2) if trans_a else a
                right = b.swapaxes(-1, -2) if trans_b else b
                left = left.transpose(2, 0, 1, 3) if batch_a else left
                right = right.transpose(2, 0, 1, 3) if batch_b else right
                attributes = {"transA": trans_a, "transB": trans_b, "transBatchA": batch_a, "transBatchB": batch_b}
                inputs = {"a": np.ascontiguousarray(left), "b": np.ascontiguousarray(right)}
                microsoft(cases, "FusedMatMul", f"batch_{trans_a}{trans_b}{batch_a}{batch_b}", inputs, alpha=0.5, **attributes)


def masks(cases):
    """Where the keys of each sentence end and begin."""
    weights = {"w": data(8, 24), "b": data(24)}
    ends_and_begins = {"m": np.array([4, 3, 1, 0], np.int32)}
    microsoft(cases, "Attention", "begins", {"x": data(2, 5, 8)}, {**weights, **ends_and_begins}, num_heads=2)
    heads = {"q": data(2, 3, 8), "k": data(2, 5, 8), "v": data(2, 5, 8), "": None}
    microsoft(cases, "MultiHeadAttention", "ends", {**heads, "m": np.array([3, 5], np.int32)}, num_heads=2)
    packed = {"m": np.array([3, 4, 0, 3, 6, 0, 3, 7], np.int32)}
    microsoft(cases, "MultiHeadAttention", "packed_ends", {**heads, **packed}, num_heads=2)


def scores(cases):
    """The scores of keys as an output: with what is added to them, but before softmax; grouped heads give those behind it, too."""
    outputs = ("y", "key", "value", "scores")
    heads = {"q": data(2, 3, 8), "k": data(2, 5, 8), "v": data(2, 5, 8), "": None}
    added = {"m": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32), "bias": data(1, 2, 3, 5)}
    node = make_node("MultiHeadAttention", [name.strip() for name in (*heads, *added)], outputs, domain="com.microsoft", num_heads=2)
    given = {name: value for name, value in {**heads, **added}.items() if name}
    cases.add("microsoft_MultiHeadAttention_scores", 17, [node], given, None, outputs, types=dict.fromkeys(outputs, TensorProto.FLOAT))
    first = {"q": data(2, 3, 64), "k": data(2, 3, 32), "v": data(2, 3, 32), "": None, " ": None}
    lengths = {"n": np.array([2, 2], np.int32), "t": np.array(3, np.int32)}
    past = {"q": data(2, 1, 64), "k": data(2, 1, 32), "v": data(2, 1, 32), "pk": data(2, 2, 8, 16), "pv": data(2, 2, 8, 16)}
    next_lengths = {"n": np.array([5, 5], np.int32), "t": np.array(6, np.int32)}
    for which, name in ((1, "before"), (2, "behind")):
        grouped = {"num_heads": 4, "kv_num_heads": 2, "qk_output": which}
        microsoft(cases, "GroupQueryAttention", "scores_" + name, first, lengths, outputs, softcap=1.5, **grouped)
        microsoft(cases, "GroupQueryAttention", "window_scores_" + name, first, lengths, outputs, local_window_size=2, **grouped)
        microsoft(cases, "GroupQueryAttention", "next_scores_" + name, past, next_lengths, outputs, **grouped)


def microsoft_rest(cases):
    weights = {"w": data(4, 3, 3, 2), "b": data(4)}
    x = data(2, 3, 6, 5)
    microsoft(cases, "FusedConv", "HardSwish", {"x": x}, weights, activation="HardSwish", pads=[1, 1, 1, 0])
    microsoft(cases, "Unique", "floats", {}, {"x": np.array([2, 1, 1, 3, 4, 3], F)}, ("y", "places", "counts"))
    # ONNX Runtime has it on GPUs only.
    window = {"strides": [2, 1], "pads": [1, 0, 0, 1]}
    conv = make_model(17, [make_node("Conv", ["x", "w", "b"], ["y"], **window)], {"x": x}, weights, ["y"])
    expected = [evaluate(conv, {"x": x})[0].transpose(0, 2, 3, 1)]
    node = make_node("NhwcConv", ["x", "w", "b"], ["y"], domain="com.microsoft", **window)
    last = {"w": weights["w"].transpose(0, 2, 3, 1).copy(), "b": weights["b"]}
    cases.add("microsoft_NhwcConv", 17, [node], {"x": x.transpose(0, 2, 3, 1).copy()}, last, expected=expected)


def integers(cases):
    """Of operators that are mostly of real numbers."""
    for dtype in (np.int32, I):
        x = {"x": np.array([[1, 2, 3], [4, -5, 6], [30, 40, 60000]], dtype)}
        name = np.dtype(dtype).name
        for op in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
            single(cases, op, (13,), x, None, f"{op}_{name}", axes=[1], keepdims=0)
        single(cases, "PRelu", (16,), x, {"s": np.array([2, 3, -4], dtype)}, "PRelu_" + name)


def many_dimensions(cases):
    """Convolutions of more than three spatial dimensions."""
    x, weights = {"x": data(2, 4, 5, 3, 4, 3)}, {"w": data(6, 2, 3, 2, 2, 2), "b": data(6)}
    window = {"strides": [2, 1, 2, 1], "dilations": [1, 2, 1, 1], "pads": [1, 0, 1, 0, 2, 1, 0, 1]}
    single(cases, "Conv", (11,), x, weights, "Conv_4d", group=2, **window)
    single(cases, "Conv", (11,), {"x": data(1, 2, 3, 3, 2, 2, 3)}, {"w": data(3, 2, 2, 2, 1, 2, 2)}, "Conv_5d")
