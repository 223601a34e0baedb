#!/usr/bin/env python3
"""Writes models that the reader must refuse, NAME.onnx, each with a part of the message that it must give, NAME.txt."""

import os
import sys

import numpy as np
from onnx import SparseTensorProto, TensorProto, helper, numpy_helper
from onnx.helper import make_node, make_tensor_value_info

X = make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
Y = make_tensor_value_info("y", TensorProto.FLOAT, None)


def model(nodes, inputs=(X,), initializers=(), outputs=(Y,), opset=13):
    graph = helper.make_graph(list(nodes), "broken", list(inputs), list(outputs), list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def relu(source="x", target="y", name=""):
    return make_node("Relu", [source], [target], name=name)


def array(name, values):
    return numpy_helper.from_array(np.asarray(values), name)


def conv(weight=(2, 3, 3, 3), **attributes):
    weights = array("w", np.ones(weight, np.float32))
    return model([make_node("Conv", ["x", "w"], ["y"], name="c1", **attributes)], initializers=[weights])


def tensor(dims, data_type=TensorProto.FLOAT, raw=b"", **fields):
    return TensorProto(name="w", dims=dims, data_type=data_type, raw_data=raw, **fields)


def with_initializer(value):
    return model([make_node("Add", ["x", "w"], ["y"])], initializers=[value])


def shaped(*extents):
    return make_tensor_value_info("x", TensorProto.FLOAT, extents)


def external(location, **entries):
    value = tensor([1])
    value.ClearField("raw_data")
    value.data_location = TensorProto.EXTERNAL
    value.external_data.add(key="location", value=location)
    for key, number in entries.items():
        value.external_data.add(key=key, value=str(number))
    return value


def with_sparse(values, indices):
    """The weight of an addition, a vector of three, from values at indices."""
    sparse = SparseTensorProto(dims=[3], values=array("w", np.array(values, np.float32)), indices=array("", np.array(indices)))
    result = model([make_node("Add", ["x", "w"], ["y"])])
    result.graph.sparse_initializer.append(sparse)
    return result


def graphs():
    yield "unknown_operator", model([make_node("Frobnicate", ["x"], ["y"], name="n")]), "node 'n' (Frobnicate, opset 13): this operator is not supported"
    strange = model([make_node("Frobnicate", ["x"], ["y"], name="a\nb\x1b[31m\u2028größe_BAD\\")]).SerializeToString().replace(b"BAD", b"\xff\xc3(")
    yield "name_of_many_lines", strange, "node 'a\\nb\\x1b[31m\\u2028größe_\\xff\\xc3(\\' (Frobnicate"
    yield "output_of_many_lines", model([make_node("Relu", ["x\r\t"], ["y"])]), "reads 'x\\r\\t', which no input"
    integer = model([relu()])
    integer.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.INT64, None))
    yield "declared_output", integer, "node 0 giving 'y' (Relu, opset 13): gives 'y' of float32, which the model declares as output of int64"
    yield "other_domain", model([make_node("Relu", ["x"], ["y"], domain="com.example")]), "of the domain 'com.example' is not supported"
    yield "cycle", model([relu("b", "a"), relu("a", "b"), relu("x", "y")]), "reads 'b', which no input, initializer or earlier node gives"
    yield "self_cycle", model([relu("y", "y")]), "node 0 giving 'y' (Relu, opset 13): reads 'y'"
    yield "unknown_input", model([relu("nowhere")]), "reads 'nowhere'"
    yield "duplicate_output", model([relu(), relu()]), "the name 'y' is defined twice"
    yield "duplicate_input", model([relu()], inputs=[X, X]), "the name 'x' is defined twice"
    yield "duplicate_initializer", model([relu()], initializers=[array("w", [1.0]), array("w", [1.0])]), "the name 'w' is defined twice"
    yield "output_of_nothing", model([relu("x", "z")]), "output 'y' is given by no node, input or initializer"
    yield "no_outputs", model([relu()], outputs=[]), "the model has no outputs"
    skip = make_node("SkipLayerNormalization", ["x", "x", "w"], ["d", "m"], domain="com.microsoft")
    yield "unsupported_output", model([skip, relu("m")], initializers=[array("w", np.ones(8, np.float32))]), "reads 'm', an optional output of node 0 giving 'd' (SkipLayerNormalization, opset 13) that is not supported"
    yield "statistics_as_output", model([make_node("BatchNormalization", ["x", "w", "w", "w", "w"], ["z", "y"], name="b")], initializers=[array("w", np.ones(3, np.float32))]), "output 'y' is an optional output of node 'b' (BatchNormalization, opset 13) that is not supported"
    yield "old_opset", model([relu()], opset=5), "the model uses opset 5; opsets 6 to 28 are supported"
    yield "future_opset", model([relu()], opset=99), "the model uses opset 99"
    call = make_node("F", ["x"], ["y"], domain="local", name="call")
    circle = model([call])
    circle.functions.append(helper.make_function("local", "F", ["a"], ["b"], [make_node("F", ["a"], ["b"], domain="local")], circle.opset_import))
    yield "function_circle", circle, "node 'call' (F): functions of the model call each other more than 100 levels deep"
    inside = model([call])
    inside.functions.append(helper.make_function("local", "F", ["a"], ["b"], [make_node("Frobnicate", ["a"], ["b"])], inside.opset_import))
    yield "function_operator", inside, "node 'call/0' (Frobnicate, opset 13): this operator is not supported"
    blocked = model([make_node("Conv", ["x", "w"], ["y"], domain="com.microsoft.nchwc")], initializers=[array("w", np.ones((16, 3, 3, 3), np.float32))])
    blocked.opset_import.append(helper.make_opsetid("com.microsoft.nchwc", 1))
    yield "blocked_layouts", blocked, "optimised at most to the level 'extended'"
    unversioned = model([relu()])
    del unversioned.opset_import[:]
    yield "no_opset", unversioned, "does not say which version"


