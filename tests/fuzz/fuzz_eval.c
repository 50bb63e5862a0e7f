/* fuzz_eval.c: random programs on random data, through evaluator processes: src/expr, src/exec/evaluator.c,
 * src/jq, and libjq behind them.
 *
 *   fuzz_eval [SECONDS [SEED]]        FUZZ_SECONDS, if set, is SECONDS
 *
 * libjq may crash, hang or ask for all memory, as it likes; what is judged is everything else:
 *   - each evaluation is answered once, with a value that is JSON or an error of those that there are;
 *   - a constant among them is what it is, whatever dies beside it;
 *   - the same expression on the same data gives the same again, and a plain path what jq gives;
 *   - nothing takes longer than WORST_S, and no process is left at the end.
 * Prints how many of each, and the ways in which libjq died. Speaks TAP; exits 1 with the seed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/random.h"
#include "exec/exec.h"
#include "host_program.h"
#include "unit/expr/scope.h"

enum { EXPRS = 24, SCOPES = 8, DEPTH = 5, CPU_MS = 100, WORST_S = 120, WAYS = 64 };

struct job {
    struct rv__evaluation evaluation; /* first */
    struct fuzz *fuzz;
    int code; /* 0: a value */
    int answers;
    char *text; /* the value, or the error */
};

struct fuzz {
    struct rv__random random;
    uint64_t seed;
    struct rv__evaluator *evaluator;
    pthread_mutex_t lock;
    pthread_cond_t more;
    int left;
    struct rv__buf program;
    long sets, refused, evaluations, values, errors, late, crashes;
    char ways[WAYS][160]; /* how libjq died */
    long way_counts[WAYS];
};

static void bad(const struct fuzz *f, const char *what, const char *program, const char *more)
{
    printf("# seed %llu: %s\n# %s\n# %s\nnot ok 1 - fuzz_eval\n", (unsigned long long)f->seed, what,
           program, more);
    fflush(stdout);
    exit(1);
}

/* -------------------------------------------------------------------------------- programs --- */

static uint64_t below(struct fuzz *f, uint64_t n)
{
    return rv__random_below(&f->random, n);
}

static const char *one_of(struct fuzz *f, const char *const *list, size_t count)
{
    return list[below(f, count)];
}
#define ONE_OF(f, list) one_of(f, list, sizeof list / sizeof *list)

static const char *const names0[] = {
    "length",
    "utf8bytelength",
    "keys",
    "keys_unsorted",
    "values",
    "nulls",
    "add",
    "any",
    "all",
    "flatten",
    "floor",
    "sqrt",
    "tostring",
    "tonumber",
    "type",
    "infinite",
    "nan",
    "isinfinite",
    "isnan",
    "isnormal",
    "sort",
    "unique",
    "reverse",
    "min",
    "max",
    "ascii_downcase",
    "ascii_upcase",
    "explode",
    "implode",
    "tojson",
    "fromjson",
    "todate",
    "fromdate",
    "gmtime",
    "mktime",
    "first",
    "last",
    "to_entries",
    "from_entries",
    "paths",
    "leaf_paths",
    "transpose",
    "tostream",
    "empty",
    "not",
    "recurse",
    "arrays",
    "objects",
    "iterables",
    "booleans",
    "numbers",
    "strings",
    "scalars",
    "finites",
    "normals",
    "ascii",
    "combinations",
    "trunc",
    "round",
    "ceil",
    "fabs",
    "exp10",
    "log2",
    "significand",
    "logb",
    "gamma",
    "frexp",
    "modf",
    "@text",
    "@json",
    "@html",
    "@uri",
    "@csv",
    "@tsv",
    "@sh",
    "@base64",
    "@base64d",
    "error",
    ".",
    "..",
    ".[]",
    ".[]?",
    "getpath([\"a\",0])",
    "dateadd(\"seconds\"; 1)",
    "localtime",
    "strptime(\"%Y\")",
};
static const char *const names1[] = {
    "map",
    "map_values",
    "path",
    "del",
    "has",
    "in",
    "contains",
    "inside",
    "startswith",
    "endswith",
    "split",
    "join",
    "range",
    "sort_by",
    "group_by",
    "min_by",
    "max_by",
    "unique_by",
    "index",
    "rindex",
    "indices",
    "ltrimstr",
    "rtrimstr",
    "test",
    "match",
    "capture",
    "scan",
    "flatten",
    "with_entries",
    "select",
    "recurse",
    "first",
    "last",
    "isempty",
    "error",
    "any",
    "all",
    "paths",
    "delpaths",
    "getpath",
    "to_entries|map",
    "walk",
    "bsearch",
    "strftime",
    "strptime",
    "tojson|test",
    "combinations",
    "splits",
    "ascii_downcase|split",
    "truncate_stream",
    "fromstream",
    "repeat",
    "nth",
};
static const char *const names2[] = {
    "range", "sub",   "gsub", "setpath", "limit", "until", "while", "nth", "test",    "split",
    "pow",   "atan2", "fmod", "ldexp",   "scalb", "INDEX", "any",   "all", "recurse", "match",
};
static const char *const literals[] = {
    "0",         "1",      "-1",      "2",         "3.5",        "1e18",          "-1e18",
    "1e308",     "1e1000", "0.1",     "1e9",       "null",       "true",          "false",
    "\"\"",      "\"a\"",  "\"nan\"", "\"%Y\"",    "\"(a*)*b\"", "\"\\\\u0000\"", "\"x,y\"",
    "[]",        "{}",     "[1,2,3]", "{\"a\":1}", "nan",        "infinite",      "\"\\\\(1+1)\"",
    "[[1],[2]]", "[0]",    "\"é😀\"",
};
static const char *const paths[] = {
    ".input",
    ".input.a",
    ".input.b",
    ".input[\"a\"]",
    ".input.a[0]",
    ".input.a[-1]",
    ".input.b.a",
    ".steps.s.result",
    ".steps.s.result[0]",
    ".steps.s.status",
    ".lastStep",
    ".loop.item",
    ".run",
    ".input.a.b[1].c",
};
static const char *const operators[] = { "+",  "-",  "*",  "/",  "%",   "==", "!=", "<",
                                         "<=", ">",  ">=", ",",  "and", "or", "//", "|",
                                         "|=", "+=", "-=", "*=", "=",   "//=" };

