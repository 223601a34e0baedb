#!/usr/bin/env python3
"""Writes one small model for every way in which an operator appears over the opsets, with what ONNX Runtime computes on it."""

import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.helper import make_node

from case import CaseFolder, F, GENERATOR, I, data, ints, positive, single
from cases_detections import detections
from cases_experts import experts
from cases_gates import gates
from cases_linear import linear_models
from cases_microsoft import microsoft, microsoft_channels_last, microsoft_packed, quantized_in_blocks
from cases_models import models
from cases_random import randoms
from cases_rare import rare
from cases_steps import steps
from cases_tensors import tensors
from cases_trees import trees, trees_without_votes

def convolutions(cases):
    x, w, b = data(2, 4, 9, 8), data(6, 4, 3, 2), data(6)
    weights = {"w": w, "b": b}
    single(cases, "Conv", (7, 11, 22), {"x": x}, weights)
    single(cases, "Conv", (7,), {"x": x}, {"w": w}, "Conv_no_bias", kernel_shape=[3, 2], pads=[0, 1, 2, 3])
    single(cases, "Conv", (11,), {"x": x}, weights, "Conv_strided", strides=[2, 3], dilations=[2, 1], pads=[1, 1, 1, 1])
    single(cases, "Conv", (11,), {"x": x}, {"w": data(8, 2, 3, 3), "b": data(8)}, "Conv_grouped", group=2)
    single(cases, "Conv", (11,), {"x": x}, {"w": data(4, 1, 3, 3)}, "Conv_depthwise", group=4, pads=[1, 1, 1, 1])
    single(cases, "Conv", (11,), {"x": x, "w": w, "b": b}, name="Conv_variable_weight")
    single(cases, "Conv", (11,), {"x": data(2, 3, 10)}, {"w": data(4, 3, 3), "b": data(4)}, "Conv_1d", pads=[1, 0], strides=[2])
    for pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        single(cases, "Conv", (11,), {"x": x}, weights, f"Conv_{pad}", auto_pad=pad, strides=[2, 2])


def integer_convolutions(cases):
    """Of one, two and three spatial dimensions; with padding, which is of zero points and not of zeros."""
    def bytes_of(dtype, *shape):
        return GENERATOR.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape, dtype)

    zero, scale = np.array(117, np.uint8), np.array(0.07, F)
    for spatial in ((7,), (6, 5), (4, 5, 3)):
        name, kernel = f"{len(spatial)}d", [2, 3, 2][: len(spatial)]
        x, w = {"x": bytes_of(np.uint8, 2, 4, *spatial)}, {"w": bytes_of(np.int8, 6, 2, *kernel)}
        window = {"group": 2, "pads": [1] * (2 * len(spatial))}
        single(cases, "ConvInteger", (10,), x, {**w, "z": zero}, f"ConvInteger_{name}", **window)
        single(cases, "ConvInteger", (10,), {**x, "w": w["w"], "z": zero}, {}, f"ConvInteger_{name}_computed", **window)
        nodes = [make_node("Identity", ["z"], ["zero"]), make_node("ConvInteger", ["x", "w", "zero"], ["y"], **window)]
        cases.add(f"ConvInteger_{name}_computed_zero", 10, nodes, {**x, "z": zero}, w)
        parameters = {"xs": scale, "xz": zero, **w, "ws": positive(6), "wz": np.zeros(6, np.int8), "ys": np.array(30, F), "yz": zero}
        single(cases, "QLinearConv", (10,), x, parameters, f"QLinearConv_{name}", **window)
        single(cases, "QLinearConv", (10,), x, {**parameters, "b": np.arange(6, dtype=np.int32) * 500}, f"QLinearConv_{name}_bias", **window)


