/* files.c: the public functions that check workflow files and show their plans. They need no engine. What a C file
 * declares is known only by running it: that is done only on request, in a host process. */
#include <assert.h>
#include <string.h>

#include <rival/rival.h>

#include "base/alloc.h"
#include "base/error.h"
#include "define/define.h"
#include "work/work.h"

/* A public report, and the data that it refers to. */
struct report {
    rv_report shown; /* first */
    struct rv__definitions *definitions;
    struct rv__arena arena;
    struct rv__script_kept *kept; /* NULL: none */
    uint64_t kept_print;
};

struct rv__script_kept **rv__report_kept(rv_report *shown, uint64_t print)
{
    struct report *report = (struct report *)shown;
    return report != NULL && report->kept != NULL && report->kept_print == print ? &report->kept
                                                                                 : NULL;
}

/* Texts of define/ end in NUL, but for "none". */
static const char *text(struct rv__str s)
{
    return rv__str_none(s) ? "" : s.at;
}

/* Does it nest a C file or a script that was not loaded? Then its plan contains a placeholder. */
static bool is_partial(const struct report *report, const struct rv__plan *plan)
{
    for (uint32_t i = 0; plan != NULL && report->shown.c_file_count > 0 && i < plan->node_count;
         i++) {
        const struct rv__node *node = plan->nodes[i];
        for (uint32_t b = 0; b < node->body_count; b++) {
            const struct rv__wrap *wrap = node->bodies[b].wrap;
            for (size_t k = 0; wrap != NULL && k < report->shown.c_file_count; k++)
                if (rv__str_is(wrap->name, report->shown.c_files[k].name))
                    return true;
        }
    }
    return false;
}

static int fill_workflows(struct report *report)
{
    const struct rv__definitions *from = report->definitions;
    rv_file_workflow *workflows = rv__arena_zalloc(&report->arena, from->count, sizeof *workflows);
    if (from->count > 0 && workflows == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < from->count; i++) {
        const struct rv__definition *item = &from->items[i];
        bool partial = is_partial(report, item->plan);
        workflows[i] = (rv_file_workflow){
            .name = text(item->name),
            .description = item->plan != NULL ? text(item->plan->description) : "",
            .input_schema = text(item->schema),
            .version = item->plan != NULL && !partial ? item->plan->version : "",
            .partial = partial,
            .file = text(item->file),
            .directory = text(item->directory),
            .node_count = item->plan != NULL ? (int)item->plan->node_count : 0,
        };
    }
    report->shown.workflows = workflows;
    report->shown.workflow_count = from->count;
    return RV_OK;
}

static rv_problem *show(struct report *report, const struct rv__problem *from, size_t count)
{
    rv_problem *problems = rv__arena_zalloc(&report->arena, count, sizeof *problems);
    for (size_t i = 0; problems != NULL && i < count; i++) {
        const struct rv__problem *problem = &from[i];
        problems[i] = (rv_problem){
            .file = text(problem->file),
            .line = (int)problem->line,
            .column = (int)problem->column,
            .message = text(problem->message),
            .excerpt = text(problem->excerpt),
            .caret = (int)problem->caret,
        };
    }
    return problems;
}

static int fill_problems(struct report *report)
{
    const struct rv__definitions *from = report->definitions;
    report->shown.problems = show(report, from->problems, from->problem_count);
    report->shown.warnings = show(report, from->warnings, from->warning_count);
    if ((from->problem_count > 0 && report->shown.problems == NULL) ||
        (from->warning_count > 0 && report->shown.warnings == NULL))
        return RV_ENOMEM;
    report->shown.problem_count = from->problem_count;
    report->shown.omitted = from->dropped;
    report->shown.warning_count = from->warning_count;
    report->shown.file_count = from->file_count;
    return RV_OK;
}

static int fill_c_files(struct report *report, const struct rv__c_files *files)
{
    size_t count = files != NULL ? files->count : 0;
    rv_c_file *shown = rv__arena_zalloc(&report->arena, count, sizeof *shown);
    if (count > 0 && shown == NULL)
        return RV_ENOMEM;
    report->shown.c_files = shown;
    for (size_t i = 0; i < count; i++) {
        const struct rv__c_file *file = files->items[i];
        struct rv__str path, name;
        if (file->stand_in == NULL || file->why.code != 0)
            continue;
        if (rv__str_copy(&report->arena, rv__str(file->path), &path) < 0 ||
            rv__str_copy(&report->arena, rv__draft_name(file->stand_in), &name) < 0)
            return RV_ENOMEM;
        shown[report->shown.c_file_count++] = (rv_c_file){ .file = path.at, .name = name.at };
    }
    return RV_OK;
}