static void put_expr(struct fuzz *f, int depth);

static void put(struct fuzz *f, const char *text)
{
    rv__buf_text(&f->program, text);
}

static void put_in(struct fuzz *f, const char *before, int depth, const char *after)
{
    put(f, before);
    put_expr(f, depth - 1);
    put(f, after);
}

static void put_slice(struct fuzz *f, int depth)
{
    put_in(f, "(", depth, ")[");
    if (below(f, 3) > 0)
        put_expr(f, depth - 1);
    else
        put(f, "0");
    put(f, ":");
    if (below(f, 2) > 0)
        put_expr(f, depth - 1);
    put(f, "]");
}

static void put_compound(struct fuzz *f, int depth)
{
    switch (below(f, 9)) {
    case 0:
        put_in(f, "if ", depth, " then ");
        put_in(f, "", depth, " else ");
        put_in(f, "", depth, " end");
        break;
    case 1:
        put_in(f, "reduce (", depth, ") as $x (");
        put_in(f, "", depth, "; ");
        put_in(f, "", depth, " | . as $y | $x)");
        break;
    case 2:
        put_in(f, "[limit(20; foreach (", depth, ") as $x (");
        put_in(f, "", depth, "; ");
        put_in(f, "", depth, "))]");
        break;
    case 3: put_in(f, "(try (", depth, ") catch .)"); break;
    case 4:
        put_in(f, "((", depth, ") as [$x, {a: $y}] | ");
        put_in(f, "", depth, ")");
        break;
    case 5: put_in(f, "{a: (", depth, "), \"b\": 1}"); break;
    case 6: put_slice(f, depth); break;
    case 7: put_in(f, "[limit(50; ", depth, ")]"); break;
    default: put_in(f, "\"\\(", depth, ")\""); break;
    }
}

static void put_expr(struct fuzz *f, int depth)
{
    if (depth <= 0) {
        put(f, below(f, 2) ? ONE_OF(f, literals) : ONE_OF(f, paths));
        return;
    }
    switch (below(f, 8)) {
    case 0: put(f, ONE_OF(f, literals)); break;
    case 1: put(f, ONE_OF(f, paths)); break;
    case 2:
        put_in(f, "(", depth, " | ");
        put(f, ONE_OF(f, names0));
        put(f, ")");
        break;
    case 3:
        put_in(f, "(", depth, " | ");
        put(f, ONE_OF(f, names1));
        put_in(f, "(", depth, "))");
        break;
    case 4:
        put_in(f, "(", depth, " | ");
        put(f, ONE_OF(f, names2));
        put_in(f, "(", depth, "; ");
        put_in(f, "", depth, "))");
        break;
    case 5:
        put_in(f, "((", depth, ") ");
        put(f, ONE_OF(f, operators));
        put_in(f, " (", depth, "))");
        break;
    default: put_compound(f, depth);
    }
}

