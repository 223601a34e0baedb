"""Random but valid ONNX models of the operators that the reader knows, one a seed, small enough to compile in seconds."""

import math
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

OPSETS = list(range(11, 22))
UNARY = ["Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Softsign", "Softplus", "Elu", "Selu", "Erf", "Sin", "Cos", "LeakyRelu", "HardSigmoid",
         "Identity", "ThresholdedRelu"]
STRANGE_NAMES = ["{}:0", "a/b/{}", "{} with space", "{}.weight", "größe_{}", "{}\"quoted\"", "%{}", "{}-1", "@{}", "é{}'", "{}(x)", "{}[0]", "$ {};"]


class ModelMaker:
    """Adds random operators to a graph whose every shape is known while it grows."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.opset = self.random.choice(OPSETS)
        self.batch = self.random.choice([1, 1, 1, 2, 3, 4])
        self.strange = self.random.random() < 0.2
        self.nodes, self.initializers, self.inputs = [], {}, {}
        self.shapes = {}  # of the float32 values that operators may read
        self.bounded = set()  # values of magnitude 1 or less
        self.counter = 0

    def chance(self, probability):
        return self.random.random() < probability

    def name(self, stem):
        self.counter += 1
        plain = f"{stem}{self.counter}"
        return self.random.choice(STRANGE_NAMES).format(plain) if self.strange else plain

    def constant(self, array, stem="w"):
        array = np.asarray(array)
        name = self.name(stem)
        if self.chance(0.15):
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array)))
        self.initializers[name] = array
        return name

    def weights(self, shape, scale=1.0, stem="w"):
        if self.chance(0.1):
            alike = [name for name, value in self.initializers.items() if value.shape == tuple(shape) and value.dtype == np.float32]
            if alike:
                return self.random.choice(alike)
        return self.constant((self.numbers.standard_normal(shape) * scale).astype(np.float32), stem)

    def ints(self, values):
        return self.constant(np.array(values, np.int64), "ints")

    def add(self, op, inputs, outputs=1, bounded=False, **attributes):
        """The names of the outputs, or None where the operator does not fit or its result is empty or large."""
        names = [self.name(op.lower()) for _ in range(outputs)]
        node = helper.make_node(op, inputs, names, name=self.name("node") if self.chance(0.7) else "", **attributes)
        types = self.infer(node)
        for name in names:
            if name not in types or any(extent < 1 for extent in types[name][1]) or math.prod(types[name][1]) > 60000:
                return None
        self.nodes.append(node)
        for name in names:
            if types[name][0] == TensorProto.FLOAT:
                self.shapes[name] = tuple(types[name][1])
                if bounded:
                    self.bounded.add(name)
        return names[0] if outputs == 1 else names

    def infer(self, node):
        values, constants = [], []
        for name in dict.fromkeys(node.input):
            if name in self.initializers:
                constants.append(numpy_helper.from_array(self.initializers[name], name))
            elif name:
                kind, shape = self.kind_of(name)
                values.append(helper.make_tensor_value_info(name, kind, shape))
        results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in node.output]
        graph = helper.make_graph([node], "one", values, results, constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        try:
            model = shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
            return {}
        types = {}
        for value in list(model.graph.output) + list(model.graph.value_info):
            tensor = value.type.tensor_type
            if not tensor.HasField("shape") or any(not extent.HasField("dim_value") for extent in tensor.shape.dim):
                return {}
            types[value.name] = (tensor.elem_type, [extent.dim_value for extent in tensor.shape.dim])
            self.others[value.name] = types[value.name]
        return types

    others = {}

    def kind_of(self, name):
        if name in self.shapes:
            return TensorProto.FLOAT, self.shapes[name]
        return self.others[name]

    def pick(self, rank=None, least=0, last_ones=True):
        names = [name for name, shape in self.shapes.items() if (rank is None or len(shape) == rank) and len(shape) >= least]
        if not names:
            return None
        if last_ones and self.chance(0.75):
            names = names[-2:]
        return self.random.choice(names)

    # Windows.

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

    # Normalization.

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

    # Pointwise.

    def activation(self, x=None):
        x = x or self.pick()
        if x is None:
            return
        choice = self.random.random()
        if choice < 0.45:
            op = self.random.choice(["Relu", "Relu", *UNARY])
            attributes = {"alpha": self.random.choice([0.01, 0.2, 0.5])} if op in ("LeakyRelu", "Elu") and self.chance(0.7) else {}
            self.add(op, [x], bounded=op in ("Sigmoid", "Tanh", "Sin", "Cos", "Erf", "HardSigmoid", "Softsign"), **attributes)
        elif choice < 0.6:
            low, high = self.random.choice([(0, 6), (-1, 1), (0.0, None), (None, 0.5), (-0.5, 0.25)])
            bounds = ["" if bound is None else self.constant(np.float32(bound), "bound") for bound in (low, high)]
            self.add("Clip", [x, *bounds] if bounds[1] else [x, bounds[0]])
        elif choice < 0.75:
            shape = self.shapes[x]
            slope = self.random.choice([[1], [shape[1]] + [1] * (len(shape) - 2) if len(shape) > 1 else [1], list(shape)])
            self.add("PRelu", [x, self.weights(slope, 0.3, "slope")])
        elif choice < 0.9:
            if self.opset >= 14 and self.chance(0.3):
                self.add("HardSwish", [x])
                return
            gate = self.random.choice(["sigmoid", "hard", "relu6"])
            if gate == "sigmoid":
                factor = self.add("Sigmoid", [x])
            elif gate == "hard":
                factor = self.add("HardSigmoid", [x], alpha=1 / 6, beta=0.5)
            else:
                shifted = self.add("Add", [x, self.constant(np.float32(3))])
                bounds = [self.constant(np.float32(0)), self.constant(np.float32(6))]
                factor = self.add("Div", [self.add("Clip", [shifted, *bounds]), self.constant(np.float32(6))])
            self.add("Mul", [x, factor] if self.chance(0.5) else [factor, x])
        elif self.bounded and self.chance(0.7):
            self.add("Exp", [self.random.choice(sorted(self.bounded))])
        else:
            self.add("Sqrt", [self.add("Abs", [x])])

    def broadcast_partner(self, shape):
        cut = self.random.randint(0, len(shape)) if self.chance(0.4) else 0
        return [1 if self.chance(0.4) else extent for extent in shape[cut:]]

    def residual(self, x):
        partners = [name for name, shape in self.shapes.items() if shape == self.shapes[x] and name != x]
        if partners and self.chance(0.7):
            other = self.random.choice(partners)
        else:
            other = self.weights(self.broadcast_partner(self.shapes[x]))
        pair = [x, other]
        self.random.shuffle(pair)
        return self.add("Add", pair)

    def binary(self):
        x = self.pick()
        if x is None:
            return
        if self.chance(0.3):
            self.residual(x)
            return
        fitting = [name for name, shape in self.shapes.items() if self.broadcasts(shape, self.shapes[x])]
        other = self.random.choice(fitting) if self.chance(0.5) else self.weights(self.broadcast_partner(self.shapes[x]))
        pair = [x, other]
        self.random.shuffle(pair)
        op = self.random.choice(["Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean", "Div"])
        if op == "Div":
            pair[1] = self.add("Add", [self.add("Abs", [pair[1]]), self.constant(np.float32(0.7))]) if pair[1] in self.shapes else pair[1]
            if pair[1] in self.initializers:
                pair[1] = self.constant(self.numbers.uniform(0.5, 2, self.initializers[pair[1]].shape).astype(np.float32))
        if op in ("Sum", "Max", "Mean") and self.chance(0.4):
            pair.append(self.random.choice(pair))
        if pair[1] is not None:
            self.add(op, pair)

    @staticmethod
    def broadcasts(a, b):
        return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b)))

    def where(self):
        x = self.pick()
        if x is None:
            return
        shape = self.shapes[x]
        if self.chance(0.5):
            condition = self.constant(self.numbers.random(self.broadcast_partner(shape)) < 0.5, "mask")
        else:
            condition = self.add("Greater", [self.pick_input_like(shape), self.constant(np.float32(0.1))])
        if condition is not None:
            self.add("Where", [condition, x, self.weights(self.broadcast_partner(shape))] if self.chance(0.5) else
                     [condition, self.constant(np.float32(-0.5)), x])

    def pick_input_like(self, shape):
        """Comparing computed values would turn rounding errors into whole differences."""
        fitting = [name for name, other in self.inputs.items() if self.broadcasts(other, shape)]
        return self.random.choice(fitting) if fitting else self.weights(shape)

    # Data movement.

    def concat(self):
        x = self.pick(least=1)
        if x is None:
            return
        shape = self.shapes[x]
        axis = self.random.randrange(len(shape))
        alike = [n for n, s in self.shapes.items() if len(s) == len(shape) and all(a == b or i == axis for i, (a, b) in enumerate(zip(s, shape)))]
        parts = [x] + [self.random.choice(alike) for _ in range(self.random.randint(0, 2))]
        if self.chance(0.3):
            parts.append(self.weights([self.random.randint(1, 3) if i == axis else extent for i, extent in enumerate(shape)]))
        self.random.shuffle(parts)
        self.add("Concat", parts, axis=axis if self.chance(0.7) else axis - len(shape))

    def split(self):
        x = self.pick(least=1)
        if x is None:
            return
        shape = self.shapes[x]
        axis = self.random.randrange(len(shape))
        extent = shape[axis]
        if extent < 2:
            return
        count = self.random.randint(2, min(3, extent))
        cuts = sorted(self.random.sample(range(1, extent), count - 1))
        sizes = [b - a for a, b in zip([0] + cuts, cuts + [extent])]
        if extent % count == 0 and self.chance(0.4):
            self.add("Split", [x], count, axis=axis, **({"num_outputs": count} if self.opset >= 18 else {}))
        elif self.opset >= 13:
            self.add("Split", [x, self.ints(sizes)], count, axis=axis)
        else:
            self.add("Split", [x], count, axis=axis, split=sizes)

    def slice(self):
        x = self.pick(least=1)
        if x is None:
            return
        shape = self.shapes[x]
        axes = self.random.sample(range(len(shape)), self.random.randint(1, len(shape)))
        starts, ends, steps = [], [], []
        for axis in axes:
            extent = shape[axis]
            if self.chance(0.2):
                starts.append(self.random.choice([-1, extent, 2**31 - 1]))
                ends.append(self.random.choice([-(2**31), -(2**63), -extent - 1]))
                steps.append(-self.random.choice([1, 1, 2]))
            else:
                start = self.random.randrange(extent)
                starts.append(start if self.chance(0.6) else start - extent)
                ends.append(self.random.choice([extent, self.random.randint(start + 1, extent), 2**63 - 1, 2**31 - 1]))
                steps.append(self.random.choice([1, 1, 1, 2, 3]))
        inputs = [x, self.ints(starts), self.ints(ends), self.ints([a if self.chance(0.7) else a - len(shape) for a in axes])]
        self.add("Slice", inputs + ([self.ints(steps)] if any(s != 1 for s in steps) or self.chance(0.3) else []))

    def pad(self):
        x = self.pick(least=1)
        if x is None:
            return
        shape = self.shapes[x]
        mode = self.random.choice(["constant", "constant", "edge", "reflect"])
        most = [min(2, extent - 1) if mode == "reflect" else 2 for extent in shape]
        if mode != "constant" and len(shape) == 4:
            most[:2] = [0, 0]
        pads = [self.random.randint(0, m) for m in most * 2]
        inputs = [x, self.ints(pads)]
        if mode == "constant" and self.chance(0.5):
            inputs.append(self.constant(np.float32(self.random.choice([0, 1.5, -2])), "value"))
        self.add("Pad", inputs, **({"mode": mode} if mode != "constant" or self.chance(0.5) else {}))

    def transpose(self):
        x = self.pick(least=2)
        if x is not None:
            permutation = list(range(len(self.shapes[x])))
            self.random.shuffle(permutation)
            self.add("Transpose", [x], **({"perm": permutation} if self.chance(0.85) else {}))

    def channel_shuffle(self):
        x = self.pick(rank=4)
        if x is None:
            return
        n, c, h, w = self.shapes[x]
        groups = self.random.choice([g for g in range(1, c + 1) if c % g == 0])
        y = self.add("Reshape", [x, self.ints([n, groups, c // groups, h, w])])
        y = self.add("Transpose", [y], perm=[0, 2, 1, 3, 4])
        self.add("Reshape", [y, self.ints(self.random.choice([[n, c, h, w], [0, -1, h, w], [n, -1, h, w]]))])

    def reshape(self):
        x = self.pick()
        if x is None:
            return
        shape, size = list(self.shapes[x]), math.prod(self.shapes[x])
        choice = self.random.random()
        if choice < 0.25:
            self.add("Flatten", [x], axis=self.random.randint(0, len(shape)))
        elif choice < 0.45 and 1 in shape:
            axes = [i for i, extent in enumerate(shape) if extent == 1]
            axes = self.random.sample(axes, self.random.randint(1, len(axes)))
            self.with_axes("Squeeze", x, axes)
        elif choice < 0.6 and len(shape) < 5:
            self.with_axes("Unsqueeze", x, self.random.sample(range(len(shape) + 1), 1))
        else:
            divisors = [d for d in range(1, min(size, 64) + 1) if size % d == 0]
            first = self.random.choice(divisors)
            rest = size // first
            second = self.random.choice([d for d in range(1, min(rest, 64) + 1) if rest % d == 0])
            target = self.random.choice([[first, -1], [-1, first], [first, second, -1], [first, second, rest // second, 1], [size], [1, first, rest, 1]])
            self.add("Reshape", [x, self.ints(target)])

    def with_axes(self, op, x, axes):
        if self.opset >= 13:
            self.add(op, [x, self.ints(axes)])
        else:
            self.add(op, [x], axes=axes)

    def gather(self):
        x = self.pick(least=1)
        if x is None:
            return
        shape = self.shapes[x]
        axis = self.random.randrange(len(shape))
        form = self.random.choice([[], [1], [3], [2, 2]]) if len(shape) < 4 else self.random.choice([[], [2], [4]])
        indices = self.numbers.integers(-shape[axis], shape[axis], form)
        self.add("Gather", [x, self.constant(np.asarray(indices, self.random.choice([np.int64, np.int32])), "indices")], axis=axis)

    def resize(self):
        x = self.pick(rank=4)
        if x is None or self.shapes[x][2] > 16:
            return
        n, c, h, w = self.shapes[x]
        roi = "" if self.opset >= 13 else self.constant(np.zeros(0, np.float32), "roi")
        mode = self.random.choice(["nearest", "nearest", "linear"])
        attributes = {"mode": mode}
        modes = ["asymmetric", "align_corners", "half_pixel", "pytorch_half_pixel"]
        if self.chance(0.8):
            attributes["coordinate_transformation_mode"] = self.random.choice(modes if mode == "linear" else ["asymmetric", "half_pixel"])
        if mode == "nearest":
            attributes["nearest_mode"] = self.random.choice(["floor", "round_prefer_floor", "ceil", "round_prefer_ceil"])
        if self.chance(0.6):
            factor = self.random.choice([2, 2, 3, 4, 1.5, 0.5])
            scales = self.constant(np.array([1, 1, factor, factor if self.chance(0.7) else 1], np.float32), "scales")
            self.add("Resize", [x, roi, scales], **attributes)
        else:
            sizes = self.ints([n, c, self.random.randint(1, 2 * h + 1), self.random.randint(1, 2 * w + 1)])
            empty = "" if self.opset >= 13 else self.constant(np.zeros(0, np.float32), "scales")
            self.add("Resize", [x, roi, empty, sizes], **attributes)

    def other_movement(self):
        x = self.pick(rank=4)
        if x is None:
            return
        n, c, h, w = self.shapes[x]
        op = self.random.choice(["DepthToSpace", "SpaceToDepth", "Tile", "Expand"])
        if op == "DepthToSpace" and c % 4 == 0:
            self.add(op, [x], blocksize=2, mode=self.random.choice(["DCR", "CRD"]))
        elif op == "SpaceToDepth" and h % 2 == 0 and w % 2 == 0:
            self.add(op, [x], blocksize=2)
        elif op == "Tile":
            self.add(op, [x, self.ints([1, self.random.choice([1, 2]), self.random.choice([1, 2]), 1])])
        elif op == "Expand" and 1 in (h, w):
            self.add(op, [x, self.ints([c, max(h, 3) if h == 1 else h, w])])

    # Products and reductions.

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
        self.reduce_mean(x, axes, self.random.choice([0, 1]), self.random.choice(["ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"]))

    def dropout(self):
        x = self.pick()
        if x is not None:
            self.add("Dropout", [x])

    # The whole.

    def add_input(self):
        rank = self.random.choices([4, 3, 2], [8, 2, 2])[0]
        plane = [self.random.choice([1, 2, 5, 7, 8, 12, 14, 17, 20]) for _ in range(2)]
        channels = self.random.choice([1, 2, 3, 4, 6, 8, 9, 16, 20, 24])
        shape = {4: [self.batch, channels, *plane], 3: [self.batch, self.random.choice([5, 7, 16]), self.random.choice([8, 12, 33])],
                 2: [self.batch, self.random.choice([1, 10, 33, 64])]}[rank]
        name = self.name("input")
        self.inputs[name] = tuple(shape)
        self.shapes[name] = tuple(shape)

    def make(self):
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            self.add_input()
        steps = {self.conv: 14, self.conv_transpose: 4, self.pool: 5, self.global_pool: 1, self.batch_norm: 3, self.other_norm: 3,
                 self.decomposed_layer_norm: 2, self.gelu: 2, self.activation: 8, self.binary: 8, self.where: 2, self.concat: 4, self.split: 3,
                 self.slice: 3, self.pad: 3, self.transpose: 2, self.channel_shuffle: 2, self.reshape: 4, self.gather: 2, self.resize: 3,
                 self.other_movement: 2, self.gemm: 4, self.matmul: 5, self.softmax: 3, self.reduce: 3, self.dropout: 1}
        count = self.random.randint(1, 16)
        for _ in range(200):
            if len(self.nodes) >= count and len(self.shapes) > len(self.inputs):
                break
            self.random.choices(list(steps), list(steps.values()))[0]()
        return self.model()

    def outputs(self):
        read = {name for node in self.nodes for name in node.input}
        made = [name for name in self.shapes if name not in self.inputs]
        ends = [name for name in made if name not in read] or made[-1:]
        dead = [name for name in ends if len(ends) > 1 and self.chance(0.15)]
        outputs = [name for name in ends if name not in dead] or ends[:1]
        if self.chance(0.25) and made:
            outputs.append(self.random.choice(made))
        if self.chance(0.06):
            outputs.append(self.random.choice(list(self.inputs)))
        floats = [name for name, value in self.initializers.items() if value.dtype == np.float32 and value.size]
        if self.chance(0.06) and floats:
            outputs.append(self.random.choice(floats))
        return list(dict.fromkeys(outputs))

    def model(self):
        made_by_node = {name for node in self.nodes for name in node.output}
        initializers = {name: value for name, value in self.initializers.items() if name not in made_by_node}
        symbolic = self.chance(0.15)
        self.symbolic = symbolic
        values = []
        for name, shape in self.inputs.items():
            values.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch" if symbolic and i == 0 else extent for i, extent in enumerate(shape)]))
        if self.chance(0.1):
            for name, value in initializers.items():
                values.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
        results = []
        for name in self.outputs():
            shape = self.shapes.get(name, self.initializers[name].shape if name in self.initializers else None)
            results.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None if symbolic or self.chance(0.2) else shape))
        graph = helper.make_graph(self.nodes, "random", values, results, [numpy_helper.from_array(v, n) for n, v in initializers.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8 if self.opset < 20 else 10)

    def shape_flags(self):
        if not self.symbolic:
            return []
        return [word for name, shape in self.inputs.items() for word in ("--shape", f"{name}={'x'.join(map(str, shape))}")]

    def random_inputs(self):
        return {name: self.numbers.standard_normal(shape).astype(np.float32) for name, shape in self.inputs.items()}
