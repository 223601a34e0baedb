"""Random operators that move elements."""

import math

import numpy as np
from graph_maker import GraphMaker


class MovementOperators(GraphMaker):
    """Each method adds an operator to values of the graph that fit, or nothing where none does."""

    def concat(self):
        x = self.pick(least=1)
        if x is None:
            return
        shape = self.shapes[x]
        axis = self.random.randrange(len(shape))
        alike = [name for name, other in self.shapes.items()
                 if len(other) == len(shape) and all(a == b or i == axis for i, (a, b) in enumerate(zip(other, shape)))]
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
            target = self.random.choice([[first, -1], [-1, first], [first, second, -1], [first, second, rest // second, 1], [size],
                                         [1, first, rest, 1]])
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
