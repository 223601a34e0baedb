"""Networks of convolutions, as PyTorch's exporter writes them."""

from exported_graph import LOGIT_GAIN, ExportedGraph

# A residual branch adds this much variance to the sum: sixteen blocks stay of order one.
BRANCH_VARIANCE = 0.25


def _bottlenecks(g, data, groups, group_width):
    """The sixteen blocks of a ResNet-50 (He et al. 2016), the stride in the 3x3 convolution; the last gives `output`."""
    for stage, blocks in enumerate((3, 4, 6, 3)):
        planes = 64 * 2**stage
        width = planes * group_width // 64 * groups
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            branch = g.relu(g.conv(data, width, 1))
            branch = g.relu(g.conv(branch, width, 3, stride, groups=groups))
            branch = g.conv(branch, planes * 4, 1, scale=BRANCH_VARIANCE)
            shortcut = g.conv(data, planes * 4, 1, stride) if block == 0 else data
            is_last = stage == 3 and block == blocks - 1
            data = g.relu(g.add(branch, shortcut), "output" if is_last else None)


def resnext50_32x4d(seed):
    """The blocks of ResNeXt-50 32x4d (Xie et al. 2017), without stem and classifier: the benchmark of the Collage paper."""
    g = ExportedGraph(seed, "resnext50_32x4d")
    _bottlenecks(g, g.input("input", [1, 64, 56, 56]), groups=32, group_width=4)
    return g.exported_model({"output": [1, 2048, 7, 7]})


def resnet50_3d(seed):
    """The blocks of ResNet-50 over three frames, without stem and classifier: the benchmark of the Collage paper."""
    g = ExportedGraph(seed, "resnet50_3d", rank=3)
    _bottlenecks(g, g.input("input", [1, 64, 3, 56, 56]), groups=1, group_width=64)
    return g.exported_model({"output": [1, 2048, 1, 7, 7]})


def _separable(g, data, features, kernel, stride=1):
    return g.conv(g.conv(data, g.channels[data], kernel, stride, groups=g.channels[data]), features, 1, scale=0.5)


def _fit(g, data, features, stride=1):
    return g.relu(g.conv(data, features, 1 if stride == 1 else 3, stride))


def _normal_cell(g, before, last, features, stride_before):
    p, h = _fit(g, before, features, stride_before), _fit(g, last, features)
    blocks = [
        g.add(_separable(g, h, features, 3), h),
        g.add(_separable(g, p, features, 3), _separable(g, h, features, 5)),
        g.add(g.average_pool(h, 3, 1, 1), p),
        g.add(g.average_pool(p, 3, 1, 1), g.average_pool(p, 3, 1, 1)),
        g.add(_separable(g, p, features, 5), _separable(g, p, features, 3)),
    ]
    return g.concat(blocks)


def _reduction_cell(g, before, last, features, output=None):
    p, h = _fit(g, before, features), _fit(g, last, features)
    first = g.add(_separable(g, p, features, 7, 2), _separable(g, h, features, 5, 2))
    second = g.add(g.max_pool(h, 3, 2, 1), _separable(g, p, features, 7, 2))
    third = g.add(g.average_pool(h, 3, 2, 1), _separable(g, p, features, 5, 2))
    fourth = g.add(g.max_pool(h, 3, 2, 1), _separable(g, first, features, 3))
    fifth = g.add(g.average_pool(first, 3, 1, 1), second)
    return g.concat([first, second, third, fourth, fifth], output=output)


def nasnet_a(seed):
    """NASNet-A without stem and classifier: three times five normal cells and a reduction, from 128 features on.

    These are the sizes with which search over graphs of operators is benchmarked, also in the Collage paper: each separable
    convolution comes once, and a stage begins with one tensor in both places. `nasnet_a_like` is the network for images.
    """
    g = ExportedGraph(seed, "nasnet_a")
    data = g.input("input", [1, 64, 56, 56])
    features = 128
    for stage in range(3):
        before = last = data
        for _ in range(5):
            before, last = last, _normal_cell(g, before, last, features, 1)
        features *= 2
        data = _reduction_cell(g, before, last, features, "output" if stage == 2 else None)
    return g.exported_model({"output": [1, 5 * features, 7, 7]})


