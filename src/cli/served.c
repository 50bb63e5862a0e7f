/* served.c: registers the workflow files of a server, and finds what has changed. */
#include "cli/served.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

enum { VERSION_SHOWN = 12 }; /* characters of a version: enough to distinguish two */

void rv__served_init(struct rv__served *served)
{
    rv__buf_init(&served->reported, SIZE_MAX / 8); /* bounded by a hundred problems a file */
}

void rv__served_done(struct rv__served *served)
{
    rv__buf_done(&served->reported);
}

/* -------------------------------------------------------------------------------- problems --- */

static void put_problems(struct rv__buf *out, const rv_report *report)
{
    for (size_t i = 0; i < report->problem_count; i++) {
        const rv_problem *p = &report->problems[i];
        rv__buf_fmt(out, "%s:%d:%d: %s\n", p->file, p->line, p->column, p->message);
    }
}

static void log_problems(const struct rv__served *s, const rv_report *report)
{
    for (size_t i = 0; i < report->problem_count; i++) {
        const rv_problem *p = &report->problems[i];
        if (p->line > 0)
            rv__log(s->log, RV__LOG_ERROR, "workflow file is broken", RV__LOG_STR("file", p->file),
                    RV__LOG_INT("line", p->line), RV__LOG_INT("column", p->column),
                    RV__LOG_STR("problem", p->message));
        else
            rv__log(s->log, RV__LOG_ERROR, "workflow file is broken", RV__LOG_STR("file", p->file),
                    RV__LOG_STR("problem", p->message));
    }
    if (report->omitted > 0)
        rv__log(s->log, RV__LOG_ERROR, "more problems in these files",
                RV__LOG_INT("count", (int64_t)report->omitted));
}

/* --------------------------------------------------------------------------------- changes --- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const rv_workflow_info *const *)a)->name,
                  (*(const rv_workflow_info *const *)b)->name);
}

/* The list sorted by name; NULL: no memory. Free with rv__free(). */
static const rv_workflow_info **sorted(const rv_workflow_list *list)
{
    const rv_workflow_info **at = rv__zalloc(list->count + 1, sizeof(rv_workflow_info *));
    for (size_t i = 0; at != NULL && i < list->count; i++)
        at[i] = &list->items[i];
    if (at != NULL)
        qsort(at, list->count, sizeof(rv_workflow_info *), by_name);
    return at;
}

static void log_workflow(const struct rv__served *s, const char *what, const rv_workflow_info *w)
{
    char version[VERSION_SHOWN + 1];
    snprintf(version, sizeof version, "%s", w->version);
    rv__log(s->log, RV__LOG_INFO, what, RV__LOG_STR("workflow", w->name),
            RV__LOG_STR("version", version), RV__LOG_STR("file", w->source));
}

/* Warn if a valid workflow lacks something it needs to start. */
static void warn_if_blocked(const struct rv__served *s, const rv_workflow_info *w)
{
    if (w->cannot_start[0] != '\0')
        rv__log(s->log, RV__LOG_WARN, "workflow cannot be started",
                RV__LOG_STR("workflow", w->name), RV__LOG_STR("why", w->cannot_start),
                RV__LOG_STR("file", w->source));
}

static void log_changes(const struct rv__served *s, const rv_workflow_list *before,
                        const rv_workflow_list *after)
{
    const rv_workflow_info **was = sorted(before), **is = sorted(after);
    size_t i = 0, k = 0;
    while (was != NULL && is != NULL && (i < before->count || k < after->count)) {
        int order = i == before->count  ? 1
                    : k == after->count ? -1
                                        : strcmp(was[i]->name, is[k]->name);
        if (order < 0)
            log_workflow(s, "workflow gone", was[i++]);
        else if (order > 0) {
            log_workflow(s, "workflow registered", is[k]);
            warn_if_blocked(s, is[k++]);
        } else {
            if (strcmp(was[i]->version, is[k]->version) != 0) {
                log_workflow(s, "workflow changed", is[k]);
                warn_if_blocked(s, is[k]);
            }
            i++;
            k++;
        }
    }
    rv__free(was);
    rv__free(is);
}

/* --------------------------------------------------------------------------------- leaving --- */

/* Sort by file, then by name. */
static int by_file(const void *a, const void *b)
{
    const rv_file_workflow *x = *(const rv_file_workflow *const *)a;
    const rv_file_workflow *y = *(const rv_file_workflow *const *)b;
    int order = strcmp(x->file, y->file);
    return order != 0 ? order : strcmp(x->name, y->name);
}