def transposed_convolutions(cases):
    x = data(1, 4, 5, 6)
    weights = {"w": data(4, 3, 4, 3), "b": data(3)}
    single(cases, "ConvTranspose", (7, 11), {"x": x}, weights, strides=[2, 2], pads=[1, 0, 1, 2])
    single(cases, "ConvTranspose", (11,), {"x": x}, weights, "ConvTranspose_output_padding", strides=[3, 2], output_padding=[2, 1])
    single(cases, "ConvTranspose", (11,), {"x": x}, weights, "ConvTranspose_output_shape", strides=[2, 2], output_shape=[10, 11])
    single(cases, "ConvTranspose", (11,), {"x": x}, {"w": data(4, 3, 4, 3)}, "ConvTranspose_same", strides=[2, 2], auto_pad="SAME_UPPER")
    single(cases, "ConvTranspose", (11,), {"x": x}, {"w": data(4, 3, 4, 3)}, "ConvTranspose_same_lower", strides=[2, 2], auto_pad="SAME_LOWER")
    single(cases, "ConvTranspose", (11,), {"x": x}, {"w": data(4, 2, 3, 3)}, "ConvTranspose_grouped", group=2, dilations=[2, 1])
    small = {"w": data(4, 3, 2, 3)}
    single(cases, "ConvTranspose", (11,), {"x": x}, small, "ConvTranspose_gaps", strides=[4, 4], auto_pad="SAME_LOWER")
    single(cases, "ConvTranspose", (11,), {"x": x}, small, "ConvTranspose_larger", strides=[4, 2], output_shape=[19, 12])
    line = {"w": data(4, 3, 4), "b": data(3)}
    single(cases, "ConvTranspose", (11,), {"x": data(2, 4, 6)}, line, "ConvTranspose_1d", strides=[3], pads=[1, 2], output_padding=[1])


