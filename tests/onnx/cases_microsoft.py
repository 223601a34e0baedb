"""Cases of the domain com.microsoft."""

import numpy as np
from ml_dtypes import iinfo, int2, int4, uint2, uint4
from onnx.helper import make_node

from case import F, GENERATOR, I, data, evaluate_unoptimised, ints, make_model, positive, single


def microsoft(cases):
    """Operators of com.microsoft that optimisers emit."""

    def fused(op, inputs, constants=None, name=None, outputs=("y",), **attributes):
        single(cases, op, (17,), inputs, constants, "microsoft_" + (name or op), outputs, domain="com.microsoft", **attributes)

    x, bias = data(2, 3, 8), {"b": data(8)}
    fused("Gelu", {"x": x})
    fused("BiasGelu", {"x": x}, bias)
    fused("FastGelu", {"x": x}, bias)
    fused("QuickGelu", {"x": x}, alpha=1.5)
    fused("FusedMatMul", {"a": data(2, 4, 3), "b": data(2, 5, 4)}, alpha=0.5, transA=1, transB=1)
    weights = {"w": data(4, 3, 3, 3), "b": data(4)}
    fused("FusedConv", {"x": data(1, 3, 6, 6)}, weights, pads=[1, 1, 1, 1], activation="LeakyRelu", activation_params=[0.2])
    scales = {"g": data(8), "s": data(8), "b": data(8)}
    fused("SkipLayerNormalization", {"x": x, "skip": data(2, 3, 8)}, scales, epsilon=1e-5)
    fused("SkipSimplifiedLayerNormalization", {"x": x, "skip": data(2, 3, 8)}, {"g": data(8)}, epsilon=1e-5)
    heads = {"q": data(2, 3, 8), "k": data(2, 5, 8), "v": data(2, 5, 8)}
    fused("MultiHeadAttention", heads, {"b": data(24)}, num_heads=2)
    fused("MultiHeadAttention", heads, name="MultiHeadAttention_plain", num_heads=4, scale=0.3)
    fused("Attention", {"x": x}, {"w": data(8, 24), "b": data(24)}, num_heads=2)
    fused("Attention", {"x": x}, {"w": data(8, 24), "b": data(24)}, "Attention_causal", num_heads=2, unidirectional=1)
    microsoft_attention(fused)
    fused("Trilu", {"x": data(3, 4)}, {"k": np.array(1, I)}, upper=0)
    fused("Pad", {"x": data(2, 3)}, {"p": ints(0, 1, 1, 0), "v": np.array(2, F)})
    fused("GatherND", {"x": data(3, 4, 2)}, {"i": ints([0, 1], [2, 3])})
    fused("Range", {}, {"a": np.array(2, F), "b": np.array(8, F), "c": np.array(3, F)})
    steps = {"s": np.array(0.05, F), "z": np.array(40, np.uint8)}
    fused("QuantizeLinear", {"x": data(3, 4)}, steps)
    fused("DequantizeLinear", {"x": np.array([3, 50, 255], np.uint8)}, steps)
    microsoft_quantized(cases, fused)
    gemm = {"b": data(4, 5), "c": data(5)}
    fused("FusedGemm", {"a": data(3, 4)}, gemm, activation="LeakyRelu", activation_alpha=0.2, alpha=0.5)
    weights = {"w": data(4, 3, 3), "b": data(4)}
    fused("FusedConv", {"x": data(1, 3, 9)}, weights, "FusedConv_1d", pads=[1, 1], activation="Relu")
    words, segments = GENERATOR.integers(0, 9, (2, 3), np.int32), GENERATOR.integers(0, 2, (2, 3), np.int32)
    tables = {"we": data(9, 8), "pe": data(6, 8), "se": data(2, 8), "g": data(8), "b": data(8)}
    mask = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    nodes = [make_node("EmbedLayerNormalization", ["w", "s", "we", "pe", "se", "g", "b", "m"], ["y", "n"], domain="com.microsoft")]
    cases.add("microsoft_EmbedLayerNormalization", 17, nodes, {"w": words, "s": segments, "m": mask}, tables, ("y", "n"))
    def bytes_of(*shape):
        return GENERATOR.integers(-128, 128, shape, np.int8)

    scale, zero = np.array(0.02, F), np.array(3, np.int8)
    product = {"as": scale, "az": zero, "b": bytes_of(5, 6), "bs": scale, "bz": np.array(0, np.int8), "c": np.arange(5, dtype=np.int32) * 100}
    fused("QGemm", {"a": bytes_of(4, 6)}, product, transB=1)
    fused("QGemm", {"a": bytes_of(4, 6)}, {**product, "ys": np.array(0.1, F), "yz": zero}, "QGemm_quantized", transB=1, alpha=0.5)
    packed = GENERATOR.integers(0, 256, (5, 3, 8), np.uint8)
    steps = np.abs(data(5 * 3)) + F(0.1)
    fused("MatMulNBits", {"x": data(2, 40)}, {"w": packed, "s": steps}, K=40, N=5, bits=4, block_size=16)
    zeros = GENERATOR.integers(0, 256, (5 * 2,), np.uint8)
    fused("MatMulNBits", {"x": data(2, 40)}, {"w": packed, "s": steps, "z": zeros}, "MatMulNBits_zeros", K=40, N=5, bits=4, block_size=16)


