"""Runs the collage binary on bad input: what the user can mend. Usage: bad_input_test.py BINARY [unittest arguments]"""

import os
import pathlib
import signal
import subprocess
import time
import unittest.mock

import numpy as np

from command_line import BINARY, CommandLineTestCase, main, small_model


class BadInputTest(CommandLineTestCase):
    def test_malformed_what_if(self):
        cases = {("--forbid", "nosuch"): ["--forbid nosuch", "dnnl"], ("--forbid", "dnnl:frob"): ["frob"],
                 ("--pin", "fourth=dnnl"): ["no node", "fourth"], ("--pin", "%99=dnnl"): ["%99"],
                 ("--pin", "nn.conv2d"): ["node=backend"], ("--pin", "nn.conv2d=nosuch"): ["nosuch", "native"],
                 ("--penalty", "dnnl:native"): ["backend:backend=microseconds"], ("--penalty", "dnnl:native=fast"): ["fast"],
                 ("--penalty", "dnnl:native=-1"): ["-1"], ("--penalty", "dnnl=3"): ["backend:backend=microseconds"]}
        for words, parts in cases.items():
            with self.subTest(words):
                self.assert_user_error(self.collage("explain", self.program, *words), words[0], *parts)
        forbid_all = [word for name in ("dnnl", "openvino", "onnxruntime", "xsmm", "xnnpack", "openblas", "native") for word in ("--forbid", name)]
        self.assert_user_error(self.collage("explain", self.program, *forbid_all), "no valid candidate covers")

    def test_searchers_and_rules_that_are_not(self):
        self.assert_user_error(self.compile(self.model, "--search", "best"), "--search", "'best'", "sweep", "op-level", "evolutionary")
        (self.folder / "text.json").write_text("rules")
        (self.folder / "bad.json").write_text('{"mine": {"rule": "Primitiv"}}')
        rules = ["--target", "cpu -partition_rule=mine", "--partition-rules"]
        self.assert_user_error(self.compile(self.model, *rules, self.folder / "none.json"), "--partition-rules", "none.json")
        self.assert_user_error(self.compile(self.model, *rules, self.folder / "text.json"), "text.json", "JSON")
        self.assert_user_error(self.compile(self.model, *rules, self.folder / "bad.json"), "bad.json.mine.rule", "Primitiv", "DFPattern")
        self.assert_user_error(self.compile(self.model, *rules[:2]), "no partition rule 'mine'", "none is stated")

    def test_malformed_tuning(self):
        self.assert_user_error(self.compile(self.model, "--tune", "soon"), "--tune", "soon")
        self.assertEqual(self.compile(self.model, "--tune", "3s", "--cache-only").returncode, 2)

    def test_standard_output_on_a_full_disk(self):
        for words in (["explain", self.program], ["backends"], ["run", self.program, "--random", "1"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([BINARY, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("standard output", done.stderr)

    def test_outputs_on_a_full_disk(self):
        (self.folder / "full").symlink_to("/dev/full")
        self.assert_user_error(self.compile(self.model, output=self.folder / "full"), "full", "cannot be written")
        self.assertTrue(pathlib.Path("/dev/full").is_char_device())

    def test_closed_standard_streams(self):
        for streams in ("<&-", ">&- 2>&-", "<&- >&- 2>&-"):
            output = self.folder / "closed.collage"
            command = f'"{BINARY}" compile "{self.model}" -o "{output}" --cache "{self.cache}" {streams}'
            self.assertEqual(subprocess.run(["bash", "-c", command], timeout=300, capture_output=True).returncode, 0)
            self.assertEqual(self.collage("run", output, "--random", 1).returncode, 0)
            output.unlink()
        self.assertEqual(self.collage("cache", "verify", "--cache", self.cache).returncode, 0)

    def test_a_report_that_cannot_be_written_costs_no_compile(self):
        self.assert_user_error(self.compile(self.model, "--json", self.folder / "no" / "r.json"), "r.json", "cannot be written")

    def test_a_malformed_query_file(self):
        (self.folder / "q.json").write_text("{")
        self.assert_user_error(self.collage("query", self.folder / "q.json"), "q.json", "not JSON")
        self.assert_user_error(self.collage("query", self.folder / "none.json"), "none.json")

    def test_files_that_are_no_models(self):
        whole = self.model.read_bytes()
        for name, content in {"empty": b"", "text": b"hello, world\n" * 10, "truncated": whole[: len(whole) // 2], "zeros": bytes(1000)}.items():
            with self.subTest(name):
                path = self.folder / f"{name}.onnx"
                path.write_bytes(content)
                done = self.compile(path)
                self.assert_user_error(done)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_a_missing_model(self):
        self.assert_user_error(self.compile(self.folder / "none.onnx"), "none.onnx")

    def test_an_unknown_operator(self):
        small_model(self.folder / "m.onnx", operator="Frobnicate")
        self.assert_user_error(self.compile(self.folder / "m.onnx"), "Frobnicate", "second", "13")

    def test_a_missing_shape_names_the_flag(self):
        small_model(self.folder / "m.onnx", batch="N")
        self.assert_user_error(self.compile(self.folder / "m.onnx"), "--shape", "x=")

    def test_a_malformed_shape(self):
        for shape in ("x", "x=", "x=1xx3", "x=1x-0x3", "x=1x3x", "=1x2", "x=1x-3"):
            with self.subTest(shape):
                self.assert_user_error(self.compile(self.model, "--shape", shape), "--shape " + shape)

    def test_unknown_targets(self):
        self.assert_user_error(self.compile(self.model, "--target", "cpu -compiler=nosuch"), "nosuch", "dnnl")
        self.assert_user_error(self.compile(self.model, "--target", "toaster"), "toaster")

    def test_plans_that_do_not_fit(self):
        (self.folder / "p.relay").write_text(self.SCALED)
        (self.folder / "bad.json").write_text("{}")
        apply = ["opt", self.folder / "p.relay", "--pass", "apply-plan"]
        self.assert_user_error(self.collage(*apply), "--plan")
        self.assert_user_error(self.collage(*apply, "--plan", self.folder / "bad.json"), "bad.json", "format")
        self.assert_user_error(self.collage(*apply, "--plan", self.folder / "none.json"), "none.json")

    def test_contradicting_pins(self):
        cases = {
            ("--pin", "nn.softmax=dnnl"): ["--pin nn.softmax=dnnl", "'nn.softmax'"],
            ("--pin", "nn.relu=cudnn"): ["--pin nn.relu=cudnn", "'cudnn'", "dnnl"],
            ("--pin", "nn.relu"): ["--pin nn.relu", "NODE=BACKEND"],
            ("--pin", "second=openblas"): ["openblas does not take second (nn.relu)", "rules"],
            ("--pin", "nn.relu=native", "--pin", "nn.relu=dnnl"): ["(nn.relu)", "native", "--pin nn.relu=dnnl"],
            ("--pin", "nn.relu=dnnl", "--forbid", "dnnl:nn.relu"): ["(nn.relu)", "--forbid dnnl:nn.relu"],
            ("--forbid", "dnnl:nn.softmax"): ["--forbid dnnl:nn.softmax", "'nn.softmax'"],
            ("--forbid", "nothing"): ["--forbid nothing", "'nothing'"],
        }
        for words, parts in cases.items():
            with self.subTest(words):
                self.assert_user_error(self.compile(self.model, *words), *parts)

    def test_an_unwritable_output(self):
        self.assert_user_error(self.compile(self.model, output=self.folder / "no" / "such" / "out.collage"), "out.collage")

    def test_inputs_that_do_not_fit(self):
        np.savez(self.folder / "shape.npz", x=self.input[:, :, :8])
        np.savez(self.folder / "dtype.npz", x=self.input.astype(np.float64))
        np.savez(self.folder / "name.npz", q=self.input)
        (self.folder / "damaged.npz").write_bytes(b"PK\x03\x04 nothing")
        for name, parts in {"shape": ["'x'", "8", "16"], "dtype": ["'x'", "float64", "float32"], "name": ["'q'", "'x'"], "damaged": []}.items():
            with self.subTest(name):
                self.assert_user_error(self.collage("run", self.program, "--inputs", self.folder / f"{name}.npz"), *parts)

    def test_missing_inputs_name_the_ways_to_give_them(self):
        self.assert_user_error(self.collage("run", self.program), "'x'", "--random")

    def test_damaged_programs(self):
        whole = self.program.read_bytes()
        middle = bytearray(whole)
        middle[len(whole) // 2] ^= 0x40
        for name, content in {"truncated": whole[: len(whole) // 2], "short": whole[:20], "flipped": bytes(middle), "longer": whole + b"x"}.items():
            with self.subTest(name):
                path = self.folder / "p.collage"
                path.write_bytes(content)
                for command in (["run", path, "--random", 1], ["explain", path], ["bench", path, "--iterations", 1]):
                    self.assert_user_error(self.collage(*command), "p.collage")

    def test_a_damaged_cache(self):
        cache = self.folder / "prices.sqlite"
        cache.write_bytes(b"not a database, but long enough to be looked at" * 100)
        before = cache.read_bytes()
        done = self.collage("compile", self.model, "-o", self.folder / "out.collage", "--cache", cache)
        self.assert_user_error(done, "prices.sqlite")
        self.assertEqual(cache.read_bytes(), before)

    def test_unknown_words_on_the_command_line(self):
        for words in (["frob"], ["compile"], ["compile", self.model], ["run", self.program, "--frob"], []):
            with self.subTest(words):
                self.assert_user_error(self.collage(*words), "--help")

    def test_a_word_that_is_no_command(self):
        words = "there is no command 'frob'; there are backends, compile, run, "
        self.assert_user_error(self.collage("frob", "--help-me"), words, "--help")

    def test_more_threads_than_processors(self):
        most = len(os.sched_getaffinity(0))
        # Tests otherwise hear of errors only.
        with unittest.mock.patch.dict(os.environ, COLLAGE_LOG="warning"):
            done = self.collage("run", self.program, "--random", "1", "--threads", most + 1)
            quiet = self.collage("run", self.program, "--random", "1", "--threads", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"--threads {most + 1}: this process may use ", done.stderr)
        self.assertNotIn("this process may use", quiet.stderr)

    def test_kernels_of_source_load_where_no_compiler_is(self):
        program = self.folder / "c.collage"
        done = self.compile(self.model, "--target", "cpu -compiler=c", output=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        other = self.folder / "another"
        other.write_text("#!/bin/sh\necho 'another 1.0'\n")
        other.chmod(0o700)

        def run(compiler, *words):
            with unittest.mock.patch.dict(os.environ, COLLAGE_CC=str(compiler)):
                return self.collage("run", program, "--random", "1", "--output", self.folder / f"of_{compiler.name}", *words)

        for compiler in (pathlib.Path("cc"), pathlib.Path("/nowhere/none")):
            self.assertEqual(run(compiler).returncode, 0)
        np.testing.assert_array_equal(np.load(self.folder / "of_cc/y.npy"), np.load(self.folder / "of_none/y.npy"))
        self.assert_user_error(run(pathlib.Path("/nowhere/none"), "--recompile"), "backend 'c': c: there is no program /nowhere/none")
        self.assert_user_error(run(other), "was made by version ", "here is version another 1.0")

    def test_numbers_that_are_none(self):
        for words in (["run", self.program, "--random", "-1"], ["run", self.program, "--random", "1", "--threads", "0"],
                      ["bench", self.program, "--duration", "nan"], ["bench", self.program, "--iterations", "-1"],
                      ["backends", "--threads", "99999999999"]):
            with self.subTest(words):
                self.assert_user_error(self.collage(*words), words[-2] + ": '" + words[-1] + "' is no number from ")

    def test_an_empty_output(self):
        self.assert_user_error(self.collage("compile", self.model, "-o", ""), "--output is empty")

    def test_a_malformed_text_program(self):
        (self.folder / "p.relay").write_text("def @main(%x: Tensor[(1, 4), float32]) {\n  nn.frob(%x)\n}\n")
        self.assert_user_error(self.collage("opt", self.folder / "p.relay", "--pass", "verify"), "2:")

    def test_an_interrupted_compile_leaves_no_partial_file(self):
        process = subprocess.Popen(
            [BINARY, "compile", self.model, "-o", self.folder / "out.collage", "--cache", self.folder / "fresh.sqlite"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        leftovers = [path.name for path in self.folder.iterdir() if path.name.startswith("out.collage.")]
        self.assertEqual(leftovers, [])
        if (self.folder / "out.collage").exists():
            self.assertEqual(self.collage("run", self.folder / "out.collage", "--random", 1).returncode, 0)
        else:
            self.assertEqual(process.returncode, 2)


if __name__ == "__main__":
    main()