def shapes():
    yield "symbolic", model([relu()], inputs=[shaped("N", 3, None, 8)]), "input 'x' has extents that the model leaves open: give numbers for them with --shape x=Nx3x?x8"
    yield "negative_dimension", model([relu()], inputs=[shaped(-4, 3)]), "--shape x=?x3"
    yield "no_rank", model([relu()], inputs=[make_tensor_value_info("x", TensorProto.FLOAT, None)]), "has no known rank"
    yield "huge_input", model([relu()], inputs=[shaped(1 << 40, 1 << 40)]), "is too large"
    parts = make_node("SplitToSequence", ["x"], ["y"])
    yield "too_many_parts", model([parts], inputs=[shaped(1 << 30)]), f"cuts {1 << 30} parts; at most {1 << 20} is right"
    yield "string_input", model([relu()], inputs=[make_tensor_value_info("x", TensorProto.STRING, [1])]), "reads 'x', which is of strings; this operator takes numbers"
    yield "complex_input", model([relu()], inputs=[make_tensor_value_info("x", TensorProto.COMPLEX64, [1])]), "is no dense tensor"


def attributes():
    yield "attribute_type", conv(strides=1.5), "node 'c1' (Conv, opset 13): attribute 'strides' must be a list of integers"
    yield "attribute_count", conv(strides=[1, 1, 1]), "attribute 'strides' has 3 values where 2 are right"
    yield "zero_stride", conv(strides=[0, 1]), "attribute 'strides' has the value 0"
    yield "negative_pads", conv(pads=[-1, 0, 0, 0]), "attribute 'pads' has the value -1"
    yield "huge_dilation", conv(dilations=[1 << 62, 1]), "attribute 'dilations'"
    yield "zero_group", conv(group=0), "attribute 'group' is 0"
    yield "unknown_auto_pad", conv(auto_pad="MAYBE"), "attribute 'auto_pad' is 'MAYBE'"
    yield "kernel_shape", conv(kernel_shape=[5, 5]), "attribute 'kernel_shape' differs"
    yield "channels", conv(weight=(2, 4, 3, 3)), "node 'c1' (Conv, opset 13)"
    yield "volume", conv(weight=(2, 3, 3, 3, 3)), "do not fit"
    yield "missing_input", model([make_node("Conv", ["x"], ["y"])]), "input 1 is required and absent"
    yield "scalar_targets", model([make_node("NegativeLogLikelihoodLoss", ["x", "t"], ["y"])], initializers=[array("t", np.int64(0))]), "targets must have at least one dimension"
    yield "missing_axis", model([make_node("Concat", ["x", "x"], ["y"])]), "attribute 'axis' is required and absent"
    yield "axis_outside", model([make_node("Softmax", ["x"], ["y"], axis=4)]), "axis 4 is outside a tensor of 4 dimensions"
    yield "sub_graph", model([make_node("Softmax", ["x"], ["y"], axis=helper.make_graph([relu()], "g", [X], [Y]))]), "attribute 'axis' must be an integer"
    reshape = make_node("Reshape", ["x", "x"], ["y"])
    yield "variable_shape", model([reshape]), "(shape) must not depend on the model's inputs"
    shape = array("s", np.array([7, -1], np.int64))
    yield "wrong_reshape", model([make_node("Reshape", ["x", "s"], ["y"])], initializers=[shape]), "cannot view (1, 3, 8, 8) as (7, -1)"
    huge = array("s", np.array([1 << 31, 1 << 31], np.int64))
    yield "huge_constant", model([make_node("ConstantOfShape", ["s"], ["y"])], initializers=[huge]), "is too large"
    large = array("s", np.array([1 << 30, 1 << 8], np.int64))
    yield "large_constant", model([make_node("ConstantOfShape", ["s"], ["y"])], initializers=[large]), "the constants that the model computes exceed 1000 MB"
    numbers = [array(name, np.float32(value)) for name, value in (("a", 0), ("b", 1), ("c", 0))]
    yield "endless_range", model([make_node("Range", ["a", "b", "c"], ["y"])], initializers=numbers), "the range has"
    planes = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1 << 31, 1, 1, 1])
    pool = make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[1, 1])
    yield "planes_of_indices", model([pool], inputs=[planes]), "the constants that the model computes exceed 1000 MB"
    integers = [array(name, np.int64(value)) for name, value in (("a", 0), ("b", 1), ("c", 0))]
    yield "standing_range", model([make_node("Range", ["a", "b", "c"], ["y"])], initializers=integers), "input 2 (delta) is 0"
    index = array("i", np.array([3], np.int64))
    yield "index_outside", model([make_node("Gather", ["x", "i"], ["y"], axis=1)], initializers=[index]), "the index 3 is outside an extent of 3"

    yield from packed_weights()


