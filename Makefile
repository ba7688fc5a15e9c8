# `make help` lists what there is. Everything that CI runs is a target here.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

CARGO ?= cargo
# Tests and lints share one feature set, so everything is compiled once.
WORKSPACE = --workspace --locked
# More tests than processors, as most of them wait for a server; 1 runs them one by one.
export RUST_TEST_THREADS ?= 6
# A module with modules of its own is name/mod.rs.
CLIPPY = $(CARGO) clippy $(WORKSPACE) --all-targets -- -D warnings -D clippy::self_named_module_files
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Checks licences and advisories by deny.toml. It is built once, which takes two processors about two minutes.
DENY := .cache/tools/cargo-deny-0.20.2/bin/cargo-deny
# A file for each target of `make test` that was skipped, with the reason.
SKIPPED := $(TARGET)/skipped
SMBSCOPE := $(TARGET)/release/smbscope
PYTHON := .venv/bin/python
# For `make test-python`: an environment of its own, into which the package is installed as users do.
PYTHON_VENV := $(TARGET)/python-venv
# Captures for `make accuracy`; see scripts/accuracy.py for the layout.
CAPTURES ?= tests/data
# For `make accuracy` and `make test-damage`: damaged copies of the captures in all, after how many seconds to stop
# before that, and the first seed.
DAMAGE_RUNS ?= 100000
DAMAGE_SECONDS ?=
DAMAGE_SEED ?= 1
DAMAGE = --sealed --runs $(DAMAGE_RUNS) --seed $(DAMAGE_SEED) $(if $(DAMAGE_SECONDS),--seconds $(DAMAGE_SECONDS))
# For `make fuzz`: seconds for each target, and which targets; see scripts/fuzz.sh for more.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
# For `make bench`: size of each capture, and further options of scripts/bench.py.
BENCH_BYTES ?= 1G
BENCH_OPTIONS ?=
# For `make bench-watch`: options of scripts/capture_rates.py, such as --rates 400000,500000 --mixes bulk.
RATES_OPTIONS ?=
# A commit whose binary is built and takes turns with the present one; `release` for the last release, if there is one.
BENCH_AGAINST ?= release
# For `make demo`: about half a minute of load.
DEMO_BENCH ?= --capture --users 1,2,4,8,16,32 --duration 4s --warmup 1s --plain
# For `make load-figures`: options of scripts/load_figures.py, such as --budget 10m, or --seconds 10 --parts matrix.
LOAD_OPTIONS ?=
# For `make install`: where to, and a directory to take for / (for packagers).
PREFIX ?= /usr/local
DESTDIR ?=
INSTALLED := $(DESTDIR)$(PREFIX)
COMPLETIONS := bash-completion/completions/smbscope zsh/site-functions/_smbscope fish/vendor_completions.d/smbscope.fish
# For `make packages`: what the packages hold, and where they are put.
STAGE := $(TARGET)/release/package
PACKAGES := $(TARGET)/packages

.PHONY: docs/report.png schemas help setup setup-build setup-python setup-web setup-servers setup-packages setup-kerberos setup-page setup-all build install uninstall packages docs references keywords demo check test lint fmt lint-rust lint-python lint-web lint-words licences advisories test-rust test-undisturbed test-scripts test-install test-packages test-readme test-accuracy test-damage test-table test-answers test-python web page test-page test-web windows test-windows bench bench-functions bench-watch load-figures accuracy demo-captures fuzz clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

setup: ## install what is missing for building and testing (safe to repeat)
	@scripts/setup.sh

# The parts of it, each for the targets that use it.
setup-build setup-python setup-web setup-servers setup-packages setup-kerberos setup-page:
	@scripts/setup.sh --only $(@:setup-%=%)

setup-all: ## the same, and tshark for `make accuracy` and `make bench`
	@scripts/setup.sh --with-tshark

build: setup-build ## the release binary, with Rust and a C compiler only
	$(CARGO) build --release --locked -p smbscope-cli

