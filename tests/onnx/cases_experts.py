"""Mixtures of experts of com.microsoft. ONNX Runtime's CPU computes some of their forms: the others are said in one that it does."""

import numpy as np

from case import F, evaluate, make_model
from onnx.helper import make_node

EXPERTS, HIDDEN, INNER = 4, 32, 16


def experts(cases):
    some = np.random.default_rng(31)

    def numbers(*shape):
        return (some.normal(size=shape) / 4).astype(F)

    def node_of(op, values, **attributes):
        return make_node(op, [name.strip() for name in values], ["y"], domain="com.microsoft", **attributes)

    def split(values):
        """The data and the router's numbers are inputs, the rest constants."""
        present = {name: value for name, value in values.items() if name.strip()}
        return {name: present[name] for name in ("x", "p")}, {name: value for name, value in present.items() if name not in ("x", "p")}

    def results(op, values, **attributes):
        return evaluate(make_model(17, [node_of(op, values, **attributes)], *split(values), ("y",)), split(values)[0])

    def add(name, op, values, expected=None, **attributes):
        cases.add(f"microsoft_{op}_{name}", 17, [node_of(op, values, **attributes)], *split(values), expected=expected)

    def plain(tokens, columns=INNER):
        """Layers with biases."""
        router = {"x": numbers(*tokens, HIDDEN), "p": 4 * numbers(int(np.prod(tokens)), EXPERTS)}
        first = {"w1": numbers(EXPERTS, columns, HIDDEN), "b1": numbers(EXPERTS, columns)}
        return {**router, **first, "w2": numbers(EXPERTS, HIDDEN, INNER), "b2": numbers(EXPERTS, HIDDEN)}

    for activation in ("relu", "gelu", "silu", "identity"):
        add(activation, "MoE", plain((2, 3)), k=2, activation_type=activation)
    add("of_choices", "MoE", plain((1, 1)), k=2, activation_type="silu", normalize_routing_weights=1)
    bare = {name if not name.startswith("b") else " " * int(name[1]): value for name, value in plain((5,)).items()}
    add("without_bias", "MoE", bare, k=3, normalize_routing_weights=1)
    swiglu = {"activation_type": "swiglu", "activation_alpha": 1.5, "activation_beta": 1.0, "swiglu_limit": 0.5, "k": 2}
    pairs = plain((2, 3), 2 * INNER)
    add("swiglu_pairs", "MoE", pairs, swiglu_fusion=1, **swiglu)
    expected = results("MoE", pairs, swiglu_fusion=1, **swiglu)
    gate, linear = ({name: pairs[name][:, start::2] for name in ("w1", "b1")} for start in (0, 1))
    halves = {name: np.concatenate([gate[name], linear[name]], 1) for name in gate}
    add("swiglu_halves", "MoE", {**pairs, **halves}, expected, swiglu_fusion=2, **swiglu)
    add("swiglu_apart", "MoE", {**pairs, **gate, "w3": linear["w1"], "b3": linear["b1"]}, expected, **swiglu)

    def quantized(bits, columns, depth, block, zeros):
        """Packed weights, scales and zero points, and the weights that they mean."""
        blocks = depth // block if block else 1
        weights = some.integers(0, 2**bits, (EXPERTS, columns, depth)).astype(np.uint8)
        scales = ((some.random((EXPERTS, columns, blocks)) + 0.5) / 2 ** (bits + 2)).astype(F)
        points = some.integers(0, 2**bits, (EXPERTS, columns, blocks)) if zeros else np.full((EXPERTS, columns, blocks), 2 ** (bits - 1))
        meant = (weights.reshape(EXPERTS, columns, blocks, -1).astype(F) - points[..., None].astype(F)) * scales[..., None]
        stored = points.astype(np.uint8) if block else points[..., 0].astype(np.uint8)
        return packed(weights, bits), scales if block else scales[..., 0], packed(stored, bits), meant.reshape(weights.shape)

    for bits in (2, 4, 8):
        for block in (0, 16):
            for zeros in (False, True):
                values = plain((2, 3))
                first, second = quantized(bits, INNER, HIDDEN, block, zeros), quantized(bits, HIDDEN, INNER, block, zeros)
                stored = {"x": values["x"], "p": values["p"]}
                stored |= {"w1": first[0], "s1": first[1], "b1": values["b1"], "w2": second[0], "s2": second[1], "b2": values["b2"]}
                if zeros:
                    stored |= {" ": None, "  ": None, "   ": None, "z1": first[2], "z2": second[2]}
                attributes = {"k": 2, "activation_type": "silu"}
                # Of 8 bits in blocks, ONNX Runtime rounds the data to 8 bits, too.
                meant = {**values, "w1": first[3], "w2": second[3]}
                expected = results("MoE", meant, normalize_routing_weights=1, **attributes) if bits == 8 and block else None
                form = {"expert_weight_bits": bits, **({"block_size": block} if block else {})}
                name = f"{bits}_bits" + ("_blocks" if block else "") + ("_zeros" if zeros else "")
                add(name, "QMoE", stored, expected, **form, **attributes)
    single = {**stored, "x": values["x"][:1, :1], "p": values["p"][:1]}
    meant |= {name: single[name] for name in ("x", "p")}
    expected = results("MoE", meant, normalize_routing_weights=1, **attributes)
    add("of_choices", "QMoE", single, expected, **form, **attributes)
    first, second = quantized(4, INNER, HIDDEN, 0, True), quantized(8, HIDDEN, INNER, 0, True)
    mixed = {**stored, "w1": first[0], "s1": first[1], "z1": first[2], "w2": second[0], "s2": second[1], "z2": second[2]}
    meant = {**values, "w1": first[3], "w2": second[3]}
    expected = results("MoE", meant, normalize_routing_weights=1, **attributes)
    add("mixed_bits", "QMoE", mixed, expected, expert_weight_bits=4, fc2_expert_weight_bits=8, **attributes)
    second = quantized(4, HIDDEN, INNER, 0, True)
    weighted = {**mixed, "w2": second[0], "s2": second[1], "z2": second[2], "    ": None, "rw": np.abs(numbers(6, EXPERTS))}
    for name, normalized in (("weights", 0), ("normalized_weights", 1)):
        add(name, "QMoE", weighted, k=2, normalize_routing_weights=normalized)


def packed(values, bits):
    """Along the last dimension, the lowest bits of a byte first; its last byte need not be full."""
    each = 8 // bits
    missing = -values.shape[-1] % each
    whole = np.concatenate([values, np.zeros((*values.shape[:-1], missing), np.uint8)], -1)
    return sum(whole[..., place::each] << (bits * place) for place in range(each)).astype(np.uint8)