int rv__report_new(struct rv__definitions **all, const struct rv__c_files *files, rv_report **ret,
                   rv_error *err)
{
    struct report *report = rv__zalloc(1, sizeof *report);
    if (report == NULL)
        return rv__nomem(err);
    rv__arena_init(&report->arena, SIZE_MAX); /* bounded by what it shows */
    report->definitions = *all;
    *all = NULL;
    if (fill_c_files(report, files) < 0 || fill_workflows(report) < 0 ||
        fill_problems(report) < 0) {
        rv_report_free(&report->shown);
        return rv__nomem(err);
    }
    *ret = &report->shown;
    return RV_OK;
}

/* ---------------------------------------------------------------------------------- checking --- */

struct check {
    struct rv__resolver resolver; /* first: finds what a C file declares */
    struct rv__expr_compiler *compiler;
    struct rv__c_files files;
    const struct rv__definitions *texts; /* and what those may nest; NULL: not loaded yet */
    bool missed;                         /* a name was asked for and not found */
};

static int find_declared(struct rv__resolver *self, struct rv__str name,
                         const struct rv__draft **ret)
{
    struct check *c = (struct check *)self;
    for (size_t i = 0; c->texts != NULL && i < c->texts->count; i++)
        if (c->texts->items[i].draft != NULL && rv__str_eq(c->texts->items[i].name, name)) {
            *ret = c->texts->items[i].draft;
            return RV_OK;
        }
    int rc = rv__c_files_find(&c->files, name, ret);
    c->missed |= rc == RV_ENOTFOUND;
    return rc;
}

static int find_file(struct rv__resolver *self, const char *path, const struct rv__draft **ret)
{
    struct check *c = (struct check *)self;
    int rc = rv__c_files_find_file(&c->files, path, ret);
    c->missed |= rc == RV_ENOTFOUND;
    return rc;
}

/* Check the plan of a C file by the same rules. RV_EINVAL: file->why has the first error. */
static int judge(struct check *c, struct rv__c_file *file, struct rv__plan **plan, rv_error *err)
{
    struct rv__arena arena;
    struct rv__violations bad;
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the number of violations that are kept */
    rv__violations_init(&bad, &arena);
    int rc = rv__plan_compile(file->workflow->draft, &c->resolver, &bad, plan, &file->why);
    if (rc == RV_OK)
        rc = rv__define_check_refs(*plan, c->compiler, &bad, &file->why);
    rv__arena_done(&arena);
    return rc == RV_ENOMEM ? rv__nomem(err) : rc < 0 ? RV_EINVAL : RV_OK;
}

/* Add the workflows of C files to the others, or their problems. */
static int add_declared(struct check *c, struct rv__definitions *all, rv_error *err)
{
    int rc = RV_OK;
    c->texts = all;
    rv__c_files_refuse_taken(&c->files, all);
    for (size_t i = 0; i < c->files.count && rc == RV_OK; i++) {
        struct rv__c_file *file = c->files.items[i];
        struct rv__plan *plan = NULL;
        if (file->workflow == NULL)
            continue;
        if (file->workflow->library) {
            file->done = true;
            continue;
        }
        rc = judge(c, file, &plan, err);
        file->done = rc == RV_OK;
        if (rc == RV_OK && rv__definitions_add(all, file->path, &plan) < 0)
            rc = rv__nomem(err);
        rv__plan_free(plan);
        rc = rc == RV_EINVAL ? RV_OK : rc;
    }
    if (rc == RV_OK && rv__c_files_complain(&c->files, all) < 0)
        rc = rv__nomem(err);
    return rc;
}

/* The C files and scripts were loaded, so they are not "other files" any more. */
static void forget_others(const struct check *c, struct rv__definitions *all)
{
    assert(all != NULL); /* they were loaded */
    for (size_t i = 0; i < all->other_count; i++)
        all->file_count += all->others[i].kind != OTHER_SCRIPT;
    all->file_count += c->files.script_count; /* other scripts in a folder are not workflows */
    all->other_count = 0;
}

static int check_files(struct check *c, const char *const *paths, size_t count,
                       struct rv__definitions **ret, rv_error *err)
{
    struct rv__definitions *all = NULL;
    const char **more = NULL;
    int rc = rv__define_load(paths, count, &c->resolver, c->compiler, &all, err);
    if (rc == RV_OK)
        rc = rv__c_files_load(&c->files, all, paths, count, err);
    bool missed = rc == RV_OK && c->missed && all->problem_count > 0 && c->files.count > 0;
    if (rc == RV_OK &&
        (missed || c->files.text_count > 0)) { /* some files may nest what the C files declare */
        rv__definitions_free(all);
        all = NULL;
        more = rv__c_files_paths(&c->files, paths, count);
        rc = more != NULL ? rv__define_load(more, count + c->files.text_count, &c->resolver,
                                            c->compiler, &all, err)
                          : rv__nomem(err);
    }
    if (rc == RV_OK)
        rc = add_declared(c, all, err);
    if (rc == RV_OK)
        forget_others(c, all);
    rv__free(more);
    *ret = all;
    return rc;
}