install: ## the binary, manual pages, completions, documents, workloads, studies, alerts, a dashboard and demo captures into PREFIX (/usr/local)
	@test -x $(SMBSCOPE) || $(MAKE) build
	install -D -m 755 $(SMBSCOPE) $(INSTALLED)/bin/smbscope
	$(SMBSCOPE) man --output $(INSTALLED)/share/man/man1
	install -d $(addprefix $(INSTALLED)/share/,$(dir $(COMPLETIONS)) doc/smbscope/docs/studies smbscope/captures smbscope/workloads/recorded smbscope/studies smbscope/prometheus smbscope/grafana)
	$(SMBSCOPE) completions bash >$(INSTALLED)/share/$(word 1,$(COMPLETIONS))
	$(SMBSCOPE) completions zsh >$(INSTALLED)/share/$(word 2,$(COMPLETIONS))
	$(SMBSCOPE) completions fish >$(INSTALLED)/share/$(word 3,$(COMPLETIONS))
	install -m 644 README.md CHANGELOG.md LICENSE-* $(INSTALLED)/share/doc/smbscope
	install -m 644 docs/*.md docs/*.svg docs/*.png $(INSTALLED)/share/doc/smbscope/docs
	install -m 644 docs/studies/* $(INSTALLED)/share/doc/smbscope/docs/studies
	install -m 644 tests/data/demo-*.pcap.zst $(INSTALLED)/share/smbscope/captures
	install -m 644 workloads/*.toml $(INSTALLED)/share/smbscope/workloads
	install -m 644 workloads/recorded/*.toml $(INSTALLED)/share/smbscope/workloads/recorded
	install -m 644 studies/*.toml $(INSTALLED)/share/smbscope/studies
	install -m 644 packaging/prometheus/* $(INSTALLED)/share/smbscope/prometheus
	install -m 644 packaging/grafana/* $(INSTALLED)/share/smbscope/grafana
	install -D -m 644 packaging/systemd/smbscope-watch.service $(INSTALLED)/lib/systemd/system/smbscope-watch.service
	sed -i "s#/usr/#$(PREFIX)/#" $(INSTALLED)/lib/systemd/system/smbscope-watch.service

uninstall: ## take away what `make install` put into PREFIX
	rm -f $(INSTALLED)/bin/smbscope $(INSTALLED)/share/man/man1/smbscope.1 $(INSTALLED)/share/man/man1/smbscope-*.1
	rm -f $(addprefix $(INSTALLED)/share/,$(COMPLETIONS))
	rm -rf $(INSTALLED)/share/doc/smbscope $(INSTALLED)/share/smbscope
	rm -f $(INSTALLED)/lib/systemd/system/smbscope-watch.service

packages: setup-packages build ## a .deb and an .rpm of what `make install` installs, in target/packages
	rm -rf $(STAGE) $(PACKAGES)
	$(MAKE) --no-print-directory install DESTDIR=$(STAGE) PREFIX=/usr
	scripts/notices.py smbscope-cli host $(STAGE)/usr/share/doc/smbscope/third-party-licences.gz
	gzip -9n $(STAGE)/usr/share/man/man1/*
	install -d $(PACKAGES)
	packaging/build.sh $(STAGE) $(PACKAGES)
	@ls -l $(PACKAGES)

demo: setup-servers build ## load a private Samba with 1 to 32 users, and report; also pages of two bundled captures
	@mkdir -p out
	@$(SMBSCOPE) analyze -q -o out/netbench.html tests/data/demo-smb1-netbench.pcap.zst
	@$(SMBSCOPE) analyze -q -o out/office.html tests/data/demo-smb311-office.pcap.zst
	@$(SMBSCOPE) compare -q -o out/compared.html tests/data/demo-smb1-netbench.pcap.zst \
	    tests/data/demo-smb311-office.pcap.zst
	@echo; echo '== An office mix of 4 users over SMB 3.1.1, from a bundled capture'; echo
	$(SMBSCOPE) analyze tests/data/demo-smb311-office.pcap.zst
	@echo; echo '== A NetBench-like mix on a private Samba server over SMB 3.1.1, 1 to 32 users'; echo
	@if PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v smbd >/dev/null; then \
	    rm -rf out/bench; echo '$(SMBSCOPE) bench $(DEMO_BENCH) -o out/bench'; \
	    $(SMBSCOPE) bench $(DEMO_BENCH) -o out/bench; \
	else \
	    echo 'There is no Samba on this machine (Debian: apt-get install samba), so no server can be loaded.'; \
	fi
	@echo; echo 'The same with pictures, to open in a browser:'
	@for page in netbench office compared bench/report; do \
	    if [ -e out/$$page.html ]; then echo "  file://$(CURDIR)/out/$$page.html"; fi; done

check: setup-build ## while you work: formatting, clippy and the unit tests, in two minutes when warm
	$(CARGO) fmt --check
	$(CLIPPY)
	$(CARGO) test $(WORKSPACE) --lib
	@if command -v python3 >/dev/null; then scripts/words.py; fi

# The first lane has the tests that wait for servers, or have time limits; the background only computes and downloads.
# Tests that measure time run alone.
test: setup-build ## everything that CI checks
	@mkdir -p $(SKIPPED) && echo 'the program for Windows: make test-windows compiles for ten minutes more' >$(SKIPPED)/test-windows
	@MAKE='$(MAKE)' scripts/lanes.sh --log $(TARGET)/lanes \
	    lint-web lint-rust test-rust test-scripts test-install test-damage test-readme test-python test-web \
	    --background lint-words build lint-python docs test-packages test-table test-accuracy licences advisories \
	    --alone test-undisturbed test-answers
	@# What was skipped must not drown in what passed, least of all in CI.
	@for note in $(SKIPPED)/*; do if [ -e "$$note" ]; then \
	    sed "s/^skipped: //; s#^#make test: SKIPPED $${note##*/}: #" "$$note"; fi; done
	@if compgen -G '$(SKIPPED)/*' >/dev/null; then echo "make test: passed, with what is skipped above"; \
	    else echo "make test: all passed"; fi

