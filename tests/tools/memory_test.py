"""What a cold compile of a model with many weights takes of memory, in all of its processes together. Usage: memory_test.py BINARY"""

import pathlib
import subprocess
import threading
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from command_line import BINARY, InOneFolderTestCase, main

MIB = 2**20
LAYERS = 12


def layers(path, width):
    """A chain of products with Relu between them, whose weights lie in the model. Their bytes."""
    random = np.random.default_rng(3)
    weights = [numpy_helper.from_array(random.standard_normal((width, width), np.float32) / np.float32(width) ** 0.5, f"w{i}") for i in range(LAYERS)]
    nodes = []
    for i in range(LAYERS):
        nodes.append(helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"], name=f"product{i}"))
        nodes.append(helper.make_node("Relu", [f"p{i}"], [f"x{i + 1}"], name=f"clip{i}"))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, width]) for name in ("x0", f"x{LAYERS}")]
    graph = helper.make_graph(nodes, "layers", ends[:1], ends[1:], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return LAYERS * width * width * 4


def parents():
    """Of all processes, by their number."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            pass  # it has ended
    return found


def proportional_bytes(process):
    try:
        for line in pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # it has ended, or is ending
    return 0


class Peak:
    """The most that a process and all its descendants have had at the same time; what several share counts once."""

    def __init__(self, process):
        self.process = process
        self.bytes = 0
        self.when = ""
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        begin = time.monotonic()
        while not self.stop.wait(0.02):
            tree = {self.process}
            found = parents()
            while more := {child for child, parent in found.items() if parent in tree and child not in tree}:
                tree |= more
            each = sorted((proportional_bytes(process) for process in tree), reverse=True)
            if sum(each) > self.bytes:
                self.bytes = sum(each)
                self.when = f"after {time.monotonic() - begin:.1f} s, by process: {[size // MIB for size in each]} MiB"

    def end(self):
        self.stop.set()
        self.thread.join()


class MemoryTest(InOneFolderTestCase):
    def peak(self, width):
        """Of a cold compile, and what it is of."""
        (self.folder / f"{width}.sqlite").unlink(missing_ok=True)
        model = self.folder / f"layers{width}.onnx"
        weights = layers(model, width)
        words = ["compile", model, "-o", self.folder / f"{width}.collage", "--cache", self.folder / f"{width}.sqlite", "--threads", 2, "--budget", "60s"]
        process = subprocess.Popen([BINARY, *map(str, words)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        peak = Peak(process.pid)
        said, _ = process.communicate()
        peak.end()
        self.assertEqual(process.returncode, 0, said)
        return peak, weights, said

    def test_a_cold_compile_has_two_copies_of_the_weights_and_no_third(self):
        # Libraries, compilers and code, which the weights come on top of: how many are there at the same time is a matter of moments.
        base = max(self.peak(64)[0].bytes for _ in range(2))
        peak, weights, said = self.peak(3072)
        times = (peak.bytes - base) / weights
        what = f"{times:.2f} times {weights // MIB} MiB of weights above {base // MIB} MiB; {peak.when}\n{said}"
        print(what)
        # Two programs that race are twice. Libraries and code vary by 100 MiB from moment to moment, which is less than half of a copy.
        self.assertLess(times, 2.5, what)


if __name__ == "__main__":
    main()
