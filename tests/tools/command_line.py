"""What the tests of the command line share: the binary, a small model and what was compiled of it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

BINARY = sys.argv.pop(1)


def small_model(path, batch=1, operator="Relu"):
    """y = operator(Conv(x, w)); z = GlobalAveragePool(y)."""
    generator = np.random.default_rng(1)
    weight = numpy_helper.from_array(generator.standard_normal((8, 3, 3, 3)).astype(np.float32) / 5, "w")
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"], name="first", pads=[1, 1, 1, 1]),
            helper.make_node(operator, ["c"], ["y"], name="second"),
            helper.make_node("GlobalAveragePool", ["y"], ["z"], name="third"),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None), helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())


class InOneFolderTestCase(unittest.TestCase):
    """Tests whose commands run in one temporary folder."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.cache = cls.folder / "prices.sqlite"

    def collage(self, *words, code=None, **options):
        """What the command printed and how it ended; with `code`, it must end so."""
        done = subprocess.run([BINARY, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=300, **options)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        return done


class CommandLineTestCase(unittest.TestCase):
    # A convolution whose channels are scaled and shifted, in two ways.
    SCALED = """def @main(%x: Tensor[(1, 3, 8, 8), float32]) {
  %0 = nn.conv2d(%x, meta[relay.Constant][0] /* Tensor[(4, 3, 3, 3), float32] */, padding=[1, 1, 1, 1]);
  %1 = multiply(%0, meta[relay.Constant][1] /* Tensor[(4, 1, 1), float32] */);
  %2 = add(%1, meta[relay.Constant][2] /* Tensor[(1, 4, 1, 1), float32] */);
  %3 = nn.relu(%2);
  %4 = nn.softmax(%3);
  add(%4, %3)
}
"""

    shared = None

    @classmethod
    def setUpClass(cls):
        # Of all classes of the process: compiling takes some seconds.
        if CommandLineTestCase.shared is None:
            CommandLineTestCase.compile_small()

    @classmethod
    def compile_small(cls):
        cls.shared = tempfile.TemporaryDirectory()
        unittest.addModuleCleanup(cls.shared.cleanup)
        folder = pathlib.Path(cls.shared.name)
        cls.cache = folder / "prices.sqlite"
        cls.model = folder / "small.onnx"
        small_model(cls.model)
        cls.program = folder / "small.collage"
        cls.report = folder / "small.json"
        done = cls.collage_in(folder, "compile", cls.model, "-o", cls.program, "--cache", cls.cache, "--json", cls.report)
        assert done.returncode == 0, done.stderr
        cls.input = np.random.default_rng(2).standard_normal((1, 3, 16, 16)).astype(np.float32)
        np.savez(folder / "x.npz", x=cls.input)
        cls.inputs = folder / "x.npz"

    @staticmethod
    def collage_in(folder, *words):
        """Compiles for one thread unless the words say otherwise, so that tests run beside each other."""
        if words[:1] == ("compile",) and "--threads" not in words:
            words = (*words, "--threads", 1)
        return subprocess.run([BINARY, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=300)

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.addCleanup(self.temporary.cleanup)

    def collage(self, *words):
        return self.collage_in(self.folder, *words)

    def compile(self, model, *words, output=None):
        return self.collage("compile", model, "-o", output or self.folder / "out.collage", "--cache", self.cache, *words)

    def assert_user_error(self, done, *parts):
        """Exit code 2, one line that holds all parts, no program file left behind."""
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("collage: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for part in parts:
            self.assertIn(part, lines[0])
        self.assertEqual([path.name for path in self.folder.iterdir() if "out.collage" in path.name], [])


def main():
    os.environ.setdefault("COLLAGE_LOG", "error")
    unittest.main(verbosity=2)
