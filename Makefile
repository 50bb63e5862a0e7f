# The front door. `make run` and `make test` are all a fresh machine needs; `make help` lists the rest.
BUILD  ?= build
PREFIX ?= /usr/local
MINUTES ?= 30
MESON  := meson
NINJA  := ninja
# Quiet when there is nothing to do, loud when something fails.
setup = test -f $(1)/build.ninja || $(2) $(MESON) setup $(1) $(3) >/dev/null || { cat $(1)/meson-logs/meson-log.txt; exit 1; }
build = $(NINJA) -C $(1) --quiet

.PHONY: all help run test test-long bench lint format asan ubsan tsan coverage install deps clean

all: deps ## release build: build/rival, build/librival.a, build/librival.so, rival.pc
	@$(call setup,$(BUILD),,-Dprefix=$(abspath $(PREFIX)))
	@$(call build,$(BUILD))

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: all ## build and show Rival at work
	@$(BUILD)/rival demo group

test: deps-test all ## every test that fits into minutes; ends with "N passed, M failed"
	@$(call setup,build-asan,CC=clang,-Dbuildtype=debugoptimized -Db_sanitize=address$(comma)undefined -Db_lundef=false -Ddebug_checks=true)
	@$(call setup,build-tsan,CC=clang,-Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false -Ddebug_checks=true)
	@$(call build,build-asan)
	@$(call build,build-tsan)
	@scripts/run-tests --release $(BUILD) --asan build-asan --tsan build-tsan

test-long: deps-test all ## longer campaigns: make test-long MINUTES=30
	@$(call setup,build-tsan,CC=clang,-Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false -Ddebug_checks=true)
	@$(call build,build-tsan)
	@scripts/run-tests --release $(BUILD) --tsan build-tsan --minutes $(MINUTES)

bench: all ## numbers, as ratios in one run
	@$(BUILD)/bench/bench_group

lint: deps-lint all ## format, static checks, layering
	@scripts/check-layering
	@scripts/check-format
	@scripts/check-static $(BUILD)

format: deps-lint ## rewrite the sources as .clang-format says
	@scripts/check-format --fix

comma := ,
asan: deps-test ## unit tests under AddressSanitizer
	@$(call setup,build-asan-only,CC=clang,-Dbuildtype=debugoptimized -Db_sanitize=address -Db_lundef=false -Ddebug_checks=true)
	@$(call build,build-asan-only) && scripts/run-tests --asan build-asan-only
ubsan: deps-test ## unit tests under UndefinedBehaviorSanitizer
	@$(call setup,build-ubsan-only,CC=clang,-Dbuildtype=debugoptimized -Db_sanitize=undefined -Db_lundef=false -Ddebug_checks=true)
	@$(call build,build-ubsan-only) && scripts/run-tests --ubsan build-ubsan-only
tsan: deps-test ## unit tests under ThreadSanitizer
	@$(call setup,build-tsan,CC=clang,-Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false -Ddebug_checks=true)
	@$(call build,build-tsan) && scripts/run-tests --tsan build-tsan

coverage: deps-test deps-coverage ## branch and line coverage of src/, by file
	@$(call setup,build-coverage,,-Dbuildtype=debug -Db_coverage=true -Ddebug_checks=true)
	@$(call build,build-coverage)
	@find build-coverage -name '*.gcda' -delete
	@scripts/run-tests --release build-coverage --unit-only
	@gcovr --root . --filter 'src/' --branches --exclude-throw-branches build-coverage
	@gcovr --root . --filter 'src/' --print-summary -o /dev/null build-coverage

install: all ## make install PREFIX=/usr/local
	@$(MESON) configure $(BUILD) -Dprefix=$(abspath $(PREFIX)) >/dev/null
	@$(MESON) install -C $(BUILD) --quiet
	@echo "installed under $(abspath $(PREFIX))"

deps: ## install missing Debian packages, by name
	@scripts/deps build
deps-%:
	@scripts/deps build $*

clean: ## remove every build folder
	@rm -rf build build-*