def microsoft_attention(fused):
    x, qkv = data(2, 3, 8), {"w": data(8, 24), "b": data(24)}
    past = data(2, 2, 2, 4, 4)
    present = ("y", "present")
    fused("Attention", {"x": x}, {**qkv, "m": np.array([2, 3], np.int32)}, "Attention_lengths", num_heads=2)
    nodes = {"x": x, "w": qkv["w"], "b": qkv["b"], "": None, "p": past}
    fused("Attention", nodes, None, "Attention_past", present, num_heads=2, unidirectional=1)
    heads = {"q": x, "k": data(2, 2, 5, 4), "v": data(2, 2, 5, 4)}
    fused("MultiHeadAttention", heads, None, "MultiHeadAttention_of_heads", num_heads=2)
    causal = {"q": x, "k": data(2, 3, 8), "v": data(2, 3, 8)}
    fused("MultiHeadAttention", causal, None, "MultiHeadAttention_causal", num_heads=2, unidirectional=1)
    cache = {"c": data(10, 2), "s": data(10, 2)}
    for name, places in (("first", ints(3)), ("each", ints([1, 2, 3], [4, 5, 6]))):
        for interleaved in (0, 1):
            name_of = f"RotaryEmbedding_{name}_{interleaved}"
            fused("RotaryEmbedding", {"x": x, "p": places}, cache, name_of, interleaved=interleaved)
    fused("RotaryEmbedding", {"x": data(2, 2, 3, 4), "p": ints(0)}, cache, "RotaryEmbedding_heads")
    fused("RotaryEmbedding", {"x": x, "p": ints(1)}, cache, "RotaryEmbedding_partial", num_heads=1, rotary_embedding_dim=4)
    group_query_attention(fused, {"c": data(10, 8), "s": data(10, 8)})


def group_query_attention(fused, cache):
    """Four heads of queries share two of keys and values; the past of a sentence is shorter than that of the other."""

    def group(name, inputs, constants, **attributes):
        outputs = ("y", "key", "value")
        fused("GroupQueryAttention", inputs, constants, "GroupQueryAttention_" + name, outputs, num_heads=4, kv_num_heads=2, **attributes)

    first = {"q": data(2, 3, 64), "k": data(2, 3, 32), "v": data(2, 3, 32), "": None, " ": None}
    lengths = {"n": np.array([2, 2], np.int32), "t": np.array(3, np.int32)}
    group("first", first, lengths)
    group("rotary", first, {**lengths, **cache}, do_rotary=1)
    group("window", first, lengths, local_window_size=2)
    group("softcap", first, lengths, softcap=1.5, scale=0.7)
    packed = {"qkv": data(2, 3, 128), "": None, " ": None, "  ": None, "   ": None}
    group("packed", packed, {**lengths, **cache}, do_rotary=1, rotary_interleaved=1)
    past = {"q": data(2, 1, 64), "k": data(2, 1, 32), "v": data(2, 1, 32), "pk": data(2, 2, 5, 16), "pv": data(2, 2, 5, 16)}
    group("next", past, {"n": np.array([5, 5], np.int32), "t": np.array(6, np.int32), **cache}, do_rotary=1)
    group("next_uneven", past, {"n": np.array([5, 3], np.int32), "t": np.array(6, np.int32), **cache}, do_rotary=1)
    group("next_window", past, {"n": np.array([5, 5], np.int32), "t": np.array(6, np.int32)}, local_window_size=3)
    group("sink", first, {**lengths, "  ": None, "   ": None, "    ": None, "     ": None, "sink": data(4)})


