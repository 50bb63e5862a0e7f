/* asjson.c: converts a YAML or JSON file that is not a workflow (a configuration) to JSON. */
#include "base/error.h"
#include "define/tree.h"

static int as_json(const char *file, const struct rv__str *text, struct rv__buf *out, rv_error *err)
{
    struct rv__arena arena;
    struct rv__source source = { .file = rv__str(file) };
    struct rv__problems problems = { .arena = &arena };
    struct rv__tree *tree = NULL;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the size of the file */
    if (text != NULL)
        source.text = *text;
    int rc = text != NULL ? RV_OK : rv__source_read(file, &arena, &source.text);
    if (rc == RV_OK)
        rc = rv__tree_read(&source, &arena, &problems, &tree);
    if (rc < 0 || problems.rc < 0) {
        rc = rv__nomem(err);
    } else if (problems.count > 0 || tree == NULL) {
        const struct rv__problem *first = problems.items;
        rc = rv__fail(err, RV_EINVAL, "%s:%lu: %.*s", file,
                      problems.count > 0 ? (unsigned long)first->line : 1UL,
                      RV__ARG(problems.count > 0 ? first->message : rv__str("it is empty")));
    } else {
        rv__tree_json(tree, out);
        rc = rv__buf_err(out, err);
    }
    rv__arena_done(&arena);
    return rc;
}

int rv__define_json(const char *file, struct rv__buf *out, rv_error *err)
{
    return as_json(file, NULL, out, err);
}

int rv__define_text_json(struct rv__str text, const char *file, struct rv__buf *out, rv_error *err)
{
    return as_json(file, &text, out, err);
}