def pools(cases):
    x = data(1, 3, 9, 10)
    for op, opsets in (("MaxPool", (7, 8, 10, 11, 12)), ("AveragePool", (7, 10, 11, 19))):
        single(cases, op, opsets, {"x": x}, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
        single(cases, op, (19,), {"x": x}, name=op + "_ceil", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        single(cases, op, (19,), {"x": x}, name=op + "_ceil_pads", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=1)
        single(cases, op, (12,), {"x": data(1, 2, 2, 7)}, name=op + "_ceil_alone", kernel_shape=[3, 3], strides=[3, 2], ceil_mode=1)
        single(cases, op, (11,), {"x": data(2, 3, 11)}, name=op + "_1d", kernel_shape=[4], strides=[3], pads=[1, 2])
        for pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
            single(cases, op, (11,), {"x": x}, name=f"{op}_{pad}", kernel_shape=[3, 3], strides=[2, 2], auto_pad=pad)
    single(cases, "MaxPool", (12,), {"x": x}, name="MaxPool_dilated", kernel_shape=[3, 3], dilations=[2, 2])
    single(cases, "AveragePool", (11,), {"x": x}, name="AveragePool_counted", kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    window = {"kernel_shape": [3, 3], "strides": [3, 2]}
    single(cases, "AveragePool", (12,), {"x": data(1, 2, 2, 7)}, name="AveragePool_counted_ceil", ceil_mode=1, count_include_pad=1, **window)
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        single(cases, op, (7,), {"x": x})
        single(cases, op, (7,), {"x": data(2, 3, 7)}, name=op + "_1d")


def normalizations(cases):
    x = data(2, 6, 4, 5)
    channels = {"s": positive(6), "b": data(6), "m": data(6), "v": positive(6)}
    single(cases, "BatchNormalization", (7, 9, 14, 15), {"x": x}, channels, epsilon=1e-3)
    single(cases, "BatchNormalization", (9,), {"x": data(3, 6)}, channels, "BatchNormalization_2d")
    trained = ("y", "running_mean", "running_var")
    single(cases, "BatchNormalization", (14, 15), {"x": x}, channels, "BatchNormalization_training", trained, training_mode=1, momentum=0.7)
    single(cases, "BatchNormalization", (15,), {"x": x}, channels, "BatchNormalization_training_one_output", training_mode=1)
    single(cases, "InstanceNormalization", (7, 22), {"x": x}, {"s": data(6), "b": data(6)}, epsilon=1e-3)
    single(cases, "LayerNormalization", (17,), {"x": x}, {"s": data(5), "b": data(5)})
    single(cases, "LayerNormalization", (17,), {"x": x}, {"s": data(4, 5)}, "LayerNormalization_two_axes", axis=-2)
    single(cases, "GroupNormalization", (21,), {"x": x}, {"s": data(6), "b": data(6)}, num_groups=3)
    single(cases, "GroupNormalization", (18,), {"x": x}, {"s": data(3), "b": data(3)}, num_groups=3)
    single(cases, "RMSNormalization", (23,), {"x": x}, {"s": data(5)})
    single(cases, "LRN", (7, 13), {"x": x}, size=3, alpha=0.02, beta=0.6, bias=1.5)
    single(cases, "LRN", (7,), {"x": x}, name="LRN_defaults", size=5)


def matrices(cases):
    a, b = data(3, 4), data(4, 5)
    single(cases, "Gemm", (7, 9, 11, 13), {"a": a}, {"b": b, "c": data(5)})
    single(cases, "Gemm", (11,), {"a": a}, {"b": data(5, 4), "c": data(5)}, "Gemm_transposed_b", transB=1)
    single(cases, "Gemm", (11,), {"a": data(4, 3)}, {"b": b, "c": data(1, 5)}, "Gemm_scaled", transA=1, alpha=0.5, beta=2.0)
    single(cases, "Gemm", (11,), {"a": a}, {"b": b, "c": data(3, 1)}, "Gemm_column")
    single(cases, "Gemm", (11,), {"a": a}, {"b": b, "c": data(1)}, "Gemm_one_bias")
    single(cases, "Gemm", (11,), {"a": a}, {"b": b}, "Gemm_no_bias")
    single(cases, "Gemm", (13,), {"a": a, "b": b, "c": data(5)}, name="Gemm_variable", alpha=0.5, beta=0.25)
    for name, left, right in (
        ("2d", (3, 4), (4, 5)),
        ("batch", (2, 3, 4), (2, 4, 5)),
        ("broadcast", (2, 1, 3, 4), (6, 4, 5)),
        ("vector_matrix", (4,), (2, 4, 5)),
        ("matrix_vector", (2, 3, 4), (4,)),
        ("vectors", (4,), (4,)),
    ):
        single(cases, "MatMul", (9, 13), {"a": data(*left), "b": data(*right)}, name="MatMul_" + name)
    single(cases, "MatMul", (13,), {"a": data(2, 3, 4)}, {"b": b}, name="MatMul_constant")


def activations(cases):
    x = {"x": data(2, 3, 4) * 3}
    for op, opset in (("Relu", 7), ("Relu", 14), ("Sigmoid", 7), ("Tanh", 7), ("Softplus", 7), ("Softsign", 7), ("HardSwish", 14), ("Mish", 18)):
        single(cases, op, (opset,), x)
    for op, opset in (("LeakyRelu", 7), ("Elu", 7), ("Selu", 7), ("Celu", 12), ("ThresholdedRelu", 10), ("HardSigmoid", 7), ("Swish", 24)):
        single(cases, op, (opset,), x)
    for op, opset in (("LeakyRelu", 16), ("Elu", 22), ("Selu", 22), ("Celu", 12), ("ThresholdedRelu", 22), ("HardSigmoid", 22)):
        single(cases, op, (opset,), x, name=op + "_alpha", alpha=0.3)
    for approximate in ("none", "tanh"):
        single(cases, "Gelu", (20,), x, name="Gelu_" + approximate, approximate=approximate)
    for name, slope in (("scalar", (1,)), ("channels", (3, 1)), ("batch_channels", (1, 3, 1)), ("elements", (3, 4))):
        for opset in (7, 9, 16):
            single(cases, "PRelu", (opset,), x, {"s": data(*slope)}, "PRelu_" + name)
    softmaxes(cases)
    clips(cases, x)
    dropouts(cases, x)


def softmaxes(cases):
    x = {"x": data(2, 3, 4, 5)}
    for op in ("Softmax", "LogSoftmax"):
        single(cases, op, (7, 11, 13), x)
        for axis in (0, 2, 3):
            single(cases, op, (7, 13), x, name=f"{op}_axis{axis}", axis=axis)
        single(cases, op, (11, 13), x, name=f"{op}_negative", axis=-2)
        single(cases, op, (9,), {"x": data(1, 10, 1, 1)}, name=op + "_trailing_ones")


def clips(cases, x):
    low, high = np.array(-0.5, F), np.array(1.5, F)
    single(cases, "Clip", (7,), x, min=-0.5, max=1.5)
    single(cases, "Clip", (7,), x, name="Clip_min", min=-0.5)
    single(cases, "Clip", (7,), x, name="Clip_none")
    single(cases, "Clip", (11, 12, 13), x, {"low": low, "high": high})
    single(cases, "Clip", (11,), x, {"low": low}, "Clip_low")
    single(cases, "Clip", (11,), x, {"low": np.array(0, F)}, "Clip_relu")
    cases.add("Clip_high", 11, [make_node("Clip", ["x", "", "high"], ["y"])], x, {"high": high})
    single(cases, "Clip", (12,), {"x": ints(-5, 3, 9)}, {"low": np.array(-2, I), "high": np.array(4, I)}, "Clip_integers")
    single(cases, "Clip", (13,), {**x, "low": low, "high": high}, name="Clip_variable")


def dropouts(cases, x):
    for opset in (7, 10):
        single(cases, "Dropout", (opset,), x, ratio=0.4)
    single(cases, "Dropout", (12, 13), x, {"ratio": np.array(0.4, F)})
    single(cases, "Dropout", (13,), x, {"ratio": np.array(0.4, F), "training": np.array(False)}, "Dropout_training_mode")
    nodes = [make_node("Dropout", ["x"], ["d", "mask"]), make_node("Relu", ["d"], ["y"])]
    cases.add("Dropout_mask_unused", 9, nodes, x)


def elementwise(cases):
    x = {"x": data(2, 5) * 2}
    for op, opset in (("Abs", 7), ("Neg", 7), ("Exp", 7), ("Ceil", 7), ("Floor", 7), ("Sin", 7), ("Cos", 7), ("Erf", 9), ("Sign", 9)):
        single(cases, op, (opset, 13), x)
    for op in ("Reciprocal", "Sqrt", "Log"):
        single(cases, op, (7, 13), {"x": positive(2, 5)})
    single(cases, "Round", (11,), {"x": np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.4], F)})
    single(cases, "Not", (7,), {"x": np.array([True, False, True])})
    single(cases, "Identity", (7, 14), x)
    single(cases, "Abs", (13,), {"x": ints(-3, 0, 5)}, name="Abs_integers")
    for name, to in (("int64", TensorProto.INT64), ("float64", TensorProto.DOUBLE), ("bool", TensorProto.BOOL), ("uint8", TensorProto.UINT8)):
        single(cases, "Cast", (7, 13), {"x": np.array([0, 1.5, 7.9, 200], F)}, name="Cast_" + name, to=to)
    single(cases, "Cast", (13,), {"x": np.array([True, False])}, name="Cast_from_bool", to=TensorProto.FLOAT)
    single(cases, "Cast", (13,), {"x": data(4).astype(np.float16)}, name="Cast_from_float16", to=TensorProto.FLOAT)
    single(cases, "CastLike", (15,), {"x": np.array([0, 1.5, 7.9], F)}, {"t": ints(1)})


def arithmetic(cases):
    a, b = data(2, 3, 4), positive(3, 1)
    for op in ("Add", "Sub", "Mul", "Div"):
        single(cases, op, (7, 14), {"a": a, "b": b})
        single(cases, op, (13,), {"a": ints(7, -7, 9, -9), "b": ints(2, 2, -4, -4)}, name=op + "_integers")
    single(cases, "Pow", (7, 13), {"a": positive(2, 3)}, {"b": np.array(2.5, F)})
    single(cases, "Pow", (13,), {"a": positive(2, 3)}, {"b": np.array(3, I)}, "Pow_integer_exponent")
    for op, opset in (("Equal", 13), ("Greater", 9), ("Less", 9), ("GreaterOrEqual", 12), ("LessOrEqual", 16)):
        single(cases, op, (opset,), {"a": ints(1, 2, 3).astype(F), "b": ints(2, 2, 2).astype(F)})
    for op in ("And", "Or", "Xor"):
        single(cases, op, (7,), {"a": np.array([True, True, False, False]), "b": np.array([True, False, True, False])})
    single(cases, "Where", (9, 16), {"c": np.array([[True], [False]]), "a": data(2, 3), "b": data(3)})
    for op in ("Sum", "Max", "Min", "Mean"):
        single(cases, op, (8, 13), {"a": data(2, 3), "b": data(3), "c": data(2, 1)})
        single(cases, op, (8,), {"a": data(2, 3)}, name=op + "_one")
    single(cases, "Mod", (10, 13), {"a": ints(7, -7, 7, -7), "b": ints(3, 3, -3, -3)})
    single(cases, "Mod", (13,), {"a": np.array([5.5, -5.5, 5.5], F), "b": np.array([2, 2, -2], F)}, name="Mod_fmod", fmod=1)


def reductions(cases):
    x = {"x": positive(2, 3, 4)}
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"):
        name = "Reduce" + op
        single(cases, name, (7, 11), x, axes=[1])
        single(cases, name, (11,), x, name=name + "_negative", axes=[-1, 0], keepdims=0)
        single(cases, name, (7, 18), x, name=name + "_all")
        single(cases, name, (18, 20), x, {"axes": ints(0, 2)}, name + "_input", keepdims=0)
        single(cases, name, (18,), x, name=name + "_noop", noop_with_empty_axes=1)
        if op in ("Max", "Min", "LogSum", "LogSumExp"):  # of nothing they are infinite
            continue
        nodes = [make_node("Slice", ["x", "zero", "zero"], ["nothing"]), make_node(name, ["nothing"], ["y"], axes=[0])]
        cases.add(name + "_nothing", 13, nodes if op != "Sum" else [nodes[0], make_node(name, ["nothing", "zero"], ["y"])], x, {"zero": ints(0)})
    single(cases, "ReduceSum", (13,), x, {"axes": ints(1)})
    single(cases, "ReduceMean", (13,), x, axes=[-1])
    for op in ("ArgMax", "ArgMin"):
        single(cases, op, (7, 11, 13), {"x": data(3, 4)}, axis=1)
        single(cases, op, (11,), {"x": data(3, 4)}, name=op + "_flat", axis=0, keepdims=0)
        single(cases, op, (12,), {"x": np.array([[1, 2, 2, 1]], F)}, name=op + "_last", axis=1, select_last_index=1)


def shapes(cases):
    x = {"x": data(2, 3, 4, 1)}
    single(cases, "Reshape", (7, 13), x, {"s": ints(0, -1, 2)})
    nodes = [make_node("Slice", ["x", "zero", "zero"], ["empty"]), make_node("Reshape", ["empty", "s"], ["y"], allowzero=1)]
    cases.add("Reshape_allowzero", 14, nodes, {"x": data(2, 3)}, {"zero": ints(0), "s": ints(3, 0)})
    for axis in (0, 1, 2, 4):
        single(cases, "Flatten", (9, 13), x, name=f"Flatten_axis{axis}", axis=axis)
    single(cases, "Flatten", (11,), x, name="Flatten_negative", axis=-2)
    single(cases, "Squeeze", (7, 11), {"x": data(1, 3, 1, 2)}, axes=[0, 2])
    single(cases, "Squeeze", (7, 13), {"x": data(1, 3, 1, 2)}, name="Squeeze_all")
    single(cases, "Squeeze", (13,), {"x": data(1, 3, 1, 2)}, {"axes": ints(-2)})
    single(cases, "Unsqueeze", (7, 11), {"x": data(3, 2)}, axes=[0, 2, 3])
    single(cases, "Unsqueeze", (13,), {"x": data(3, 2)}, {"axes": ints(-1, 0)})
    single(cases, "Transpose", (7, 13), x)
    single(cases, "Transpose", (13,), x, name="Transpose_perm", perm=[0, 2, 3, 1])
    single(cases, "Shape", (7, 15), x)
    single(cases, "Shape", (15,), x, name="Shape_slice", start=1, end=-1)
    single(cases, "Size", (7, 13), x)
    single(cases, "Expand", (8, 13), {"x": data(3, 1)}, {"s": ints(2, 1, 4)})
    single(cases, "Tile", (7, 13), {"x": data(2, 3)}, {"r": ints(2, 3)})
    for mode in ("DCR", "CRD"):
        single(cases, "DepthToSpace", (11, 13), {"x": data(1, 8, 2, 3)}, name="DepthToSpace_" + mode, blocksize=2, mode=mode)
    single(cases, "DepthToSpace", (7,), {"x": data(1, 8, 2, 3)}, blocksize=2)
    single(cases, "SpaceToDepth", (7, 13), {"x": data(1, 2, 4, 6)}, blocksize=2)
    for mode in ("DCR", "CRD"):
        single(cases, "SpaceToDepth", (28,), {"x": data(2, 3, 4, 6)}, name="SpaceToDepth_" + mode, blocksize=2, mode=mode)


def blocks(cases):
    """ONNX Runtime has them in float32."""
    shape = {"i": ints(9, 8), "b": ints(4, 3)}
    single(cases, "Col2Im", (18,), {"x": data(2, 24, 16)}, shape, strides=[2, 2], pads=[1, 0, 1, 2])
    single(cases, "Col2Im", (18,), {"x": data(2, 24, 12)}, shape, "Col2Im_dilated", strides=[1, 1], dilations=[2, 2])
    single(cases, "Col2Im", (18,), {"x": data(1, 16, 18)}, {"i": ints(3, 4, 4), "b": ints(2, 2, 2)}, "Col2Im_volume")


def indexing(cases):
    x = {"x": data(4, 5, 6)}
    largest = np.iinfo(I).max
    single(cases, "Slice", (7,), x, starts=[1, -3], ends=[largest, -1], axes=[0, 2])
    single(cases, "Slice", (7,), x, name="Slice_no_axes", starts=[0, 2], ends=[2, 1000])
    single(cases, "Slice", (10, 13), x, {"s": ints(1, 0), "e": ints(-1, largest), "a": ints(1, -1), "t": ints(1, 2)})
    single(cases, "Slice", (13,), x, {"s": ints(-1, 4), "e": ints(-largest, 0), "a": ints(0, 1), "t": ints(-1, -2)}, "Slice_backwards")
    single(cases, "Slice", (13,), x, {"s": ints(3), "e": ints(2), "a": ints(1)}, "Slice_empty")
    for axis in (0, 1, -1):
        single(cases, "Gather", (7, 11, 13) if axis >= 0 else (11,), x, {"i": ints(0, 2, 1).reshape(3, 1)}, f"Gather_axis{axis}", axis=axis)
    single(cases, "Gather", (11,), x, {"i": np.array(-2, I)}, "Gather_scalar", axis=1)
    single(cases, "Gather", (13,), {**x, "i": np.array([-1, 2], np.int32)}, name="Gather_variable", axis=2)
    single(cases, "GatherND", (11,), x, {"i": ints(0, 1, 3, 2).reshape(2, 2)})
    single(cases, "GatherND", (12,), {**x, "i": ints(1, 0, -1, 2).reshape(4, 1)}, name="GatherND_batch", batch_dims=1)
    pads(cases)


def pads(cases):
    x = {"x": data(2, 3, 4)}
    single(cases, "Pad", (7,), x, pads=[0, 1, 2, 1, 0, 3], value=1.5)
    single(cases, "Pad", (11, 13), x, {"p": ints(0, 1, 2, 1, 0, 3), "v": np.array(1.5, F)})
    single(cases, "Pad", (13,), x, {"p": ints(0, -1, 2, 1, 0, -3)}, "Pad_negative")
    cases.add("Pad_axes", 18, [make_node("Pad", ["x", "p", "", "a"], ["y"])], x, {"p": ints(1, 2, 3, 0), "a": ints(0, -1)})
    for mode in ("edge", "reflect"):
        single(cases, "Pad", (7,), x, name="Pad_" + mode, mode=mode, pads=[1, 0, 2, 1, 2, 3])
        single(cases, "Pad", (13,), x, {"p": ints(1, 0, 2, 1, 2, 3)}, "Pad_" + mode, mode=mode)


def joining(cases):
    single(cases, "Concat", (7, 13), {"a": data(2, 3), "b": data(2, 1), "c": data(2, 4)}, axis=1)
    single(cases, "Concat", (11,), {"a": data(2, 3), "b": data(2, 3)}, name="Concat_negative", axis=-2)
    single(cases, "Concat", (7,), {"a": data(2, 3)}, name="Concat_one", axis=0)
    x = {"x": data(6, 4)}
    three = ("y", "z", "w")
    single(cases, "Split", (7, 11, 13), x, outputs=three)
    single(cases, "Split", (7,), x, name="Split_parts", outputs=("y", "z"), split=[1, 3], axis=1)
    single(cases, "Split", (13, 18), x, {"s": ints(1, 3, 2)}, "Split_parts", three)
    single(cases, "Split", (18,), x, name="Split_uneven", outputs=("y", "z", "w", "v"), num_outputs=4)


def constants(cases):
    for name, attributes in (
        ("tensor", {"value": numpy_helper.from_array(data(2, 3))}),
        ("float", {"value_float": 1.5}),
        ("floats", {"value_floats": [1.5, 2.5]}),
        ("int", {"value_int": 3}),
        ("ints", {"value_ints": [3, 4]}),
    ):
        cases.add("Constant_" + name, 12, [make_node("Constant", [], ["y"], **attributes)])
    single(cases, "ConstantOfShape", (9,), {}, {"s": ints(2, 3)})
    single(cases, "ConstantOfShape", (9,), {}, {"s": ints(2)}, "ConstantOfShape_value", value=numpy_helper.from_array(ints(7)))
    for dtype in (F, I):
        numbers = {"a": np.array(2, dtype), "b": np.array(11, dtype), "c": np.array(3, dtype)}
        single(cases, "Range", (11,), {}, numbers, "Range_" + np.dtype(dtype).name)
    single(cases, "Range", (11,), {}, {"a": np.array(5, I), "b": np.array(-2, I), "c": np.array(-2, I)}, "Range_down")
    # No double holds them. Of larger ones ONNX Runtime counts wrongly, since it does that in doubles.
    large = {"a": np.array(2**53 + 1, I), "b": np.array(2**53 + 9, I), "c": np.array(2, I)}
    single(cases, "Range", (11,), {}, large, "Range_large")


def resizes(cases):
    x = {"x": data(1, 2, 4, 5)}
    for mode in ("nearest", "linear"):
        single(cases, "Upsample", (7,), x, name="Upsample_" + mode, mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
        single(cases, "Upsample", (9,), x, {"s": np.array([1, 1, 2, 3], F)}, "Upsample_" + mode, mode=mode)
        single(cases, "Resize", (10,), x, {"s": np.array([1, 1, 2, 2], F)}, "Resize_" + mode, mode=mode)
        for coordinates in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
            attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
            for opset in (11, 13, 19):
                name = f"Resize_{mode}_{coordinates}"
                node = make_node("Resize", ["x", "", "s"], ["y"], nearest_mode="floor", **attributes)
                cases.add(name + "_scales", opset, [node], x, {"s": np.array([1, 1, 2, 2], F)})
                node = make_node("Resize", ["x", "", "", "n"], ["y"], **attributes)
                cases.add(name + "_sizes", opset, [node], x, {"n": ints(1, 2, 7, 3)})
    # Gone from ONNX since opset 13; TensorFlow's exporter writes it for all.
    for opset in (11, 16):
        for rounding in ("floor", "round_prefer_floor"):
            attributes = {"mode": "nearest", "nearest_mode": rounding, "coordinate_transformation_mode": "tf_half_pixel_for_nn"}
            node = make_node("Resize", ["x", "none", "none", "n"], ["y"], **attributes)
            cases.add("Resize_tf_half_pixel_" + rounding, opset, [node], x, {"none": np.zeros(0, F), "n": ints(1, 2, 7, 3)})
    node = make_node("Resize", ["x", "", "s"], ["y"], mode="nearest", axes=[2, 3])
    cases.add("Resize_axes", 18, [node], x, {"s": np.array([2, 3], F)})


def resizes_by_ratios(cases):
    """Scales of float32 that stand for ratios: whole extents and places are whole in float32, and beside it in double."""
    for coordinates in ("asymmetric", "half_pixel", "pytorch_half_pixel"):
        for nearest in ("floor", "ceil"):
            for width, scale in ((7, 11 / 7), (5, 1.4), (10, 1.2), (10, 2.2), (9, 14 / 9)):
                node = make_node("Resize", ["x", "", "s"], ["y"], nearest_mode=nearest, coordinate_transformation_mode=coordinates)
                name = f"Resize_ratio_{coordinates}_{nearest}_{width}_{scale:.2f}".replace(".", "_")
                cases.add(name, 13, [node], {"x": data(1, 1, 1, width)}, {"s": np.array([1, 1, 1, scale], F)})


def grids(cases):
    """Behind the ends each of the four taps of a cubic counts for itself, unlike in ONNX's own evaluator."""
    grid = {"x": data(1, 2, 4, 5), "grid": 3 * data(1, 3, 4, 2)}
    for padding in ("zeros", "border", "reflection"):
        for corners in (0, 1):
            name = f"GridSample_cubic_{padding}_{corners}"
            single(cases, "GridSample", (16,), grid, name=name, mode="bicubic", padding_mode=padding, align_corners=corners)
            single(cases, "GridSample", (20,), grid, name=name, mode="cubic", padding_mode=padding, align_corners=corners)


def chains(cases):
    """Shape arithmetic as PyTorch exports view(x.size(0), -1) and friends: nothing of it may be left."""
    x = {"x": data(2, 3, 4)}
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Gather", ["shape", "zero"], ["batch"], axis=0),
        make_node("Unsqueeze", ["batch"], ["batch1"], axes=[0]),
        make_node("Concat", ["batch1", "minus"], ["target"], axis=0),
        make_node("Reshape", ["x", "target"], ["y"]),
    ]
    cases.add("chain_view", 11, nodes, x, {"zero": np.array(0, I), "minus": ints(-1)})
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Slice", ["shape", "one", "three"], ["tail"]),
        make_node("ConstantOfShape", ["tail"], ["zeros"]),
        make_node("Equal", ["tail", "three"], ["mask"]),
        make_node("Where", ["mask", "ones", "tail"], ["target"]),
        make_node("Expand", ["row", "target"], ["wide"]),
        make_node("Add", ["wide", "zeros"], ["sum"]),
        make_node("Add", ["x", "sum"], ["y"]),
    ]
    cases.add("chain_expand", 13, nodes, x, {"one": ints(1), "three": ints(3), "ones": ints(3), "row": data(4)})
    # As converters leave nodes that they add: behind those that read them, one of them inside a body.
    body = onnx.helper.make_graph([make_node("Add", ["late", "early"], ["inner"])], "body", [], [onnx.ValueInfoProto(name="inner")])
    nodes = [
        make_node("If", ["yes"], ["chosen"], then_branch=body, else_branch=body),
        make_node("Relu", ["chosen"], ["y"]),
        make_node("Mul", ["early", "early"], ["late"]),
        make_node("Cast", ["flag"], ["yes"], to=onnx.TensorProto.BOOL),
        make_node("Tanh", ["x"], ["early"]),
    ]
    cases.add("chain_of_appended_nodes", 13, nodes, x, {"flag": ints(1)[0]})


