"""Normalisations by branches, gates and mixtures of residual streams of com.microsoft."""

import numpy as np

from case import F, single


def gates(cases):
    some = np.random.default_rng(32)

    def numbers(*shape):
        return some.normal(size=shape).astype(F)

    def add(op, inputs, constants=None, name=None, outputs=("y",), **attributes):
        single(cases, op, (17,), inputs, constants, "microsoft_" + (name or op), outputs, domain="com.microsoft", **attributes)

    x = numbers(2, 3, 8)
    add("ScaledSiLU", {"x": x}, alpha=0.7)
    add("ScaledSiLU", {"x": x}, {"s": np.array(1.5, F)}, "ScaledSiLU_input")
    add("GatedAdd", {"x": x, "y0": numbers(2, 3, 8), "g": numbers(2, 3, 1)})
    for activation in ("silu", "sigmoid"):
        add("GatedRMSNorm", {"x": x, "s": numbers(4), "g": numbers(2, 3, 8)}, None, "GatedRMSNorm_" + activation, activation=activation)
    grouped = numbers(2, 3, 2, 4)
    for name, shape in (("flat", (8,)), ("branches", (2, 4)), ("shared", (4,))):
        add("BranchwiseRMSNorm", {"x": grouped}, {"s": numbers(*shape)}, "BranchwiseRMSNorm_" + name, epsilon=1e-3)
    add("BranchwiseRMSNorm", {"x": x}, None, "BranchwiseRMSNorm_of_flat", num_branches=2)
    for name, shape in (("branches", (2, 3, 2)), ("columns", (2, 3, 2, 1)), ("elements", (2, 3, 2, 4))):
        add("HyperConnectionPreMix", {"x": grouped, "m": numbers(*shape)}, None, "HyperConnectionPreMix_" + name, reduction_scale=0.5)
        streams = {"x": grouped, "b": numbers(2, 3, 4), "m": numbers(*shape)}
        add("HyperConnectionPostMix", streams, None, "HyperConnectionPostMix_" + name)
    add("HyperConnectionPreMix", {"x": x, "m": numbers(2, 3, 8)}, None, "HyperConnectionPreMix_of_flat", num_branches=2)
    mixed = {"x": x, "b": numbers(2, 3, 4), "m": numbers(2, 3, 2), "s": numbers(2, 3, 2, 2)}
    add("HyperConnectionPostMix", mixed, None, "HyperConnectionPostMix_of_flat", num_branches=2)
    rates = {"bias": numbers(8), "scale": numbers(8)}
    add("LinearAttentionGate", {"x": 20 * x}, rates, "LinearAttentionGate_decay")
    both = {"x": x, **rates, "b": numbers(2, 3, 8)}
    add("LinearAttentionGate", both, None, outputs=("y", "beta"))
    engram = {"k": grouped, "q": numbers(2, 3, 2, 4), "v": numbers(2, 3, 4)}
    scales = {"ks": numbers(2, 4), "qs": numbers(2, 4)}
    add("EngramGate", engram, scales)
    add("EngramGate", engram, {**scales, "cs": numbers(2, 4)}, "EngramGate_normed", ("y", "normed"), epsilon=1e-3)
