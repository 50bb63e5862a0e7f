/* fuzz_mask.c: any bytes against src/base/mask.c.
 *
 * Beyond "does not crash": no secret is left, pieces make no difference, JSON stays JSON. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static const struct rv__str secrets[] = { RV__STR("hunter2-secret"), RV__STR("pa\"ss\\word"),
                                          RV__STR("1234567890"), RV__STR("aaaaaaaa"),
                                          RV__STR("%41%41%41\\u") };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rv__mask *mask;
    struct rv__str text = { (const char *)data, size };
    struct rv__mask_stream *stream = NULL;
    struct rv__buf whole, pieces, json;
    if (mask == NULL)
        MUST(rv__mask_new(secrets, sizeof secrets / sizeof *secrets, &mask, NULL) == RV_OK);
    rv__buf_init(&whole, SIZE_MAX / 2);
    rv__buf_init(&pieces, SIZE_MAX / 2);
    rv__buf_init(&json, SIZE_MAX / 2);

    bool any = rv__mask_text(mask, text, false, &whole);
    MUST(any == rv__mask_finds(mask, text));
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        MUST(whole.len == 0 ||
             memmem(whole.text, whole.len, secrets[i].at, secrets[i].len) == NULL);

    MUST(rv__mask_stream_new(mask, &stream, NULL) == RV_OK);
    for (size_t at = 0, len; at < size; at += len) {
        len = 1 + (data[at] * 31u + at) % 23;
        len = len < size - at ? len : size - at;
        rv__mask_stream_add(stream, (struct rv__str){ text.at + at, len }, &pieces);
    }
    rv__mask_stream_end(stream, &pieces);
    rv__mask_stream_free(stream);
    MUST(rv__str_eq(rv__buf_view(&whole), rv__buf_view(&pieces)));

    if (rv__json_check(text, RV__JSON_MAX_DEPTH, NULL, NULL) == RV_OK) {
        (void)rv__mask_json(mask, text, &json);
        MUST(rv__json_check(rv__buf_view(&json), RV__JSON_MAX_DEPTH, NULL, NULL) == RV_OK);
    }
    rv__buf_done(&whole);
    rv__buf_done(&pieces);
    rv__buf_done(&json);
    return 0;
}