def packed_weights():
    def product(op, more=(), **attributes):
        constants = [array("w", np.zeros((2, 1, 8), np.uint8)), array("s", np.ones(2, np.float32)), *more]
        inputs = ["x", "w", "s", *([""] if more and more[0].name == "g" else []), *(tensor.name for tensor in more)]
        return model([make_node(op, inputs, ["y"], domain="com.microsoft", K=8, N=2, **attributes)], initializers=constants)

    four = {"bits": 4, "block_size": 16}
    yield "packed_zeros", product("MatMulNBits", [array("z", np.ones(2))], **four), "input 3 (zero_points) is float64, expected uint8 or float32"
    yield "packed_groups", product("MatMulNBits", [array("g", np.zeros(9, np.int32))], **four), "input 4 (g_idx) is Tensor[(9,), int32], expected int32"
    steps, zeros = array("s", np.ones((4, 2), np.float32)), array("z", np.zeros((4,), np.int8))
    blocks = model([make_node("DequantizeLinear", ["w", "s", "z"], ["y"], axis=1, block_size=3)], (), [array("w", np.ones((4, 6), np.int8)), steps, zeros], opset=21)
    yield "zero_points_of_blocks", blocks, "input 2 (zero point) has shape (4,); blocks of 3 need (4, 2)"
    yield "packed_blocks", product("MatMulNBits", bits=4, block_size=3), "4 bits in blocks of 3; 2, 4 or 8 bits are supported"
    yield "packed_kind", product("MatMulBnb4", quant_type=2, block_size=16), "quant_type 2; positive ones and the types 0 (FP4) and 1 (NF4)"


