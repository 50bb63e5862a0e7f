#!/usr/bin/env bash
# docs.sh: what the pages show is what there is.
. "$(dirname "$0")/tap.sh"
cd "$RIVAL_SOURCE" || exit 1

first=$(awk '/^```/ { inside = !inside; next } inside { print }' README.md | head -n 2)
is "the README shows the two commands first" "$first" "$(grep -E '^make (run|test) ' README.md)"
like "make run" "$first" '^make run '
like "make test" "$first" '^make test '

# Blocks of C are taken from examples/. Those of the README are whole files.
cat >"$tmp/blocks.py" <<'PY'
import glob, re, sys
sources = {path: open(path).read() for path in glob.glob("examples/*.c") + glob.glob("examples/files/*.c")}
readme = re.findall(r"^```c\n(.*?)^```", open("README.md").read(), re.M | re.S)
shown = [sources["examples/lumber.c"], sources["examples/group_basic.c"]]
bad = [] if readme == shown else ["README.md: not examples/lumber.c, then examples/group_basic.c"]
seen = 0
for page in glob.glob("docs/guide/*.md"):
    for block in re.findall(r"^```c\n(.*?)^```", open(page).read(), re.M | re.S):
        seen += 1
        if not any(block in text for text in sources.values()):
            bad.append(f"{page}: in no example:\n{block}")
print("\n".join(bad) or f"{seen > 0}")
PY
is "every block of C is in examples/, to the letter" "$(python3 "$tmp/blocks.py")" "True"

# links: to files that are there.
cat >"$tmp/links.py" <<'PY'
import os, re, subprocess
for folder, names, files in os.walk("."):
    names[:] = [n for n in names if not n.startswith((".", "build")) and n != "node_modules"]
    for name in files:
        if name.endswith(".md"):
            text = re.sub(r"^```.*?^```", "", open(os.path.join(folder, name)).read(), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)#\s]+)", text):
                if "://" not in target and not os.path.exists(os.path.join(folder, target)):
                    print(f"{os.path.join(folder, name)}: {target}")
PY
is "every link leads somewhere" "$(python3 "$tmp/links.py")" ""

for folder in include/rival $(ls src/*/*.c | xargs dirname | sort -u) tests bench scripts examples; do
    ok "$folder has a README of a screen" \
        test -f "$folder/README.md" -a "$(cat "$folder/README.md" 2>/dev/null | wc -l)" -le 50
done
for adr in docs/adr/0*.md; do
    like "${adr##*/} is in the index" "$(cat docs/adr/README.md)" "\($(basename "$adr")\)"
done

run make help
for target in run test test-long bench lint asan ubsan tsan coverage install deps clean; do
    like "make help tells of $target" "$out" "^$target "
done

done_testing
