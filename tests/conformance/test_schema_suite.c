/* test_schema_suite.c: the public JSON Schema test suite, draft 2020-12, against src/schema.
 *
 *   test_schema_suite FOLDER       the suite's root; RIVAL_SCHEMA_SUITE, if set, is taken instead
 *
 * Each case is a result of its own. What we leave out stands in a table, with the reason; and it is
 * checked that it is still left out: a schema that we refuse must be refused, not misjudged, and a
 * case where we differ must differ, or its row has to go. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/json.h"
#include "schema/schema.h"

#define DRAFT "tests/draft2020-12/"

enum kind {
    MAY_REFUSE, /* the schema is refused when it is compiled; if not, the answer must be right */
    DIFFERS,    /* our answer is the other one */
    ACCEPTED,   /* so it is for what is not valid; what is, is judged rightly */
};

#define REMOTE   "remote references are not supported"
#define DYNAMIC  "dynamic references are not supported"
#define ASSERTED "format is asserted here; the suite's default is to annotate"
#define IDNA     "A-labels are checked as host names only, not by the tables of IDNA 2008"

#define ANNOTATED(name)                                                                       \
    {                                                                                         \
        "format", name " format", "invalid " name " string is only an annotation by default", \
            DIFFERS, ASSERTED                                                                 \
    }

static const struct exclusion {
    const char *file, *group, *test; /* NULL: all */
    enum kind kind;
    const char *reason;
} exclusions[] = {
    { "refRemote", NULL, NULL, MAY_REFUSE, REMOTE },
    { "defs", "validate definition against metaschema", NULL, MAY_REFUSE, REMOTE },
    { "ref", "remote ref, containing refs itself", NULL, MAY_REFUSE, REMOTE },
    { "dynamicRef", NULL, NULL, MAY_REFUSE, DYNAMIC },
    { "optional/dynamicRef", NULL, NULL, MAY_REFUSE, DYNAMIC },
    { "unevaluatedItems", "unevaluatedItems with $dynamicRef", NULL, MAY_REFUSE, DYNAMIC },
    { "unevaluatedProperties", "unevaluatedProperties with $dynamicRef", NULL, MAY_REFUSE,
      DYNAMIC },
    { "vocabulary", NULL, NULL, MAY_REFUSE, "vocabularies of one's own are not supported" },
    ANNOTATED("date"),
    ANNOTATED("date-time"),
    ANNOTATED("email"),
    ANNOTATED("hostname"),
    ANNOTATED("ipv4"),
    ANNOTATED("ipv6"),
    ANNOTATED("json-pointer"),
    ANNOTATED("regex"),
    ANNOTATED("time"),
    ANNOTATED("uri"),
    ANNOTATED("uuid"),
    { "optional/format/hostname", "validation of A-label (punycode) host names", NULL, ACCEPTED,
      IDNA },
    { "optional/format/ecmascript-regex", "ECMA 262 lookbehind is valid, including variable width",
      "a variable-width lookbehind (ES2018)", DIFFERS, "PCRE2 looks back by a known width only" },
};

static const char *const files[] = {
    "additionalProperties",
    "allOf",
    "anchor",
    "anyOf",
    "boolean_schema",
    "const",
    "contains",
    "content",
    "default",
    "defs",
    "dependentRequired",
    "dependentSchemas",
    "dynamicRef",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if-then-else",
    "infinite-loop-detection",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "ref",
    "refRemote",
    "required",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "vocabulary",
    "optional/anchor",
    "optional/bignum",
    "optional/dynamicRef",
    "optional/ecmascript-regex",
    "optional/float-overflow",
    "optional/id",
    "optional/no-schema",
    "optional/non-bmp-regex",
    "optional/refOfUnknownKeyword",
    "optional/unknownKeyword",
    "optional/format/date",
    "optional/format/date-time",
    "optional/format/ecmascript-regex",
    "optional/format/email",
    "optional/format/hostname",
    "optional/format/ipv4",
    "optional/format/ipv6",
    "optional/format/json-pointer",
    "optional/format/regex",
    "optional/format/time",
    "optional/format/unknown",
    "optional/format/uri",
    "optional/format/uuid",
};

struct tally {
    size_t total, passed, failed, excluded;
};

struct test {
    const char *file;
    struct rv__str group, name, data;
    bool valid;
};

static bool read_file(const char *path, struct rv__buf *out)
{
    char piece[65536];
    size_t n;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    while ((n = fread(piece, 1, sizeof piece, file)) > 0)
        rv__buf_add(out, piece, n);
    fclose(file);
    return out->rc == RV_OK;
}

