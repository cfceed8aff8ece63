# The front door. `make help` lists what there is; every recipe is a script that also runs by itself.
.DEFAULT_GOAL := help
.PHONY: help demo test test-node test-tenants test-long soak simulate build static install image deb guests bench plots screenshots fmt tidy deps clean
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: ## the four ways of working on a real control plane (on your cluster if KUBECONFIG is set)
	@dev/demo.sh

test: ## every check, as CI runs them; ends in one line: N passed, N failed, N skipped
	@tools/ci.sh

build: ## the programs, optimised, in build/bin
	@tools/build.sh

test-node: build guests ## pods on a real kubelet and containerd on this machine; needs root and cgroups
	@tests/node/run.sh

test-tenants: build guests ## attacks of one tenant beside another that must be served; needs root
	@tests/tenants/run.sh

test-long: build static guests ## what takes longer than `make test` may, 335 minutes: all attacks together (15), 50,000 own writes (15), other versions of Kubernetes (30), the Debian package on a bare Debian (3), an older version of hangar (10; OLDER=REVISION), another engine (5), a quiet Go operator (15), clang-tidy over all files (30), the end-to-end tests with static programs (35), static programs for aarch64 on an emulated board (20 with their build), an hour in 128 MiB (75), the soak, with 100 simulated hours (75); needs root
	@tests/tenants/run.sh --long
	@tests/conformance/own_writes.sh
	@tests/versions/run.sh
	@tests/package/run.sh
	@tests/downgrade/run.sh $(OLDER)
	@tests/engine/run.sh
	@tests/quiet/run.sh
	@tools/tidy.sh --again
	@tests/static/run.sh
	@ARCH=aarch64 tools/static.sh
	@tests/aarch64/run.sh
	@tests/edge/run.sh
	@tests/soak/run.sh

simulate: ## replicas of the host in virtual time, for SIMULATION_SECONDS (300): a failure prints its seed and the fewest steps that show it
	@tools/simulate.sh

soak: build guests ## 100 simulated hours of faults, and a busy hour of 1,000 operators, nothing lost or leaked; only the hour, and shorter: make soak SOAK="--minutes=10 --operators=100 --cycle=60"; needs root
	@tests/soak/run.sh $(SOAK)

# hangar finds hangar-compile and hangar-guest beside itself, and the demonstration in share/hangar of the same prefix.
PREFIX ?= /usr/local
BIN ?= build/release/bin
GUESTS ?= build/guests
install: build ## the programs into $(DESTDIR)$(PREFIX)/bin; hangar's kinds, and what `hangar demo` shows, into $(DESTDIR)$(PREFIX)/share/hangar
	@install -D -t "$(DESTDIR)$(PREFIX)/bin" $(addprefix "$(BIN)"/,hangar hangar-compile hangar-guest hangar-node hangar-node-fetch)
	@. dev/env.sh && examples/build.sh "$(GUESTS)" pipeline ring
	@deploy/demo/install.sh "$(DESTDIR)$(PREFIX)/share/hangar" --bin "$(BIN)" --guests "$(GUESTS)"

IMAGE ?= hangar:latest
image: build ## the host's container image as build/hangar.tar: make image IMAGE=registry.example.com/hangar:1.0
	@deploy/images/build.py host build/hangar.tar --bin build/bin --name "$(IMAGE)"
	@echo "build/hangar.tar is $(IMAGE)"

static: ## hangar, hangar-guest and hangar-compile without shared libraries, in build/static; for boards: make static ARCH=aarch64, in build/static-aarch64
	@ARCH=$(ARCH) tools/static.sh

deb: build ## the Debian package with a systemd unit, man pages and completion, in build/deb
	@. dev/env.sh && examples/build.sh "$(GUESTS)" pipeline ring
	@deploy/deb/build.py build/deb --bin build/bin --guests "$(GUESTS)"

guests: ## the Wasm modules of examples and tests, in build/guests
	@dev/setup.sh && . dev/env.sh && examples/build.sh build/guests

bench: deps build ## a benchmark against its peers: make bench NAME=flights; with options of its own: make bench NAME=tenants ARGS="--quick"
	@tools/bench.sh $(NAME) $(ARGS)

plots: ## pictures of what make bench has measured, here or elsewhere: docs/operating/benchmarks/NAME.svg
	@bench/plots.py

screenshots: deps build guests ## pictures of the console, of hangar top and of the dashboards on a local control plane: docs/operating/seeing
	@. dev/env.sh && tools/screenshots.py

fmt: ## format C++ and Go
	@git ls-files -z -- '*.h' '*.cc' | xargs -0r clang-format-19 -i
	@. dev/env.sh && git ls-files -z -- '*.go' | xargs -0r gofmt -w

tidy: deps ## clang-tidy over src/, for files that are not known to be in order; and the layers: missing includes: make tidy TIDY=--fix-includes
	@tools/tidy.sh $(TIDY)

deps: ## what the build needs: packages, toolchains, wasmtime, wasmparser, QuickJS, Lua, the control plane (once, into a cache)
	@dev/setup.sh --tests
	@dev/build-tools.sh > /dev/null
	@third_party/wasmtime/build.sh > /dev/null
	@third_party/wasmparser/build.sh > /dev/null
	@third_party/quickjs/build.sh > /dev/null
	@third_party/lua/build.sh > /dev/null

clean: ## remove build/; the cache of `make deps` stays
	@rm -rf build
