#!/usr/bin/env bash
# install.sh: what a user gets: install, then build the README's example with pkg-config alone.
. "$(dirname "$0")/tap.sh"
example=$RIVAL_SOURCE/examples/group_basic.c
answers=$(printf '95 primes below 500\n1007 primes below 8000\n4203 primes below 40000')

ok "the build installs" env DESTDIR="$tmp/root" meson install -C "$RIVAL_BUILD" --no-rebuild --quiet
pc=$(find "$tmp/root" -name rival.pc)
like "with a pkg-config file" "$pc" '/pkgconfig/rival\.pc$'
libdir=${pc%/pkgconfig/rival.pc}
# The prefix in rival.pc is where it will be one day; for now that is below $tmp/root.
prefix=$tmp/root$(sed -n 's/^prefix=//p' "$pc")
flags() { PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --define-variable=prefix="$prefix" "$@" rival; }

is "headers, libraries and program are there" \
    "$(cd "$prefix" && ls include/rival/group.h include/rival/base.h bin/rival && cd "$libdir" && ls librival.a librival.so)" \
    "$(printf 'bin/rival\ninclude/rival/base.h\ninclude/rival/group.h\nlibrival.a\nlibrival.so')"
is "and the man page, and completions, where the shells look for them" \
    "$(cd "$prefix/share" && ls man/man1/rival.1 bash-completion/completions/rival zsh/site-functions/_rival fish/vendor_completions.d/rival.fish)" \
    "$(printf 'bash-completion/completions/rival\nfish/vendor_completions.d/rival.fish\nman/man1/rival.1\nzsh/site-functions/_rival')"
is "pkg-config knows the version" "$(flags --modversion)" "$("$rival" --version | cut -d' ' -f2)"
is "the installed program runs" "$("$prefix/bin/rival" --version)" "$("$rival" --version)"

ok "the README's example builds" cc -o "$tmp/shared" "$example" $(flags --cflags --libs)
run env LD_LIBRARY_PATH="$libdir" "$tmp/shared"
is "and works" "$(printf '%s\n' "$out" | sort -n)" "$answers"
like "with the shared library" "$(LD_LIBRARY_PATH=$libdir ldd "$tmp/shared")" "librival\.so\.0 => $libdir"

# Rival's own code in the program, its libraries from the system: not all of those come as archives.
ok "it builds statically" cc -o "$tmp/static" "$example" \
    $(flags --static --cflags --libs | sed 's/-lrival /-l:librival.a /')
run "$tmp/static"
is "and works" "$(printf '%s\n' "$out" | sort -n)" "$answers"

# The guide, from an empty folder: its first program, built by its own line, against what was installed.
guide=$RIVAL_SOURCE/docs/guide/embedding.md
mkdir "$tmp/empty" && cd "$tmp/empty" || exit 1
awk '/^```c$/ { inside = 1; next } /^```$/ { if (inside) exit } inside' "$guide" >first.c
build=$(grep '^cc -o first ' "$guide")
ok "the guide's first program builds as it says" \
    env PKG_CONFIG_PATH="$libdir/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$tmp/root" sh -c "$build"
run env LD_LIBRARY_PATH="$libdir" ./first
is "and greets" "$rc $out$err" "0 good morning, Ada!
completed"
cd "$OLDPWD" || exit 1

strict="-Wall -Wextra -Werror -pedantic"
ok "the example is strict C99" cc -std=c99 $strict -fsyntax-only "$example" $(flags --cflags)
for header in base group rival; do
    echo "#include <rival/$header.h>" >"$tmp/$header.c"
    echo "#include <rival/$header.h>" >"$tmp/$header.cc"
    ok "rival/$header.h alone is strict C99" \
        cc -std=c99 $strict -fsyntax-only "$tmp/$header.c" $(flags --cflags)
    ok "and strict C++11" \
        g++ -std=c++11 $strict -fsyntax-only "$tmp/$header.cc" $(flags --cflags)
done
cat >"$tmp/user.cc" <<'C'
#include <rival/group.h>
#include <rival/rival.h>
static const char schema[] = RV_JSON({ "type": "object", "required": ["a", "b"] });
static int step(rv_ctx *c) { return rv_str(c, ".input.a") != nullptr ? 0 : rv_stop(c, "no %s", "a"); }
static bool workflow_runs()
{
    rv_engine_opts opts;
    rv_engine_opts_init(&opts);
    opts.store = ":memory:";
    rv_engine *engine = nullptr;
    rv_outcome *outcome = nullptr;
    rv_workflow *w = rv_workflow_new("w");
    rv_step_opts step_opts;
    rv_step_opts_init(&step_opts);
    step_opts.max_attempts = 3;
    rv_workflow_input(w, schema);
    rv_add_step(rv_workflow_body(w), "s", step, &step_opts);
    rv_node_def value = rv_node_def();
    value.kind = RV_NODE_VALUE;
    value.with = "done";
    rv_add(rv_workflow_body(w), &value);
    rv_run_opts run_opts;
    rv_run_opts_init(&run_opts);
    run_opts.run_id = "r";
    bool good = rv_engine_new(&opts, &engine, nullptr) == 0 && rv_register(engine, w, nullptr) == 0 &&
        rv_run(engine, "w", "{\"a\":\"x\",\"b\":1}", &run_opts, nullptr, nullptr) == 0 &&
        rv_wait(engine, "w", "r", nullptr, &outcome, nullptr) == 0 && outcome->status == RV_COMPLETED;
    rv_outcome_free(outcome);
    rv_workflow_free(w);
    rv_engine_free(engine);
    return good;
}
static int task(rv_task *, void *arg, void **value) { *value = arg; return 0; }
int main()
{
    int x = 42;
    rv_group_opts opts = {};
    rv_group_result res;
    rv_group *g = rv_group_new(&opts);
    rv_group_go(g, task, &x);
    int rc = rv_group_next(g, -1, nullptr, &res);
    rv_group_free(g);
    return rc == 1 && *static_cast<int *>(res.value) == 42 && workflow_runs() ? 0 : 1;
}
C
ok "a C++ program builds" g++ -std=c++11 $strict -Wno-missing-field-initializers -o "$tmp/user" "$tmp/user.cc" $(flags --cflags --libs)
ok "and works" env LD_LIBRARY_PATH="$libdir" "$tmp/user"

done_testing
