"""Seeded weights that keep activations of order one."""

import math
import zlib

import numpy as np


class SeededWeights:
    """Weights by name: the same seed, model and name always give the same values, whatever else a model holds."""

    def __init__(self, seed, model):
        self.key = (seed, zlib.crc32(model.encode()))

    def _generator(self, name):
        return np.random.default_rng([*self.key, zlib.crc32(name.encode())])

    def normal(self, name, shape, deviation, mean=0.0):
        values = self._generator(name).standard_normal(tuple(shape), dtype=np.float32)
        return values * np.float32(deviation) + np.float32(mean)

    def uniform(self, name, shape, low, high):
        return self._generator(name).uniform(low, high, tuple(shape)).astype(np.float32)

    def indices(self, name, shape, limit):
        """Integers from 0 up to `limit`, which may be an array that broadcasts to `shape`."""
        return self._generator(name).integers(0, limit, tuple(shape), dtype=np.int64)

    def he(self, name, shape, fan_in, gain=2.0):
        """He et al. 2015: the variance of what a layer gives is that of what it reads; gain 2 makes up for a ReLU before."""
        return self.normal(name, shape, math.sqrt(gain / fan_in))

    def batch_norm(self, prefix, channels, scale=1.0):
        """Scale, shift, mean and variance as a trained network has them: near one, small, small, near one."""
        return (
            self.uniform(prefix + ".scale", [channels], 0.8 * scale, 1.2 * scale),
            self.normal(prefix + ".shift", [channels], 0.1),
            self.normal(prefix + ".mean", [channels], 0.1),
            self.uniform(prefix + ".variance", [channels], 0.8, 1.2),
        )


def seeded_inputs(seed, model, shapes, limits=None):
    """An array a graph input: standard normal, as normalized images and hidden states are; integers where there is a limit."""
    weights = SeededWeights(seed, model + " inputs")
    limits = limits or {}
    return {
        name: weights.indices(name, shape, limits[name]) if name in limits else weights.normal(name, shape, 1.0)
        for name, shape in shapes.items()
    }
