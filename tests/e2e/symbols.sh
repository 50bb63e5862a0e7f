#!/usr/bin/env bash
# symbols.sh: an embedded library must not collide with its host: it shows rv_ names only.
. "$(dirname "$0")/tap.sh"

shown=$(nm -D --defined-only "$RIVAL_BUILD/librival.so" | awk '{print $3}' | sort)
declared=$(sed -nE 's/^RV_API .*[ *](rv_[a-z_]+)\(.*/\1/p' "$RIVAL_SOURCE"/include/rival/*.h | sort)
is "the shared library shows what the headers declare, and nothing else" "$shown" "$declared"
unlike "nothing internal among it" "$shown" '^rv__'

# In the static one everything is visible to the linker, so at least the names must be ours.
others=$(nm --defined-only -g "$RIVAL_BUILD/librival.a" | awk 'NF == 3 && $3 !~ /^rv_/ {print $3}')
is "the static library has no other global names either" "$others" ""

# jq is in evaluator processes: whoever embeds the library neither links libjq nor can be hurt by it.
unlike "the shared library does not need libjq" "$(readelf -d "$RIVAL_BUILD/librival.so" | grep NEEDED)" 'libjq'
is "nor does the static one call it" \
    "$(nm -u "$RIVAL_BUILD/librival.a" | awk '$2 ~ /^(jq_|jv_)/ {print $2}')" ""
like "the program does" "$(readelf -d "$RIVAL_BUILD/rival" | grep NEEDED)" 'libjq'

done_testing
