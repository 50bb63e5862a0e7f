/* files.c: workflow files for the public: checked, and shown as plans. No engine is needed for it. */
#include <string.h>

#include <rival/rival.h>

#include "base/alloc.h"
#include "base/error.h"
#include "define/define.h"
#include "engine/files.h"

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

int rv_check_files(const char *const *paths, size_t count, rv_report **ret, rv_error *err)
{
    struct rv__definitions *all = NULL;
    if (paths == NULL || count == 0 || ret == NULL)
        return rv__fail(err, RV_EINVAL, "rv_check_files() needs files or folders");
    for (size_t i = 0; i < count; i++)
        if (paths[i] == NULL)
            return rv__fail(err, RV_EINVAL, "a path is NULL");
    int rc = rv__define_load(paths, count, NULL, &all, err);
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
    case RV_PLAN_JSON: rc = rv__plan_write(plan, &out, err); break;
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