static int only_file(const void *a, const void *b)
{
    return strcmp((*(const rv_file_workflow *const *)a)->file,
                  (*(const rv_file_workflow *const *)b)->file);
}

/* Remove workflows whose file is gone, or now has other workflows. A broken file has none, and keeps its old one. */
static void take_back(const struct rv__served *s, const rv_report *report,
                      const rv_workflow_list *list)
{
    size_t count = report->workflow_count;
    const rv_file_workflow **found = rv__zalloc(count + 1, sizeof(rv_file_workflow *));
    if (found == NULL)
        return; /* the next load tries again */
    for (size_t i = 0; i < count; i++)
        found[i] = &report->workflows[i];
    qsort(found, count, sizeof(rv_file_workflow *), by_file);
    for (size_t i = 0; i < list->count; i++) {
        const rv_workflow_info *w = &list->items[i];
        const rv_file_workflow key = { .file = w->source, .name = w->name }, *wanted = &key;
        bool gone = access(w->source, F_OK) < 0;
        bool other = bsearch(&wanted, found, count, sizeof(rv_file_workflow *), only_file) !=
                         NULL &&
                     bsearch(&wanted, found, count, sizeof(rv_file_workflow *), by_file) == NULL;
        if (*w->source != '\0' && (gone || other))
            (void)rv_unregister(s->engine, w->name, NULL); /* it exists: we have just seen it */
    }
    rv__free(found);
}

/* --------------------------------------------------------------------------------- loading --- */

/* The result of loading one path. */
struct loaded {
    rv_report *report; /* NULL: see err */
    rv_error err;
};

static void load_path(const struct rv__served *s, const char *path, struct loaded *ret)
{
    rv_workflow_list *list = NULL;
    *ret = (struct loaded){ .report = NULL };
    if (rv_register_dir(s->engine, path,
                        RV_FILE_OPTS(.replace = true, .keep_others = true, .report = &ret->report),
                        &ret->err) < 0)
        return;
    if (rv_workflows(s->engine, &list, NULL) == RV_OK)
        take_back(s, ret->report, list);
    rv_workflow_list_free(list);
}

/* Report the problems, unless they are the same as last time. */
static void tell_problems(struct rv__served *s, const struct loaded *all)
{
    struct rv__buf now;
    rv__buf_init(&now, SIZE_MAX / 8); /* bounded by a hundred problems a file */
    for (size_t i = 0; i < s->count; i++)
        if (all[i].report != NULL)
            put_problems(&now, all[i].report);
        else
            rv__buf_fmt(&now, "%s: %s\n", s->paths[i], all[i].err.message);
    bool same = rv__str_eq(rv__buf_view(&now), rv__buf_view(&s->reported));
    for (size_t i = 0; i < s->count && !same; i++)
        if (all[i].report != NULL)
            log_problems(s, all[i].report);
        else
            rv__log(s->log, RV__LOG_ERROR, "cannot be loaded", RV__LOG_STR("path", s->paths[i]),
                    RV__LOG_STR("why", all[i].err.message));
    rv__buf_done(&s->reported);
    s->reported = now;
}

void rv__served_load(struct rv__served *s)
{
    rv_workflow_list *before = NULL, *after = NULL;
    struct loaded *all = rv__zalloc(s->count, sizeof *all);
    (void)rv_workflows(s->engine, &before, NULL); /* NULL: the engine is closing */
    if (all == NULL || before == NULL)
        goto out;
    for (size_t i = 0; i < s->count; i++)
        load_path(s, s->paths[i], &all[i]);
    /* Again with problems: a path may need workflows of a later one, or a name that another file had until now. */
    for (size_t i = 0; i < s->count; i++) {
        if (all[i].report != NULL && all[i].report->problem_count == 0)
            continue;
        rv_report_free(all[i].report);
        load_path(s, s->paths[i], &all[i]);
    }
    tell_problems(s, all);
    for (size_t i = 0; i < s->count; i++)
        rv_report_free(all[i].report);
    if (rv_workflows(s->engine, &after, NULL) == RV_OK) {
        log_changes(s, before, after);
        s->workflows = after->count;
    }
out:
    rv_workflow_list_free(before);
    rv_workflow_list_free(after);
    rv__free(all);
}
