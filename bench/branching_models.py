"""Networks whose tensors stay open for long: dense blocks, NASNet cells, inception blocks with residuals, gates.

A partitioner meets its hardest graphs here: every feature of a dense block is read by all later layers, and a cell reads the two
before it. Written as exporters write them: the batch normalization of a dense layer comes before its ReLU and cannot be folded.
"""

import numpy as np
from onnx import numpy_helper

from built_models import Graph

CLASSES = 1000
# The last layer's gain: softmax over a thousand classes is then neither uniform nor a single one.
LOGIT_GAIN = 8.0


class _ImageGraph(Graph):
    """A graph of images that remembers how many channels each tensor has."""

    def __init__(self, seed, name):
        super().__init__(seed, name)
        self.channels = {"input": 3}

    def _same(self, op_type, data, **attributes):
        output = self.node(op_type, [data], **attributes)
        self.channels[output] = self.channels[data]
        return output

    def conv(self, data, features, kernel, stride=1, groups=1, pads=None, gain=1.0, bias=False):
        """`kernel` is a number or (height, width); padding keeps the plane unless `pads` are given."""
        height, width = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        inputs = self.channels[data] // groups
        name = f"conv{len(self.nodes)}"
        weight = self.weights.he(name, [features, inputs, height, width], inputs * height * width, gain)
        operands = [data, self.initializer(f"{name}.weight", weight)]
        if bias:
            operands.append(self.initializer(f"{name}.bias", self.weights.normal(f"{name}.bias", [features], 0.05)))
        output = self.node(
            "Conv",
            operands,
            kernel_shape=[height, width],
            strides=[stride, stride],
            pads=pads or [height // 2, width // 2] * 2,
            dilations=[1, 1],
            group=groups,
        )
        self.channels[output] = features
        return output

    def norm(self, data, scale=1.0):
        output = self.batch_norm(data, f"norm{len(self.nodes)}", self.channels[data], scale)
        self.channels[output] = self.channels[data]
        return output

    def relu(self, data):
        return self._same("Relu", data)

    def conv_norm_relu(self, data, features, kernel, stride=1, pads=None):
        return self.relu(self.norm(self.conv(data, features, kernel, stride, pads=pads, gain=2.0)))

    def max_pool(self, data, kernel, stride, pad):
        return self._same("MaxPool", data, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4)

    def avg_pool(self, data, kernel, stride, pad):
        return self._same("AveragePool", data, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4)

    def add(self, one, other):
        output = self.node("Add", [one, other])
        self.channels[output] = self.channels[one]
        return output

    def _times(self, data, gate):
        output = self.node("Mul", [data, gate])
        self.channels[output] = self.channels[data]
        return output

    def swish(self, data):
        """As PyTorch writes it."""
        return self._times(data, self._same("Sigmoid", data))

    def squeeze_and_excite(self, data, features):
        pooled = self._same("GlobalAveragePool", data)
        inner = self.swish(self.conv(pooled, features, 1, bias=True))
        return self._times(data, self._same("Sigmoid", self.conv(inner, self.channels[data], 1, bias=True)))

    def concat(self, parts):
        output = self.node("Concat", parts, axis=1)
        self.channels[output] = sum(self.channels[part] for part in parts)
        return output

    def classifier(self, data):
        features = self.channels[data]
        data = self.node("Flatten", [self.node("GlobalAveragePool", [data])], axis=1)
        weight = self.weights.he("classifier.weight", [CLASSES, features], features, gain=LOGIT_GAIN)
        bias = self.weights.normal("classifier.bias", [CLASSES], 0.05)
        operands = [self.initializer("classifier.weight", weight), self.initializer("classifier.bias", bias)]
        self.node("Gemm", [data, *operands], output="output", alpha=1.0, beta=1.0, transB=1)

    def image_model(self, size):
        return self.model("input", [1, 3, size, size], "output", [1, CLASSES])


def densenet121_preactivation(seed):
    """DenseNet-121 (Huang et al. 2017) as PyTorch's exporter writes it: BatchNormalization, Relu, Conv, one Concat for each layer."""
    growth, blocks = 32, (6, 12, 24, 16)
    g = _ImageGraph(seed, "densenet121_preactivation")
    data = g.max_pool(g.conv_norm_relu("input", 64, 7, stride=2), 3, 2, 1)
    for block, layers in enumerate(blocks):
        features = [data]
        for _ in range(layers):
            joined = features[0] if len(features) == 1 else g.concat(features)
            inner = g.conv(g.relu(g.norm(joined)), 4 * growth, 1, gain=2.0)
            features.append(g.conv(g.relu(g.norm(inner)), growth, 3, gain=2.0))
        data = g.relu(g.norm(g.concat(features)))
        if block + 1 < len(blocks):
            data = g.avg_pool(g.conv(data, g.channels[data] // 2, 1, gain=2.0), 2, 2, 0)
    g.classifier(data)
    return g.image_model(224)


def _separable(g, data, features, kernel, stride=1):
    """Twice ReLU, depthwise and pointwise convolution, batch normalization."""
    for step in (stride, 1):
        data = g.conv(g.relu(data), g.channels[data], kernel, step, groups=g.channels[data], gain=2.0)
        data = g.norm(g.conv(data, features, 1))
    return data


def _fit(g, data, features, stride=1):
    """To so many channels, of every second pixel where the stride is 2."""
    data = g.relu(data)
    if stride != 1:
        data = g.avg_pool(data, 1, stride, 0)
    return g.norm(g.conv(data, features, 1, gain=2.0))


def _normal_cell(g, before, last, features, stride_before):
    p, h = _fit(g, before, features, stride_before), _fit(g, last, features)
    blocks = [
        g.add(_separable(g, h, features, 5), _separable(g, p, features, 3)),
        g.add(_separable(g, p, features, 5), _separable(g, p, features, 3)),
        g.add(g.avg_pool(h, 3, 1, 1), p),
        g.add(g.avg_pool(p, 3, 1, 1), g.avg_pool(p, 3, 1, 1)),
        g.add(_separable(g, h, features, 3), h),
    ]
    return g.concat([p, *blocks])


def _reduction_cell(g, before, last, features, stride_before):
    p, h = _fit(g, before, features, stride_before), _fit(g, last, features)
    first = g.add(_separable(g, h, features, 5, 2), _separable(g, p, features, 7, 2))
    second = g.add(g.max_pool(h, 3, 2, 1), _separable(g, p, features, 7, 2))
    third = g.add(g.avg_pool(h, 3, 2, 1), _separable(g, p, features, 5, 2))
    fourth = g.add(g.max_pool(h, 3, 2, 1), _separable(g, first, features, 3))
    fifth = g.add(g.avg_pool(first, 3, 1, 1), second)
    return g.concat([second, third, fourth, fifth])


def nasnet_a_like(seed):
    """Cells of NASNet-A (Zoph et al. 2018), four before, between and behind two that halve the plane."""
    repetitions, features = 4, 44
    g = _ImageGraph(seed, "nasnet_a_like")
    last = g.norm(g.conv("input", 32, 3, stride=2))
    last = g.norm(g.conv(g.relu(last), features, 3, stride=2, gain=2.0))
    before, stride_before = last, 1
    for stage in range(3):
        if stage > 0:
            features *= 2
            before, last = last, _reduction_cell(g, before, last, features, stride_before)
            stride_before = 2
        for _ in range(repetitions):
            before, last = last, _normal_cell(g, before, last, features, stride_before)
            stride_before = 1
    g.classifier(g.relu(last))
    return g.image_model(224)


def _residual(g, data, branches, scale, activates=True):
    """An inception block whose result, scaled down, is added to what it reads."""
    joined = g.conv(g.concat(branches), g.channels[data], 1, bias=True)
    factor = g.node("Constant", [], value=numpy_helper.from_array(np.float32(scale)))
    scaled = g.node("Mul", [joined, factor])
    g.channels[scaled] = g.channels[data]
    total = g.add(data, scaled)
    return g.relu(total) if activates else total


def _chain(g, data, *layers):
    """Convolutions one behind the other: (features, kernel) or (features, kernel, stride)."""
    for features, kernel, *stride in layers:
        data = g.conv_norm_relu(data, features, kernel, *stride)
    return data


def inception_resnet_like(seed):
    """Inception-ResNet-v2 (Szegedy et al. 2017) of half the width: 10, 20 and 10 residual blocks of three kinds."""
    g = _ImageGraph(seed, "inception_resnet_like")
    data = g.max_pool(_chain(g, "input", (16, 3, 2), (16, 3), (32, 3)), 3, 2, 1)
    data = g.max_pool(_chain(g, data, (40, 1), (96, 3)), 3, 2, 1)
    branches = [_chain(g, data, (48, 1)), _chain(g, data, (24, 1), (32, 5)), _chain(g, data, (32, 1), (48, 3), (48, 3))]
    data = g.concat([*branches, _chain(g, g.avg_pool(data, 3, 1, 1), (32, 1))])
    for _ in range(10):
        branches = [_chain(g, data, (16, 1)), _chain(g, data, (16, 1), (16, 3)), _chain(g, data, (16, 1), (24, 3), (32, 3))]
        data = _residual(g, data, branches, 0.17)
    branches = [_chain(g, data, (192, 3, 2)), _chain(g, data, (128, 1), (128, 3), (192, 3, 2)), g.max_pool(data, 3, 2, 1)]
    data = g.concat(branches)
    for _ in range(20):
        data = _residual(g, data, [_chain(g, data, (96, 1)), _chain(g, data, (64, 1), (80, (1, 7)), (96, (7, 1)))], 0.1)
    branches = [
        _chain(g, data, (128, 1), (192, 3, 2)),
        _chain(g, data, (128, 1), (144, 3, 2)),
        _chain(g, data, (128, 1), (144, 3), (160, 3, 2)),
        g.max_pool(data, 3, 2, 1),
    ]
    data = g.concat(branches)
    for block in range(10):
        branches = [_chain(g, data, (96, 1)), _chain(g, data, (96, 1), (112, (1, 3)), (128, (3, 1)))]
        data = _residual(g, data, branches, 0.2, activates=block < 9)
    g.classifier(_chain(g, data, (768, 1)))
    return g.image_model(224)


# Expansion, features, repetitions, stride of the first, kernel (Tan and Le, 2019, table 1).
_EFFICIENTNET_BLOCKS = [
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
]


def efficientnet_b0(seed):
    """EfficientNet-B0 on 224x224 images."""
    g = _ImageGraph(seed, "efficientnet_b0")
    data = g.swish(g.norm(g.conv("input", 32, 3, stride=2, gain=2.0)))
    for expansion, features, repetitions, first_stride, kernel in _EFFICIENTNET_BLOCKS:
        for repetition in range(repetitions):
            stride = first_stride if repetition == 0 else 1
            before, inputs = data, g.channels[data]
            if expansion != 1:
                data = g.swish(g.norm(g.conv(data, inputs * expansion, 1, gain=2.0)))
            inner = g.channels[data]
            data = g.swish(g.norm(g.conv(data, inner, kernel, stride=stride, groups=inner, gain=2.0)))
            data = g.squeeze_and_excite(data, max(1, inputs // 4))
            is_residual = stride == 1 and inputs == features
            data = g.norm(g.conv(data, features, 1), scale=0.7 if is_residual else 1.4)
            if is_residual:
                data = g.add(before, data)
    g.classifier(g.swish(g.norm(g.conv(data, 1280, 1, gain=2.0))))
    return g.image_model(224)


BUILDERS = {
    "densenet121_preactivation": densenet121_preactivation,
    "nasnet_a_like": nasnet_a_like,
    "inception_resnet_like": inception_resnet_like,
    "efficientnet_b0": efficientnet_b0,
}
