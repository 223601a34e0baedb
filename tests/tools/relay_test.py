"""Programs in Relay's text, with their constants beside them, as models. Usage: relay_test.py BINARY [unittest arguments]"""

import shutil

import numpy as np

from command_line import InOneFolderTestCase, main, small_model

NETWORK = """// Two layers.
fn (%x: Tensor[(1, 1, 12, 12), float32]) -> Tensor[(1, 10), float32] {
  %0 = nn.conv2d(%x, meta[relay.Constant][0] /*Tensor[(8, 1, 5, 5), float32]*/, padding=[2, 2, 2, 2], channels=8, kernel_size=[5, 5]);
  %1 = nn.bias_add(%0, meta[relay.Constant][1] /*Tensor[(8), float32]*/);
  %2 = nn.relu(%1);
  %3 = nn.max_pool2d(%2, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  %4 = reshape(%3, newshape=[1, 288]);
  %5 = nn.dense(%4, meta[relay.Constant][2] /*Tensor[(10, 288), float32]*/, units=None, out_dtype="float32");
  %6 = add(%5, meta[relay.Constant][4]);
  nn.softmax(%6)
}
"""

BRANCHES = """def @main(%x: Tensor[(2, 8), float32]) {
  let %total = sum(%x);
  %0 = greater(%total, 0f);
  let %y = if (%0) { nn.relu(nn.matmul(%x, meta[relay.Constant][0])) } else { tanh(%x) };
  (%y, (%total, add(%y, 1f)))
}
"""

RECURSION = """def @double(%n: int32, %x: Tensor[(2, 8), float32]) -> Tensor[(2, 8), float32] {
  if (greater(%n, 0)) {
    @double(subtract(%n, 1), multiply(%x, 2f))
  } else {
    nn.relu(%x)
  }
}
def @main(%n: int32, %x: Tensor[(2, 8), float32]) {
  add(@double(%n, %x), 1f)
}
"""


