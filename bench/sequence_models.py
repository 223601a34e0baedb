"""Transformers, a recurrent network and a recommender, as PyTorch's exporter writes them."""

import math

import numpy as np
from onnx import TensorProto

from exported_graph import ACTIVATION_GAINS, LOGIT_GAIN, ExportedGraph

# GPT-2 of 124 million parameters (Radford et al. 2019).
GPT2_VOCABULARY, GPT2_POSITIONS, GPT2_LAYERS, GPT2_HEADS, GPT2_HIDDEN = 50257, 1024, 12, 12, 768
# A medium network of Zaremba et al. 2014 on the words of the Penn Treebank.
LSTM_VOCABULARY, LSTM_LAYERS, LSTM_HIDDEN, LSTM_STEPS = 10000, 2, 650, 35
# Categories of the 26 features of Criteo's data of 2014, at most 100 000: rows beyond change the size of the file alone.
DLRM_ROWS = [
    *(1460, 583, 100000, 100000, 305, 24, 12517, 633, 3, 93145, 5683, 100000, 3194),
    *(27, 14992, 100000, 10, 5652, 2173, 4, 100000, 18, 15, 100000, 105, 100000),
]
DLRM_WIDTH = 16
DLRM_CANDIDATES = 128

# Queries and keys of this variance make attention prefer some positions, yet no single one.
QUERY_VARIANCE = 2.0


def _branch_variance(layers):
    """Of each of two residual branches a layer, so that all of them together add a variance of two."""
    return 1.0 / layers


def _vit_attention(g, data, name, length, heads, hidden):
    head = hidden // heads
    # The scale is put on queries and keys by half, which is how the exporter writes scaled_dot_product_attention.
    scale = math.sqrt(1 / math.sqrt(head))
    joined = g.reshape(g.linear(data, f"{name}.qkv", hidden, 3 * hidden, QUERY_VARIANCE), [1, length, 3, heads, head])
    parts = g.split(g.transpose(joined, [2, 0, 3, 1, 4]), [1, 1, 1], axis=0)
    query, key, value = (g.node("Squeeze", [part, g.integers([0])]) for part in parts)
    query = g.node("Mul", [query, g.scalar(scale)])
    key = g.node("Mul", [g.transpose(key, [0, 1, 3, 2]), g.scalar(scale)])
    context = g.node("MatMul", [g.node("Softmax", [g.node("MatMul", [query, key])], axis=-1), value])
    return g.reshape(g.transpose(context, [0, 2, 1, 3]), [1, length, hidden])


def _encoder_layer(g, data, name, length, heads, hidden, variance, epsilon):
    """Attention and a perceptron, each behind a layer normalisation and beside what it adds to."""
    normal = g.layer_norm(data, f"{name}.norm1", hidden, epsilon)
    context = _vit_attention(g, normal, name, length, heads, hidden)
    data = g.node("Add", [data, g.linear(context, f"{name}.proj", hidden, hidden, variance)])
    normal = g.layer_norm(data, f"{name}.norm2", hidden, epsilon)
    inner = g.gelu(g.linear(normal, f"{name}.fc1", hidden, 4 * hidden))
    return g.node("Add", [data, g.linear(inner, f"{name}.fc2", 4 * hidden, hidden, variance)])


def vit_b16(seed, layers=12, heads=12, hidden=768):
    """ViT-B/16 (Dosovitskiy et al. 2021) on 224x224 images."""
    g = ExportedGraph(seed, "vit_b16")
    variance = _branch_variance(layers)
    patches = g.conv(g.input("input", [1, 3, 224, 224]), hidden, 16, stride=16, pad=0)
    length = 14 * 14 + 1
    data = g.transpose(g.reshape(patches, [1, hidden, length - 1]), [0, 2, 1])
    first = g.initializer("class_token", g.weights.normal("class_token", [1, 1, hidden], 1.0))
    positions = g.initializer("positions", g.weights.normal("positions", [1, length, hidden], 0.3))
    data = g.node("Add", [g.node("Concat", [first, data], axis=1), positions])
    for index in range(layers):
        data = _encoder_layer(g, data, f"blocks.{index}", length, heads, hidden, variance, 1e-6)
    data = g.layer_norm(data, "norm", hidden, 1e-6)
    token = g.node("Gather", [data, g.node("Constant", [], value_int=0)], axis=1)
    g.gemm(token, "head", hidden, 1000, scale=LOGIT_GAIN, output="output")
    return g.exported_model({"output": [1, 1000]})


