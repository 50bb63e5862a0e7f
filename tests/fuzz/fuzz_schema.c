/* fuzz_schema.c: any schema and any value, divided by the first NUL, against src/schema.
 *
 * Beyond "does not crash": what is refused is refused with a reason; a check says the same twice, with
 * a list and without; what defaults were put into is JSON, and nothing more is put into it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static void check_violations(const struct rv__violations *bad)
{
    for (size_t i = 0; i < bad->count; i++) {
        MUST(bad->items[i].message.len > 0 && rv__str_utf8(bad->items[i].message));
        MUST(rv__json_pointer_valid(bad->items[i].path));
    }
}

static void check_value(const struct rv__schema *schema, struct rv__str value)
{
    struct rv__arena arena;
    struct rv__violations bad;
    rv_error err = { .message = "" };
    rv__arena_init(&arena, SIZE_MAX);
    rv__violations_init(&bad, &arena);
    int rc = rv__schema_check(schema, value, &bad, &err);
    MUST(rc == RV_OK || rc == RV_EINVAL || rc == RV_ETOOBIG || rc == RV_EPARSE);
    MUST((rc == RV_EINVAL) == (bad.count > 0) || rc == RV_ETOOBIG);
    MUST(rc == RV_OK || err.message[0] != '\0');
    check_violations(&bad);
    MUST(rv__schema_check(schema, value, NULL, NULL) == rc);
    rv__arena_done(&arena);
}

static void check_defaults(const struct rv__schema *schema, struct rv__str value)
{
    struct rv__buf once, twice;
    rv__buf_init(&once, 1 << 20);
    rv__buf_init(&twice, 1 << 20);
    if (rv__schema_defaults(schema, value, &once, NULL) == RV_OK) {
        MUST(rv__json_check(rv__buf_view(&once), RV__JSON_MAX_DEPTH, NULL, NULL) == RV_OK);
        int rc = rv__schema_defaults(schema, rv__buf_view(&once), &twice, NULL);
        MUST(rc == RV_ETOOBIG || rv__str_eq(rv__buf_view(&once), rv__buf_view(&twice)));
    }
    rv__buf_done(&once);
    rv__buf_done(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    struct rv__str text = { (const char *)data, nul ? (size_t)(nul - data) : size };
    struct rv__str value = nul ? (struct rv__str){ (const char *)nul + 1, size - text.len - 1 }
                               : text; /* a schema is a value too */
    struct rv__schema *schema = NULL;
    struct rv__arena arena;
    struct rv__violations bad;
    rv_error err = { .message = "" };
    rv__arena_init(&arena, SIZE_MAX);
    rv__violations_init(&bad, &arena);
    int rc = rv__schema_new(text, &bad, &schema, &err);
    check_violations(&bad);
    MUST((rc == RV_EINVAL) == (bad.count > 0));
    rv__arena_done(&arena);
    if (rc < 0) {
        MUST(schema == NULL && err.message[0] != '\0');
        return 0;
    }
    check_value(schema, value);
    check_value(schema, text);
    check_defaults(schema, value);
    rv__schema_free(schema);
    return 0;
}