def tensors():
    yield "short_raw_data", with_initializer(tensor([4], raw=b"1234567")), "initializer 'w': has 7 bytes where"
    yield "short_float_data", with_initializer(TensorProto(name="w", dims=[4], data_type=1, float_data=[1.0])), "has 1 elements where"
    yield "no_data", with_initializer(TensorProto(name="w", dims=[1 << 30], data_type=1)), "has 0 elements where"
    yield "negative_extent", with_initializer(tensor([-4])), "has a negative extent"
    yield "huge_extents", with_initializer(tensor([1 << 62, 1 << 62])), "is too large"
    yield "string_tensor", with_initializer(TensorProto(name="w", dims=[2], data_type=8, string_data=[b"a"])), "has 1 elements where"
    yield "raw_strings", with_initializer(tensor([1], data_type=8, raw=b"12345678")), "has raw data, which strings cannot have"
    yield "unknown_data_type", with_initializer(tensor([1], data_type=4711, raw=b"1234")), "element type 4711"
    yield "external_absent", with_initializer(external("absent.bin")), "absent.bin, which cannot be read"
    yield "external_outside", with_initializer(external("../outside.bin")), "which is outside the folder of the model"
    yield "external_absolute", with_initializer(external("/etc/passwd")), "which is outside the folder of the model"
    yield "external_around", with_initializer(external("deeper/../../outside.bin")), "which is outside the folder of the model"
    yield "external_link", with_initializer(external("link_out.bin")), "lies in 'link_out.bin', which is outside the folder of the model"
    yield "external_link_to_none", with_initializer(external("link_to_none.bin")), "link_to_none.bin, which cannot be read"
    yield "external_folder", with_initializer(external(".")), "is not a regular file"
    yield "external_nameless", with_initializer(external("")), "lies in a file of its own that is not named"
    yield "external_past_end", with_initializer(external("eight.bin", offset=6)), "lies at 6 in"
    yield "external_far", with_initializer(external("eight.bin", offset=2**64 - 2)), "which has only 8 bytes"
    yield "external_length", with_initializer(external("eight.bin", length=8)), "has 8 external bytes where 4 are right"
    yield "external_offset", with_initializer(external("eight.bin", offset="-4")), "the external offset '-4', which is no number"
    yield "external_huge_offset", with_initializer(external("eight.bin", offset=2**70)), "which is no number of bytes"
    yield "sparse_outside", with_sparse([1, 2], [0, 3]), "initializer 'w': is sparse with the index 3 where 3 is the extent"
    yield "sparse_negative", with_sparse([1], [-1]), "the index -1"
    yield "sparse_counts", with_sparse([1, 2], [0]), "expected n values and n int64 indices"
    yield "sparse_floats", with_sparse([1], [0.0]), "expected n values and n int64 indices"


