"""ONNX's backend test-suite through the Python module, by ONNX's own runner, against what the reference executor makes of it: what that
passes must pass here.

Usage: PYTHONPATH=build/ci/python backend_counts_test.py build/ci/tests/onnx/node_tests/collage.txt [--backend NAME]

That file is what the test onnx.node_tests writes. Models are compiled in this process, with nothing timed: for plain C++ kernels, or for
a backend that takes all it can, or, as "mixed", for all backends, each kernel of which has a price by chance."""

import argparse
import collections
import functools
import hashlib
import pathlib
import sys
import unittest
import warnings

import onnx.backend.test

import collage
import collage.onnx_backend

# Of the runner's classes: the kind that make_node_tests.py names.
KINDS = {
    "OnnxBackendNodeModelTest": "node",
    "OnnxBackendSimpleModelTest": "simple",
    "OnnxBackendPyTorchConvertedModelTest": "pytorch-converted",
    "OnnxBackendPyTorchOperatorModelTest": "pytorch-operator",
}


# The runner takes the length of each element of a sequence, and of scalars there is none.
NOT_COMPARED_BY_THE_RUNNER = {"node.test_loop16_seq_none"}


MIXED = ["dnnl", "xsmm", "xnnpack", "openblas", "native", "c", "openvino", "onnxruntime"]


def price(backend, function, target):
    """Seconds: whoever is named is a thousand times as fast as the reference."""
    if "reference" in target:
        return 1e-3
    if backend != "mixed":
        return 1e-6
    return 1e-6 * (1 + hashlib.sha256(f"{target} {function}".encode()).digest()[0])


def untimed_backend(backend):
    names = ["reference"] if backend == "reference" else [*(MIXED if backend == "mixed" else [backend]), "reference"]

    class UntimedBackend(collage.onnx_backend.CollageBackend):
        @classmethod
        def prepare(cls, model, device="CPU", **options):
            targets = [f"cpu -compiler={name}" for name in names]
            untimed = {"targets": targets, "threads": 1, "estimator": functools.partial(price, backend)}
            return super().prepare(model, device, **untimed, **options)

    return UntimedBackend


# What a backend alone gives otherwise, and why.
EXCLUDED = {
    "dnnl": {
        "node.test_log_example": "its logarithm of 1 is -1.4e-6",
        "node.test_mish": "off by 1.4e-5 where the result is 4.5e-4",
        "node.test_mish_expanded": "as test_mish",
    },
    "openvino": {
        "node.test_mish": "off by 6e-6 where the result is 4.5e-4",
        "node.test_mish_expanded": "as test_mish",
    },
    "onnxruntime": {
        "node.test_lstm_with_peepholes": "it checks lengths of rows, for which the inputs of the comparison are too long",
        "node.test_roialign_aligned_false": "it checks numbers of images, for which the inputs of the comparison are too large",
        "node.test_roialign_aligned_true": "as test_roialign_aligned_false",
        "node.test_roialign_mode_max": "as test_roialign_aligned_false",
    },
}
EXCLUDED["mixed"] = {name: reason for excluded in EXCLUDED.values() for name, reason in excluded.items()}


class Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.of = {}

    def _note(self, test, outcome, message=""):
        name = test.id().split(".")[-1].removesuffix("_cpu")
        self.of[f"{KINDS[type(test).__name__]}.{name}"] = (outcome, message)

    def addSuccess(self, test):
        self._note(test, "passed")

    def addSkip(self, test, reason):
        self._note(test, "skipped", reason)

    def addError(self, test, error):
        self._note(test, "refused" if isinstance(error[1], collage.Error) else "error", f"{type(error[1]).__name__}: {error[1]}")

    def addFailure(self, test, error):
        self._note(test, "wrong", str(error[1]))


def run_suite(backend):
    runner = onnx.backend.test.BackendTest(untimed_backend(backend), __name__)
    outcomes = Outcomes()
    for name, case in runner.test_cases.items():
        if name not in KINDS:
            continue
        for method in sorted(dir(case)):
            if method.startswith("test_") and method.endswith("_cpu"):
                case(method).run(outcomes)
    return outcomes.of


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verdicts", type=pathlib.Path)
    parser.add_argument("--backend", default="reference", choices=["reference", "mixed", *MIXED])
    arguments = parser.parse_args()
    lines = arguments.verdicts.read_text().splitlines()
    expected = {name: verdict for name, verdict, _ in (line.split("\t", 2) for line in lines)}
    warnings.filterwarnings("ignore")
    found = run_suite(arguments.backend)
    for who, verdicts in [("reference executor", expected), (f"Python module, {arguments.backend}", {name: outcome for name, (outcome, _) in found.items()})]:
        counts = collections.Counter(verdicts.values())
        print(f"{who}: {len(verdicts)} tests, " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    differences = 0
    for name in sorted(expected.keys() | found.keys()):
        verdict, (outcome, message) = expected.get(name, "missing"), found.get(name, ("missing", ""))
        if (verdict in ("passed", "fixed")) != (outcome == "passed"):
            # The runner allows two steps of bfloat16, which the test of the reference executor does not.
            reason = EXCLUDED.get(arguments.backend, {}).get(name)
            differences += outcome != "passed" and name not in NOT_COMPARED_BY_THE_RUNNER and reason is None
            print(f"{name}: {'excluded, ' + reason + '; ' if reason else ''}the reference executor {verdict}, the Python module {outcome}: {' '.join(message.split())[:200]}")
    print(f"{differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
