/* fuzz_mcp.c: any bytes as what an MCP server says, against src/agent/rpc.c.
 *
 * Beyond "does not crash": a stream in pieces gives the messages that it gives as a whole, and what a schema and
 * arguments make of headers has no line end in it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static void note(void *arg, struct rv__str data)
{
    struct rv__rpc rpc;
    rv__buf_str(arg, data);
    rv__buf_char(arg, '\0');
    (void)rv__rpc_read(data, &rpc, NULL);
}

static void stream(const uint8_t *data, size_t size, bool pieces, struct rv__buf *out)
{
    struct rv__sse sse;
    rv__sse_init(&sse);
    for (size_t at = 0, len; at < size; at += len) {
        len = pieces ? 1 + (data[at] * 31u + at) % 23 : size;
        len = len < size - at ? len : size - at;
        MUST(rv__sse_add(&sse, (struct rv__str){ (const char *)data + at, len }, note, out) ==
             RV_OK);
    }
    rv__sse_done(&sse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv__str text = { (const char *)data, size }, schema, arguments;
    struct rv__buf whole, pieces;
    struct rv__rpc rpc;
    rv__buf_init(&whole, SIZE_MAX / 2);
    rv__buf_init(&pieces, SIZE_MAX / 2);
    stream(data, size, false, &whole);
    stream(data, size, true, &pieces);
    MUST(rv__str_eq(rv__buf_view(&whole), rv__buf_view(&pieces)));
    rv__buf_done(&whole);
    rv__buf_done(&pieces);

    if (rv__rpc_read(text, &rpc, NULL) == RV_OK && !rv__str_none(rpc.params) &&
        rv__json_get(rpc.params, "schema", &schema) &&
        rv__json_get(rpc.params, "arguments", &arguments)) {
        const char *lines[RV__RPC_PARAM_HEADERS];
        struct rv__arena arena;
        rv__arena_init(&arena, SIZE_MAX);
        int n = rv__rpc_param_headers(schema, arguments, &arena, lines, NULL);
        MUST(n >= 0);
        for (int i = 0; i < n; i++)
            MUST(strpbrk(lines[i], "\r\n") == NULL);
        rv__arena_done(&arena);
    }
    return 0;
}