def microsoft():
    """One node that reads x, then constants."""

    def node(op, data, constants=None, **attributes):
        constants = constants or {}
        names = ["x", *(name.strip() for name in constants)]
        values = [array(name, value) for name, value in constants.items() if name.strip()]
        only = model([make_node(op, names, ["y"], domain="com.microsoft", **attributes)], inputs=[shaped(*data)], initializers=values)
        only.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return only

    def ones(*extents):
        return np.ones(extents, np.float32)

    layers = {"p": ones(2, 4), "w1": ones(4, 6, 8), "b1": ones(4, 6), "w2": ones(4, 8, 6)}

    def experts(changes=None, **attributes):
        return node("MoE", (2, 8), {**layers, **(changes or {})}, **attributes)

    yield "experts_router", experts({"p": ones(3, 4)}), "input 1 (router_probs) has shape (3, 4); (2, experts) is right"
    yield "experts_choices", experts(k=5), "attribute 'k' is 5; 1 to 4 experts is right"
    yield "experts_activation", experts(activation_type="tanh"), "attribute 'activation_type' is 'tanh'; relu, gelu, silu, swiglu or identity is right"
    yield "experts_mixer", experts(use_sparse_mixer=1, k=2), "attribute 'use_sparse_mixer' is 1; only 0 is supported"
    yield "experts_weights", experts({"w2": ones(4, 8, 7)}), "input 4 (weights of fc2) has shape (4, 8, 7); (4, columns, 6) is right"
    yield "experts_columns", experts({"w2": ones(4, 7, 6)}), "fc2 has 7 columns; those of the data, 8, are right"
    swiglu = {"activation_type": "swiglu"}
    yield "experts_gate", experts(**swiglu), "input 6 (fc3_experts_weights) must be given"
    yield "experts_fusion", experts(swiglu_fusion=3, **swiglu), "attribute 'swiglu_fusion' is 3; 0, 1 or 2 is right"
    bytes_of = {"w1": np.ones((4, 6, 4), np.uint8), "s1": ones(4, 6), " ": None, "w2": np.ones((4, 8, 3), np.uint8), "s2": ones(4, 8)}
    packed = {"p": ones(2, 4), **bytes_of}
    yield "experts_kind", node("QMoE", (2, 8), packed, quant_type="fp4"), "attribute 'quant_type' is 'fp4'; only 'int' is supported"
    yield "experts_order", node("QMoE", (2, 8), packed, weights_prepacked=1), "attribute 'weights_prepacked' is 1"
    yield "experts_bits", node("QMoE", (2, 8), packed, expert_weight_bits=3), "fc1 has weights of 3 bits; 2, 4 or 8 is right"
    yield "experts_blocks", node("QMoE", (2, 8), packed, block_size=16), "fc1 has columns of 8 elements, which blocks of 16 do not fill"
    yield "branches", node("BranchwiseRMSNorm", (2, 8), num_branches=3), "attribute 'num_branches' is 3"
    yield "branch_weights", node("HyperConnectionPreMix", (2, 2, 4), {"m": ones(3)}), "input 1 has shape (3,); (2, 2, 1) or (2, 2, 4) is right"
    yield "gate_activation", node("GatedRMSNorm", (2, 8), {"s": ones(4), "g": ones(2, 8)}, activation="relu"), "silu, swish or sigmoid is right"
    yield "unfold_size", node("UnfoldTensor", (2, 5), size=6), "attributes 'size' 6 and 'step' 1 do not fit the 5 elements of dimension 1"
    yield "distance_metric", node("CDist", (2, 3), {"b": ones(4, 3)}, metric="cosine"), "attribute 'metric' is 'cosine'; euclidean and sqeuclidean are supported"
    yield "inverse_shape", node("Inverse", (2, 3)), "data has shape (2, 3), expected square matrices"
    boxes = {"r": ones(1, 4), "i": np.zeros(1, np.int32), "s": np.array([2, 0], np.int32)}
    yield "crop_size", node("CropAndResize", (1, 1, 4, 4), boxes), "crops of (2, 0) do not fit"
    words = {"m": ones(3), "v": ones(5)}
    yield "hash_sizes", node("NGramHashMapping", (1, 4), words, max_ngram_size=3, n_head_per_ngram=2, pad_id=0), "input 2 (vocab_sizes) has shape (5,); 2 ('n_head_per_ngram') for each of 2 lengths"
    places = {"p": np.zeros((3, 1, 2), np.int64), "c": ones(5, 4), "s": ones(5, 4)}
    yield "rotary_sections", node("MRotaryEmbedding", (1, 2, 8), places, num_heads=1, mrope_section=[2, 1]), "three parts of 4 are right"
    yield "decoder_packed", node("DecoderMaskedMultiHeadAttention", (1, 1, 24), num_heads=2), "give inputs 1 and 2"
    step = {"k": ones(1, 1, 8), "v": ones(1, 1, 8), " ": None, "  ": None, "pk": ones(1, 2, 3, 5), "pv": ones(1, 2, 3, 5)}
    yield "decoder_past", node("DecoderMaskedMultiHeadAttention", (1, 1, 8), step, num_heads=2), "input 5 (past) has shape (1, 2, 3, 5), to which (1, 2, 1, 4) is not one step more"
    turns = {"p": np.zeros(6, np.int64), "c": ones(5, 4), "s": ones(5, 4)}
    yield "rotary_places", node("RotaryEmbedding", (2, 3, 16), turns, num_heads=2), "cosines (6, 1, 4) do not turn (2, 2, 3, 8)"
    kernel = {"w": ones(3, 1, 2)}
    yield "convolution_dilation", node("CausalConvWithState", (1, 3, 4), kernel, dilation=0), "attribute 'dilation' is 0; 1 or more is right"
    yield "convolution_window", node("CausalConvWithState", (1, 3, 4), kernel, state_window=2), "attribute 'state_window' is 2; only 0 is supported"
    tokens = {"l": np.array([1], np.int32), "t": np.array(2, np.int32)}
    integers = model(
        [make_node("GroupQueryAttention", ["x", "x", "x", "", "", "l", "t"], ["y"], domain="com.microsoft", num_heads=2, kv_num_heads=2)],
        inputs=[make_tensor_value_info("x", TensorProto.INT16, [1, 2, 16])],
        initializers=[array(name, value) for name, value in tokens.items()],
    )
    integers.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    no_heads = node("GroupQueryAttention", (1, 2, 16), {" ": None, "  ": None, "   ": None, "    ": None, **tokens}, num_heads=2, kv_num_heads=2**63 - 1)
    yield "attention_heads", no_heads, "attribute 'kv_num_heads' is 9223372036854775807; -2147483648 to 2147483648 is right"
    yield "attention_type", integers, "data of type int16 is not supported: -inf is computed with"


