/* files.c: workflow files for the public: checked, and shown as plans. No engine is needed for it; C files
 * are looked into by hosts of our own, and never by this process. */
#include <assert.h>
#include <string.h>

#include <rival/rival.h>

#include "base/alloc.h"
#include "base/error.h"
#include "define/define.h"
#include "engine/engine.h"
#include "engine/files.h"
#include "engine/workflow.h"

/* What the public sees, and what it is made from. */
struct report {
    rv_report shown; /* first */
    struct rv__definitions *definitions;
    struct rv__arena arena;
};

/* Texts of define/ end in NUL, but for "none". */
static const char *text(struct rv__str s)
{
    return rv__str_none(s) ? "" : s.at;
}

static int fill_workflows(struct report *report)
{
    const struct rv__definitions *from = report->definitions;
    rv_file_workflow *workflows = rv__arena_zalloc(&report->arena, from->count, sizeof *workflows);
    if (from->count > 0 && workflows == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < from->count; i++) {
        const struct rv__definition *item = &from->items[i];
        workflows[i] = (rv_file_workflow){
            .name = text(item->name),
            .description = item->plan != NULL ? text(item->plan->description) : "",
            .input_schema = text(item->schema),
            .version = item->plan != NULL ? item->plan->version : "",
            .file = text(item->file),
            .directory = text(item->directory),
            .node_count = item->plan != NULL ? (int)item->plan->node_count : 0,
        };
    }
    report->shown.workflows = workflows;
    report->shown.workflow_count = from->count;
    return RV_OK;
}

static int fill_problems(struct report *report)
{
    const struct rv__definitions *from = report->definitions;
    rv_problem *problems = rv__arena_zalloc(&report->arena, from->problem_count, sizeof *problems);
    if (from->problem_count > 0 && problems == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < from->problem_count; i++) {
        const struct rv__problem *problem = &from->problems[i];
        problems[i] = (rv_problem){
            .file = text(problem->file),
            .line = (int)problem->line,
            .column = (int)problem->column,
            .message = text(problem->message),
            .excerpt = text(problem->excerpt),
            .caret = (int)problem->caret,
        };
    }
    report->shown.problems = problems;
    report->shown.problem_count = from->problem_count;
    report->shown.untold = from->dropped;
    return RV_OK;
}

static int fill_others(struct report *report)
{
    const struct rv__definitions *from = report->definitions;
    const char **others = rv__arena_zalloc(&report->arena, from->other_count, sizeof *others);
    if (from->other_count > 0 && others == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < from->other_count; i++)
        others[i] = text(from->others[i].file);
    report->shown.others = others;
    report->shown.other_count = from->other_count;
    report->shown.file_count = from->file_count;
    return RV_OK;
}

