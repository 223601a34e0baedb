# Forwards only; CMake is the real build (CMakePresets.json).

PRESET ?= release
THREADS ?= 2
PYTHON := .venv/bin/python
COLLAGE := build/$(PRESET)/bin/collage

.PHONY: setup build test check demo peers models format

setup:
	@scripts/setup

build: setup
	@cmake --preset $(PRESET) $(if $(wildcard build/$(PRESET)/build.ninja),> /dev/null,)
	@cmake --build --preset $(PRESET)

test: build models
	@ctest --test-dir build/$(PRESET) --output-on-failure

models: setup
	@$(PYTHON) bench/models.py --output build/models

demo: build
	@$(PYTHON) bench/models.py --output build/models --models vgg19,resnet50
	@$(PYTHON) bench/demo.py --threads $(THREADS) build/models/vgg19.onnx build/models/resnet50.onnx

peers: build
	@$(PYTHON) bench/peers.py --threads $(THREADS) $(MODELS)

format:
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

check: build
	@scripts/check
	@$(MAKE) --no-print-directory test