class RelayTest(InOneFolderTestCase):
    def setUp(self):
        for path in self.folder.iterdir():
            if path != self.cache:
                path.unlink() if path.is_file() else None

    def write(self, text, constants=None, archive="p.npz", program="p.relay"):
        (self.folder / program).write_text(text)
        if constants is not None:
            np.savez(self.folder / archive, **{str(number): value for number, value in constants.items()})

    def write_network(self, archive="p.npz"):
        random = np.random.default_rng(1)
        shapes = {0: (8, 1, 5, 5), 1: (8,), 2: (10, 288), 4: (1, 10)}
        constants = {number: random.standard_normal(shape).astype(np.float32) / 5 for number, shape in shapes.items()}
        self.write(NETWORK, constants, archive)
        return constants

    def words(self):
        return ["--cache", self.cache, "--budget", "5s", "--threads", 1]

    def outputs(self, file, inputs, *words):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        np.savez(self.folder / "in.npz", **inputs)
        self.collage("run", file, "--inputs", "in.npz", "--output", "out", *words, code=0)
        return {path.stem: np.load(path) for path in (self.folder / "out").iterdir()}

    def assert_compiles(self, inputs, program="p.relay", words=()):
        """What the compiled program gives, which is what the reference gives."""
        self.collage("compile", program, "-o", "p.collage", *self.words(), *words, code=0)
        found = self.outputs("p.collage", inputs)
        expected = self.outputs(program, inputs, "--reference", *words)
        self.assertEqual(found.keys(), expected.keys())
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5)
        return found

    def assert_user_error(self, *parts, words=()):
        for command in (["compile", "-o", "p.collage"], ["run", "--reference", "--random", "1"]):
            done = self.collage(*command, "p.relay", *words, code=2)
            lines = [line for line in done.stderr.splitlines() if line.startswith("collage: ")]
            self.assertEqual(len(lines), 1, done.stderr)
            for part in parts:
                self.assertIn(part, lines[0])

    def test_a_network_with_its_constants_beside_it(self):
        constants = self.write_network()
        x = np.random.default_rng(2).standard_normal((1, 1, 12, 12)).astype(np.float32)
        (scores,) = self.assert_compiles({"x": x}).values()
        self.assertAlmostEqual(float(scores.sum()), 1, places=5)
        padded = np.pad(x[0, 0], 2)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (5, 5))
        planes = np.maximum(np.einsum("yxij,oij->oyx", windows, constants[0][:, 0]) + constants[1][:, None, None], 0)
        pooled = planes.reshape(8, 6, 2, 6, 2).max(axis=(2, 4)).reshape(1, 288)
        logits = pooled @ constants[2].T + constants[4]
        np.testing.assert_allclose(scores, np.exp(logits) / np.exp(logits).sum(), rtol=1e-3, atol=1e-6)
        # An operator goes by its place in the text.
        self.collage("compile", "p.relay", "-o", "pinned.collage", *self.words(), "--pin", "6:8=native", code=0)
        self.assertRegex(self.collage("explain", "pinned.collage", "--operators", code=0).stdout, "nn.max_pool2d +native .* pinned")
        self.collage("run", "p.relay", "--inputs", "in.npz", *self.words(), code=0)
        self.collage("bench", "p.relay", "--random", 1, "--duration", 0.1, *self.words(), code=0)

    def test_constants_may_lie_elsewhere(self):
        self.write_network("weights.npz")
        self.assert_compiles({"x": np.ones((1, 1, 12, 12), np.float32)}, words=["--constants", "weights.npz"])

    def test_a_text_is_known_by_how_it_begins(self):
        self.write("fn (%x: Tensor[(4), float32]) { nn.relu(%x) }\n", program="model.txt")
        self.assertEqual(self.assert_compiles({"x": np.array([-1, 0, 1, 2], np.float32)}, "model.txt")["output"].tolist(), [0, 0, 1, 2])

    def test_branches_and_several_outputs(self):
        self.write(BRANCHES, {0: 2 * np.eye(8, dtype=np.float32)})
        for sign in (1, -1):
            x = np.full((2, 8), sign, np.float32)
            found = self.assert_compiles({"x": x})
            y = 2 * x if sign > 0 else np.tanh(x)
            self.assertEqual(sorted(found), ["output0", "output1", "output2"])
            np.testing.assert_allclose(found["output0"], y, rtol=1e-5)
            np.testing.assert_allclose(found["output1"], x.sum(), rtol=1e-5)
            np.testing.assert_allclose(found["output2"], y + 1, rtol=1e-5)

    def test_a_function_that_calls_itself(self):
        self.write(RECURSION)
        x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
        found = self.assert_compiles({"n": np.array(3, np.int32), "x": x})
        np.testing.assert_allclose(found["output"], np.maximum(8 * x, 0) + 1, rtol=1e-5)
        done = self.collage("opt", "p.relay", "--pass", "collage", code=2)
        self.assertIn("@main calls @double, and this pass places one function", done.stderr)

    def test_lets(self):
        self.write("def @main(%x: Tensor[(4), float32]) {\n  let %y = nn.relu(%x);\n  let %z = tanh(%y);\n  (add(%z, %y), %z)\n}\n")
        x = np.array([-1, 0, 1, 2], np.float32)
        y = np.maximum(x, 0)
        np.testing.assert_allclose(self.assert_compiles({"x": x})["output0"], np.tanh(y) + y, rtol=1e-5)

    def test_functions_as_values(self):
        self.write("""fn (%n: int64, %x: Tensor[(4), float32]) {
  let %f = fn (%y: Tensor[(4), float32]) { add(%x, %y) };
  let %g = fn (%m: int64, %z: Tensor[(4), float32]) -> Tensor[(4), float32] {
    if (greater(%m, 0i64)) { %g(subtract(%m, 1i64), %f(%z)) } else { %z }
  };
  %g(%n, nn.relu(%x))
}
""")
        x = np.array([-1, 0, 1, 2], np.float32)
        found = self.assert_compiles({"n": np.array(3, np.int64), "x": x})
        np.testing.assert_allclose(found["output"], np.maximum(x, 0) + 3 * x, rtol=1e-5)
        # A recursion that is given one has no form without closures.
        self.write("""def @f(%g: fn (float32) -> float32, %n: int64, %x: float32) -> float32 {
  if (greater(%n, 0i64)) { @f(%g, subtract(%n, 1i64), %g(%x)) } else { %x }
}
def @main(%n: int64, %x: float32) { @f(fn (%y: float32) { add(%y, %x) }, %n, %x) }
""")
        done = self.collage("compile", "p.relay", "-o", "p.collage", *self.words(), code=2)
        self.assertIn("@f: 2:55: a function that is a value is called; plans have no closures", done.stderr)

    def test_errors_in_the_text_name_line_and_column(self):
        self.write("fn (%x: Tensor[(4), float32]) {\n  nn.relu(%y)\n}\n")
        self.assert_user_error("p.relay: 2:11: ", "%y")
        self.write("fn (%x: Tensor[(4), float32]) {\n  add(%x, %x\n}\n")
        self.assert_user_error("p.relay: 3:1: found '}', expected")
        self.write("def @other(%x: Tensor[(4), float32]) { %x }\n")
        self.assert_user_error("p.relay: ", "no function @main")
        self.write("fn (%x: Tensor[(?, 4), float32]) { %x }\n")
        self.assert_user_error("p.relay: 1:17: the extent of a dimension is open")
        self.write("fn (%x: (float32, float32)) { %x.0 }\n")
        self.assert_user_error("p.relay: @main: parameter %x is of type (float32, float32)")
        self.write("")
        self.assert_user_error("p.relay: 1:1: ")

    def test_constants_must_be_those_of_the_text(self):
        self.write(NETWORK)
        self.assert_user_error("p.relay: 3:22: constant 0 is not in p.npz, which is not there", "--constants")
        constants = self.write_network()
        self.assert_user_error("nothing.npz: ", words=["--constants", "nothing.npz"])
        self.write(NETWORK, {number: constants[number] for number in (0, 1, 2)})
        self.assert_user_error("p.relay: 9:16: constant 4 is not in p.npz")
        self.write(NETWORK, {number: constants[number] for number in (0, 1, 4)})
        self.assert_user_error("p.relay: 8:21: constant 2 is not in p.npz")
        self.write(NETWORK, {**constants, 1: constants[1][:4]})
        self.assert_user_error("p.relay: 4:24: constant 1 has type Tensor[(4,), float32] but the comment says Tensor[(8,), float32]")
        self.write(NETWORK, {**constants, 1: constants[1].astype(np.float64)})
        self.assert_user_error("p.relay: 4:24: constant 1 has type Tensor[(8,), float64]")
        self.write(NETWORK, {**constants, 4: constants[4][:, :9]})
        self.assert_user_error("p.relay: 9:8: ", "(1, 9)")
        self.write(NETWORK, {**constants, 7: constants[4]})
        self.assert_user_error('p.npz: array "7" is of no use', "meta[relay.Constant][7]")
        self.write(NETWORK, {**constants, "w": constants[4]})
        self.assert_user_error('p.npz: array "w" is not named by the number of a constant')

    def test_other_files(self):
        done = self.collage("compile", "nothing.relay", "-o", "p.collage", code=2)
        self.assertIn("nothing.relay", done.stderr)
        (self.folder / "p.onnx").write_text("hello")
        self.assertIn("is no ONNX model", self.collage("compile", "p.onnx", "-o", "p.collage", code=2).stderr)
        small_model(self.folder / "small.onnx")
        np.savez(self.folder / "c.npz", a=np.zeros(1))
        done = self.collage("compile", "small.onnx", "-o", "p.collage", "--constants", "c.npz", code=2)
        self.assertIn("is no program in Relay's text", done.stderr)

    def test_shapes_are_fixed(self):
        self.write("fn (%x: Tensor[(4), float32]) { nn.relu(%x) }\n")
        self.assert_compiles({"x": np.ones(4, np.float32)}, words=["--shape", "x=4"])
        self.assert_user_error("input 'x' is given the shape 5 where the program has Tensor[(4,), float32]", words=["--shape", "x=5"])
        self.assert_user_error("'y', which is no input: the inputs are x", words=["--shape", "y=5"])

    def test_the_identity_is_that_of_text_and_constants(self):
        def wants_other_shape():
            words = ["--random", 1, "--shape", "x=5", "--compile-on-demand", "p.relay"]
            return self.collage("run", "p.collage", *words, code=2).stderr

        program = "fn (%x: Tensor[(4), float32]) { add(%x, meta[relay.Constant][0]) }\n"
        self.write(program, {0: np.ones(4, np.float32)})
        self.collage("compile", "p.relay", "-o", "p.collage", *self.words(), code=0)
        self.assertIn("which is fixed", wants_other_shape())
        for text, value in ((program, 2), (program + "\n", 1)):
            self.write(text, {0: np.full(4, value, np.float32)})
            self.assertIn("p.relay: is not the model that p.collage was compiled from", wants_other_shape())


if __name__ == "__main__":
    main()
