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
    return rc == 1 && *static_cast<int *>(res.value) == 42 ? 0 : 1;
}
C
ok "a C++ program builds" g++ -std=c++11 $strict -Wno-missing-field-initializers -o "$tmp/user" "$tmp/user.cc" $(flags --cflags --libs)
ok "and works" env LD_LIBRARY_PATH="$libdir" "$tmp/user"

done_testing