def microsoft_quantized(cases, fused):
    def bytes_of(dtype, *shape):
        ends = np.iinfo(dtype)
        return GENERATOR.integers(ends.min, ends.max + 1, shape, dtype)

    def weights_of(*shape):
        """Of 7 bits: ONNX Runtime adds pairs of products in 16 bits on processors without dot products of bytes, which saturate."""
        return GENERATOR.integers(-64, 64, shape, np.int8)

    scale, zero, low = np.array(0.02, F), np.array(3, np.int8), np.array(100, np.uint8)
    fused("DynamicQuantizeMatMul", {"a": data(2, 3, 4)}, {"b": weights_of(4, 5), "s": positive(5), "z": bytes_of(np.int8, 5), "c": data(5)})
    factors = {"b": weights_of(4, 5), "as": scale, "bs": positive(5), "az": low, "bz": bytes_of(np.int8, 5), "c": data(5)}
    fused("MatMulIntegerToFloat", {"a": bytes_of(np.uint8, 3, 4)}, factors)
    pooled = {"s": scale, "z": low, "ys": np.array(0.0317, F), "yz": np.array(90, np.uint8)}
    window = {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}
    fused("QLinearAveragePool", {"x": bytes_of(np.uint8, 1, 3, 6, 5)}, pooled, **window)
    fused("QLinearGlobalAveragePool", {"x": bytes_of(np.uint8, 1, 3, 6, 5)}, pooled)
    recurrent_quantized(fused)
    softmax = {"s": scale, "z": low, "ys": np.array(1 / 256, F), "yz": np.array(0, np.uint8)}
    fused("QLinearSoftmax", {"x": bytes_of(np.uint8, 2, 3, 4)}, softmax, axis=-1, opset=13)
    fused("QLinearSoftmax", {"x": bytes_of(np.uint8, 2, 3, 4)}, softmax, "QLinearSoftmax_flat", axis=1, opset=11)
    rows, steps = {"t": bytes_of(np.uint8, 6, 16)}, positive(6, 2)
    places = {"i": ints([0, 5, 3], [-1, 2, 2])}
    block = {"block_size": 16, "bits": 4, "quantize_axis": 1}
    for name, more in (("", {}), ("_zeros", {"z": bytes_of(np.uint8, 6, 1)})):
        nodes = [make_node("GatherBlockQuantized", ["t", "i", "s", *more], ["y"], domain="com.microsoft", **block)]
        cases.add("microsoft_GatherBlockQuantized" + name, 17, nodes, places, {**rows, "s": steps, **more})
    projection = {"w": weights_of(8, 24), "b": data(24), "xs": scale, "ws": scale}
    masked = {**projection, "m": np.array([2, 3], np.int32), "xz": low, "wz": zero}
    fused("QAttention", {"x": bytes_of(np.uint8, 2, 3, 8)}, masked, num_heads=2)


