# Forwards only; CMake is the real build (CMakePresets.json).

PRESET ?= release
THREADS ?= 2
PYTHON := .venv/bin/python
COLLAGE := build/$(PRESET)/bin/collage
# The package of ONNX Runtime, against which the tests and benchmarks compare, would tell its makers.
export ORT_DISABLE_TELEMETRY := 1

.PHONY: setup configure build program test unit asan tsan wheel check demo bench peers models format

setup:
	@scripts/setup

configure: setup
	@cmake --preset $(PRESET) $(if $(wildcard build/$(PRESET)/build.ninja),> /dev/null,)

build: configure
	@cmake --build --preset $(PRESET)

program: configure
	@cmake --build --preset $(PRESET) --target program

test: build models
	@ctest --test-dir build/$(PRESET) --output-on-failure --parallel $$(nproc)

# What measures nothing, compiles no model and takes less than a second; of these rooms of collage/ alone where ROOMS names some.
empty :=
space := $(empty) $(empty)
UNIT_TESTS := $(if $(ROOMS),$(ROOMS:%=%_test),unit_tests)
UNIT_LABELS := ^unit$$
UNIT_NAMES := $(if $(ROOMS),^($(subst $(space),|,$(strip $(ROOMS))))\.,.)
unit: configure
	@cmake --build --preset $(PRESET) --target $(UNIT_TESTS)
	@ctest --test-dir build/$(PRESET) --label-regex '$(UNIT_LABELS)' --tests-regex '$(UNIT_NAMES)' --no-tests=error --output-on-failure \
	  --parallel $$(nproc)

# The unit tests and the long ones under a sanitizer. Leaks of what backends keep until the end are theirs; scripts/tsan.supp gives its
# reasons. OpenVINO's TBB opens libraries as no sanitizer allows (RTLD_DEEPBIND), unless it is told.
asan tsan: export TBB_ENABLE_SANITIZERS = 1
asan: export ASAN_OPTIONS = detect_leaks=0
asan:
	@$(MAKE) --no-print-directory unit PRESET=asan+ubsan UNIT_LABELS='^(unit|long)$$'

tsan: export TSAN_OPTIONS = suppressions=$(CURDIR)/scripts/tsan.supp
tsan:
	@$(MAKE) --no-print-directory unit PRESET=tsan UNIT_LABELS='^(unit|long)$$'

# The package as pip makes it, in an empty virtual environment: the whole build again, so no part of the tests.
wheel: setup
	@$(PYTHON) tests/wheel/wheel_test.py --checkout .

models: setup
	@$(PYTHON) bench/models.py --output build/models

demo: program
	@$(PYTHON) bench/models.py --output build/models --models vgg19,resnet50
	@$(PYTHON) bench/demo.py --threads $(THREADS) --collage $(COLLAGE) build/models/vgg19.onnx build/models/resnet50.onnx

# Every model against every peer: hours with cold prices. Stopped, it goes on where it was.
bench: program
	@$(PYTHON) bench/models.py --output build/models --models all
	@$(PYTHON) bench/benchmark.py --threads $(THREADS) --collage $(COLLAGE) $(MODELS)

peers: program
	@$(PYTHON) bench/peers.py --threads $(THREADS) --collage $(COLLAGE) $(MODELS)

format:
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

check: build
	@scripts/check
	@$(MAKE) --no-print-directory test