static const struct exclusion *excluded(const struct test *t)
{
    for (size_t i = 0; i < sizeof exclusions / sizeof *exclusions; i++) {
        const struct exclusion *e = &exclusions[i];
        if (strcmp(e->file, t->file) == 0 && (!e->group || rv__str_is(t->group, e->group)) &&
            (!e->test || rv__str_is(t->name, e->test)))
            return e;
    }
    return NULL;
}

static void report(struct tally *tally, const struct test *t, bool ok, const char *skip,
                   const char *why)
{
    tally->total++;
    printf("%s %zu - %s: %.*s: %.*s", ok ? "ok" : "not ok", tally->total, t->file,
           RV__ARG(t->group), RV__ARG(t->name));
    if (ok && skip != NULL) {
        tally->excluded++;
        printf(" # SKIP %s", skip);
    } else if (ok) {
        tally->passed++;
    } else {
        tally->failed++;
        printf("\n# %s", why);
    }
    printf("\n");
}

/* `schema` is NULL if it was refused. */
static void run_test(struct tally *tally, const struct rv__schema *schema, const struct test *t,
                     const char *refused)
{
    const struct exclusion *e = excluded(t);
    rv_error err = { .message = "" };
    if (schema == NULL) {
        bool expected = e != NULL && e->kind == MAY_REFUSE;
        report(tally, t, expected, expected ? e->reason : NULL, refused);
        return;
    }
    int rc = rv__schema_check(schema, t->data, NULL, &err);
    bool right = rc == (t->valid ? RV_OK : RV_EINVAL);
    if (e != NULL && (e->kind == DIFFERS || (e->kind == ACCEPTED && !t->valid)))
        report(tally, t, !right, e->reason, "this answer is right: take its row out of the table");
    else
        report(tally, t, right, NULL, rc < 0 ? err.message : "should not be valid");
}

static void run_group(struct tally *tally, const char *file, struct rv__str group,
                      struct rv__arena *arena)
{
    struct rv__str text = { NULL, 0 }, tests = { NULL, 0 }, item;
    struct rv__schema *schema = NULL;
    struct rv__json_iter it;
    rv_error err = { .message = "" };
    struct test t = { .file = file };
    if (!rv__json_get(group, "schema", &text) || !rv__json_get(group, "tests", &tests) ||
        !rv__json_get(group, "description", &t.group) ||
        rv__json_string(t.group, arena, &t.group) < 0)
        abort();
    (void)rv__schema_new(text, NULL, &schema, &err);
    rv__json_iter_init(&it, tests);
    while (rv__json_next(&it, NULL, &item)) {
        struct rv__str valid = { NULL, 0 };
        if (!rv__json_get(item, "description", &t.name) || !rv__json_get(item, "data", &t.data) ||
            !rv__json_get(item, "valid", &valid) || rv__json_string(t.name, arena, &t.name) < 0 ||
            rv__json_bool(valid, &t.valid) < 0)
            abort();
        run_test(tally, schema, &t, err.message);
    }
    rv__schema_free(schema);
}

static void run_file(struct tally *tally, const char *folder, const char *file)
{
    struct rv__buf text;
    struct rv__arena arena;
    struct rv__json_iter it;
    struct rv__str root, group;
    char path[1000];
    snprintf(path, sizeof path, "%s/" DRAFT "%s.json", folder, file);
    rv__buf_init(&text, 64u << 20);
    rv__arena_init(&arena, 64u << 20);
    if (!read_file(path, &text) ||
        rv__json_check(rv__buf_view(&text), RV__JSON_VALUE_DEPTH, &root, NULL) < 0) {
        tally->failed++;
        printf("not ok %zu - %s: cannot be read\n", ++tally->total, path);
    } else {
        rv__json_iter_init(&it, root);
        while (rv__json_next(&it, NULL, &group))
            run_group(tally, file, group, &arena);
    }
    rv__arena_done(&arena);
    rv__buf_done(&text);
}

int main(int argc, char **argv)
{
    struct tally tally = { 0 };
    const char *folder = getenv("RIVAL_SCHEMA_SUITE");
    char path[1000];
    if (folder == NULL)
        folder = argc > 1 ? argv[1] : ".";
    snprintf(path, sizeof path, "%s/" DRAFT, folder);
    if (access(path, R_OK) != 0) {
        printf("1..1\nok 1 - the JSON Schema test suite # SKIP there is none at %s\n", folder);
        printf("# => SKIPPED: no JSON Schema test suite at %s; set RIVAL_SCHEMA_SUITE\n", folder);
        return 0;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        run_file(&tally, folder, files[i]);
    printf("1..%zu\n", tally.total);
    printf("# => JSON Schema test suite: %zu passed, %zu excluded, %zu failed of %zu\n",
           tally.passed, tally.excluded, tally.failed, tally.total);
    return tally.failed ? 1 : 0;
}