/* ------------------------------------------------------------------------------------ data --- */

static void put_data(struct fuzz *f, struct rv__buf *out, int depth)
{
    static const char *const scalars[] = {
        "0",
        "1",
        "-7",
        "2.5",
        "1e18",
        "-1e300",
        "9007199254740991",
        "null",
        "true",
        "false",
        "\"\"",
        "\"a\"",
        "\"nan\"",
        "\"-0\"",
        "\"2026-01-01T00:00:00Z\"",
        "\"é\"",
        "1e999",
        "\"1e999\"",
        "[]",
        "{}",
        "\"a,b\"",
        "\"\\u0000\"",
    };
    static const char *const keys[] = { "a", "b", "c", "", "key", "é" };
    uint64_t kind = depth <= 0 ? 0 : below(f, 3);
    if (kind == 0) {
        rv__buf_text(out, ONE_OF(f, scalars));
        return;
    }
    rv__buf_char(out, kind == 1 ? '[' : '{');
    size_t count = below(f, below(f, 20) == 0 ? 300 : 5);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            rv__buf_char(out, ',');
        if (kind == 2) {
            rv__buf_json_str(out, rv__str(ONE_OF(f, keys)));
            rv__buf_char(out, ':');
        }
        put_data(f, out, depth - 1);
    }
    rv__buf_char(out, kind == 1 ? ']' : '}');
}

static void fill_scope(struct fuzz *f, struct test_scope *scope)
{
    static const char *const where[][3] = {
        { "input", NULL, NULL },        { "steps", "s", "result" }, { "steps", "s", "state" },
        { "lastStep", "result", NULL }, { "loop", "item", NULL },   { "run", NULL, NULL },
    };
    struct rv__buf data;
    test_scope_init(scope);
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        rv__buf_init(&data, 1 << 20);
        put_data(f, &data, 4);
        if (data.rc == RV_OK)
            test_scope_put(scope, where[i][0], where[i][1], where[i][2], data.text);
        rv__buf_done(&data);
    }
    test_scope_put(scope, "steps", "s", "status", "\"completed\"");
}

/* ------------------------------------------------------------------------------ evaluating --- */

static void done(struct rv__evaluation *evaluation, struct rv__str json, const rv_error *err)
{
    struct job *job = (struct job *)evaluation;
    struct fuzz *f = job->fuzz;
    pthread_mutex_lock(&f->lock);
    job->answers++;
    job->code = err != NULL ? err->code : 0;
    job->text = err != NULL ? strdup(err->message) : strndup(json.at, json.len);
    f->left--;
    pthread_cond_signal(&f->more);
    pthread_mutex_unlock(&f->lock);
}

static void start(struct fuzz *f, struct job *job, struct rv__exprs *set, uint32_t number,
                  struct rv__scope *scope)
{
    *job = (struct job){ .fuzz = f,
                         .evaluation = { .set = set,
                                         .number = number,
                                         .scope = scope,
                                         .cpu_ms = CPU_MS,
                                         .done = done } };
    pthread_mutex_lock(&f->lock);
    f->left++;
    pthread_mutex_unlock(&f->lock);
    rv__evaluator_start(f->evaluator, &job->evaluation);
}

static void wait_for_all(struct fuzz *f)
{
    int64_t deadline_ns = rv__deadline_ns((int64_t)WORST_S * 1000);
    pthread_mutex_lock(&f->lock);
    while (f->left > 0)
        if (rv__mono_ns(rv__clock_real()) > deadline_ns)
            bad(f, "evaluations are not answered", "", "");
        else
            (void)rv__cond_wait_until(&f->more, &f->lock, deadline_ns);
    pthread_mutex_unlock(&f->lock);
}

static void count_death(struct fuzz *f, const char *message)
{
    const char *how = strstr(message, "evaluator: ");
    how = how != NULL ? how + 11 : message;
    for (int i = 0; i < WAYS; i++) {
        if (f->way_counts[i] == 0)
            snprintf(f->ways[i], sizeof f->ways[i], "%s", how);
        if (strncmp(f->ways[i], how, sizeof f->ways[i] - 1) == 0) {
            f->way_counts[i]++;
            return;
        }
    }
}

