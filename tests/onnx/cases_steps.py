"""Attention of com.microsoft that is computed step by step, and what turns or mixes its steps."""

import numpy as np

from case import F, single


def steps(cases):
    some = np.random.default_rng(34)

    def numbers(*shape):
        return some.normal(size=shape).astype(F)

    def add(op, inputs, constants=None, name=None, outputs=("y",), **attributes):
        single(cases, op, (17,), inputs, constants, "microsoft_" + (name or op), outputs, domain="com.microsoft", **attributes)

    def decode(name, inputs, outputs=("y",), **attributes):
        """Inputs by their places; the key and value of one step, or of an encoder."""
        given = {f"i{place}" if place in inputs else " " * (place + 1): inputs.get(place) for place in range(max(inputs) + 1)}
        add("DecoderMaskedMultiHeadAttention", given, None, "DecoderMaskedMultiHeadAttention_" + name, outputs, num_heads=2, **attributes)

    query, bias = numbers(2, 1, 8), numbers(24)
    encoder = {0: query, 1: numbers(2, 2, 5, 4), 2: numbers(2, 2, 5, 4)}
    decode("of_encoder", encoder)
    decode("of_encoder_masked", {**encoder, 3: np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], np.int32), 10: bias}, scale=0.3)
    step = {0: query, 1: numbers(2, 1, 8), 2: numbers(2, 1, 8)}
    buffers = {5: numbers(2, 2, 6, 4), 6: numbers(2, 2, 6, 4), 7: np.array([3], np.int32)}
    present = ("y", "key", "value")
    shared = {"past_present_share_buffer": 1}
    decode("step", {**step, **buffers}, present, **shared)
    mask = np.array([[1, 0, 1, 1], [1, 1, 1, 1]], np.int32)
    decode("step_masked", {**step, **buffers, 3: mask, 10: bias}, present, **shared)
    beams = {8: np.array([2], np.int32), 9: np.array([[[0, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0]]], np.int32)}
    decode("beams", {**step, **buffers, **beams}, present, **shared)

    caches = {"c": numbers(10, 4), "s": numbers(10, 4)}
    places = some.integers(0, 10, (3, 2, 3))
    for layout in (0, 1):
        for interleaved in (0, 1):
            form = {"num_heads": 2, "mrope_section": [2, 1, 1], "mrope_layout": layout, "interleaved": interleaved}
            add("MRotaryEmbedding", {"x": numbers(2, 3, 16), "p": places}, caches, f"MRotaryEmbedding_{layout}_{interleaved}", **form)
    add("MRotaryEmbedding", {"x": numbers(2, 2, 3, 8), "p": places}, caches, "MRotaryEmbedding_heads", mrope_section=[2, 1, 1])

    state = ("y", "state")
    kernel = {"w": numbers(4, 1, 3), "b": numbers(4)}
    for dilation in (1, 2):
        past = {"x": numbers(2, 4, 6), **kernel, "p": numbers(2, 4, 2 * dilation)}
        form = {"activation": "silu", "dilation": dilation}
        add("CausalConvWithState", past, None, f"CausalConvWithState_{dilation}", state, **form)
    add("CausalConvWithState", {"x": numbers(2, 4, 6), "w": kernel["w"]}, None, "CausalConvWithState_plain", state)

    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    packed = {"q": numbers(2, 3, 16), "k": numbers(2, 3, 8), "v": numbers(2, 3, 10), "s": numbers(2, 2, 4, 5)}
    rates = {"d": -np.abs(numbers(2, 3, 2)), "b": some.random((2, 3, 2)).astype(F)}
    for rule, names in (("linear", ""), ("gated", "d"), ("delta", "b"), ("gated_delta", "db")):
        given = {**packed, **({"d": rates["d"]} if "d" in names else {" ": None}), **({"b": rates["b"]} if "b" in names else {})}
        add("LinearAttention", given, None, "LinearAttention_" + rule, state, update_rule=rule, **heads)
