# The front door. `make run` and `make test` are all a fresh machine needs; `make help` lists the rest.
BUILD   ?= build
PREFIX  ?= /usr/local
MINUTES ?= 30

# $(call setup,FOLDER,ENV,OPTIONS): quiet when there is nothing to do, loud when something fails.
setup = $(2) scripts/configure $(1) $(3)
build = ninja -C $(1) --quiet >$(1)/ninja.log 2>&1 || { cat $(1)/ninja.log; exit 1; }
# $(call sanitized,FOLDER,SANITIZERS): a build by clang, with whole-state assertions.
sanitized = $(call setup,$(1),CC=clang,-Dbuildtype=debugoptimized -Db_sanitize=$(2) \
	-Db_lundef=false -Ddebug_checks=true -Dtests=enabled) && { $(call build,$(1)); }
comma := ,

.PHONY: all help run check test test-builds test-long bench lint format asan ubsan tsan coverage install deps clean
# Each target uses the processors by itself; two at once would configure and install over each other.
.NOTPARALLEL:

all: deps ## release build: build/rival with its web UI, build/librival.a, build/librival.so, rival.pc, sdk/node/dist
	@scripts/build-ui
	@scripts/build-sdk
	@$(call setup,$(BUILD),,-Dprefix=$(abspath $(PREFIX)))
	@$(call build,$(BUILD))

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

LISTEN ?= 127.0.0.1:7400
# DEPLOY_KEY: the secret of examples/yaml/deploy, which only copies a file.
run: all ## build, serve the workflow files of examples/ and say where: open that in a browser; Ctrl-C ends it
	@DEPLOY_KEY=$${DEPLOY_KEY:-not-a-real-key} exec $(BUILD)/rival serve examples/yaml examples/files examples/manifests $$(test ! -f sdk/node/dist/.built || echo examples/typescript/workflows) --store $(BUILD)/run.db --listen $(LISTEN) --watch

check: deps-test all ## in two minutes: build, and the unit tests that take seconds
	@scripts/run-tests --release $(BUILD) --suites quick

test: test-builds ## every test that fits into minutes; ends with "N passed, M failed"
	@scripts/run-tests --release $(BUILD) --asan $(BUILD)-asan --tsan $(BUILD)-tsan

test-builds: deps-test all
	@$(call sanitized,$(BUILD)-asan,address$(comma)undefined)
	@$(call sanitized,$(BUILD)-tsan,thread)

test-long: deps-test all ## longer campaigns: make test-long MINUTES=30
	@$(call sanitized,$(BUILD)-asan,address$(comma)undefined)
	@$(call sanitized,$(BUILD)-tsan,thread)
	@scripts/run-tests --release $(BUILD) --asan $(BUILD)-asan --tsan $(BUILD)-tsan --minutes $(MINUTES)

bench: all ## numbers, as ratios in one run
	@missed=0; for bench in $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c)); do \
		$$bench || missed=1; done; exit $$missed

lint: deps-lint all ## format, static checks, layering; ESLint for the web UI and the TypeScript package
	@scripts/check-layering
	@scripts/check-format
	@scripts/check-static $(BUILD)
	@scripts/build-ui --lint
	@scripts/build-sdk --lint

format: deps-lint ## rewrite the sources as .clang-format says
	@scripts/check-format --fix

asan: deps-test ## unit tests under AddressSanitizer
	@$(call sanitized,$(BUILD)-asan-only,address)
	@scripts/run-tests --asan $(BUILD)-asan-only
ubsan: deps-test ## unit tests under UndefinedBehaviorSanitizer
	@$(call sanitized,$(BUILD)-ubsan-only,undefined)
	@scripts/run-tests --ubsan $(BUILD)-ubsan-only
tsan: deps-test ## tests with threads under ThreadSanitizer
	@$(call sanitized,$(BUILD)-tsan,thread)
	@scripts/run-tests --tsan $(BUILD)-tsan

# Not counted: assertions, and the deliberate bugs, which are compiled out here (sim/bugs takes them).
coverage: deps-test deps-coverage ## branch coverage of src/: by file, by folder, and in sum
	@$(call setup,$(BUILD)-coverage,,-Dbuildtype=debug -Db_coverage=true -Ddebug_checks=true -Dtests=enabled)
	@$(call build,$(BUILD)-coverage)
	@find $(BUILD)-coverage -name '*.gcda' -delete
	@scripts/run-tests --release $(BUILD)-coverage --suites unit,threads,cli,seeds,conformance
	@gcovr --root . --filter 'src/' --branches --print-summary \
		--exclude-branches-by-pattern '.*\b(assert|RV__BUG)\(.*' $(BUILD)-coverage | tee $(BUILD)-coverage/report
	@awk '/^src\// { split($$1, p, "/"); n[p[2]] += $$2; hit[p[2]] += $$3 } END { for (d in n) if (n[d]) \
		printf "src/%s: %.1f %% of %d branches\n", d, 100 * hit[d] / n[d], n[d] }' $(BUILD)-coverage/report | sort

install: all ## make install PREFIX=/usr/local
	@meson install -C $(BUILD) --quiet
	@echo "installed under $(abspath $(PREFIX))"

deps: ## install missing Debian packages, by name
	@scripts/deps build
deps-%:
	@scripts/deps build $*

clean: ## remove every build folder
	@rm -rf $(BUILD) $(BUILD)-* ui/dist sdk/node/dist