int rv__report_new(struct rv__definitions **all, rv_report **ret, rv_error *err)
{
    struct report *report = rv__zalloc(1, sizeof *report);
    if (report == NULL)
        return rv__nomem(err);
    rv__arena_init(&report->arena, SIZE_MAX); /* as large as what it shows */
    report->definitions = *all;
    *all = NULL;
    if (fill_workflows(report) < 0 || fill_problems(report) < 0 || fill_others(report) < 0) {
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

static struct rv__c_file *declares(const struct rv__c_files *files, struct rv__str name)
{
    for (size_t i = 0; i < files->count; i++)
        if (files->items[i].workflow != NULL &&
            rv__str_eq(rv__draft_name(files->items[i].workflow->draft), name))
            return &files->items[i];
    return NULL;
}

static int find_declared(struct rv__resolver *self, struct rv__str name,
                         const struct rv__draft **ret)
{
    struct check *c = (struct check *)self;
    struct rv__c_file *file = declares(&c->files, name);
    for (size_t i = 0; c->texts != NULL && i < c->texts->count; i++)
        if (c->texts->items[i].draft != NULL && rv__str_eq(c->texts->items[i].name, name)) {
            *ret = c->texts->items[i].draft;
            return RV_OK;
        }
    c->missed |= file == NULL;
    if (file == NULL)
        return RV_ENOTFOUND;
    file->asked = true;
    *ret = file->workflow->draft;
    return RV_OK;
}

/* The plan of a C file, held to the same rules. RV_EINVAL: file->why says what is wrong first. */
static int judge(struct check *c, struct rv__c_file *file, struct rv__plan **plan, rv_error *err)
{
    struct rv__str name = rv__draft_name(file->workflow->draft);
    struct rv__arena arena;
    struct rv__violations bad;
    for (size_t i = 0; i < c->texts->count; i++)
        if (rv__str_eq(c->texts->items[i].name, name))
            return rv__fail(&file->why, RV_EINVAL, "workflow '%.*s' is already registered, by %.*s",
                            RV__ARG(name), RV__ARG(c->texts->items[i].file));
    rv__arena_init(&arena, SIZE_MAX); /* bounded by the number of violations that are kept */
    rv__violations_init(&bad, &arena);
    int rc = rv__plan_compile(file->workflow->draft, &c->resolver, &bad, plan, &file->why);
    if (rc == RV_OK)
        rc = rv__define_check_refs(*plan, c->compiler, &bad, &file->why);
    rv__arena_done(&arena);
    return rc == RV_ENOMEM ? rv__nomem(err) : rc < 0 ? RV_EINVAL : RV_OK;
}

/* The workflows of C files join the others, or their problems do. */
static int add_declared(struct check *c, struct rv__definitions *all, rv_error *err)
{
    int rc = RV_OK;
    c->texts = all;
    for (size_t i = 0; i < c->files.count && rc == RV_OK; i++) {
        struct rv__c_file *file = &c->files.items[i];
        struct rv__plan *plan = NULL;
        if (file->beside &&
            !file->asked) /* unless it may be what is missing, it is not our business */
            file->done = file->workflow != NULL || !c->missed;
        if (file->workflow == NULL || file->done)
            continue;
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

/* What was looked into is none of the others. */
static void forget_c_files(struct rv__definitions *all)
{
    size_t kept = 0;
    assert(all != NULL); /* they were loaded */
    for (size_t i = 0; i < all->other_count; i++) {
        all->file_count += all->others[i].kind == OTHER_C || all->others[i].kind == OTHER_OBJECT;
        if (all->others[i].kind != OTHER_C && all->others[i].kind != OTHER_OBJECT)
            all->others[kept++] = all->others[i];
    }
    all->other_count = kept;
}

int rv_check_files(const char *const *paths, size_t count, rv_report **ret, rv_error *err)
{
    struct rv__definitions *all = NULL;
    struct check c = { .resolver = { find_declared } };
    if (paths == NULL || count == 0 || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_check_files() needs files or folders");
    for (size_t i = 0; i < count; i++)
        if (paths[i] == NULL)
            return rv__fail(err, RV_EINVAL, "a path is NULL");
    struct rv__evaluator *evaluator = NULL;
    int rc = rv__evaluator_new(&(struct rv__evaluator_opts){ 0 }, &evaluator, err);
    if (rc < 0)
        return rc;
    c.compiler = rv__evaluator_compiler(evaluator);
    rc = rv__define_load(paths, count, &c.resolver, c.compiler, &all, err);
    if (rc == RV_OK)
        rc = rv__c_files_load(&c.files, all, paths, count, NULL, err);
    bool again = c.missed && all != NULL && all->problem_count > 0;
    for (size_t i = 0; rc == RV_OK && again && i < count; i++)
        rc = rv__c_files_beside(&c.files, paths[i], err);
    if (rc == RV_OK && again && c.files.count > 0) { /* some may nest what those declare */
        rv__definitions_free(all);
        all = NULL;
        c.missed = false;
        rc = rv__define_load(paths, count, &c.resolver, c.compiler, &all, err);
    }
    if (rc == RV_OK)
        rc = add_declared(&c, all, err);
    rv__evaluator_free(evaluator);
    rv__c_files_done(&c.files);
    if (rc == RV_OK)
        forget_c_files(all);
    if (rc == RV_OK)
        rc = rv__report_new(&all, ret, err); /* takes them, if it can be made */
    rv__definitions_free(all);
    return rc;
}

void rv_report_free(rv_report *shown)
{
    struct report *report = (struct report *)shown;
    if (report == NULL)
        return;
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