def vgg16(seed):
    """VGG-16 (Simonyan and Zisserman 2015) on 224x224 images."""
    g = ExportedGraph(seed, "vgg16")
    data = g.input("input", [1, 3, 224, 224])
    for features, layers in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(layers):
            data = g.relu(g.conv(data, features, 3))
        data = g.max_pool(data, 2, 2, 0)
    # An adaptive pooling to the size that is there already.
    data = g.average_pool(data, 1, 1, 0)
    data = g.same("Flatten", [data], axis=1)
    data = g.relu(g.gemm(data, "classifier.0", 512 * 7 * 7, 4096))
    data = g.relu(g.gemm(data, "classifier.3", 4096, 4096))
    # Five poolings, each the largest of four, have raised the deviation threefold.
    g.gemm(data, "classifier.6", 4096, 1000, scale=LOGIT_GAIN / 9, output="output")
    return g.exported_model({"output": [1, 1000]})


def _norm_of_channels(g, data, name, features):
    """Layer normalization over the channels of a plane: there and back."""
    data = g.layer_norm(g.transpose(data, [0, 2, 3, 1]), name, features, 1e-6)
    data = g.transpose(data, [0, 3, 1, 2])
    g.channels[data] = features
    return data


def _convnext_block(g, data, name, features):
    branch = g.conv(data, features, 7, groups=features)
    branch = g.layer_norm(g.transpose(branch, [0, 2, 3, 1]), f"{name}.norm", features, 1e-6)
    branch = g.gelu(g.linear(branch, f"{name}.expand", features, 4 * features))
    branch = g.transpose(g.linear(branch, f"{name}.project", 4 * features, features), [0, 3, 1, 2])
    scale = g.initializer(f"{name}.layer_scale", g.weights.uniform(f"{name}.layer_scale", [features, 1, 1], 0.2, 0.4))
    return g.add(data, g.node("Mul", [scale, branch]))


def convnext_tiny(seed):
    """ConvNeXt-T (Liu et al. 2022) on 224x224 images."""
    g = ExportedGraph(seed, "convnext_tiny")
    data = g.conv(g.input("input", [1, 3, 224, 224]), 96, 4, stride=4, pad=0)
    data = _norm_of_channels(g, data, "stem.norm", 96)
    for stage, blocks in enumerate((3, 3, 9, 3)):
        features = 96 * 2**stage
        if stage > 0:
            data = _norm_of_channels(g, data, f"downsample.{stage}.norm", features // 2)
            data = g.conv(data, features, 2, stride=2, pad=0)
        for block in range(blocks):
            data = _convnext_block(g, data, f"features.{stage}.{block}", features)
    data = _norm_of_channels(g, g.same("GlobalAveragePool", [data]), "classifier.norm", 768)
    data = g.node("Flatten", [data], axis=1)
    g.gemm(data, "classifier", 768, 1000, scale=LOGIT_GAIN, output="output")
    return g.exported_model({"output": [1, 1000]})


def _double_conv(g, data, features):
    return g.relu(g.conv(g.relu(g.conv(data, features, 3)), features, 3))


def _up(g, data, features):
    """A transposed convolution that doubles the plane; its windows do not overlap."""
    name = f"up{len(g.nodes)}"
    inputs = g.channels[data]
    weight = g.weights.he(f"{name}.weight", [inputs, features, 2, 2], inputs, g.gains[data])
    operands = [g.initializer(f"{name}.weight", weight)]
    operands.append(g.initializer(f"{name}.bias", g.weights.normal(f"{name}.bias", [features], 0.1)))
    sizes = {"dilations": [1, 1], "kernel_shape": [2, 2], "pads": [0, 0, 0, 0], "strides": [2, 2]}
    output = g.node("ConvTranspose", [data, *operands], group=1, **sizes)
    g.channels[output] = features
    return output


def unet(seed):
    """U-Net (Ronneberger et al. 2015) of 32 features and four levels, for one class on padded 256x256 images."""
    g = ExportedGraph(seed, "unet")
    data = g.input("input", [1, 3, 256, 256])
    features, levels = 32, 4
    skips = []
    for level in range(levels):
        skips.append(_double_conv(g, data, features * 2**level))
        data = g.max_pool(skips[-1], 2, 2, 0)
    data = _double_conv(g, data, features * 2**levels)
    for level in reversed(range(levels)):
        data = g.concat([_up(g, data, features * 2**level), skips[level]])
        data = _double_conv(g, data, features * 2**level)
    g.node("Sigmoid", [g.conv(data, 1, 1)], output="output")
    return g.exported_model({"output": [1, 1, 256, 256]})


BUILDERS = {
    "resnext50_32x4d": resnext50_32x4d,
    "resnet50_3d": resnet50_3d,
    "nasnet_a": nasnet_a,
    "vgg16": vgg16,
    "convnext_tiny": convnext_tiny,
    "unet": unet,
}
