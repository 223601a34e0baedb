"""An ONNX model as a module of PyTorch, with the weights of the file as buffers.

Operators are those of bench/models.py, each a row of OPERATORS, written as a user of PyTorch would call it. All shapes are known
when the module is made, so what is traced holds numbers in their place.
"""

import math
import operator

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


class Call:
    """One node in the making: its operands as tensors or their tracers, and what is known of them without running."""

    def __init__(self, node, opset, values, shapes, constants):
        self.node, self.opset = node, opset
        self._values, self._shapes, self._constants = values, shapes, constants
        self._attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}

    def __len__(self):
        return len(self.node.input)

    def has(self, index):
        return index < len(self.node.input) and self.node.input[index] != ""

    def tensor(self, index):
        return self._values(self.node.input[index]) if self.has(index) else None

    def tensors(self):
        return [self.tensor(index) for index in range(len(self))]

    def shape(self, index=0):
        return self._shapes[self.node.input[index]]

    def rank(self, index=0):
        return len(self.shape(index))

    def operand(self, index):
        """Of arithmetic: a constant without dimensions is a number, as a user would write it."""
        constant = self._constants.get(self.node.input[index])
        return constant.item() if constant is not None and constant.ndim == 0 else self.tensor(index)

    def numbers(self, index, attribute=None):
        """A constant operand as a list; of older opsets, the attribute that was in its place. None where there is neither."""
        if self.has(index):
            return self._constants[self.node.input[index]].tolist()
        return self.attribute(attribute) if attribute else None

    def attribute(self, name, otherwise=None):
        value = self._attributes.get(name, otherwise)
        return list(value) if isinstance(value, (list, tuple)) else value.decode() if isinstance(value, bytes) else value


def _spatial(call, name, otherwise):
    return tuple(call.attribute(name, [otherwise] * (call.rank() - 2)))


