/* test_load.c: files and folders, for src/define/{discover,load,judge}.c. */
#include "define_test.h"

#include <sys/stat.h>
#include <unistd.h>

/* A folder of its own for each test; everything in it goes with it. */
struct folder {
    char path[64];
};

static int setup(void **state)
{
    struct folder *folder = calloc(1, sizeof *folder);
    snprintf(folder->path, sizeof folder->path, "/tmp/rv-define-XXXXXX");
    *state = folder;
    return mkdtemp(folder->path) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct folder *folder = *state;
    char command[128];
    rv__test_fail_alloc_after(-1);
    snprintf(command, sizeof command, "rm -rf '%s'", folder->path);
    int rc = system(command);
    free(folder);
    return rc;
}

static void put(struct folder *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    for (char *slash = path + strlen(folder->path) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700); /* there already, maybe */
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct rv__definitions *load(struct folder *folder, const char *name)
{
    struct rv__definitions *found = NULL;
    char path[256];
    const char *paths[] = { path };
    rv_error err;
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    int rc = rv__define_load(paths, 1, NULL, &define_compiler, &found, &err);
    if (rc != RV_OK)
        fail_msg("%d: %s", rc, err.message);
    return found;
}

/* "name file", a line for each; then "file:line: message", without the folder. */
static void expect(struct folder *folder, struct rv__definitions *found, const char *expected)
{
    struct rv__buf got;
    size_t skip = strlen(folder->path) + 1;
    rv__buf_init(&got, 1 << 16);
    for (size_t i = 0; i < found->count; i++) {
        const struct rv__definition *item = &found->items[i];
        rv__buf_fmt(&got, "%.*s %s\n", RV__ARG(item->name), item->file.at + skip);
    }
    for (size_t i = 0; i < found->other_count; i++)
        rv__buf_fmt(&got, "other %d %s\n", (int)found->others[i].kind,
                    found->others[i].file.at + skip);
    for (size_t i = 0; i < found->problem_count; i++) {
        const struct rv__problem *problem = &found->problems[i];
        const char *message = problem->message.at, *inner;
        rv__buf_fmt(&got, "%s:%u: ", problem->file.at + skip, problem->line);
        while ((inner = strstr(message, folder->path)) != NULL) {
            rv__buf_add(&got, message, (size_t)(inner - message));
            message = inner + skip;
        }
        rv__buf_fmt(&got, "%s\n", message);
    }
    if (strcmp(got.text ? got.text : "", expected) != 0)
        fail_msg("got\n%sinstead of\n%s", got.text ? got.text : "", expected);
    rv__buf_done(&got);
    rv__definitions_free(found);
}

#define GOOD(name)        "name: " name "\nsteps:\n  - a: { value: 1 }\n"
#define NESTS(name, what) "name: " name "\nsteps:\n  - n: { workflow: " what " }\n"

static void folders_are_searched_in_order(void **state)
{
    struct folder *folder = *state;
    put(folder, "b.yaml", GOOD("b"));
    put(folder, "a.yml", GOOD("a"));
    put(folder, "sub/deep/c.json", "{\"name\":\"c\",\"steps\":[{\"a\":{\"value\":1}}]}");
    put(folder, ".hidden.yaml", "not: [good");
    put(folder, ".git/x.yaml", "not: [good");
    put(folder, "node_modules/x/package.json", "{}");
    put(folder, "notes.txt", "hello");
    put(folder, "steps.c", "int x;");
    put(folder, "z.ts", "export {}");
    put(folder, "y.so", "");
    expect(folder, load(folder, ""),
           "a a.yml\nb b.yaml\nc sub/deep/c.json\nother 0 steps.c\nother 1 y.so\nother 2 z.ts\n");
}

static void good_ones_come_back_and_bad_ones_are_told(void **state)
{
    struct folder *folder = *state;
    put(folder, "a.yaml", GOOD("a"));
    put(folder, "b.yaml", "name: b\nsteps:\n  - x: { valeu: 1 }\n");
    put(folder, "c.yaml", "name: c\nsteps: [\n");
    put(folder, "d.yaml", GOOD("a"));
    expect(folder, load(folder, ""),
           "a a.yaml\n"
           "b.yaml:3: unknown key 'valeu' of a node; did you mean 'value'?\n"
           "c.yaml:2: flow sequence without a closing bracket\n"
           "d.yaml:1: workflow 'a' is already registered, by a.yaml\n");
}

static void what_is_not_there_is_told(void **state)
{
    struct folder *folder = *state;
    put(folder, "notes.txt", "hello");
    expect(folder, load(folder, "nothing.yaml"),
           "nothing.yaml:0: there is no such file or folder\n");
    expect(folder, load(folder, "notes.txt"),
           "notes.txt:0: unknown kind of file: workflows end in .yaml, .yml, .json, .c, .so, .ts, "
           ".js or .mjs\n");
}

static void links_in_a_circle_are_not_followed(void **state)
{
    struct folder *folder = *state;
    char link[128];
    put(folder, "sub/a.yaml", GOOD("a"));
    snprintf(link, sizeof link, "%s/sub/up", folder->path);
    assert_int_equal(symlink("..", link), 0);
    snprintf(link, sizeof link, "%s/b.yaml", folder->path);
    assert_int_equal(symlink("sub/a.yaml", link), 0); /* the same file: loaded once */
    expect(folder, load(folder, ""), "a b.yaml\n");
}

static void a_device_or_pipe_is_no_file(void **state)
{
    struct folder *folder = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/pipe.yaml", folder->path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect(folder, load(folder, "pipe.yaml"), "pipe.yaml:0: this is not a file\n");
}

static void names_are_found_whatever_the_order(void **state)
{
    struct folder *folder = *state;
    put(folder, "a.yaml", NESTS("a", "z"));
    put(folder, "b.yaml", NESTS("b", "./sub/y.yaml"));
    put(folder, "sub/y.yaml", NESTS("why", "../z.yaml"));
    put(folder, "z.yaml", GOOD("z"));
    expect(folder, load(folder, ""), "a a.yaml\nb b.yaml\nwhy sub/y.yaml\nz z.yaml\n");

    struct rv__definitions *found = load(folder, "b.yaml"); /* brings in what it nests */
    assert_int_equal(found->problem_count, 0);
    assert_int_equal(found->count, 3);
    assert_str(found->items[0].directory, folder->path);
    assert_int_equal(found->items[0].plan->node_count, 3);
    rv__definitions_free(found);
    found = load(folder, "a.yaml"); /* and a file of that name beside it */
    assert_int_equal(found->problem_count, 0);
    assert_int_equal(found->count, 2);
    rv__definitions_free(found);
}

static void nesting_something_bad_is_bad(void **state)
{
    struct folder *folder = *state;
    put(folder, "a.yaml", NESTS("a", "b"));
    put(folder, "b.yaml", NESTS("b", "./c.yaml"));
    put(folder, "c.yaml", "name: c\nsteps:\n  - x: { value: 1, jitter: 5 }\n");
    put(folder, "d.yaml", GOOD("d"));
    expect(folder, load(folder, ""),
           "d d.yaml\n"
           "a.yaml:3: this workflow has problems of its own: see b.yaml, line 3\n"
           "b.yaml:3: this workflow has problems of its own: see c.yaml, line 3\n"
           "c.yaml:3: invalid jitter 5: must be from 0 to 1\n");
}

/* Whatever the order in which they come. */
static void bad_news_travel_any_way(void **state)
{
    struct folder *folder = *state;
    put(folder, "a.yaml", "name: a\nsteps:\n  - x: { value: 1, jitter: 5 }\n");
    put(folder, "b.yaml", NESTS("b", "a"));
    put(folder, "c.yaml", NESTS("c", "b"));
    expect(folder, load(folder, ""),
           "a.yaml:3: invalid jitter 5: must be from 0 to 1\n"
           "b.yaml:3: this workflow has problems of its own: see a.yaml, line 3\n"
           "c.yaml:3: this workflow has problems of its own: see b.yaml, line 3\n");
}

static void circles_are_named(void **state)
{
    struct folder *folder = *state;
    put(folder, "a.yaml", NESTS("a", "b"));
    put(folder, "b.yaml", NESTS("b", "c"));
    put(folder, "c.yaml", NESTS("c", "a"));
    put(folder, "d.yaml", NESTS("d", "a"));
    expect(folder, load(folder, ""),
           "a.yaml:3: workflow 'a' contains itself: a -> b -> c -> a\n"
           "b.yaml:3: workflow 'b' contains itself: b -> c -> a -> b\n"
           "c.yaml:3: workflow 'c' contains itself: c -> a -> b -> c\n"
           "d.yaml:3: this workflow has problems of its own: see a.yaml, line 3\n");
}

/* What an engine has registered already can be nested too. */
struct known {
    struct rv__resolver base;
    struct rv__draft *draft;
};

static int find_known(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret)
{
    if (!rv__str_is(name, "old"))
        return RV_ENOTFOUND;
    *ret = ((struct known *)self)->draft;
    return RV_OK;
}

static void others_may_know_more(void **state)
{
    struct folder *folder = *state;
    struct known known = { { find_known }, NULL };
    struct rv__definitions *found = NULL;
    char path[128];
    const char *paths[] = { path };
    snprintf(path, sizeof path, "%s/a.yaml", folder->path);
    put(folder, "a.yaml", NESTS("a", "old"));
    assert_int_equal(rv__draft_new("old", &known.draft, NULL), RV_OK);
    rv__draft_step(rv__draft_root(known.draft), STEP_FUNCTION, "f", NULL, NULL);
    assert_int_equal(rv__define_load(paths, 1, &known.base, &define_compiler, &found, NULL), RV_OK);
    assert_int_equal(found->count, 1);
    rv__definitions_free(found);
    rv__draft_free(known.draft);
}

static int load_quietly(struct folder *folder, struct rv__definitions **ret)
{
    const char *paths[] = { folder->path };
    return rv__define_load(paths, 1, NULL, &define_compiler, ret, NULL);
}

static void no_memory_is_told(void **state)
{
    struct folder *folder = *state;
    struct rv__definitions *found = NULL;
    int rc;
    put(folder, "a.yaml", NESTS("a", "./b.yaml"));
    put(folder, "b.yaml", GOOD("b"));
    put(folder, "c.yaml", "name: c\nsteps:\n  - x: { value: 1, jitter: 5 }\n");
    put(folder, "d.c", "");
    TORTURE(rc, load_quietly(folder, &found), assert_null(found));
    assert_int_equal(rc, RV_OK);
    assert_int_equal(found->count, 2);
    rv__definitions_free(found);
}

static void scripts_are_known_by_their_text(void **state)
{
    static const struct {
        const char *text;
        enum rv__declares declares;
        const char *name;
    } rows[] = {
        { "export const steps = [a]", DECLARES_WORKFLOW, NULL },
        { "export const name = 'x' as const\nexport const steps: S[] = []", DECLARES_WORKFLOW,
          "x" },
        { "const steps = [a]; const b = 1; export { b, steps }", DECLARES_WORKFLOW, NULL },
        { "export const w = createWorkflow(\"made\").step(a)", DECLARES_WORKFLOW, "made" },
        { "const w = defineWorkflow('made', a); export default w", DECLARES_WORKFLOW, "made" },
        { "const w = createWorkflow('made'); await rival(w).run('made')", DECLARES_NOTHING, NULL },
        { "export const w = createWorkflow('made'); rival(w)", DECLARES_NOTHING, NULL },
        { "export function price() {}", DECLARES_NOTHING, NULL },
        { "// export const steps = []\nconst t = 'export const steps'", DECLARES_NOTHING, NULL },
        { "`export const steps ${ 1 }`; /* export const steps */", DECLARES_NOTHING, NULL },
        { "console.log(1)", DECLARES_NOTHING, NULL },
        { "export", DECLARES_NOTHING, NULL },
        { "export {", DECLARES_NOTHING, NULL },
        { "export const name = \"", DECLARES_NOTHING, NULL },
        { "createWorkflow('", DECLARES_NOTHING, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rv__str name;
        enum rv__declares declares = rv__script_declares(rv__str(rows[i].text), &name);
        if (declares != rows[i].declares)
            fail_msg("%s: %d", rows[i].text, (int)declares);
        if (declares == DECLARES_WORKFLOW &&
            (rows[i].name == NULL ? !rv__str_none(name) : !rv__str_is(name, rows[i].name)))
            fail_msg("%s: '%.*s'", rows[i].text, RV__ARG(name));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(folders_are_searched_in_order),
        TEST(good_ones_come_back_and_bad_ones_are_told),
        TEST(what_is_not_there_is_told),
        TEST(links_in_a_circle_are_not_followed),
        TEST(a_device_or_pipe_is_no_file),
        TEST(names_are_found_whatever_the_order),
        TEST(nesting_something_bad_is_bad),
        TEST(bad_news_travel_any_way),
        TEST(circles_are_named),
        TEST(others_may_know_more),
        TEST(scripts_are_known_by_their_text),
        TEST(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
