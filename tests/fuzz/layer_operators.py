"""Random convolutions, pools, normalizations and products."""

import math

import numpy as np
from graph_maker import GraphMaker


class LayerOperators(GraphMaker):
    """Each method adds an operator to values of the graph that fit, or nothing where none does."""

    def window(self, plane, transposed=False):
        kernel = [self.random.choice([1, 1, 2, 3, 3, 4, 5, 7]) for _ in plane]
        if not transposed:
            kernel = [min(k, max(1, extent + 1)) for k, extent in zip(kernel, plane)]
        attributes = {"kernel_shape": kernel}
        if self.chance(0.5):
            attributes["strides"] = [self.random.choice([1, 1, 2, 2, 3]) for _ in plane]
        if self.chance(0.2):
            attributes["dilations"] = [self.random.choice([1, 2, 3]) for _ in plane]
        style = self.random.random()
        if style < 0.25:
            # ONNX Runtime does not have SAME with dilations.
            attributes["auto_pad"] = self.random.choice(["VALID"] if "dilations" in attributes else ["SAME_UPPER", "SAME_LOWER", "VALID"])
        elif style < 0.8:
            begin = [self.random.randint(0, k - 1) for k in kernel]
            same = self.chance(0.5)
            attributes["pads"] = begin + (begin if same else [self.random.randint(0, k - 1) for k in kernel])
        return attributes

    def fits(self, plane, attributes):
        """Windows that exceed the padded data have no output by the rule of ONNX; ONNX Runtime gives one for some."""
        if attributes.get("auto_pad", "VALID") != "VALID" or "ceil_mode" in attributes:
            return True
        count = len(plane)
        pads = attributes.get("pads", [0] * 2 * count)
        dilations = attributes.get("dilations", [1] * count)
        spans = [(k - 1) * d + 1 for k, d in zip(attributes["kernel_shape"], dilations)]
        return all(extent + pads[i] + pads[i + count] >= spans[i] for i, extent in enumerate(plane))

    def spatial(self):
        return self.pick(rank=3) if self.chance(0.1) else self.pick(rank=4)

    def conv(self):
        x = self.spatial()
        if x is None:
            return
        channels = self.shapes[x][1]
        attributes = self.window(self.shapes[x][2:])
        if not self.fits(self.shapes[x][2:], attributes):
            return
        divisors = [g for g in range(1, channels + 1) if channels % g == 0]
        groups = 1 if self.chance(0.55) else channels if self.chance(0.5) else self.random.choice(divisors)
        multiplier = self.random.choice([1, 1, 2, 3]) if groups == channels else self.random.choice([1, 2, 3, 5, 8, 11, 16, 24])
        out = groups * multiplier if groups > 1 else self.random.choice([1, 3, 5, 8, 12, 16, 17, 24, 32, 33])
        kernel = attributes["kernel_shape"]
        if self.chance(0.3):
            del attributes["kernel_shape"]
        if groups > 1 or self.chance(0.3):
            attributes["group"] = groups
        fan = channels // groups * math.prod(kernel)
        inputs = [x, self.weights([out, channels // groups, *kernel], 1 / math.sqrt(fan))]
        if self.chance(0.6):
            inputs.append(self.weights([out], 0.3, "b"))
        y = self.add("Conv", inputs, **attributes)
        if y is not None and self.chance(0.5):
            self.after_conv(y)

    def after_conv(self, y):
        if self.chance(0.4):
            y = self.batch_norm(y)
        if self.chance(0.5):
            y = self.residual(y)
        if y is not None:
            self.activation(y)

    def conv_transpose(self):
        x = self.spatial()
        if x is None:
            return
        channels = self.shapes[x][1]
        groups = self.random.choice([g for g in range(1, channels + 1) if channels % g == 0]) if self.chance(0.3) else 1
        attributes = self.window(self.shapes[x][2:], transposed=True)
        kernel = attributes["kernel_shape"]
        strides = attributes.get("strides", [1] * len(kernel))
        if self.chance(0.4):
            attributes["output_padding"] = [self.random.randint(0, s - 1) for s in strides]
        if groups > 1:
            attributes["group"] = groups
        each = self.random.choice([1, 2, 3, 8, 11])
        fan = channels // groups * math.prod(kernel) / math.prod(strides)
        inputs = [x, self.weights([channels, each, *kernel], 1 / math.sqrt(fan))]
        if self.chance(0.5):
            inputs.append(self.weights([each * groups], 0.3, "b"))
        y = self.add("ConvTranspose", inputs, **attributes)
        if y is not None and self.chance(0.4):
            self.activation(y)

    def pool(self):
        x = self.spatial()
        if x is None:
            return
        op = self.random.choice(["MaxPool", "AveragePool"])
        attributes = self.window(self.shapes[x][2:])
        if op == "AveragePool":
            attributes.pop("dilations", None)
            if self.chance(0.5):
                attributes["count_include_pad"] = self.random.choice([0, 1])
        if self.chance(0.4):
            attributes["ceil_mode"] = 1
        if not self.fits(self.shapes[x][2:], attributes):
            return
        self.add(op, [x], **attributes)

    def global_pool(self):
        x = self.spatial()
        if x is not None:
            self.add(self.random.choice(["GlobalAveragePool", "GlobalAveragePool", "GlobalMaxPool"]), [x])

    def batch_norm(self, x=None):
        x = x or self.pick(least=2)
        if x is None:
            return None
        channels = self.shapes[x][1]
        variance = self.constant(self.numbers.uniform(0.3, 2, channels).astype(np.float32), "var")
        inputs = [x, self.weights([channels]), self.weights([channels], 0.3), self.weights([channels], 0.3), variance]
        return self.add("BatchNormalization", inputs, **({"epsilon": 1e-3} if self.chance(0.5) else {}))

    def other_norm(self):
        x = self.pick(least=3)
        if x is None:
            return
        shape = self.shapes[x]
        kind = self.random.choice(["LRN", "InstanceNormalization", "LayerNormalization", "GroupNormalization"])
        if kind == "LRN" and len(shape) == 4:
            self.add(kind, [x], size=self.random.choice([1, 2, 3, 5]), alpha=self.random.choice([1e-4, 0.1, 1.0]), bias=1.5, beta=0.75)
        elif kind == "InstanceNormalization" and math.prod(shape[2:]) > 3:
            self.add(kind, [x, self.weights([shape[1]]), self.weights([shape[1]])], epsilon=1e-2)
        elif kind == "LayerNormalization" and self.opset >= 17:
            axis = self.random.randint(1, len(shape) - 1)
            if math.prod(shape[axis:]) > 3:
                inputs = [x, self.weights(shape[axis:])] + ([self.weights(shape[axis:])] if self.chance(0.7) else [])
                self.add(kind, inputs, axis=axis if self.chance(0.5) else axis - len(shape), epsilon=1e-2)
        elif kind == "GroupNormalization" and self.opset >= 21 and math.prod(shape[2:]) > 3:
            groups = self.random.choice([g for g in range(1, shape[1] + 1) if shape[1] % g == 0])
            self.add(kind, [x, self.weights([shape[1]]), self.weights([shape[1]])], num_groups=groups, epsilon=1e-2)

    def decomposed_layer_norm(self):
        x = self.pick(least=2)
        if x is None or self.shapes[x][-1] < 4:
            return
        width = self.shapes[x][-1]
        mean = self.reduce_mean(x, [-1])
        if mean is None:
            return
        centred = self.add("Sub", [x, mean])
        two = self.constant(np.float32(2), "two")
        square = self.add("Pow", [centred, two]) if self.chance(0.5) else self.add("Mul", [centred, centred])
        variance = self.reduce_mean(square, [-1])
        shifted = self.add("Add", [variance, self.constant(np.float32(1e-2), "epsilon")])
        y = self.add("Div", [centred, self.add("Sqrt", [shifted])])
        y = self.add("Mul", [y, self.weights([width])])
        self.add("Add", [y, self.weights([width])])

    def reduce_mean(self, x, axes, keepdims=1, op="ReduceMean"):
        if self.opset >= (13 if op == "ReduceSum" else 18):
            return self.add(op, [x, self.ints(axes)], keepdims=keepdims)
        return self.add(op, [x], axes=axes, keepdims=keepdims)

    def gelu(self):
        x = self.pick()
        if x is None:
            return
        if self.opset >= 20 and self.chance(0.4):
            self.add("Gelu", [x], **({"approximate": "tanh"} if self.chance(0.5) else {}))
            return
        curve = self.add("Erf", [self.add("Div", [x, self.constant(np.float32(math.sqrt(2)))])])
        curve = self.add("Add", [curve, self.constant(np.float32(1))])
        y = self.add("Mul", [x, curve])
        self.add("Mul", [y, self.constant(np.float32(0.5))])

    def gemm(self):
        x = self.pick(rank=2)
        if x is None:
            return
        rows, depth = self.shapes[x]
        attributes = {}
        if self.chance(0.3):
            attributes["transA"] = 1
            rows, depth = depth, rows
        columns = self.random.choice([1, 3, 8, 10, 17, 32])
        transposed = self.chance(0.5)
        if transposed:
            attributes["transB"] = 1
        if self.chance(0.3):
            attributes["alpha"] = self.random.choice([0.5, 2.0, -1.0])
        if self.chance(0.3):
            attributes["beta"] = self.random.choice([0.5, 2.0, 0.0])
        inputs = [x, self.weights([columns, depth] if transposed else [depth, columns], 1 / math.sqrt(depth))]
        if self.chance(0.7):
            inputs.append(self.weights(self.random.choice([[columns], [1, columns], [rows, 1], [rows, columns], [1], []]), 0.3))
        y = self.add("Gemm", inputs, **attributes)
        if y is not None and self.chance(0.4):
            self.activation(y)

    def matmul(self):
        x = self.pick(least=1)
        if x is None:
            return
        shape = self.shapes[x]
        depth = shape[-1]
        if self.chance(0.35) and len(shape) >= 2:
            order = list(range(len(shape)))
            order[-1], order[-2] = order[-2], order[-1]
            y = self.add("MatMul", [x, self.add("Transpose", [x], perm=order)])
            if y is not None:
                self.add("Mul", [y, self.constant(np.float32(1 / math.sqrt(depth)))])
            return
        columns = self.random.choice([1, 5, 8, 16, 21])
        batch = [1 if self.chance(0.4) else extent for extent in shape[:-2]] if self.chance(0.4) else []
        if self.chance(0.1) and not batch:
            self.add("MatMul", [x, self.weights([depth], 1 / math.sqrt(depth))])
            return
        if self.chance(0.2) and len(shape) >= 2:
            left = self.weights([*batch, columns, shape[-2]], 1 / math.sqrt(shape[-2]))
            y = self.add("MatMul", [left, x])
        else:
            y = self.add("MatMul", [x, self.weights([*batch, depth, columns], 1 / math.sqrt(depth))])
            if y is not None and self.chance(0.5):
                y = self.add("Add", [y, self.weights([columns], 0.3)] if self.chance(0.5) else [self.weights([columns], 0.3), y])
        if y is not None and self.chance(0.3):
            self.activation(y)

    def softmax(self):
        x = self.pick(least=1)
        if x is not None:
            rank = len(self.shapes[x])
            op = self.random.choice(["Softmax", "Softmax", "LogSoftmax"])
            self.add(op, [x], bounded=op == "Softmax", **({"axis": self.random.randint(-rank, rank - 1)} if self.chance(0.8) else {}))

    def reduce(self):
        x = self.pick(least=1)
        if x is None:
            return
        rank = len(self.shapes[x])
        axes = self.random.sample(range(-rank, 0) if self.chance(0.4) else range(rank), self.random.randint(1, rank))
        keepdims = self.random.choice([0, 1])
        self.reduce_mean(x, axes, keepdims, self.random.choice(["ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"]))

    def dropout(self):
        x = self.pick()
        if x is not None:
            self.add("Dropout", [x])