lint: lint-web lint-rust lint-python lint-words licences advisories ## formatting, types, clippy, documentation, Python, plain English, licences, advisories; the page's unit tests

fmt: setup-build setup-python setup-web ## format Rust, Python and TypeScript
	$(CARGO) fmt
	$(PYTHON) -m ruff format scripts python
	cd web && npm run --silent fmt

lint-rust: setup-build
	$(CARGO) fmt --check
	$(CLIPPY)
	@# One example, so that features of test dependencies are on as they are for clippy, and libraries are checked once.
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc $(WORKSPACE) --no-deps --lib --bins --example steps

lint-web: setup-web ## the page: types, lint, unit tests, and whether what is committed is up to date
	cd web && npm run --silent lint && npm run --silent check && npm run --silent test

lint-python: setup-python
	$(PYTHON) -m ruff check scripts python
	$(PYTHON) -m ruff format --check scripts python
	$(PYTHON) -m mypy --config-file scripts/mypy.ini scripts
	@for script in scripts/*.sh packaging/*.sh .ci/run; do bash -n "$$script"; done

lint-words: ## comments, pages and the web page without phrases of translated sentences; scripts/words.py --update after a clean-up
	@scripts/words.py

# It runs for seconds, and takes half the time to build without optimisation.
$(DENY): export CARGO_PROFILE_RELEASE_OPT_LEVEL := 0
$(DENY): export CARGO_PROFILE_RELEASE_LTO := off
$(DENY): export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 16
# .cache/tools/NAME-VERSION/bin/NAME
$(DENY):
	$(CARGO) install --quiet --locked --root $(@:/bin/$(@F)=) $(@F)@$(patsubst .cache/tools/$(@F)-%/bin/$(@F),%,$@)

licences: setup-build $(DENY)
	$(DENY) --locked check --hide-inclusion-graph licenses bans sources

advisories: setup-build $(DENY) ## the crates of Cargo.lock against the RustSec database (skipped where that can't be reached)
	@mkdir -p $(SKIPPED) && rm -f $(SKIPPED)/$@
	@if timeout 60 $(DENY) --locked fetch db 2>/dev/null; then set -x; \
	    $(DENY) --locked --offline check --hide-inclusion-graph -W unmaintained -W unsound -W notice advisories; \
	else \
	    echo 'the advisory database is not reachable' >$(SKIPPED)/$@; echo "SKIPPED: $$(cat $(SKIPPED)/$@)"; \
	fi

test-rust: setup-python setup-servers setup-kerberos
	@mkdir -p $(SKIPPED) && rm -f $(SKIPPED)/$@
	@# Without examples, which clippy has checked.
	SMBSCOPE_SKIPPED='$(abspath $(SKIPPED))/$@' $(CARGO) test $(WORKSPACE) --tests -- --skip undisturbed::
	$(CARGO) test $(WORKSPACE) --doc

# The tests in Rust that measure time, one after the other.
test-undisturbed: setup-servers
	@mkdir -p $(SKIPPED) && rm -f $(SKIPPED)/$@
	SMBSCOPE_SKIPPED='$(abspath $(SKIPPED))/$@' $(CARGO) test $(WORKSPACE) --test undisturbed

test-install: setup-servers build
	rm -rf $(TARGET)/installed
	$(MAKE) --no-print-directory install DESTDIR=$(TARGET)/installed PREFIX=/usr
	cd $(TARGET)/installed/usr && bin/smbscope --version && test -s share/man/man1/smbscope-analyze.1
	cd $(TARGET)/installed/usr/share && test -s bash-completion/completions/smbscope \
	    && test -s zsh/site-functions/_smbscope && test -s fish/vendor_completions.d/smbscope.fish \
	    && ../bin/smbscope analyze smbscope/captures/demo-slow-server.pcap.zst >/dev/null
	$(MAKE) --no-print-directory uninstall DESTDIR=$(TARGET)/installed PREFIX=/usr
	test -z "$$(find $(TARGET)/installed -type f)"
	@# What is built is used again; deny.toml holds that it takes no more than Rust and a C compiler.
	$(CARGO) install --quiet --locked --force --no-track --path crates/smbscope-cli --root $(TARGET)/cargo-installed
	$(TARGET)/cargo-installed/bin/smbscope --version

test-packages: packages ## install the packages in a minimal Debian, build the image, and run them (root; else that is skipped)
	packaging/test.sh $(PACKAGES) $(STAGE) $(TARGET)/bare-debian $(SKIPPED)/$@

# maturin links the package from what `make build` has compiled; only PyO3 and the native module are new.
test-python: setup-python setup-servers build ## the Python package: built by pip in an environment of its own, types, tests, doctests, the notebook
	@mkdir -p $(SKIPPED) && rm -f $(SKIPPED)/$@
	python3 -m venv --clear $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r scripts/requirements-python.txt
	PATH='$(abspath $(PYTHON_VENV))/bin':"$$PATH" $(PYTHON_VENV)/bin/python -m pip install -q --disable-pip-version-check \
	    --no-deps --no-build-isolation .
	cd $(PYTHON_VENV) && bin/python -m mypy.stubtest smbscope._smbscope
	$(PYTHON_VENV)/bin/python -m mypy --config-file scripts/mypy.ini --package smbscope
	$(PYTHON_VENV)/bin/python -m mypy --config-file scripts/mypy.ini python/tests
	@# Types of everything that the package exports.
	PATH='$(abspath $(PYTHON_VENV))/bin':"$$PATH" basedpyright --ignoreexternal --verifytypes smbscope | grep 'completeness score: 100%'
	$(PYTHON_VENV)/bin/basedpyright --level error --pythonpath $(PYTHON_VENV)/bin/python python/tests/example.py
	SMBSCOPE_SKIPPED='$(abspath $(SKIPPED))/$@' $(PYTHON_VENV)/bin/python -m pytest -p no:cacheprovider \
	    --doctest-modules --pyargs smbscope python/tests

test-scripts: setup-python setup-servers
	$(PYTHON) -m unittest discover -q -s scripts

docs: setup-python build ## the pages and a command reference as HTML in target/docs, with all their links checked
	$(PYTHON) scripts/check_docs.py --smbscope $(SMBSCOPE) -o $(TARGET)/docs

test-readme: setup-python setup-servers build
	$(PYTHON) scripts/check_readme.py --smbscope $(SMBSCOPE)

test-accuracy: setup-python build
	$(PYTHON) scripts/accuracy.py --quiet --captures tests/data --smbscope $(SMBSCOPE) -o $(TARGET)/accuracy-of-the-bundled.md

test-damage: DAMAGE_SECONDS = 40
# The other captures there are damaged already, or have pairs that nothing tells: there is no truth to judge by.
test-damage: WHOLE_ENCRYPTED = tests/data/encrypted/smbclient_SMB3_11_encrypt.pcap.zst
test-damage: setup-build ## damage the bundled captures at random for DAMAGE_SECONDS, from DAMAGE_SEED on: no false match
	$(CARGO) build --release --locked -p smbscope-testkit --example damage
	$(TARGET)/release/examples/damage $(DAMAGE) --keep $(TARGET)/damaged tests/data tests/data/own $(WHOLE_ENCRYPTED)
	$(TARGET)/release/examples/damage $(DAMAGE) --keep $(TARGET)/damaged --keys tests/data tests/data/own

test-table: setup-python build
	$(PYTHON) scripts/check_table.py --smbscope $(SMBSCOPE)

references: setup-build ## write the lists of causes, bounds, formats, columns and workload steps in docs/, from the sources
	$(CARGO) run -q --locked -p smbscope-diagnose --example causes -- docs/causes.md
	$(CARGO) run -q --locked -p smbscope-testkit --example limits -- docs/limits.md
	$(CARGO) run -q --locked -p smbscope-capture --example formats -- docs/formats.md
	$(CARGO) run -q --locked -p smbscope-report --example columns -- docs/exchange-table.md
	$(CARGO) run -q --locked -p smbscope-load --example steps -- docs/workloads.md

keywords: setup-build ## write the keywords of the Python functions in python/smbscope, from the options of the commands
	SMBSCOPE_UPDATE_KEYWORDS=1 $(CARGO) test -q --locked -p smbscope-cli --lib keywords

schemas: setup-build ## write the published schemas in schema/, from the types of the documents; then run make web
	$(CARGO) run -q -p smbscope-report --features schema --example schemas -- schema

web: setup-web ## build the page of the HTML report and the types of its documents
	cd web && npm run --silent build

page: setup-web setup-page ## the page into which captures are dropped, in one file: target/page.html (WebAssembly; see scripts/page.sh)
	scripts/page.sh $(TARGET)/page.html

test-web: setup-web setup-servers build ## the report in Chromium
	@mkdir -p $(SKIPPED) && echo 'the page into which captures are dropped: make test-page takes ten minutes more' >$(SKIPPED)/$@
	cd web && SMBSCOPE='$(abspath $(SMBSCOPE))' SMBSCOPE_PAGE= npm run --silent test-e2e

test-page: page setup-servers build ## the page into which captures are dropped, in Chromium and Firefox
	@mkdir -p $(SKIPPED) && rm -f $(SKIPPED)/$@
	cd web && SMBSCOPE='$(abspath $(SMBSCOPE))' SMBSCOPE_PAGE='$(abspath $(TARGET))/page.html' \
	    SMBSCOPE_SKIPPED='$(abspath $(SKIPPED))/$@' npm run --silent test-e2e -- drop firefox

windows: ## the program for Windows and a zip of it, in target/windows-x64 (MinGW; see scripts/windows.sh)
	scripts/windows.sh $(TARGET)/windows-x64

test-windows: build windows ## the program for Windows under Wine: the same outputs as on Linux; bench on a Samba and a folder
	@rm -f $(SKIPPED)/$@
	scripts/check_windows.py --exe $(TARGET)/windows-x64/smbscope.exe --smbscope $(SMBSCOPE) --scratch $(TARGET)/wine

test-answers: setup-python setup-servers build ## make a real Samba, a network and a client slow, and check whom the answer names (root; else skipped)
	$(PYTHON) scripts/answers.py --smbscope $(SMBSCOPE) --skip-note $(SKIPPED)/$@

bench: setup-all build ## speed and memory next to tshark and the binary of BENCH_AGAINST, on generated captures of BENCH_BYTES; writes docs/performance.md
	$(CARGO) build --release --locked -p smbscope-testkit --examples
	$(PYTHON) scripts/bench.py --smbscope $(SMBSCOPE) --examples $(TARGET)/release/examples --scratch $(TARGET)/bench \
	    --bytes $(BENCH_BYTES) --against $(BENCH_AGAINST) $(BENCH_OPTIONS) -o docs/performance.md

bench-watch: setup-python build ## how many packets a second `watch` and tcpdump capture without a loss, as root; RATES_OPTIONS
	$(CARGO) build --release --locked -p smbscope-testkit --example generate
	$(PYTHON) scripts/capture_rates.py --smbscope $(SMBSCOPE) --examples $(TARGET)/release/examples \
	    --scratch $(TARGET)/bench $(RATES_OPTIONS)

bench-functions: setup-build ## criterion benches of the functions that every packet, message and exchange passes
	$(CARGO) bench --locked -p smbscope-wire -p smbscope-capture -p smbscope-analyze -p smbscope-stats \
	    --bench headers --bench capture --bench analyzer --bench aggregator

accuracy: setup-all build ## compare with tshark and the undamaged truth; CAPTURES=DIR, DAMAGE_RUNS=N; writes docs/accuracy.md
	$(CARGO) build --release --locked -p smbscope-testkit --example damage
	$(PYTHON) scripts/accuracy.py --captures $(CAPTURES) --smbscope $(SMBSCOPE) \
	    --damage $(TARGET)/release/examples/damage --damage-options '$(DAMAGE)' -o docs/accuracy.md

load-figures: setup build ## what the load generator does and costs, on Samba and next to smbtorture; writes docs/load.md
	$(CARGO) build --release --locked -p smbscope-testkit --example scripted_server
	$(PYTHON) scripts/load_figures.py --smbscope $(SMBSCOPE) --scripted $(TARGET)/release/examples/scripted_server \
	    $(LOAD_OPTIONS) -o docs/load.md

fuzz: ## fuzz every parser for FUZZ_SECONDS each; FUZZ_TARGETS="pcap smb2" for some; see docs/fuzzing.md
	FUZZ_SECONDS='$(FUZZ_SECONDS)' FUZZ_TARGETS='$(FUZZ_TARGETS)' scripts/fuzz.sh

docs/report.png: setup-web build ## the picture of README.md anew
	$(SMBSCOPE) analyze -q -o $(TARGET)/report.html tests/data/demo-slow-server.pcap.zst
	cd web && node scripts/picture.mjs $(abspath $(TARGET))/report.html ../$@

demo-captures: setup-python build ## record the bundled captures anew (root; Samba, ClamAV)
	scripts/make_demo_captures.sh tests/data
	$(PYTHON) scripts/trouble_captures.py --smbscope $(SMBSCOPE) -o tests/data

clean: ## remove what was built
	$(CARGO) clean
	rm -rf .venv .cache web/node_modules web/dist
