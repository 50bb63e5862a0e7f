/* logs.c: rv_logs: a page of a run's log, from the store. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/id.h"
#include "base/json.h"
#include "base/opts.h"
#include "read/read.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MOST = 1000 };

struct log_page {
    bool for_agents;
    size_t looked_at;
    uint64_t last; /* id of the last line read */
    struct rv__buf texts;
    struct {
        rv_log_line line;
        size_t step, path, message, metadata, kind; /* offsets in `texts` */
    } * rows;
    size_t count, cap;
};

static size_t keep(struct rv__buf *texts, struct rv__str text)
{
    size_t at = texts->len;
    rv__buf_str(texts, text);
    rv__buf_char(texts, '\0');
    return at;
}

bool rv__line_is_private(struct rv__str metadata)
{
    struct rv__str said;
    bool public = true;
    return metadata.len > 0 && rv__json_type(metadata) == RV__JSON_OBJECT &&
           rv__json_get(metadata, "public", &said) && rv__json_bool(said, &public) == RV_OK &&
           !public;
}

static int take_line(void *arg, const struct rv__store_log *line)
{
    struct log_page *page = arg;
    page->looked_at++;
    page->last = line->id;
    if (page->for_agents && rv__line_is_private(line->metadata))
        return RV_OK;
    if (page->count == page->cap) {
        size_t cap = page->cap ? page->cap * 2 : 64;
        void *rows = rv__realloc(page->rows, cap * sizeof *page->rows);
        if (rows == NULL)
            return RV_ENOMEM;
        page->rows = rows;
        page->cap = cap;
    }
    memset(&page->rows[page->count], 0, sizeof page->rows[0]);
    page->rows[page->count].line = (rv_log_line){
        .id = line->id, .at = line->at_ms, .level = (int)line->level, .attempt = (int)line->attempt
    };
    page->rows[page->count].step = keep(&page->texts, line->step);
    page->rows[page->count].path = keep(&page->texts, line->path);
    page->rows[page->count].message = keep(&page->texts, line->message);
    page->rows[page->count].metadata = keep(&page->texts, line->metadata);
    page->rows[page->count].kind = keep(&page->texts, line->kind);
    page->count++;
    return rv__buf_err(&page->texts, NULL);
}

/* The list, its lines and their texts in one allocation. */
static int make_list(const struct log_page *page, uint64_t after, rv_log_list **ret, rv_error *err)
{
    size_t lines_at = sizeof(rv_log_list), texts_at = lines_at + page->count * sizeof(rv_log_line);
    char *mem = rv__zalloc(1, texts_at + page->texts.len + 1);
    if (mem == NULL)
        return rv__nomem(err);
    rv_log_list *list = (rv_log_list *)(void *)mem;
    rv_log_line *lines = (rv_log_line *)(void *)(mem + lines_at);
    const char *texts = mem + texts_at;
    if (page->texts.len > 0)
        memcpy(mem + texts_at, page->texts.text, page->texts.len);
    for (size_t i = 0; i < page->count; i++) {
        lines[i] = page->rows[i].line;
        lines[i].step = texts + page->rows[i].step;
        lines[i].path = texts + page->rows[i].path;
        lines[i].message = texts + page->rows[i].message;
        lines[i].metadata = texts + page->rows[i].metadata;
        lines[i].kind = texts + page->rows[i].kind;
    }
    list->count = page->count;
    list->lines = lines;
    list->next = page->looked_at > 0 ? page->last : after;
    *ret = list;
    return RV_OK;
}

static int visit_nothing(void *arg, const struct rv__store_run *row)
{
    (void)arg;
    (void)row;
    return RV_OK;
}

int rv__logs(struct rv__reading *r, const char *run_id, const rv_log_query *query,
             rv_log_list **ret, rv_error *err)
{
    rv_log_query known = { .size = sizeof known };
    struct log_page page = { .count = 0 };
    if (query != NULL)
        rv__opts_take(&known, sizeof known, query, query->size);
    query = &known;
    if (ret == NULL || query->size == 0 || query->level < RV_DEBUG || query->level > RV_ERROR)
        return rv__fail(err, RV_EINVAL, "rv_logs: %s",
                        ret == NULL ? "nowhere to put the lines"
                                    : "make the query with RV_LOG_QUERY");
    if (run_id == NULL || !rv__id_valid(rv__str(run_id)))
        return rv__fail(err, RV_EINVAL, "'%.80s' is not a run id", run_id != NULL ? run_id : "");
    struct rv__store_log_query store = {
        .run = rv__str(run_id),
        .step = rv__str(query->step),
        .path = rv__str(query->path),
        .min_level = (enum rv__store_level)query->level,
        .text = rv__str(query->text),
        .attempt = query->attempt,
        .after_id = query->after,
        .limit = query->limit == 0           ? LIMIT_DEFAULT
                 : query->limit > LIMIT_MOST ? LIMIT_MOST
                                             : query->limit,
    };
    size_t had = 0;
    page.for_agents = query->for_agents;
    rv__buf_init(&page.texts, SIZE_MAX / 8); /* bounded by LIMIT_MOST lines */
    pthread_mutex_lock(&r->lock);
    int rc = rv__store_run(r->store, rv__str(run_id), visit_nothing, NULL, err);
    while (rc == RV_OK) { /* until there are enough lines, or no more */
        size_t looked_at = page.looked_at, wanted = store.limit;
        rc = rv__store_logs(r->store, &store, take_line, &page, err);
        store.after_id = page.last;
        store.limit = wanted - (page.count - had);
        if (page.looked_at - looked_at < wanted || store.limit == 0)
            break;
        had = page.count;
    }
    if (rc == RV_ENOTFOUND)
        rc = rv__fail(err, rc, "there is no run '%s'", run_id);
    pthread_mutex_unlock(&r->lock);
    if (rc == RV_OK)
        rc = make_list(&page, query->after, ret, err);
    else if (rc == RV_ENOMEM)
        rc = rv__nomem(err);
    rv__free(page.rows);
    rv__buf_done(&page.texts);
    return rc;
}

void rv_log_list_free(rv_log_list *list)
{
    rv__free(list);
}

void rv_log_query_init(rv_log_query *query)
{
    *query = (rv_log_query){ .size = sizeof *query };
}