def trees():
    fields = {"nodes_featureids": [0], "nodes_splits": array("s", np.zeros(1, np.float32)), "nodes_modes": array("m", np.zeros(1, np.uint8))}
    ends = {"nodes_truenodeids": [0], "nodes_falsenodeids": [0], "nodes_trueleafs": [1], "nodes_falseleafs": [1]}
    leaves = {"leaf_targetids": [0], "leaf_weights": array("w", np.ones(1, np.float32)), "tree_roots": [0]}
    for name, targets in (("no", 0), ("negative", -1)):
        node = make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets, **fields, **ends, **leaves)
        only = model([node], inputs=[shaped(2, 3)])
        only.opset_import.append(helper.make_opsetid("ai.onnx.ml", 5))
        yield f"tree_{name}_targets", only, f"attribute 'n_targets' is {targets}; 1 or more is right"


def raw_files():
    yield "empty", b"", "the file is empty"
    yield "text", b"This is a letter, and no model at all.\n" * 20, "this is no ONNX model"
    yield "no_graph", helper.make_model(helper.make_graph([], "g", [], [])).SerializeToString()[:2], "it has no graph"


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "eight.bin"), "wb") as file:
        file.write(bytes(8))
    for name, target in {"link_out.bin": os.path.abspath(__file__), "link_to_none.bin": "absent.bin"}.items():
        link = os.path.join(folder, name)
        if not os.path.islink(link):
            os.symlink(target, link)
    for family in (graphs, shapes, attributes, tensors, microsoft, trees, raw_files):
        for name, content, message in family():
            with open(os.path.join(folder, name + ".onnx"), "wb") as file:
                file.write(content if isinstance(content, bytes) else content.SerializeToString())
            with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8") as file:
                file.write(message)


if __name__ == "__main__":
    main()