def recurrent_quantized(fused):
    """Weights [directions, inputs, 4 * hidden] with a scale and zero point for each direction, or for each column."""

    some = np.random.default_rng(12)

    def numbers(*shape):
        return some.normal(size=shape).astype(F)

    def steps(*shape):
        return (some.random(shape) * 0.01 + 0.001).astype(F)

    def weights_of(kind, *shape):
        """Of 7 bits, as above."""
        return (some.integers(-64, 64, shape) + (0 if kind == np.int8 else 128)).astype(kind)

    for directions, direction in ((1, "forward"), (1, "reverse"), (2, "bidirectional")):
        for name, parameters in (("", (directions,)), ("_columns", (directions, 12))):
            for kind in (np.int8, np.uint8):
                zeros = np.full(parameters, 0 if kind == np.int8 else 128, kind)
                weights = {
                    "w": weights_of(kind, directions, 4, 12),
                    "r": weights_of(kind, directions, 3, 12),
                    "b": numbers(directions, 24),
                    "h0": numbers(directions, 2, 3),
                    "c0": numbers(directions, 2, 3),
                    "ws": steps(*parameters),
                    "wz": zeros,
                    "rs": steps(*parameters),
                    "rz": zeros,
                }
                names = ["x", "w", "r", "b", "", "h0", "c0", "", "ws", "wz", "rs", "rz"]
                ordered = {label or " " * (place + 1): weights.get(label) for place, label in enumerate(names) if label != "x"}
                case = f"DynamicQuantizeLSTM_{direction}{name}_{np.dtype(kind).name}"
                fused("DynamicQuantizeLSTM", {"x": numbers(5, 2, 4)}, ordered, case, outputs=("y", "yh", "yc"), hidden_size=3, direction=direction)


def microsoft_channels_last(cases):
    """As ONNX Runtime's optimiser leaves quantised models at its highest level."""

    def bytes_of(low, high, dtype, *shape):
        return GENERATOR.integers(low, high, shape, dtype)

    data_of = {"xs": np.array(0.02, F), "xz": np.array(100, np.uint8)}
    result_of = {"ys": np.array(0.05, F), "yz": np.array(90, np.uint8)}
    for name, image, channels, kernel in (("2d", (1, 6, 5, 4), 3, (3, 3)), ("1d", (2, 7, 4), 5, (2,))):
        # Of 7 bits, as above.
        weights = {"w": bytes_of(-64, 64, np.int8, channels, 4, *kernel), "ws": positive(channels), "wz": np.zeros(channels, np.int8)}
        inputs = {"x": bytes_of(0, 256, np.uint8, *image)}
        constants = {**data_of, **weights, **result_of, "b": np.arange(channels, dtype=np.int32) * 10}
        node = make_node("QLinearConv", ["x", *constants], ["y"], domain="com.microsoft", channels_last=1, strides=[2] * len(kernel))
        cases.add("microsoft_QLinearConv_last_" + name, 17, [node], inputs, constants)
    window = {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}
    for op, attributes in (("QLinearAveragePool", window), ("QLinearGlobalAveragePool", {})):
        node = make_node(op, ["x", "xs", "xz", "ys", "yz"], ["y"], domain="com.microsoft", channels_last=1, **attributes)
        cases.add(f"microsoft_{op}_last", 17, [node], {"x": bytes_of(0, 256, np.uint8, 1, 6, 5, 3)}, {**data_of, **result_of})


