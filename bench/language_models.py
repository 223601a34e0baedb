"""Language models with weights of 4 bits, in the operators that ONNX Runtime's model builder writes."""

import math

import numpy as np
from onnx import TensorProto, helper

from built_models import Graph

OPSET = 21
IR_VERSION = 10
# Four layers of Llama 3.2 of 1 billion parameters (2024), whose other twelve are equal; of its words as many as Llama 2 had.
LAYERS, HIDDEN, HEADS, SHARED_HEADS, HEAD, INNER, VOCABULARY = 4, 2048, 32, 8, 64, 8192, 32000
PAST, PROMPT, ROTATED_PLACES = 128, 64, 512
BITS, BLOCK = 4, 32
# Of a number that is equally likely any of sixteen, less eight.
DEVIATION_OF_FOUR_BITS = math.sqrt((16**2 - 1) / 12)
MICROSOFT = "com.microsoft"


def _linear(g, data, name, inputs, outputs, variance=1.0, output=None):
    """A product with packed weights; `variance` is that of what it gives of a standard normal."""
    blocks = inputs // BLOCK
    packed = g.weights.indices(name, [outputs, blocks, BLOCK * BITS // 8], 256).astype(np.uint8)
    scale = math.sqrt(variance / inputs) / DEVIATION_OF_FOUR_BITS
    scales = g.weights.uniform(name + ".scale", [outputs, blocks], 0.8 * scale, 1.2 * scale)
    operands = [data, g.initializer(name, packed), g.initializer(name + ".scale", scales)]
    return g.node("MatMulNBits", operands, output, domain=MICROSOFT, K=inputs, N=outputs, bits=BITS, block_size=BLOCK)


def _add_and_norm(g, data, residual, name):
    """The normal of the sum, and the sum."""
    gain = g.initializer(name, g.weights.uniform(name, [HIDDEN], 0.8, 1.2))
    outputs = [name + ".normal", name + ".sum"]
    operands = [data, residual, gain]
    g.nodes.append(
        helper.make_node("SkipSimplifiedLayerNormalization", operands, [outputs[0], "", "", outputs[1]], name=name, domain=MICROSOFT, epsilon=1e-5)
    )
    return outputs


def _rotations(g):
    angles = np.outer(np.arange(ROTATED_PLACES), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
    return [g.initializer(name, of(angles).astype(np.float32)) for name, of in (("cosines", np.cos), ("sines", np.sin))]


def _llama_int4(seed, name_of_model, past_length, length):
    """So many tokens behind a cache of others."""
    total = past_length + length
    g = Graph(seed, name_of_model)
    inputs = [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, length])]
    outputs = []
    lengths = [g.initializer("last", np.array([total - 1], np.int32)), g.initializer("total", np.array(total, np.int32))]
    rotations = _rotations(g)
    residual = g.node("Gather", [g.initializer("words", g.weights.normal("words", [VOCABULARY, HIDDEN], 1.0)), "tokens"])
    gain = g.initializer("first", g.weights.uniform("first", [HIDDEN], 0.8, 1.2))
    normal = g.node("SimplifiedLayerNormalization", [residual, gain], axis=-1, epsilon=1e-5)
    branch = 1 / LAYERS  # so that the branches of all layers add a variance of two
    for layer in range(LAYERS):
        name = f"layers.{layer}"
        query, key, value = (
            _linear(g, normal, f"{name}.{part}", HIDDEN, heads * HEAD) for part, heads in (("query", HEADS), ("key", SHARED_HEADS), ("value", SHARED_HEADS))
        )
        past = [f"{name}.past_{part}" for part in ("key", "value")]
        present = [f"{name}.present_{part}" for part in ("key", "value")]
        inputs += [helper.make_tensor_value_info(one, TensorProto.FLOAT, [1, SHARED_HEADS, past_length, HEAD]) for one in past]
        outputs += [helper.make_tensor_value_info(one, TensorProto.FLOAT, [1, SHARED_HEADS, total, HEAD]) for one in present]
        attributes = {"num_heads": HEADS, "kv_num_heads": SHARED_HEADS, "do_rotary": 1, "scale": 1 / math.sqrt(HEAD)}
        operands = [query, key, value, *past, *lengths, *rotations]
        context = f"{name}.context"
        g.nodes.append(helper.make_node("GroupQueryAttention", operands, [context, *present], name=context, domain=MICROSOFT, **attributes))
        normal, residual = _add_and_norm(g, _linear(g, context, f"{name}.output", HEADS * HEAD, HIDDEN, branch), residual, f"{name}.norm1")
        gate = _linear(g, normal, f"{name}.gate", HIDDEN, INNER)
        opened = g.node("Mul", [gate, g.node("Sigmoid", [gate])])
        inner = g.node("Mul", [opened, _linear(g, normal, f"{name}.up", HIDDEN, INNER)])
        normal, residual = _add_and_norm(g, _linear(g, inner, f"{name}.down", INNER, HIDDEN, branch), residual, f"{name}.norm2")
    outputs.append(helper.make_tensor_value_info(_linear(g, normal, "scores", HIDDEN, VOCABULARY, output="logits"), TensorProto.FLOAT, [1, length, VOCABULARY]))
    graph = helper.make_graph(g.nodes, name_of_model, inputs, outputs, g.initializers)
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION, producer_name="collage bench/models.py")


def llama_int4_decode(seed):
    """One step with a cache of PAST tokens."""
    return _llama_int4(seed, "llama_int4_decode", PAST, 1)


def llama_int4_prompt(seed):
    """A prompt of PROMPT tokens behind a cache of PAST tokens."""
    return _llama_int4(seed, "llama_int4_prompt", PAST, PROMPT)


BUILDERS = {"llama_int4_decode": llama_int4_decode, "llama_int4_prompt": llama_int4_prompt}
INDEX_LIMITS = {name: {"tokens": VOCABULARY} for name in BUILDERS}
