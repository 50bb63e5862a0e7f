#!/usr/bin/env bash
# layering.sh: scripts/check-layering lets our tree pass and finds what it is there to find.
. "$(dirname "$0")/tap.sh"
check=$RIVAL_SOURCE/scripts/check-layering

run "$check" "$RIVAL_SOURCE/src"
is "our sources pass" "$rc" 0

# The table for people says the same.
cat >"$tmp/table.py" <<'PYTHON'
import importlib.machinery, importlib.util, re, sys
loader = importlib.machinery.SourceFileLoader("check", sys.argv[1])
sys.dont_write_bytecode = True
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
loader.exec_module(check)
rows = re.findall(r"^\| \[(\w+)\]\(.*?\) \|.*\| (.*?) \|$", open(sys.argv[2], encoding="utf-8").read(), re.M)
names, wrong = [], []
for name, uses in rows:
    allowed = check.LAYERS.get(name, ["?"])
    listed = []
    for part in uses.split(", "):
        if part == "all above":
            listed += names
        elif " … " in part:
            first, last = part.split(" … ")
            listed += names[names.index(first):names.index(last) + 1]
        elif part not in ("nothing", "`rival.h`"):
            listed.append(part)
    if sorted(listed) != sorted(allowed):
        wrong.append(f"{name}: {listed}, not {allowed}")
    names.append(name)
missing = set(check.LAYERS) - set(names)
print("; ".join(wrong + sorted(missing)))
PYTHON
run python3 "$tmp/table.py" "$check" "$RIVAL_SOURCE/docs/architecture.md"
is "docs/architecture.md has the same table" "$rc$out$err" "0"

# refused SAYS FILE CONTENT LINE MESSAGE: a tree with that one file fails, there, for that reason.
refused() {
    rm -rf "$tmp/src"
    mkdir -p "$tmp/src/$(dirname "$2")"
    printf "$3" >"$tmp/src/$2"
    run "$check" "$tmp/src"
    is "$1: refused" "$rc" 1
    like "$1: says where and why" "$err" "^$tmp/src/$2:$4: $5"
    is "$1: and nothing else" "$(printf '%s\n' "$err" | wc -l)" 1
}
allowed() { # SAYS FILE CONTENT
    rm -rf "$tmp/src"
    mkdir -p "$tmp/src/$(dirname "$2")"
    printf "$3" >"$tmp/src/$2"
    run "$check" "$tmp/src"
    is "$1: allowed" "$rc$err" 0
}
refused "an include that points up" base/a.c '#include "base/b.h"\n\n#include "group/group.h"\n' 3 'base/ may not use group/'
refused "an include between neighbours" plan/a.c '#include "group/group.h"\n' 1 'plan/ may not use group/ \(it may use: base\)'
refused "another folder's inner header" engine/a.c 'int x;\n#include "store/inner.h"\n' 2 '"store/inner.h" is an inner header of store/'
for room in read keep wire work; do
    refused "the engine, from $room/" "$room/a.c" '#include "engine/engine.h"\n' 1 "$room/ may not use engine/"
done
refused "a reader that writes files" read/a.c '#include "keep/keep.h"\n' 1 'read/ may not use keep/'
refused "an attempt that keeps" work/a.c '#include "keep/keep.h"\n' 1 'work/ may not use keep/'
refused "frames that know executors" wire/a.c '#include "exec/exec.h"\n' 1 'wire/ may not use exec/ \(it may use: base\)'
refused "an include without its folder" group/a.c '#include "b.h"\n' 1 '"b.h" is in no layer'
refused "a folder nobody has heard of" misc/a.c 'int x;\n' 1 "folder 'misc' is not in the table"
refused "the time outside of base/" group/a.c '#include <time.h>\nint f(void) { return (int)time(0); }\n' 2 'time\(\) asks the system'
refused "chance outside of base/" flow/a.c 'int f(void) { return rand(); }\n' 1 'rand\(\) asks the system'
refused "an event loop in flow/" flow/a.c '#include <uv.h>\n' 1 'flow/ may not include <uv.h>'
refused "a clock in flow/" flow/a.c '#include <time.h>\n' 1 'flow/ may not include <time.h>'
refused "a spaced include" base/a.h '  #  include   "cli/cli.h"\n' 1 'base/ may not use cli/'
refused "one behind a comment" base/a.c '#include <stdio.h> /* printf */\n#include "cli/cli.h"\n' 2 'base/ may not use cli/'
refused "a call behind a quote" group/a.c "int f(int c) { return c == '\"' ? 0 : rand(); } /* \" */\n" 1 'rand\(\) asks'
allowed "a folder's face" engine/a.c '#include "store/store.h"\n#include "base/any.h"\n#include "engine/inner.h"\n'
allowed "the rooms, from the engine" engine/a.c '#include "read/read.h"\n#include "keep/keep.h"\n#include "wire/wire.h"\n#include "work/work.h"\n'
allowed "frames, for executors" exec/a.c '#include "wire/wire.h"\n'
allowed "the time in base/clock.c" base/clock.c 'int f(void) { return (int)time(0); }\n'
allowed "the word in a comment or a text" group/a.c '/* time( */ int time_ms(void);\n/*\n sleep(1)\n*/ const char *s = "rand()";\n'

done_testing