def microsoft_packed(cases):
    """Products by weights of few bits: what nn.matmul_nbits has no form of, and the tables of bitsandbytes."""

    def bytes_of(*shape):
        return GENERATOR.integers(0, 256, shape, np.uint8)

    def product(op, name, constants, expected=None, **attributes):
        node = make_node(op, ["x", *(label.strip() for label in constants)], ["y"], domain="com.microsoft", **attributes)
        given = {label: value for label, value in constants.items() if label.strip()}
        cases.add(f"microsoft_{op}_{name}", 17, [node], {"x": x}, given, expected=expected)

    x, depth, columns, blocks = data(2, 3, 40), 40, 5, 3
    shape = {"K": depth, "N": columns}
    scales, zeros = positive(columns * blocks), (GENERATOR.random(columns * blocks) * 15).astype(F)
    groups = GENERATOR.integers(0, blocks, depth, np.int32)
    for bits in (2, 4):
        product("MatMulNBits", f"float_zeros_{bits}", {"w": bytes_of(columns, blocks, 2 * bits), "s": scales, "z": zeros}, bits=bits, block_size=16, **shape)
    weights = {"w": bytes_of(columns, blocks, 8), "s": scales}
    four = {**shape, "bits": 4, "block_size": 16}
    product("MatMulNBits", "groups", {**weights, "": None, "g": groups}, **four)
    product("MatMulNBits", "groups_padded", {**weights, "": None, "g": np.append(groups, [0] * 8).astype(np.int32), "b": data(columns)}, **four)
    product("MatMulNBits", "groups_float_zeros", {**weights, "z": zeros, "g": groups}, **four)
    packed = bytes_of(columns, 2)
    # ONNX Runtime 1.31 on CPUs takes the middle where there are groups, whatever the zero points are.
    numbers, points = (np.stack([of & 15, of >> 4], -1).reshape(columns, -1) for of in (weights["w"], packed))
    matrix = (numbers[:, :depth] - points[:, groups].astype(F)) * scales.reshape(columns, blocks)[:, groups]
    product("MatMulNBits", "groups_zeros", {**weights, "z": packed.reshape(-1), "g": groups}, [x @ matrix.T], **four)
    for kind, name in enumerate(("fp4", "nf4")):
        constants = {"w": bytes_of(depth * columns // 2), "s": positive((depth * columns + 15) // 16)}
        product("MatMulBnb4", name, constants, quant_type=kind, block_size=16, **shape)
    x = data(2, 3)
    product("MatMulBnb4", "odd", {"w": bytes_of(8), "s": positive(1)}, quant_type=1, block_size=16, K=3, N=5)


def quantized_in_blocks(cases):
    """Products by weights that DequantizeLinear makes in blocks along the depth."""

    def add(name, nodes, inputs, constants, opset=21):
        # Optimised, these are products that round the data to 8 bits as well.
        expected = evaluate_unoptimised(make_model(opset, nodes, inputs, constants, ("y",)), inputs)
        cases.add("blocks_" + name, opset, nodes, inputs, constants, expected=expected)

    x, depth, columns, block = {"x": data(2, 3, 40)}, 40, 6, 16
    blocks = -(-depth // block)
    for kind in (uint2, int2, uint4, int4, np.uint8, np.int8):
        ends = iinfo(kind)
        for has_zeros in (False, True):
            constants = {"w": GENERATOR.integers(ends.min, ends.max + 1, (depth, columns)).astype(kind), "s": positive(blocks, columns)}
            if has_zeros:
                constants["z"] = GENERATOR.integers(ends.min, ends.max + 1, (blocks, columns)).astype(kind)
            name = np.dtype(kind).name + ("_zeros" if has_zeros else "")
            quantized = make_node("DequantizeLinear", [*constants], ["m"], axis=0, block_size=block)
            opset = 25 if np.dtype(kind).name.endswith("int2") else 21
            add(name, [quantized, make_node("MatMul", ["x", "m"], ["y"])], x, constants, opset)
            turned = {label: np.ascontiguousarray(value.T) for label, value in constants.items()}
            quantized = make_node("DequantizeLinear", [*constants], ["m"], axis=1, block_size=block)
            nodes = [quantized, make_node("Transpose", ["m"], ["t"], perm=[1, 0]), make_node("MatMul", ["x", "t"], ["y"])]
            add(name + "_transposed", nodes, x, turned, opset)
    rows = {"x": data(3, 32)}
    constants = {"w": GENERATOR.integers(-8, 8, (5, 2, 16)).astype(int4), "s": positive(5, 2, 1), "shape": ints(5, -1), "b": data(5)}
    quantized = make_node("DequantizeLinear", ["w", "s"], ["m"], axis=-1, block_size=16)
    nodes = [quantized, make_node("Reshape", ["m", "shape"], ["r"]), make_node("Gemm", ["x", "r", "b"], ["y"], transB=1)]
    add("reshaped", nodes, rows, constants)
    constants = {"w": GENERATOR.integers(-8, 8, (32, 6)).astype(int4), "s": positive(32, 2)}
    quantized = make_node("DequantizeLinear", ["w", "s"], ["m"], axis=1, block_size=3)
    add("of_columns", [quantized, make_node("MatMul", ["x", "m"], ["y"])], rows, constants)
