# The front door. Everything that is missing is installed by `setup`, which every other target runs first.
PRESET ?= release
JOBS ?= $(shell nproc)
BUILD := build/$(PRESET)

.PHONY: help setup build demo test test-all bench format lint clean

help:
	@echo "make setup      install what the build needs (apt, pip, npm; cached outside the repository)"
	@echo "make build      build/release/fleuve"
	@echo "make demo       the first-workload program through the ordinary PySpark client"
	@echo "make test       every test of the normal set"
	@echo "make test-all   also clang, sanitizers, fuzzers, long kill tests, other client versions"
	@echo "make bench      the benchmark programs (bench/README.md)"
	@echo "make format     lay the sources out; make lint checks them"

setup:
	@tools/setup

build: setup
	@mkdir -p build
	@cmake --preset $(PRESET) > build/configure-$(PRESET).log 2>&1 || { cat build/configure-$(PRESET).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS)

demo: build
	@tests/demo/run

test: build
	@tests/run normal

test-all: build
	@tests/run all

bench: build
	@bench/run

format:
	@tools/format --write

lint:
	@tools/check_rooms
	@tools/format --check

clean:
	rm -rf build
