# make demo   set everything up, then compile and run a small network on the host and in QEMU
# make test   set everything up, then lint, C tests and Python tests
# make lint   formatting and static checks only
# CI=true     missing tools are failures instead of skipped tests

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
PACKAGES := gcc g++ gcc-multilib libc6-dev clang clang-format cmake python3-venv \
	gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm \
	gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf qemu-system-misc
C_FILES = $(shell find runtime_c boards examples tests/c -name '*.[ch]')

.PHONY: demo test lint test-c test-python setup clean

demo: setup
	$(BIN)/glowmcu demo

test: lint test-c test-python

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	@if command -v clang-format > /dev/null || test -n "$(CI)"; then \
		echo "clang-format --dry-run -Werror (runtime_c boards examples tests/c)"; \
		clang-format --dry-run -Werror $(C_FILES); \
	else echo "lint: clang-format is not installed, C is not checked"; fi

test-c: setup
	@if command -v cmake > /dev/null || test -n "$(CI)"; then \
		cmake -S . -B build/host && MAKEFLAGS= cmake --build build/host -j 2 \
		&& ctest --test-dir build/host --output-on-failure; \
	else echo "test-c: cmake is not installed, the C tests are not run"; fi

test-python: setup
	$(BIN)/pytest -n 2 $(if $(CI),--require-tools)

# What is set up stays set up: the Python packages until pyproject.toml changes, the Debian
# packages as long as they are there.
setup: .venv/debian.stamp .venv/python.stamp

.venv/debian.stamp:
	@mkdir -p .venv
	@missing=; \
	if command -v dpkg-query > /dev/null; then for package in $(PACKAGES); do \
		dpkg-query -W -f='$${Status}' $$package 2> /dev/null | grep -q '^install ok installed' \
		|| missing="$$missing $$package"; \
	done; fi; \
	if test -z "$$missing"; then touch $@; \
	elif test "$$(id -u)" = 0; then \
		apt-get update && DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends $$missing && touch $@; \
	else echo "Some compilers and emulators are missing: sudo apt-get install$$missing"; fi

.venv/python.stamp: pyproject.toml | .venv/debian.stamp
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -q -e '.[test]'
	@touch $@

clean:
	rm -rf build dist