void rv_check_opts_init(rv_check_opts *opts)
{
    *opts = (rv_check_opts){ .size = sizeof *opts };
}

int rv_check_files(const char *const *paths, size_t count, const rv_check_opts *opts,
                   rv_report **ret, rv_error *err)
{
    struct rv__definitions *all = NULL;
    struct check c = { .resolver = { find_declared, find_file } };
    rv_check_opts known = { .size = sizeof known };
    if (paths == NULL || count == 0 || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_check_files() needs files or folders");
    for (size_t i = 0; i < count; i++)
        if (paths[i] == NULL)
            return rv__fail(err, RV_EINVAL, "a path is NULL");
    if (opts != NULL && opts->size == 0)
        return rv__fail(err, RV_EINVAL, "options without a size: make them with RV_CHECK_OPTS");
    if (opts != NULL)
        memcpy(&known, opts, opts->size < sizeof known ? opts->size : sizeof known);
    if (known.c_files < RV_C_FILES_NAMED || known.c_files > RV_C_FILES_LOADED)
        return rv__fail(err, RV_EINVAL, "unknown c_files %d", known.c_files);
    c.files.depth = known.c_files;
    c.files.keep = known.keep_process;
    struct rv__evaluator *evaluator = NULL;
    int rc = rv__evaluator_new(&(struct rv__evaluator_opts){ 0 }, &evaluator, err);
    if (rc < 0)
        return rc;
    c.compiler = rv__evaluator_compiler(evaluator);
    rc = check_files(&c, paths, count, &all, err);
    if (rc == RV_OK)
        rc = rv__report_new(&all, &c.files, ret, err); /* takes `all`, if the report can be made */
    if (rc == RV_OK) {
        struct report *report = (struct report *)*ret;
        report->kept = c.files.kept;
        report->kept_print = c.files.kept_print;
        c.files.kept = NULL;
    }
    rv__evaluator_free(evaluator);
    rv__c_files_done(&c.files);
    rv__definitions_free(all);
    return rc;
}

void rv_report_free(rv_report *shown)
{
    struct report *report = (struct report *)shown;
    if (report == NULL)
        return;
    rv__script_kept_free(report->kept);
    rv__definitions_free(report->definitions);
    rv__arena_done(&report->arena);
    rv__free(report);
}

int rv_report_plan(rv_report *shown, size_t workflow, int format, const char **ret, rv_error *err)
{
    struct report *report = (struct report *)shown;
    struct rv__buf out;
    if (report == NULL || ret == NULL || workflow >= report->definitions->count)
        return rv__fail(err, RV_EINVAL, "there is no such workflow in the report");
    const struct rv__plan *plan = report->definitions->items[workflow].plan;
    if (shown->workflows[workflow].partial)
        return rv__fail(
            err, RV_ESTATE,
            "it nests a file in C or TypeScript, whose plan is known only by running its code");
    rv__buf_init(&out, 2 * (size_t)RV__PLAN_MAX_BYTES); /* escapes and indentation add to it */
    int rc = RV_OK;
    switch (format) {
    case RV_PLAN_JSON: rc = rv__plan_show(plan, &out, err); break;
    case RV_PLAN_TEXT: rv__plan_render_text(plan, &out); break;
    case RV_PLAN_MERMAID: rv__plan_render_mermaid(plan, &out); break;
    default: rc = rv__fail(err, RV_EINVAL, "unknown format %d of a plan", format);
    }
    if (rc == RV_OK)
        rc = rv__buf_err(&out, err);
    if (rc == RV_OK) {
        struct rv__str copy;
        rc = rv__str_copy(&report->arena, rv__buf_view(&out), &copy);
        if (rc < 0)
            rc = rv__nomem(err);
        else
            *ret = copy.at;
    }
    rv__buf_done(&out);
    return rc;
}

int rv_manifest_format(const char *text, char **ret, rv_error *err)
{
    struct rv__buf out;
    char *copy;
    if (text == NULL || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_manifest_format: no text given");
    rv__buf_init(&out, (size_t)4 * RV__DEFINE_MAX_BYTES);
    int rc = rv__manifest_format(rv__str(text), &out, err);
    if (rc == RV_OK) {
        copy = rv__alloc(out.len + 1);
        if (copy != NULL) {
            memcpy(copy, out.text, out.len);
            copy[out.len] = '\0';
            *ret = copy;
        } else {
            rc = rv__nomem(err);
        }
    }
    rv__buf_done(&out);
    return rc;
}
