#!/usr/bin/env bash
# manifest-rules.sh: tests/manifest-rules.md names tests that exist and are run.
. "$(dirname "$0")/tap.sh"
cd "$RIVAL_SOURCE/tests" || exit 1
cat >"$tmp/rules.py" <<'PY'
import os, re, sys
build = open("meson.build").read()
rules = named = 0
def missing(where, what):
    if not os.path.exists(where):
        return "no such file"
    text = open(where).read()
    folder, name = where.split("/", 1)
    if folder == "e2e":
        listed = re.search(r"'%s'" % re.escape(name[:-3]), build)
        there = re.search(r"^\s*(ok|is|like) \"%s\"" % re.escape(what), text, re.M)
    else:
        kind, file = name.split("/")
        listed = re.search(r"'%s': \[[^]]*'%s'" % (kind, file[5:-2]), build)
        there = re.search(r"^static void %s\(" % what, text, re.M) and \
            re.search(r"(TEST|cmocka_unit_test\w*)\(%s\b" % what, text)
    return None if listed and there else "not in meson.build" if there else "no such test"
for line in open(sys.argv[1]):
    row = re.fullmatch(r"\| (.+?) \| (`.*`) \|\n", line)
    if not row:
        continue
    rules += 1
    for where, what in re.findall(r"`([^`:]+): ([^`]+)`", row[2]):
        named += 1
        why = missing(where, what)
        if why:
            print(f"{where}: {what}: {why}")
    if row[2].count("`") != 2 * len(re.findall(r"`([^`:]+): ([^`]+)`", row[2])):
        print(f"unreadable: {line}", end="")
print(f"{rules > 50} {named > rules}")
PY
is "each rule of a schedule has a test that exists and is run" "$(python3 "$tmp/rules.py" manifest-rules.md)" "True True"
printf '| a rule | `unit/flow/test_stage.c: a_test_that_is_gone`, `e2e/manifests.sh: nor this`, `unit/flow/test_gone.c: x` |\n' >"$tmp/gone.md"
is "… and one that is gone is told" "$(python3 "$tmp/rules.py" "$tmp/gone.md")" "unit/flow/test_stage.c: a_test_that_is_gone: no such test
e2e/manifests.sh: nor this: no such test
unit/flow/test_gone.c: x: no such file
False True"
done_testing
