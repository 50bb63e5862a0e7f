/* fuzz_json.c: any bytes against src/base/json_*.c.
 *
 * Beyond "does not crash": Jansson agrees on what is JSON, canonical text is its own canonical
 * text, what is unescaped is found again, and a tree survives being written. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

/* Each member is reached by its pointer, and is what is found there unless its key comes again. */
static void walk(struct rv__str value, struct rv__arena *arena)
{
    struct rv__json_iter it;
    struct rv__str key, member, found, text;
    size_t count = 0;
    int64_t integer;
    double real;
    bool truth;

    rv__json_iter_init(&it, value);
    while (rv__json_next(&it, &key, &member)) {
        struct rv__buf pointer;
        count++;
        walk(member, arena);
        if (count > 32) /* each look-up walks from the beginning */
            continue;
        rv__buf_init(&pointer, RV__JSON_MAX_BYTES);
        if (it.object) {
            MUST(rv__json_string(key, arena, &text) == RV_OK);
            MUST(rv__json_string_is(key, text));
            rv__buf_json_pointer(&pointer, text);
        } else {
            rv__buf_fmt(&pointer, "/%zu", count - 1);
        }
        MUST(rv__json_pointer(value, rv__buf_view(&pointer), &found, NULL) == RV_OK);
        MUST(it.object ? found.at >= member.at : found.at == member.at);
        rv__buf_done(&pointer);
    }
    MUST(count == rv__json_count(value));

    enum rv__json_type type = rv__json_type(value);
    MUST((rv__json_string(value, arena, &text) == RV_OK) == (type == RV__JSON_STRING));
    MUST((rv__json_bool(value, &truth) == RV_OK) ==
         (type == RV__JSON_TRUE || type == RV__JSON_FALSE));
    if (rv__json_int(value, &integer) == RV_OK) {
        MUST(rv__json_double(value, &real) == RV_OK);
        MUST(real == (double)integer);
    }
}

static void check_canonical(struct rv__str text)
{
    struct rv__buf once, twice;
    rv__buf_init(&once, SIZE_MAX); /* libFuzzer bounds the input */
    rv__buf_init(&twice, SIZE_MAX);
    MUST(rv__json_canonical(text, &once, NULL) == RV_OK);
    MUST(rv__json_check(rv__buf_view(&once), RV__JSON_MAX_DEPTH, NULL, NULL) == RV_OK);
    MUST(rv__json_canonical(rv__buf_view(&once), &twice, NULL) == RV_OK);
    MUST(rv__str_eq(rv__buf_view(&once), rv__buf_view(&twice)));
    rv__buf_done(&once);
    rv__buf_done(&twice);
}

static void check_tree(struct rv__str text)
{
    json_t *tree = NULL, *again = NULL;
    struct rv__buf out;
    if (rv__json_load(text, &tree, NULL) != RV_OK) /* 1e400, or a NUL in a key */
        return;
    rv__buf_init(&out, SIZE_MAX);
    MUST(rv__json_dump(tree, &out) == RV_OK);
    MUST(rv__json_load(rv__buf_view(&out), &again, NULL) == RV_OK);
    MUST(json_equal(tree, again));
    rv__buf_done(&out);
    json_decref(tree);
    json_decref(again);
}

static void check_any_bytes(struct rv__str bytes)
{
    struct rv__buf out;
    rv__buf_init(&out, SIZE_MAX);
    rv__buf_json_str(&out, bytes);
    MUST(rv__json_check(rv__buf_view(&out), 0, NULL, NULL) == RV_OK);
    MUST(rv__json_string_is(rv__buf_view(&out), bytes) == rv__str_utf8(bytes));
    (void)rv__json_pointer(rv__buf_view(&out), bytes, &(struct rv__str){ NULL, 0 }, NULL);
    rv__buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv__str value, text = { (const char *)data, size };
    rv_error err;
    int rc = rv__json_check(text, RV__JSON_MAX_DEPTH, &value, &err);
    if (rc == RV_OK) {
        struct rv__arena arena;
        rv__arena_init(&arena, SIZE_MAX);
        walk(value, &arena);
        rv__arena_done(&arena);
        check_canonical(text);
        check_tree(text);
    } else if (rc == RV_EPARSE && size > 0 && memchr(text.at, '\0', text.len) == NULL) {
        /* A NUL byte behind the value is the end of the text to Jansson; not to us. */
        json_t *tree = json_loadb(text.at, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        MUST(tree == NULL);
    }
    check_any_bytes(text);
    return 0;
}
