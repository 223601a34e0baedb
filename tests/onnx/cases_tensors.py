"""Operators of com.microsoft on shapes, matrices, images and token ids, and some on quantised numbers."""

import numpy as np

from onnx.helper import make_node

from case import F, I, single


def tensors(cases):
    some = np.random.default_rng(33)

    def numbers(*shape):
        return some.normal(size=shape).astype(F)

    def add(op, inputs, constants=None, name=None, **attributes):
        single(cases, op, (17,), inputs, constants, "microsoft_" + (name or op), domain="com.microsoft", **attributes)

    for name, axis in (("first", 0), ("last", -1), ("before_last", -2)):
        add("ExpandDims", {"x": numbers(2, 3)}, {"a": np.array(axis, np.int32)}, "ExpandDims_" + name)
    add("UnfoldTensor", {"x": numbers(2, 7, 3)}, None, dim=1, size=3, step=2)
    add("UnfoldTensor", {"x": numbers(2, 7)}, None, "UnfoldTensor_last", size=2)
    for metric in ("euclidean", "sqeuclidean"):
        add("CDist", {"a": numbers(3, 4), "b": numbers(5, 4)}, None, "CDist_" + metric, metric=metric)
    add("Inverse", {"x": numbers(2, 3, 4, 4)})
    swapped = np.array([[0, 2, 0], [0, 0, 4], [-3, 1, 0]], F)
    add("Inverse", {"x": swapped}, None, "Inverse_swapped")
    add("Inverse", {"x": swapped.astype(np.float16)}, None, "Inverse_float16")
    add("Inverse", {"x": (numbers(70, 70) + 70 * np.eye(70)).astype(F)}, None, "Inverse_of_many_rows")
    boxes = {"r": np.array([[0, 0, 1, 1], [0.1, -0.2, 0.6, 1.3], [0.9, 0.2, 0.4, 0.7]], F), "i": np.array([1, 0, 1], np.int32)}
    image = {"x": numbers(2, 3, 6, 5), **boxes}
    add("CropAndResize", image, {"s": np.array([3, 4], np.int32)}, extrapolation_value=7.0)
    add("CropAndResize", image, {"s": np.array([1, 4], np.int32)}, "CropAndResize_nearest", mode="nearest")
    add("CropAndResize", {"x": numbers(2, 3, 1, 5), **boxes}, {"s": np.array([2, 2], np.int32)}, "CropAndResize_of_a_row")
    for kind in (np.int32, np.uint32, np.int64, np.uint64, F, np.float64):
        values = (some.normal(size=(3, 2)) * 1e6).astype(kind) if kind not in (np.uint32, np.uint64) else some.integers(0, 2**32, (3, 2)).astype(kind)
        for positive in (0, 1):
            name = f"MurmurHash3_{np.dtype(kind).name}_{positive}"
            add("MurmurHash3", {"x": values}, None, name, positive=positive, seed=2**31 + 5)
    words = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]], I)
    for size in (1, 2, 3, 6):
        # Minus infinity is told from what it is compared with by no difference.
        nodes = [make_node("NGramRepeatBlock", ["i", "s"], ["t"], domain="com.microsoft", ngram_size=size), make_node("Exp", ["t"], ["y"])]
        cases.add(f"microsoft_NGramRepeatBlock_{size}", 17, nodes, {"i": words, "s": numbers(2, 6)})
    add("MatMulInteger16", {"a": some.integers(-999, 999, (2, 3, 4), np.int16), "b": some.integers(-999, 999, (4, 5), np.int16)})
    grid = {"x": numbers(2, 3, 4, 5), "g": some.uniform(-1.2, 1.2, (2, 3, 4, 2)).astype(F)}
    for mode in ("bilinear", "bicubic"):
        add("GridSample", grid, None, "GridSample_" + mode, mode=mode, padding_mode="reflection", align_corners=1)
    add("SampleOp", {"x": numbers(2, 3)})
    chosen = {"c": np.array([[True, False, True]]), "x": some.integers(0, 256, (2, 1), np.uint8)}
    first = {"xs": np.array(0.1, F), "xz": np.array(100, np.uint8)}
    second = {"v": some.integers(0, 256, (2, 3), np.uint8), "vs": np.array(0.3, F), "vz": np.array(7, np.uint8)}
    add("QLinearWhere", chosen, {**first, **second, "zs": np.array(0.2, F), "zz": np.array(60, np.uint8)})
    for kind in (np.int8, np.uint8):
        ends = np.iinfo(kind)
        image = some.integers(ends.min, ends.max + 1, (1, 6, 5, 3), kind)
        window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
        add("NhwcMaxPool", {"x": image}, None, f"NhwcMaxPool_{np.dtype(kind).name}", **window)
    words = {"w": some.integers(0, 9, (2, 3), np.int32), "s": some.integers(0, 2, (2, 3), np.int32)}
    mask = {"m": np.array([[1, 1, 0], [1, 1, 1]], np.int32)}
    tables = {name: some.integers(0, 256, shape, np.uint8) for name, shape in (("we", (9, 8)), ("pe", (6, 8)), ("se", (2, 8)), ("g", 8), ("b", 8))}
    scales = {name + "s": np.array(0.01 * place, F) for place, name in enumerate(tables, 1)}
    zeros = {name + "z": np.array(120 + place, np.uint8) for place, name in enumerate(tables)}
    inputs = [*words, *tables, *mask, *scales, *zeros]
    nodes = [make_node("QEmbedLayerNormalization", inputs, ["y", "n"], domain="com.microsoft")]
    cases.add("microsoft_QEmbedLayerNormalization", 17, nodes, {**words, **mask}, {**tables, **scales, **zeros}, ("y", "n"))
    for kind in (np.int32, I):
        hashed = {"i": some.integers(-9, 99, (2, 5)).astype(kind)}
        odd = {"m": np.array([11, 2**31 - 1, 17], kind), "v": np.array([101, 103, 107, 109], kind)}
        past = {"p": some.integers(0, 99, (2, 2)).astype(kind), "o": np.array([0, 101, 204, 311], kind)}
        for name, more in (("", {}), ("_past", past), ("_end", {"   ": None, "    ": None, "e": np.array(9, kind)})):
            given = [label.strip() for label in ("i", *odd, *more)]
            form = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 1}
            nodes = [make_node("NGramHashMapping", given, ["y", "next"], domain="com.microsoft", **form)]
            constants = {label: value for label, value in {**odd, **more}.items() if label.strip()}
            cases.add(f"microsoft_NGramHashMapping_{np.dtype(kind).name}{name}", 17, nodes, hashed, constants, ("y", "next"))