def _pads(call, kernel, strides):
    """Before and behind each dimension of the plane."""
    mode, rank = call.attribute("auto_pad", "NOTSET"), call.rank() - 2
    if mode in ("NOTSET", ""):
        pads = call.attribute("pads", [0] * (2 * rank))
        return list(zip(pads[:rank], pads[rank:]))
    if mode == "VALID":
        return [(0, 0)] * rank
    whole = [max(0, (math.ceil(n / s) - 1) * s + k - n) for n, k, s in zip(call.shape()[2:], kernel, strides)]
    return [(n // 2, n - n // 2) if mode == "SAME_UPPER" else (n - n // 2, n // 2) for n in whole]


def _padded(data, pads, value=0.0):
    """The data padded as far as operators cannot, which pad evenly, and what is left to them."""
    if all(before == behind for before, behind in pads):
        return data, tuple(before for before, _ in pads)
    return F.pad(data, [n for pair in reversed(pads) for n in pair], value=value), (0,) * len(pads)


def _conv(call):
    strides = _spatial(call, "strides", 1)
    data, padding = _padded(call.tensor(0), _pads(call, call.shape(1)[2:], strides))
    function = (F.conv1d, F.conv2d, F.conv3d)[call.rank() - 3]
    dilations, groups = _spatial(call, "dilations", 1), call.attribute("group", 1)
    return function(data, call.tensor(1), call.tensor(2), strides, padding, dilations, groups)


def _conv_transpose(call):
    pads = _pads(call, call.shape(1)[2:], None)
    if any(before != behind for before, behind in pads):
        raise NotImplementedError("ConvTranspose with uneven padding")
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[call.rank() - 3]
    padding, more = tuple(before for before, _ in pads), _spatial(call, "output_padding", 0)
    return function(call.tensor(0), call.tensor(1), call.tensor(2), _spatial(call, "strides", 1), padding, more,
                    call.attribute("group", 1), _spatial(call, "dilations", 1))


def _max_pool(call):
    kernel, strides = tuple(call.attribute("kernel_shape")), _spatial(call, "strides", 1)
    data, padding = _padded(call.tensor(0), _pads(call, kernel, strides), -math.inf)
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[call.rank() - 3]
    return function(data, kernel, strides, padding, _spatial(call, "dilations", 1), bool(call.attribute("ceil_mode", 0)))


def _average_pool(call):
    kernel, strides = tuple(call.attribute("kernel_shape")), _spatial(call, "strides", 1)
    counts = bool(call.attribute("count_include_pad", 0))
    pads = _pads(call, kernel, strides)
    if not counts and any(before != behind for before, behind in pads):
        raise NotImplementedError("AveragePool with uneven padding that does not count")
    data, padding = _padded(call.tensor(0), pads)
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[call.rank() - 3]
    return function(data, kernel, strides, padding, bool(call.attribute("ceil_mode", 0)), counts)


def _global_average_pool(call):
    return (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)[call.rank() - 3](call.tensor(0), 1)


def _batch_norm(call):
    scale, shift, mean, variance = (call.tensor(index) for index in range(1, 5))
    return F.batch_norm(call.tensor(0), mean, variance, scale, shift, False, 0.0, call.attribute("epsilon", 1e-5))


def _gemm(call):
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    data, weight = call.tensor(0), call.tensor(1)
    if call.attribute("transA", 0):
        data = data.t()
    is_plain = alpha == 1 and beta == 1
    if is_plain and call.attribute("transB", 0) and (not call.has(2) or call.rank(2) == 1):
        return F.linear(data, weight, call.tensor(2))
    if call.attribute("transB", 0):
        weight = weight.t()
    if call.has(2):
        return torch.addmm(call.tensor(2), data, weight, beta=beta, alpha=alpha)
    return torch.mm(data, weight) if alpha == 1 else torch.mm(data, weight) * alpha


def _softmax(call):
    data, rank = call.tensor(0), call.rank()
    if call.opset >= 13:
        return torch.softmax(data, call.attribute("axis", -1))
    axis = call.attribute("axis", 1) % rank
    if axis == rank - 1:
        return torch.softmax(data, axis)
    # All that lies behind the axis is one class index.
    return torch.softmax(data.flatten(axis), axis).reshape(call.shape())


def _reshape(call):
    shape = call.numbers(1)
    return call.tensor(0).reshape([call.shape()[i] if n == 0 else n for i, n in enumerate(shape)])


def _flatten(call):
    axis = call.attribute("axis", 1)
    return call.tensor(0).reshape([math.prod(call.shape()[:axis]), -1])


def _transpose(call):
    return call.tensor(0).permute(call.attribute("perm", list(reversed(range(call.rank())))))


def _reduce_mean(call):
    axes = call.numbers(1, "axes") or list(range(call.rank()))
    return call.tensor(0).mean(axes, bool(call.attribute("keepdims", 1)))


def _clip(call):
    if call.opset < 11:
        return torch.clamp(call.tensor(0), call.attribute("min"), call.attribute("max"))
    low, high = (call.operand(index) if call.has(index) else None for index in (1, 2))
    return torch.clamp(call.tensor(0), low, high)


def _gather(call):
    axis, indices = call.attribute("axis", 0), call.operand(1)
    if isinstance(indices, int):
        return call.tensor(0).select(axis, indices)
    if axis == 0 and call.rank() == 2:
        return F.embedding(indices, call.tensor(0))
    if call.rank(1) != 1:
        raise NotImplementedError("Gather with indices of several dimensions behind the first axis")
    return call.tensor(0).index_select(axis, indices)


def _split(call):
    axis = call.attribute("axis", 0)
    sizes = call.numbers(1, "split")
    if sizes is None:
        sizes = [call.shape()[axis] // len(call.node.output)] * len(call.node.output)
    return torch.split(call.tensor(0), sizes, axis)


def _slice(call):
    begins, ends = call.numbers(1, "starts"), call.numbers(2, "ends")
    axes = call.numbers(3, "axes") or list(range(len(begins)))
    steps = call.numbers(4) or [1] * len(begins)
    index = [slice(None)] * call.rank()
    for axis, begin, end, step in zip(axes, begins, ends, steps):
        index[axis] = slice(begin, end, step)
    return operator.getitem(call.tensor(0), tuple(index))


def _squeeze(call):
    axes = call.numbers(1, "axes") or [axis for axis, extent in enumerate(call.shape()) if extent == 1]
    return call.tensor(0).squeeze(tuple(axes))


def _unsqueeze(call):
    axes = call.numbers(1, "axes")
    data = call.tensor(0)
    for axis in sorted(axis % (call.rank() + len(axes)) for axis in axes):
        data = data.unsqueeze(axis)
    return data


def _layer_norm(call):
    axis = call.attribute("axis", -1) % call.rank()
    return F.layer_norm(call.tensor(0), call.shape()[axis:], call.tensor(1), call.tensor(2), call.attribute("epsilon", 1e-5))


def _pad(call):
    pads, rank = call.numbers(1, "pads"), call.rank()
    mode = call.attribute("mode", "constant")
    if mode != "constant":
        raise NotImplementedError(f"Pad of mode {mode}")
    value = call.operand(2) if call.has(2) else call.attribute("value", 0.0)
    return F.pad(call.tensor(0), [n for axis in reversed(range(rank)) for n in (pads[axis], pads[axis + rank])], value=value)


def _lrn(call):
    alpha, beta, bias = call.attribute("alpha", 1e-4), call.attribute("beta", 0.75), call.attribute("bias", 1.0)
    return F.local_response_norm(call.tensor(0), call.attribute("size"), alpha, beta, bias)


def _sum(call):
    total, *others = call.tensors()
    for other in others:
        total = total + other
    return total


def _binary(function):
    return lambda call: function(call.operand(0), call.operand(1))


def _unary(function):
    return lambda call: function(call.tensor(0))


OPERATORS = {
    "Add": _binary(operator.add),
    "AveragePool": _average_pool,
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Concat": lambda call: torch.cat(call.tensors(), call.attribute("axis")),
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Div": _binary(operator.truediv),
    "Dropout": lambda call: call.tensor(0),
    "Erf": _unary(torch.erf),
    "Flatten": _flatten,
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_average_pool,
    "Identity": lambda call: call.tensor(0),
    "LayerNormalization": _layer_norm,
    "LRN": _lrn,
    "MatMul": _binary(torch.matmul),
    "MaxPool": _max_pool,
    "Mul": _binary(operator.mul),
    "Pad": _pad,
    "Pow": _binary(operator.pow),
    "ReduceMean": _reduce_mean,
    "Relu": _unary(torch.relu),
    "Reshape": _reshape,
    "Sigmoid": _unary(torch.sigmoid),
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _split,
    "Sqrt": _unary(torch.sqrt),
    "Squeeze": _squeeze,
    "Sub": _binary(operator.sub),
    "Sum": _sum,
    "Tanh": _unary(torch.tanh),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": lambda call: torch.where(call.tensor(0), call.operand(1), call.operand(2)),
}


def _constant(node):
    attribute = node.attribute[0]
    value = onnx.helper.get_attribute_value(attribute)
    return numpy_helper.to_array(value) if attribute.name == "value" else np.array(value)


class _Maker:
    """The graph in the making. Each operator is applied twice: to tensors without memory, which tell shapes, and to tracers."""

    def __init__(self, model):
        self.opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
        self.root = torch.nn.Module()
        self.graph = torch.fx.Graph()
        self.tracer = torch.fx.proxy.GraphAppendingTracer(self.graph)
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        self.metas, self.proxies, self.shapes = {}, {}, {}
        self.buffers = 0
        for value in model.graph.input:
            if value.name not in self.constants:
                self._add_input(value)
        for node in model.graph.node:
            self._add(node)
        results = [self._proxy(value.name) for value in model.graph.output]
        self.graph.output(tuple(proxy.node for proxy in results))

    def _add_input(self, value):
        shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        self.metas[value.name] = torch.empty(shape, dtype=torch.from_numpy(np.empty(0, dtype)).dtype, device="meta")
        self.proxies[value.name] = torch.fx.Proxy(self.graph.placeholder(f"input_{len(self.proxies)}"), self.tracer)
        self.shapes[value.name] = shape

    def _meta(self, name):
        if name not in self.metas:
            self.metas[name] = torch.from_numpy(np.array(self.constants[name])).to("meta")
        return self.metas[name]

    def _proxy(self, name):
        if name not in self.proxies:
            buffer = f"weight_{self.buffers}"
            self.buffers += 1
            self.root.register_buffer(buffer, torch.from_numpy(np.array(self.constants[name])))
            self.proxies[name] = torch.fx.Proxy(self.graph.get_attr(buffer), self.tracer)
        return self.proxies[name]

    def _add(self, node):
        if node.op_type == "Constant":
            self.constants[node.output[0]] = _constant(node)
            return
        if node.op_type not in OPERATORS:
            raise NotImplementedError(f"{node.op_type}: no row of OPERATORS in {__name__}")
        for name in node.input:
            if name in self.constants:
                self.shapes[name] = list(self.constants[name].shape)
        function = OPERATORS[node.op_type]
        metas = function(Call(node, self.opset, self._meta, self.shapes, self.constants))
        proxies = function(Call(node, self.opset, self._proxy, self.shapes, self.constants))
        is_several = isinstance(metas, (tuple, list))
        for index, name in enumerate(node.output):
            if name == "" or not is_several and index > 0:
                continue
            self.metas[name] = metas[index] if is_several else metas
            self.proxies[name] = proxies[index] if is_several else proxies
            self.shapes[name] = list(self.metas[name].shape)


def torch_module(model):
    """A module that takes the model's inputs in their order and gives a tuple of its outputs. NotImplementedError names what is
    missing."""
    maker = _Maker(model)
    return torch.fx.GraphModule(maker.root, maker.graph, model.graph.name or "Graph").eval()
