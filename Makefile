# The front door. `make run` and `make test` are all a fresh machine needs; `make help` lists the rest.
BUILD   ?= build
PREFIX  ?= /usr/local
MINUTES ?= 30

# $(call setup,FOLDER,ENV,OPTIONS): quiet when there is nothing to do, loud when something fails.
setup = test -f $(1)/build.ninja \
	|| { echo "building in $(1)/ for the first time"; $(2) meson setup $(1) $(3) >/dev/null; } \
	|| { cat $(1)/meson-logs/meson-log.txt; exit 1; }
build = ninja -C $(1) --quiet >$(1)/ninja.log 2>&1 || { cat $(1)/ninja.log; exit 1; }
# $(call sanitized,FOLDER,SANITIZERS): a build by clang, with whole-state assertions.
sanitized = $(call setup,$(1),CC=clang,-Dbuildtype=debugoptimized -Db_sanitize=$(2) \
	-Db_lundef=false -Ddebug_checks=true); $(call build,$(1))
comma := ,

.PHONY: all help run test test-long bench lint format asan ubsan tsan coverage install deps clean

all: deps ## release build: build/rival with its web UI, build/librival.a, build/librival.so, rival.pc
	@scripts/build-ui
	@$(call setup,$(BUILD),,-Dprefix=$(abspath $(PREFIX)))
	@$(call build,$(BUILD))

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

LISTEN ?= 127.0.0.1:7400
run: all ## build, serve examples/ and say where: open that in a browser; Ctrl-C ends it
	@exec $(BUILD)/rival serve examples --store $(BUILD)/run.db --listen $(LISTEN) --watch

test: deps-test all ## every test that fits into minutes; ends with "N passed, M failed"
	@$(call sanitized,build-asan,address$(comma)undefined)
	@$(call sanitized,build-tsan,thread)
	@scripts/run-tests --release $(BUILD) --asan build-asan --tsan build-tsan

test-long: deps-test all ## longer campaigns: make test-long MINUTES=30
	@$(call sanitized,build-tsan,thread)
	@scripts/run-tests --release $(BUILD) --tsan build-tsan --minutes $(MINUTES)

bench: all ## numbers, as ratios in one run
	@missed=0; for bench in $(patsubst bench/%.c,$(BUILD)/bench/%,$(wildcard bench/bench_*.c)); do \
		$$bench || missed=1; done; exit $$missed

lint: deps-lint all ## format, static checks, layering
	@scripts/check-layering
	@scripts/check-format
	@scripts/check-static $(BUILD)

format: deps-lint ## rewrite the sources as .clang-format says
	@scripts/check-format --fix

asan: deps-test ## unit tests under AddressSanitizer
	@$(call sanitized,build-asan-only,address)
	@scripts/run-tests --asan build-asan-only
ubsan: deps-test ## unit tests under UndefinedBehaviorSanitizer
	@$(call sanitized,build-ubsan-only,undefined)
	@scripts/run-tests --ubsan build-ubsan-only
tsan: deps-test ## tests with threads under ThreadSanitizer
	@$(call sanitized,build-tsan,thread)
	@scripts/run-tests --tsan build-tsan

# Not counted: assertions, and the deliberate bugs, which are compiled out here (sim/bugs takes them).
coverage: deps-test deps-coverage ## branch coverage of src/: by file, by folder, and in sum
	@$(call setup,build-coverage,,-Dbuildtype=debug -Db_coverage=true -Ddebug_checks=true)
	@$(call build,build-coverage)
	@find build-coverage -name '*.gcda' -delete
	@scripts/run-tests --release build-coverage --suites unit,threads,cli,seeds,conformance
	@gcovr --root . --filter 'src/' --branches --print-summary \
		--exclude-branches-by-pattern '.*\b(assert|RV__BUG)\(.*' build-coverage | tee build-coverage/report
	@awk '/^src\// { split($$1, p, "/"); n[p[2]] += $$2; hit[p[2]] += $$3 } END { for (d in n) if (n[d]) \
		printf "src/%s: %.1f %% of %d branches\n", d, 100 * hit[d] / n[d], n[d] }' build-coverage/report | sort

install: all ## make install PREFIX=/usr/local
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX)) >/dev/null
	@meson install -C $(BUILD) --quiet
	@echo "installed under $(abspath $(PREFIX))"

deps: ## install missing Debian packages, by name
	@scripts/deps build
deps-%:
	@scripts/deps build $*

clean: ## remove every build folder
	@rm -rf build build-* ui/dist
