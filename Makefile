PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BUILT := $(VENV)/.built

.PHONY: demo test bench lint docs clean
.DEFAULT_GOAL := test

# The whole environment: the extension built in place, speech and test extras.
$(BUILT): pyproject.toml setup.py $(wildcard src/duplex/*.pyx src/duplex/*.pxd src/duplex/*.h src/duplex/_chain_*.c src/duplex/_webrtc_*.c)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV): about 1 GB, a few minutes; nothing is printed meanwhile"
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[local,dev]'
	touch $@

# A machine too busy for the wall clock (code 2) still gets its call in virtual time.
demo: $(BUILT)
	$(BIN)/duplex run --scenario restaurant_booking_complete || test $$? -eq 2
	$(BIN)/duplex run --scenario restaurant_booking_complete --clock virtual

# All cores for what runs in virtual time; then, two at once, what asserts on the wall clock.
test: $(BUILT)
	$(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder -m "not wall"
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder -m wall \
		$$(grep -l 'mark\.wall' tests/test_*.py)

bench: $(BUILT)
	$(BIN)/python -m pytest bench -q -s --benchmark-enable --benchmark-json=bench.json

lint: $(BUILT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest duplex._core duplex._line duplex._synth

# The site of docs/, into build/site; what MkDocs or a link of ours would warn of ends it.
docs: $(BUILT)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean

clean:
	rm -rf $(VENV) build dist src/*.egg-info src/duplex/*.so src/duplex/_core.c src/duplex/_line.c src/duplex/_synth.c