def whisper_encoder(seed, layers=4, heads=6, hidden=384, bins=80, frames=3000):
    """The encoder of Whisper's tiny model (Radford et al. 2022) on half a minute: 1 500 positions."""
    g = ExportedGraph(seed, "whisper_encoder", rank=1)
    data = g.gelu(g.conv(g.input("mel", [1, bins, frames]), hidden, 3))
    data = g.transpose(g.gelu(g.conv(data, hidden, 3, stride=2)), [0, 2, 1])
    length = frames // 2
    data = g.node("Add", [data, g.initializer("positions", g.weights.normal("positions", [length, hidden], 0.3))])
    for index in range(layers):
        data = _encoder_layer(g, data, f"blocks.{index}", length, heads, hidden, _branch_variance(layers), 1e-5)
    g.layer_norm(data, "norm", hidden, 1e-5, output="output")
    return g.exported_model({"output": [1, length, hidden]})


def _gpt2_linear(g, data, name, inputs, outputs, length, scale=1.0):
    """A product over rows with the shapes put back, as GPT-2 writes its layers; the weight is not transposed."""
    weight = g.weights.he(f"{name}.weight", [inputs, outputs], inputs, scale * g.gains.get(data, 1.0))
    bias = g.weights.normal(f"{name}.bias", [outputs], 0.05)
    operands = [g.initializer(f"{name}.weight", weight), g.initializer(f"{name}.bias", bias)]
    rows = g.node("Gemm", [g.reshape(data, [-1, inputs]), *operands], alpha=1.0, beta=1.0)
    return g.reshape(rows, [1, length, outputs])


def _gpt2_gelu(g, data):
    """The approximation by tanh."""
    cubic = g.node("Mul", [g.node("Pow", [data, g.scalar(3)]), g.scalar(0.044715)])
    curve = g.node("Tanh", [g.node("Mul", [g.node("Add", [data, cubic]), g.scalar(math.sqrt(2 / math.pi))])])
    product = g.node("Mul", [g.node("Mul", [data, g.scalar(0.5)]), g.node("Add", [curve, g.scalar(1)])])
    g.gains[product] = ACTIVATION_GAINS["gelu"]
    return product


def _gpt2_attention(g, data, layer, length, past):
    """`past` is how many positions the cache has; what the attention has seen then is `present`."""
    name = f"h.{layer}.attn"
    head = GPT2_HIDDEN // GPT2_HEADS
    joined = _gpt2_linear(g, data, f"{name}.c_attn", GPT2_HIDDEN, 3 * GPT2_HIDDEN, length, QUERY_VARIANCE)
    parts = g.split(joined, [GPT2_HIDDEN] * 3, axis=2)
    query, *kept = (g.reshape(part, [1, length, GPT2_HEADS, head]) for part in parts)
    query = g.transpose(query, [0, 2, 1, 3])
    present = []
    for part, kind in zip(kept, ("key", "value")):
        output = f"present.{layer}.{kind}"
        if past:
            before = g.input(f"past_key_values.{layer}.{kind}", [1, GPT2_HEADS, past, head])
            present.append(g.node("Concat", [before, g.transpose(part, [0, 2, 1, 3])], output, axis=-2))
        else:
            present.append(g.node("Transpose", [part], output, perm=[0, 2, 1, 3]))
    key, value = present
    scores = g.node("Div", [g.node("MatMul", [query, g.transpose(key, [0, 1, 3, 2])]), g.scalar(math.sqrt(head))])
    if length > 1:  # a single new position sees all
        scores = g.node("Where", ["causal_mask", scores, g.scalar(np.finfo(np.float32).min)])
    context = g.node("MatMul", [g.node("Softmax", [scores], axis=-1), value])
    context = g.reshape(g.transpose(context, [0, 2, 1, 3]), [1, length, GPT2_HIDDEN])
    return _gpt2_linear(g, context, f"{name}.c_proj", GPT2_HIDDEN, GPT2_HIDDEN, length, _branch_variance(GPT2_LAYERS))


def _gpt2(seed, name, length, past):
    # The weights are those of one network, whatever it is used for.
    g = ExportedGraph(seed, "gpt2")
    g.name = name
    words = g.weights.he("wte", [GPT2_VOCABULARY, GPT2_HIDDEN], GPT2_HIDDEN, LOGIT_GAIN)
    places = g.weights.he("wpe", [GPT2_POSITIONS, GPT2_HIDDEN], GPT2_HIDDEN, 1.0)
    ids = g.input("input_ids", [1, length], TensorProto.INT64)
    positions = g.input("position_ids", [1, length], TensorProto.INT64)
    word = g.node("Gather", [g.initializer("wte.weight", words), ids])
    data = g.node("Add", [word, g.node("Gather", [g.initializer("wpe.weight", places), positions])])
    if length > 1:
        g.initializer("causal_mask", np.tri(length, dtype=bool)[None, None])
    variance = _branch_variance(GPT2_LAYERS)
    for layer in range(GPT2_LAYERS):
        normal = g.layer_norm(data, f"h.{layer}.ln_1", GPT2_HIDDEN)
        data = g.node("Add", [_gpt2_attention(g, normal, layer, length, past), data])
        normal = g.layer_norm(data, f"h.{layer}.ln_2", GPT2_HIDDEN)
        inner = _gpt2_gelu(g, _gpt2_linear(g, normal, f"h.{layer}.mlp.c_fc", GPT2_HIDDEN, 4 * GPT2_HIDDEN, length))
        outer = _gpt2_linear(g, inner, f"h.{layer}.mlp.c_proj", 4 * GPT2_HIDDEN, GPT2_HIDDEN, length, variance)
        data = g.node("Add", [data, outer])
    data = g.layer_norm(data, "ln_f", GPT2_HIDDEN)
    # The table of words once more: the exporter folds its transposition, so that the file holds both.
    g.node("MatMul", [data, g.initializer("lm_head.weight_transposed", np.ascontiguousarray(words.T))], "logits")
    outputs = {"logits": [1, length, GPT2_VOCABULARY]}
    for layer in range(GPT2_LAYERS):
        for kind in ("key", "value"):
            outputs[f"present.{layer}.{kind}"] = [1, GPT2_HEADS, past + length, GPT2_HIDDEN // GPT2_HEADS]
    return g.exported_model(outputs)


def gpt2_prefill(seed):
    """GPT-2 over a prompt of 50 tokens; its outputs are the scores of all words and the cache of keys and values."""
    return _gpt2(seed, "gpt2_prefill", length=50, past=0)


def gpt2_decode(seed):
    """GPT-2 over one token behind a cache of 128."""
    return _gpt2(seed, "gpt2_decode", length=1, past=128)


def _lstm_layer(g, data, state, cell, layer):
    """One LSTM operator, its state cut out of that of all layers; what it gives, and its last state and cell."""
    hidden = LSTM_HIDDEN
    shape = [1, 4 * hidden, hidden]
    weights = [g.initializer(name, g.weights.he(name, shape, hidden, 1.0)) for name in (f"lstm.{layer}.W", f"lstm.{layer}.R")]
    bias = g.initializer(f"lstm.{layer}.B", g.weights.normal(f"lstm.{layer}.B", [1, 8 * hidden], 0.05))
    begin, end, axis = g.integers([layer]), g.integers([layer + 1]), g.integers([0])
    before = [g.node("Slice", [all_layers, begin, end, axis]) for all_layers in (state, cell)]
    outputs, *last = g.nodes_of("LSTM", [data, *weights, bias, "", *before], 3, hidden_size=hidden)
    return g.node("Squeeze", [outputs, g.integers([1])]), last


def lstm_language_model(seed):
    """A language model of two LSTM layers of 650 (Zaremba et al. 2014), over 35 words."""
    g = ExportedGraph(seed, "lstm_language_model")
    ids = g.input("input_ids", [LSTM_STEPS, 1], TensorProto.INT64)
    state = g.input("h0", [LSTM_LAYERS, 1, LSTM_HIDDEN])
    cell = g.input("c0", [LSTM_LAYERS, 1, LSTM_HIDDEN])
    words = g.weights.normal("encoder.weight", [LSTM_VOCABULARY, LSTM_HIDDEN], 1.0)
    data = g.node("Gather", [g.initializer("encoder.weight", words), ids])
    last = []
    for layer in range(LSTM_LAYERS):
        data, states = _lstm_layer(g, data, state, cell, layer)
        last.append(states)
    for output, parts in zip(("hn", "cn"), zip(*last)):
        g.node("Concat", list(parts), output, axis=0)
    # What the second layer gives, a gated tanh of small values, has a mean square of about a fortieth.
    g.linear(data, "decoder", LSTM_HIDDEN, LSTM_VOCABULARY, LOGIT_GAIN * 40, "logits")
    states = [LSTM_LAYERS, 1, LSTM_HIDDEN]
    return g.exported_model({"logits": [LSTM_STEPS, 1, LSTM_VOCABULARY], "hn": states, "cn": states})


def _perceptron(g, data, name, widths):
    """Layers with ReLU, but for the last one's."""
    for layer, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        data = g.gemm(g.relu(data) if layer > 0 else data, f"{name}.{layer}", inputs, outputs)
    return data


def dlrm(seed):
    """A recommender (Naumov et al. 2019) as sized for Criteo's data, that ranks 128 candidates of one request."""
    g = ExportedGraph(seed, "dlrm")
    features = len(DLRM_ROWS) + 1
    data = g.input("dense", [DLRM_CANDIDATES, 13])
    categories = g.input("categories", [len(DLRM_ROWS), DLRM_CANDIDATES], TensorProto.INT64)
    dense = g.relu(_perceptron(g, data, "bottom", [13, 512, 256, 64, DLRM_WIDTH]))
    parts = [dense]
    for table, rows in enumerate(DLRM_ROWS):
        # Products of two such rows have variance one.
        weight = g.weights.normal(f"tables.{table}", [rows, DLRM_WIDTH], 0.5)
        chosen = g.node("Gather", [categories, g.node("Constant", [], value_int=table)], axis=0)
        parts.append(g.node("Gather", [g.initializer(f"tables.{table}.weight", weight), chosen]))
    joined = g.reshape(g.concat(parts), [DLRM_CANDIDATES, features, DLRM_WIDTH])
    products = g.node("MatMul", [joined, g.transpose(joined, [0, 2, 1])])
    # Each pair of two once: below the diagonal.
    rows, columns = np.tril_indices(features, -1)
    pairs = g.initializer("pairs", (rows * features + columns).astype(np.int64))
    chosen = g.node("Gather", [g.reshape(products, [DLRM_CANDIDATES, features * features]), pairs], axis=1)
    data = g.node("Concat", [dense, chosen], axis=1)
    g.node("Sigmoid", [_perceptron(g, data, "top", [DLRM_WIDTH + len(rows), 512, 256, 1])], "output")
    return g.exported_model({"output": [DLRM_CANDIDATES, 1]})


BUILDERS = {
    "vit_b16": vit_b16,
    "whisper_encoder": whisper_encoder,
    "gpt2_prefill": gpt2_prefill,
    "gpt2_decode": gpt2_decode,
    "lstm_language_model": lstm_language_model,
    "dlrm": dlrm,
}
# What the integers among the inputs of a model stay below.
INDEX_LIMITS = {
    "gpt2_prefill": {"input_ids": GPT2_VOCABULARY, "position_ids": GPT2_POSITIONS},
    "gpt2_decode": {"input_ids": GPT2_VOCABULARY, "position_ids": GPT2_POSITIONS},
    "lstm_language_model": {"input_ids": LSTM_VOCABULARY},
    "dlrm": {"categories": np.array(DLRM_ROWS)[:, None]},
}