static void judge(struct fuzz *f, const struct job *job, const char *program)
{
    if (job->answers != 1 || job->text == NULL)
        bad(f, "not answered once", program, "");
    f->evaluations++;
    switch (job->code) {
    case 0:
        f->values++;
        if (rv__json_check(rv__str(job->text), RV__JSON_VALUE_DEPTH, NULL, NULL) < 0)
            bad(f, "its value is not JSON", program, job->text);
        break;
    case RV_EINVAL:
    case RV_ETOOBIG: f->errors++; break;
    case RV_ETIMEDOUT: f->late++; break;
    case RV_EFAILED:
        f->crashes++;
        if (strstr(job->text, "the expression crashed the evaluator: ") == NULL ||
            strstr(job->text, "Sanitizer") != NULL)
            bad(f, "an error that nobody knows", program, job->text);
        count_death(f, job->text);
        break;
    default: bad(f, "an error that nobody knows", program, job->text);
    }
}

/* What depends on the time, or on how much of it there was, may differ. */
static bool same(const struct job *a, const struct job *b, const char *program)
{
    static const char *const moving[] = { "now", "localtime", "strflocaltime", "mktime" };
    if (a->code == RV_ETIMEDOUT || b->code == RV_ETIMEDOUT || a->code == RV_EFAILED ||
        b->code == RV_EFAILED)
        return true;
    for (size_t i = 0; i < sizeof moving / sizeof *moving; i++)
        if (strstr(program, moving[i]) != NULL)
            return true;
    /* libjq 1.6: `catch` sees the number of a label that |= made, and those go on counting. */
    if (strstr(a->text, "__jq") != NULL && strstr(b->text, "__jq") != NULL)
        return true;
    return a->code == b->code && strcmp(a->text, b->text) == 0;
}

/* A plain path keeps the bytes, jq writes numbers anew: compared is what they mean, but for large numbers. */
static void compare_path(struct fuzz *f, const struct job *plain, const struct job *jq,
                         const char *program)
{
    struct rv__buf a, b;
    if ((plain->code != 0) != (jq->code != 0))
        bad(f, "a plain path is not what jq gives", program, jq->text);
    if (plain->code != 0 || strstr(plain->text, "e1") != NULL ||
        strstr(plain->text, "e3") != NULL || strstr(plain->text, "e9") != NULL)
        return;
    rv__buf_init(&a, 1 << 22);
    rv__buf_init(&b, 1 << 22);
    if (rv__json_canonical(rv__str(plain->text), &a, NULL) < 0 ||
        rv__json_canonical(rv__str(jq->text), &b, NULL) < 0 ||
        !rv__str_eq(rv__buf_view(&a), rv__buf_view(&b)))
        bad(f, "a plain path is not what jq gives", plain->text, jq->text);
    rv__buf_done(&a);
    rv__buf_done(&b);
}

static uint32_t add(struct fuzz *f, struct rv__exprs *set, const char *program, bool *added)
{
    struct rv__buf json, text;
    uint32_t number = 0;
    rv__buf_init(&text, 1 << 20);
    rv__buf_init(&json, 1 << 20);
    rv__buf_fmt(&text, "${ %s }", program);
    rv__buf_json_str(&json, rv__buf_view(&text));
    *added = json.rc == RV_OK && rv__exprs_add(set, rv__buf_view(&json), &number, NULL) == RV_OK;
    f->refused += !*added;
    rv__buf_done(&text);
    rv__buf_done(&json);
    return number;
}

static void drop_bad(void *arg, const struct rv__expr_bad *one)
{
    ((bool *)arg)[one->number] = true;
}

/* All of a set on one scope. */
static void try_set(struct fuzz *f, struct rv__exprs *set, char *const *programs,
                    const uint32_t *numbers, const bool *added, uint32_t constant)
{
    static struct job jobs[EXPRS], again[EXPRS], constants[EXPRS];
    struct test_scope scope;
    fill_scope(f, &scope);
    for (int i = 0; i < EXPRS; i++) {
        if (added[i]) {
            start(f, &jobs[i], set, numbers[i], &scope.scope);
            start(f, &again[i], set, numbers[i], &scope.scope);
        }
        start(f, &constants[i], set, constant, &scope.scope);
    }
    wait_for_all(f);
    if (added[EXPRS - 2] && added[EXPRS - 1])
        compare_path(f, &jobs[EXPRS - 2], &jobs[EXPRS - 1], programs[EXPRS - 2]);
    for (int i = 0; i < EXPRS; i++) {
        if (added[i]) {
            judge(f, &jobs[i], programs[i]);
            judge(f, &again[i], programs[i]);
            if (!same(&jobs[i], &again[i], programs[i]))
                bad(f, "not the same again", programs[i], again[i].text);
            free(jobs[i].text);
            free(again[i].text);
        }
        if (constants[i].code != 0 || strcmp(constants[i].text, "2") != 0)
            bad(f, "a constant is not what it is", programs[i], constants[i].text);
        free(constants[i].text);
    }
    test_scope_done(&scope);
}

