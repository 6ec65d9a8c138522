# Everything a newcomer types. Build flags are spelled in CMakePresets.json, and what a machine needs in tools/setup.
JOBS := $(shell nproc)
BUILD := cmake --build --preset
TESTS := tests/tilewright_tests
WITHOUT_GPU := --gtest_filter='-Gpu.*'
.DEFAULT_GOAL := test
# Hundreds of processes import PyTorch, half of whose time is compiling its sources: it is kept here, whatever the environment says.
TEST_PYTHON := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX=$(CURDIR)/build/bytecode .venv/bin/python -m pytest -q -rs -n $(JOBS) --dist loadfile --no-loadscope-reorder tests/python tests/transpose tests/quant tests/moe tests/engram
.PHONY: demo docs test test-gpu test-python test-wheel bench update format asan clean

# DEMO=--all for all of its rows.
demo: build/setup/demo build/release/build.ninja
	@$(BUILD) release -j $(JOBS) --target demo tilewright_python print_examples
	@build/release/examples/demo $(DEMO)
	@PYTHONPATH=build/release/python .venv/bin/python examples/gemm.py --original build/release/tests/print_examples \
	  --picture build/C_local.svg
	@printf '\n%s\n' 'Next: docs/quickstart.md, a kernel of your own in Python; docs/tutorials, seven pages from NumPy to attention'
	@echo '      build/release/examples/demo --all, every example, 96 rows; or with names, as in demo softmax'
	@echo '      PYTHONPATH=build/release/python .venv/bin/python -m tilewright puzzles start, sixteen puzzles'

# All but the programs that measure: no test runs their two main functions, and what they call is tested.
test: build/setup/test build/release/build.ninja
	@tools/check_format
	@python3 tools/check_layers.py
	@python3 tools/check_docs.py
	@python3 tools/check_recipes.py
	@$(BUILD) release -j $(JOBS) --target tilewright_tests tilewright_python tilewright_shared print_examples demo
	@tools/run_tests build/release/$(TESTS) $(WITHOUT_GPU)
	@$(TEST_PYTHON)

# On a machine with a CUDA device.
test-gpu: build/setup/test build/release/build.ninja
	@$(BUILD) release -j $(JOBS) --target tilewright_tests
	@tools/run_tests build/release/$(TESTS) --gtest_filter='Gpu.*'

test-python: build/setup/test build/release/build.ninja
	@$(BUILD) release -j $(JOBS) --target tilewright_python print_examples
	@$(TEST_PYTHON)

# Builds the wheel, tries it on a Debian that has nothing, and runs the package's tests with it under every Python here.
test-wheel: build/setup/wheel build/release/build.ninja
	@$(BUILD) release -j $(JOBS) --target print_examples tilewright_shared tilewright_tool
	@tools/test_wheel

# The site of docs/site.yml in build/site, and whether its links lead somewhere. It needs no network once this machine is set up.
docs: build/setup/docs build/release/build.ninja
	@$(BUILD) release -j $(JOBS) --target tilewright_python
	@PYTHONPATH=build/release/python .venv/bin/python tools/build_site.py
	@python3 tools/check_site.py
	@echo 'build/site/index.html; tools/check_site_in_browser.py looks at its contrast and keys with Chromium'

bench: build/setup/bench build/release/build.ninja
	@$(BUILD) release -j $(JOBS) --target tilewright_bench
	@build/release/bench/tilewright_bench

# Rewrites the expected texts under tests/; read the difference before committing it.
update: build/release/build.ninja
	@$(BUILD) release -j $(JOBS) --target tilewright_tests tilewright_python print_examples
	@TILEWRIGHT_UPDATE=1 tools/run_tests build/release/$(TESTS) $(WITHOUT_GPU)
	@TILEWRIGHT_UPDATE=1 $(TEST_PYTHON) -n 0

format: build/setup/test
	@tools/check_format --fix

# The host's code alone: kernels are compiled without sanitizers.
asan: build/asan/build.ninja
	@$(BUILD) asan -j $(JOBS) --target tilewright_tests tilewright_tool
	@tools/run_tests build/asan/$(TESTS) $(WITHOUT_GPU)
	@build/asan/tilewright fuzz --seeds 1..1000 --quick

clean:
	rm -rf build

# The stamp is newer than tools/setup and the packages of tests once this machine has what the goal needs.
build/setup/test build/setup/wheel: tests/requirements.txt
build/setup/%: tools/setup
	@tools/setup $*
	@mkdir -p $(@D) && touch $@

build/%/build.ninja: CMakePresets.json build/setup/build
	@cmake --preset $* --log-level=WARNING
	@touch $@

.SECONDARY:
.NOTPARALLEL:
