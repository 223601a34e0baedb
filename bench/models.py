#!/usr/bin/env python3
"""Makes the ONNX files that the demo, the tests and the benchmarks use, from a seed.

Beside each NAME.onnx lie seeded inputs, NAME.npz, under the names of the model's inputs. The same seed gives the same files;
what is there and current is left alone. What the benchmark has besides is large (3 GB), and made only when it is named.
"""

import argparse
import hashlib
import os
import sys
import time

import numpy as np
import onnx

import branching_models
import built_models
import convolutional_models
import detection_models
import language_models
import light_models
import sequence_models
from seeded_weights import seeded_inputs

NAMES = [
    "mnist",
    "squeezenet",
    "resnet50",
    "vgg19",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "shufflenet",
    "alexnet",
    "zfnet512",
    "mobilenet_v2",
    "dcgan",
    "bert_encoder",
    "densenet121_preactivation",
    "nasnet_a_like",
    "inception_resnet_like",
    "wavenet",
    "efficientnet_b0",
]
# Models of the benchmark that no test needs.
BENCHMARK_NAMES = [
    "resnext50_32x4d",
    "resnet50_3d",
    "nasnet_a",
    "vgg16",
    "convnext_tiny",
    "unet",
    "yolov8n",
    "vit_b16",
    "whisper_encoder",
    "gpt2_prefill",
    "gpt2_decode",
    "llama_int4_decode",
    "llama_int4_prompt",
    "lstm_language_model",
    "dlrm",
]
INPUT_SEED_OFFSET = 1000

# What changes models of which list; models.py itself and the libraries change all.
SHARED_PROGRAMS = ("models.py", "built_models.py", "light_models.py", "seeded_weights.py")
TEST_PROGRAMS = ("branching_models.py",)
BENCHMARK_PROGRAMS = ("exported_graph.py", "convolutional_models.py", "detection_models.py", "language_models.py", "sequence_models.py")


def build(name, seed):
    """The model and its seeded inputs."""

    def make_inputs(shapes):
        limits = sequence_models.INDEX_LIMITS | language_models.INDEX_LIMITS
        return seeded_inputs(seed + INPUT_SEED_OFFSET, name, shapes, limits.get(name))

    builders = built_models.BUILDERS | branching_models.BUILDERS
    builders |= convolutional_models.BUILDERS | detection_models.BUILDERS | language_models.BUILDERS | sequence_models.BUILDERS
    if name in builders:
        model = builders[name](seed)
    else:
        model = light_models.build(name, seed, make_inputs)
    return model, make_inputs(light_models.input_shapes(model))


def recipe(name, seed):
    """Changes whenever what would be made changes: the seed, these programs, the libraries that they use."""
    digest = hashlib.sha256(f"{name} {seed} {onnx.__version__} {np.__version__}".encode())
    folder = os.path.dirname(os.path.abspath(__file__))
    for program in SHARED_PROGRAMS + (BENCHMARK_PROGRAMS if name in BENCHMARK_NAMES else TEST_PROGRAMS):
        with open(os.path.join(folder, program), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def is_current(path, stamp):
    try:
        with open(path + ".recipe", encoding="ascii") as file:
            return file.read() == stamp and os.path.exists(path + ".onnx") and os.path.exists(path + ".npz")
    except OSError:
        return False


def write(path, name, seed):
    """Whole files or none: each is written under another name first, the recipe last."""
    model, inputs = build(name, seed)
    part = f"{path}.{os.getpid()}.part"
    onnx.save(model, part)
    os.replace(part, path + ".onnx")
    with open(part, "wb") as file:
        np.savez(file, **inputs)
    os.replace(part, path + ".npz")
    with open(part, "w", encoding="ascii") as file:
        file.write(recipe(name, seed))
    os.replace(part, path + ".recipe")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="build/models", help="folder for the files (default: %(default)s)")
    parser.add_argument("--models", default=",".join(NAMES), help="names, separated by commas, or all (default: what tests use)")
    parser.add_argument("--seed", type=int, default=0, help="of weights and inputs (default: %(default)s)")
    arguments = parser.parse_args()
    known = NAMES + BENCHMARK_NAMES
    names = known if arguments.models == "all" else arguments.models.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"unknown models: {', '.join(unknown)}; known are {', '.join(known)}")
    os.makedirs(arguments.output, exist_ok=True)
    for index, name in enumerate(names, 1):
        path = os.path.join(arguments.output, name)
        if is_current(path, recipe(name, arguments.seed)):
            print(f"[{index}/{len(names)}] {name}: current", flush=True)
            continue
        begin = time.monotonic()
        print(f"[{index}/{len(names)}] {name}: ", end="", flush=True)
        write(path, name, arguments.seed)
        size = os.path.getsize(path + ".onnx") / 1e6
        print(f"{size:.1f} MB in {time.monotonic() - begin:.1f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
