/* fuzz_incoming.c: any bytes as the stream of an answer, for both protocols: src/agent/incoming.c.
 *
 * Beyond "does not crash": in which pieces it comes makes no difference. The first byte chooses the protocol. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static int end(struct rv__incoming *stream, struct rv__str body, struct rv__arena *arena,
               struct rv__buf *out)
{
    struct rv__model_answer said;
    rv_error err = { .message = "" };
    int rc = rv__incoming_end(stream, body, arena, &said, &err);
    rv__buf_fmt(out, "%d %s %d ", rc, rc < 0 ? err.message : "", said.busy);
    if (rc == RV_OK) {
        rv__buf_str(out, said.text);
        rv__buf_str(out, said.calls);
        rv__buf_str(out, said.finish);
    }
    rv__incoming_free(stream);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rv__providers *providers;
    static const char config[] = "{\"0\":{\"kind\":\"openai\",\"baseUrl\":\"http://x\"},"
                                 "\"1\":{\"kind\":\"anthropic\",\"baseUrl\":\"http://x\"}}";
    struct rv__incoming *whole = NULL, *pieces = NULL;
    struct rv__buf a, b;
    struct rv__arena arena;
    if (size == 0)
        return 0;
    if (providers == NULL)
        MUST(rv__providers_new(rv__str(config), "fuzz", &providers, NULL) == RV_OK);
    const struct rv__provider *provider = rv__providers_find(providers,
                                                             rv__str(data[0] & 1 ? "1" : "0"));
    struct rv__str body = { (const char *)data + 1, size - 1 };
    rv__arena_init(&arena, SIZE_MAX);
    rv__buf_init(&a, SIZE_MAX / 8);
    rv__buf_init(&b, SIZE_MAX / 8);
    MUST(rv__incoming_new(provider, &whole, NULL) == RV_OK);
    MUST(rv__incoming_new(provider, &pieces, NULL) == RV_OK);
    int rc = end(whole, body, &arena, &a);
    for (size_t at = 1 + data[0] % 7u; at < body.len; at += 1 + data[at] % 19u)
        rv__incoming_take(pieces, (struct rv__str){ body.at, at });
    MUST(end(pieces, body, &arena, &b) == rc);
    MUST(rv__str_eq(rv__buf_view(&a), rv__buf_view(&b)));
    rv__buf_done(&a);
    rv__buf_done(&b);
    rv__arena_done(&arena);
    return 0;
}
