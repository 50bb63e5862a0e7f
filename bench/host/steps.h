/* steps.h: the steps of bench_host: items, and next to nothing to do for each. */
#include <rival/rival.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int big(rv_ctx *c)
{
    size_t len = 1 << 20;
    char *json = malloc(len + 1);
    memset(json, 'x', len);
    json[0] = json[len - 1] = '"';
    json[len] = '\0';
    int rc = rv_return_json(c, json);
    free(json);
    return rc;
}

static int items(rv_ctx *c)
{
    size_t count = (size_t)rv_int(c, ".input.count", 0);
    char *json = malloc(2 * count + 3), *at = json;
    *at++ = '[';
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            *at++ = ',';
        *at++ = '1';
    }
    *at++ = ']';
    *at = '\0';
    int rc = rv_return_json(c, json);
    free(json);
    return rc;
}

static int work(rv_ctx *c)
{
    if (rv_bool(c, ".input.see", false) && rv_json(c, ".steps.big.result") == NULL)
        return rv_fail(c, "it is not there");
    return rv_return_bool(c, true);
}
