"""`collage opt` and `collage query`: programs as text. Usage: text_passes_test.py BINARY [unittest arguments]"""

import json

import numpy as np

from command_line import CommandLineTestCase, main


class TextPassesTest(CommandLineTestCase):
    @classmethod
    def setUpClass(cls):
        """Nothing is compiled for all."""

    def test_opt_prints_text(self):
        program = "def @main(%x: Tensor[(1, 4), float32]) -> Tensor[(1, 4), float32] {\n  nn.relu(%x)\n}\n"
        (self.folder / "p.relay").write_text(program)
        done = self.collage("opt", self.folder / "p.relay", "--pass", "verify")
        self.assertEqual((done.returncode, done.stdout), (0, program), done.stderr)

    def opt(self, program, *words):
        (self.folder / "p.relay").write_text(program)
        done = self.collage("opt", self.folder / "p.relay", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def constants_of_scaled(self):
        generator = np.random.default_rng(3)
        shapes = {"0": (4, 3, 3, 3), "1": (4, 1, 1), "2": (1, 4, 1, 1)}
        np.savez(self.folder / "c.npz", **{name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})
        return np.load(self.folder / "c.npz")

    def test_optimize_for_each_backend(self):
        before = self.constants_of_scaled()
        for backend in ("dnnl", "xsmm", "xnnpack", "openblas", "native"):
            with self.subTest(backend):
                words = ["--constants", self.folder / "c.npz", "--output-constants", self.folder / "d.npz"]
                text = self.opt(self.SCALED, "--pass", f"optimize-for-{backend}", *words)
                self.assertNotIn("multiply", text)
                self.assertEqual(text.count("nn.bias_add"), 1)
                numbers = [int(part.split("]")[0]) for part in text.split("meta[relay.Constant][")[1:]]
                after = np.load(self.folder / "d.npz")
                weight, bias = (after[str(number)] for number in numbers)
                np.testing.assert_allclose(weight, before["0"] * before["1"].reshape(4, 1, 1, 1), rtol=1e-6)
                np.testing.assert_allclose(bias, before["2"].reshape(4), rtol=1e-6)
        plain = self.opt(self.SCALED, "--pass", "verify")
        for backend in ("openvino", "reference"):
            done = self.collage("opt", self.folder / "p.relay", "--pass", f"optimize-for-{backend}")
            self.assertEqual((done.returncode, done.stdout), (0, plain))
            self.assertIn("nothing changed", done.stderr)

    def test_opt_places_text_and_applies_the_plan_again(self):
        self.constants_of_scaled()
        words = ["--constants", self.folder / "c.npz", "--cache", self.folder / "prices.sqlite", "--threads", "1"]
        targets = ["--target", "cpu -compiler=dnnl", "--target", "cpu", "--target", "cpu -compiler=openvino"]
        plan = self.folder / "plan.json"
        placed = self.opt(self.SCALED, "--pass", "collage", "--save-plan", plan, *targets, *words)
        self.assertIn("Primitive=1", placed)
        symbols = [part.split('"')[1] for part in placed.split("global_symbol=")[1:]]
        self.assertTrue(symbols)
        self.assertEqual(len(symbols), len(set(symbols)))
        # Once more from the file alone: without targets, prices or measuring.
        again = self.opt(self.SCALED, "--pass", "apply-plan", "--plan", plan, "--constants", self.folder / "c.npz")
        self.assertEqual(again, placed)
        plain = self.opt(placed, "--pass", "inline", "--constants", self.folder / "c.npz")
        self.assertNotIn("Primitive", plain)
        self.assertEqual(plain.count("nn.conv2d("), 1)

    def test_query_answers_cases(self):
        case = {"name": "n", "program": "fn (%x: float32) { %0 = exp(%x); %0 }", "query": {"subgraph": {"inside": ["%0"]}}}
        (self.folder / "q.json").write_text(json.dumps([case, {"name": "broken"}]))
        done = self.collage("query", self.folder / "q.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answers = json.loads(done.stdout)
        self.assertTrue(answers[0]["answer"]["valid"])
        self.assertEqual(answers[1]["name"], "broken")
        self.assertIn("query", answers[1]["error"])
        done = self.collage("query", self.folder / "q.json", "--json", self.folder / "a.json")
        self.assertEqual(json.loads((self.folder / "a.json").read_text()), answers)


if __name__ == "__main__":
    main()
