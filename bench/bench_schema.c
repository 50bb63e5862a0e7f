/* bench_schema.c: what it costs to check a value against a schema, beside one pass over its text.
 *
 * The text is a list of orders, the schema one that a person would write for it, with formats,
 * patterns, enums and a reference. The pass is rv__json_check(), which a check begins with. */
#include <malloc.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "base/json.h"
#include "bench.h"
#include "schema/schema.h"

#define SCHEMA                                                                                     \
    "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/order\"},\"$defs\":{\"order\":{"            \
    "\"type\":\"object\",\"required\":[\"id\",\"customer\",\"lines\"],"                            \
    "\"additionalProperties\":false,\"properties\":{"                                              \
    "\"id\":{\"type\":\"string\",\"pattern\":\"^ord-[0-9]+$\"},"                                   \
    "\"customer\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\","             \
    "\"minLength\":1},\"email\":{\"type\":\"string\",\"format\":\"email\"}},"                      \
    "\"required\":[\"name\",\"email\"]},"                                                          \
    "\"placed\":{\"type\":\"string\",\"format\":\"date-time\"},"                                   \
    "\"status\":{\"enum\":[\"new\",\"paid\",\"sent\",\"done\"]},"                                  \
    "\"lines\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"type\":\"object\",\"properties\":{" \
    "\"sku\":{\"type\":\"string\",\"maxLength\":20},\"count\":{\"type\":\"integer\","              \
    "\"minimum\":1},\"price\":{\"type\":\"number\",\"multipleOf\":0.01}},"                         \
    "\"required\":[\"sku\",\"count\",\"price\"]}}}}}}"
#define UNIQUE "{\"uniqueItems\":true}"
#define OPEN   "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}"

enum { ROUNDS = 21 };

/* Of this thread: nothing here waits, so time that others had the processor is not ours. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct rv__schema *schema_of(const char *text)
{
    struct rv__schema *schema = NULL;
    rv_error err = { .message = "" };
    if (rv__schema_new(rv__str(text), NULL, &schema, &err) < 0) {
        fprintf(stderr, "bench_schema: %s\n", err.message);
        abort();
    }
    return schema;
}

static void orders(struct rv__buf *out, size_t bytes)
{
    rv__buf_char(out, '[');
    for (int i = 0; out->len < bytes; i++)
        rv__buf_fmt(out,
                    "%s{\"id\":\"ord-%d\",\"customer\":{\"name\":\"Ada Lovelace\",\"email\":"
                    "\"ada%d@example.com\"},\"placed\":\"2026-01-31T10:%02d:00Z\",\"status\":"
                    "\"paid\",\"lines\":[{\"sku\":\"A-%d\",\"count\":%d,\"price\":%d.%02d},"
                    "{\"sku\":\"B\",\"count\":1,\"price\":9.5}]}",
                    i ? "," : "", i, i, i % 60, i % 1000, i % 9 + 1, i % 100, i % 100);
    rv__buf_char(out, ']');
}

static void names(struct rv__buf *out, size_t bytes)
{
    rv__buf_char(out, '[');
    for (int i = 0; out->len < bytes; i++)
        rv__buf_fmt(out, "%s\"item %d\"", i ? "," : "", (int)((unsigned)i * 7919u % 10000019u));
    rv__buf_char(out, ']');
}

static void members(struct rv__buf *out, size_t bytes)
{
    rv__buf_char(out, '{');
    for (int i = 0; out->len < bytes; i++)
        rv__buf_fmt(out, "%s\"key%d\":%d", i ? "," : "", (int)((unsigned)i * 7919u % 10000019u), i);
    rv__buf_char(out, '}');
}

static double check_s(const struct rv__schema *schema, struct rv__str text)
{
    rv_error err = { .message = "" };
    double start = seconds();
    if (rv__schema_check(schema, text, NULL, &err) < 0) {
        fprintf(stderr, "bench_schema: %s\n", err.message);
        abort();
    }
    return seconds() - start;
}

static double pass_s(struct rv__str text)
{
    double start = seconds();
    if (rv__json_check(text, RV__JSON_VALUE_DEPTH, NULL, NULL) < 0)
        abort();
    return seconds() - start;
}

static void one_megabyte(struct bench *b)
{
    struct rv__schema *schema = schema_of(SCHEMA);
    double check[ROUNDS] = { 0 }, pass[ROUNDS] = { 0 };
    struct rv__buf text;
    rv__buf_init(&text, 64u << 20);
    orders(&text, 1 << 20);
    for (int r = -2; r < ROUNDS; r++) {
        double c = check_s(schema, rv__buf_view(&text)), p = pass_s(rv__buf_view(&text));
        if (r >= 0) {
            check[r] = c;
            pass[r] = p;
        }
    }
    double c = bench_median(check, ROUNDS), p = bench_median(pass, ROUNDS);
    bench_figure(b, "1 MB of orders: one pass of rv__json_check()", p * 1e3, "ms");
    bench_goal(b, "1 MB of orders: checked against a schema", c * 1e3, "ms", false, 20);
    bench_figure(b, "1 MB of orders: a check, in passes over the text", c / p, "x");
    rv__buf_done(&text);
    rv__schema_free(schema);
}

/* Sizes take turns, so that a slow moment of the machine meets both. */
static void growth(struct bench *b, const char *name, const char *schema_text,
                   void (*make)(struct rv__buf *, size_t))
{
    struct rv__schema *schema = schema_of(schema_text);
    double small_s[ROUNDS] = { 0 }, large_s[ROUNDS] = { 0 };
    struct rv__buf small, large;
    rv__buf_init(&small, 64u << 20);
    rv__buf_init(&large, 64u << 20);
    make(&small, 1 << 20);
    make(&large, 10 << 20);
    for (int r = -1; r < ROUNDS; r++) {
        double s = check_s(schema, rv__buf_view(&small)), l = check_s(schema, rv__buf_view(&large));
        if (r >= 0) {
            small_s[r] = s / (double)small.len;
            large_s[r] = l / (double)large.len;
        }
    }
    bench_goal(b, name, bench_median(large_s, ROUNDS) / bench_median(small_s, ROUNDS), "x", false,
               1.3);
    rv__buf_done(&small);
    rv__buf_done(&large);
    rv__schema_free(schema);
}

static void compiling(struct bench *b)
{
    double us[ROUNDS];
    for (int r = 0; r < ROUNDS; r++) {
        double start = seconds();
        rv__schema_free(schema_of(SCHEMA));
        us[r] = (seconds() - start) * 1e6;
    }
    bench_figure(b, "compiling a schema of a kilobyte", bench_median(us, ROUNDS), "us");
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_init(&b, "bench_schema", argc, argv);
    /* Memory is used again at every size: what counts is our work, not pages that the kernel clears. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);    /* NOLINT(concurrency-mt-unsafe): no thread yet */
    mallopt(M_TRIM_THRESHOLD, 2000000000); /* NOLINT(concurrency-mt-unsafe) */
    compiling(&b);
    one_megabyte(&b);
    growth(&b, "orders: growth of a byte's cost from 1 MB to 10 MB", SCHEMA, orders);
    growth(&b, "uniqueItems: growth from 1 MB to 10 MB", UNIQUE, names);
    growth(&b, "one large object: growth from 1 MB to 10 MB", OPEN, members);
    return bench_done(&b);
}