/* One set of programs, on several scopes. */
static void round_of(struct fuzz *f)
{
    struct rv__exprs *set = NULL;
    char *programs[EXPRS];
    uint32_t numbers[EXPRS], constant;
    bool added[EXPRS], yes, refused[4 * EXPRS] = { false };
    rv_error err;
    if (rv__exprs_new(&set, NULL) < 0)
        abort();
    for (int i = 0; i < EXPRS; i++) { /* the last two: a plain path, and the same through jq */
        rv__buf_reset(&f->program);
        put_expr(f, i < EXPRS - 2 ? (int)below(f, DEPTH) + 1 : 0);
        if (i == EXPRS - 2) {
            rv__buf_reset(&f->program);
            put(f, ONE_OF(f, paths));
        }
        programs[i] = i == EXPRS - 1 ? NULL : strdup(rv__buf_view(&f->program).at);
        if (i == EXPRS - 1) {
            rv__buf_reset(&f->program);
            rv__buf_fmt(&f->program, "%s | .", programs[i - 1]);
            programs[i] = strdup(f->program.text);
        }
        numbers[i] = add(f, set, programs[i], &added[i]);
    }
    constant = add(f, set, "1 + 1", &yes);
    f->sets++;
    int rc = rv__exprs_check(set, rv__evaluator_compiler(f->evaluator), drop_bad, refused, &err);
    if (rc < 0 && rc != RV_EPARSE && rc != RV_EFAILED)
        bad(f, "it cannot be checked", err.message, "");
    if (rc == RV_EPARSE) { /* once more, with those that compile */
        struct rv__exprs *good = NULL;
        if (rv__exprs_new(&good, NULL) < 0)
            abort();
        for (int i = 0; i < EXPRS; i++) {
            bool out = added[i] && refused[numbers[i]];
            f->refused += out;
            if (added[i] && !out)
                numbers[i] = add(f, good, programs[i], &yes);
            added[i] = added[i] && !out;
        }
        constant = add(f, good, "1 + 1", &yes);
        rv__exprs_unref(set);
        set = good;
        rc = RV_OK;
    }
    for (int i = 0; i < SCOPES && rc == RV_OK; i++)
        try_set(f, set, programs, numbers, added, constant);
    for (int i = 0; i < EXPRS; i++)
        free(programs[i]);
    rv__exprs_unref(set);
}

int main(int argc, char **argv)
{
    static struct fuzz f;
    const char *seconds = getenv("FUZZ_SECONDS");
    seconds = seconds != NULL ? seconds : argc > 1 ? argv[1] : "5";
    rv_error err;
    name_host_program();
    if (argc > 2 && getenv("MINUTES") == NULL)
        f.seed = strtoull(argv[2], NULL, 10);
    else if (rv__random_seed_system(&f.seed, &err) < 0)
        return 1;
    rv__random_init(&f.random, f.seed);
    rv__buf_init(&f.program, 1 << 20);
    pthread_mutex_init(&f.lock, NULL);
    if (rv__cond_init(&f.more) != 0 ||
        rv__evaluator_new(&(struct rv__evaluator_opts){ .memory_bytes = UINT64_C(512) << 20 },
                          &f.evaluator, &err) < 0)
        return 1;
    printf("1..1\n# seed %llu\n", (unsigned long long)f.seed);
    int64_t end_ns = rv__deadline_ns(strtoll(seconds, NULL, 10) * 1000);
    while (rv__mono_ns(rv__clock_real()) < end_ns)
        round_of(&f);
    rv__evaluator_free(f.evaluator);
    rv__buf_done(&f.program);
    printf(
        "# %ld sets, %ld expressions refused; %ld evaluations: %ld values, %ld errors, %ld late, "
        "%ld crashes of jq\n",
        f.sets, f.refused, f.evaluations, f.values, f.errors, f.late, f.crashes);
    for (int i = 0; i < WAYS && f.way_counts[i] > 0; i++)
        printf("# %6ld x %s\n", f.way_counts[i], f.ways[i]);
    printf("ok 1 - fuzz_eval finds nothing in %ld evaluations\n", f.evaluations);
    return 0;
}