def functions(cases):
    """Functions of the model: nested calls, attributes that are passed on or have a default, names that appear twice."""
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("local", 1)]
    leaky = onnx.helper.make_function(
        "local", "Leaky", ["a"], ["t"], [make_node("LeakyRelu", ["a"], ["t"])], opsets, ["slope"]
    )
    leaky.node[0].attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")
    scaled = onnx.helper.make_function(
        "local",
        "Scaled",
        ["a", "b"],
        ["r"],
        [make_node("Leaky", ["a"], ["t"], domain="local", slope=0.5), make_node("Mul", ["t", "b"], ["m"]), make_node("Elu", ["m"], ["r"])],
        opsets,
        [],
        [onnx.helper.make_attribute("alpha", 2.0)],
    )
    scaled.node[2].attribute.add(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="alpha")
    nodes = [
        make_node("Scaled", ["x", "c"], ["t"], domain="local"),
        make_node("Scaled", ["t", "c"], ["m"], domain="local", alpha=0.25),
        make_node("Leaky", ["m"], ["y"], domain="local", slope=0.125),
    ]
    cases.add("functions", 17, nodes, {"x": data(3, 4)}, {"c": data(4)}, functions=[leaky, scaled])


def signals(cases):
    constants = {"frame_step": np.array(8, I), "window": np.hanning(16).astype(F)}
    single(cases, "STFT", [17], {"signal": data(2, 40, 1)}, constants)
    single(cases, "STFT", [17], {"signal": data(2, 40)}, constants, name="STFT_without_components")


FAMILIES = (
    microsoft,
    models,
    detections,
    randoms,
    functions,
    convolutions,
    transposed_convolutions,
    pools,
    normalizations,
    matrices,
    activations,
    elementwise,
    arithmetic,
    reductions,
    shapes,
    indexing,
    joining,
    constants,
    resizes,
    chains,
    integer_convolutions,
    trees,
    linear_models,
    signals,
    grids,
    blocks,
    resizes_by_ratios,
    microsoft_channels_last,
    microsoft_packed,
    quantized_in_blocks,
    experts,
    gates,
    tensors,
    steps,
    trees_without_votes,
    rare,
)


def main():
    folder = sys.argv[1]
    shutil.rmtree(folder, ignore_errors=True)
    cases = CaseFolder(folder)
    for family in FAMILIES:
        family(cases)
    print(f"{cases.count} cases")


if __name__ == "__main__":
    main()
