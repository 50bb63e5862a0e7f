/* load.c: turns files and folders into definitions.
 *
 * All files are read first, so that names can be looked up; then each file is lowered, which may add the files that
 * it nests; then each is checked. A bad file does not affect the others. */
#include "define/load.h"

#include <assert.h>
#include <string.h>

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/suggest.h"
#include "define/keys.h"

struct rv__entry *rv__entry_find(struct rv__loader *l, struct rv__str name)
{
    for (size_t i = 0; i < l->count; i++)
        if (!rv__str_none(l->entries[i]->name) && rv__str_eq(l->entries[i]->name, name))
            return l->entries[i];
    return NULL;
}

/* A manifest has stages. */
static bool is_manifest(const struct rv__tree *document)
{
    return rv__tree_get(document, "steps") == NULL &&
           (rv__tree_get(document, "stages") != NULL || rv__tree_get(document, "states") != NULL ||
            rv__tree_get(document, "workflows") != NULL);
}

/* Does it look like a workflow? Folders also have other YAML and JSON files. */
static bool is_workflow(const struct rv__tree *document)
{
    static const char *const keys[] = { "steps", "stages", "states", "workflows" };
    if (document->kind != TREE_MAP)
        return false;
    for (const struct rv__tree *child = document->first; child != NULL; child = child->next) {
        if (rv__suggest(child->key, keys, sizeof keys / sizeof *keys) != NULL)
            return true;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (rv__str_is(child->key, keys[i]))
                return true;
    }
    return false;
}

static int add_entry(struct rv__loader *l, const struct rv__entry *from, struct rv__entry **ret)
{
    struct rv__entry *entry;
    if (l->count >= RV__DEFINE_MAX_FILES)
        return rv__fail(l->err, RV_ETOOBIG, "more than %d workflow files", RV__DEFINE_MAX_FILES);
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        struct rv__entry **entries = rv__realloc(l->entries, cap * sizeof(struct rv__entry *));
        if (entries == NULL)
            return rv__nomem(l->err);
        l->entries = entries;
        l->cap = cap;
    }
    entry = rv__arena_zalloc(&l->arena, 1, sizeof *entry);
    if (entry == NULL)
        return rv__nomem(l->err);
    *entry = *from;
    entry->source.told = &entry->told;
    l->entries[l->count++] = entry;
    *ret = entry;
    return RV_OK;
}

/* `workflows`: several manifests that share the agents beside them. Each becomes its own entry. */
static int split_manifests(struct rv__loader *l, struct rv__entry *entry, struct rv__tree *document)
{
    static const char *const keys[] = { "workflows", "agents" };
    const struct rv__tree *list = rv__tree_get(document, "workflows");
    const struct rv__tree *agents = rv__tree_get(document, "agents");
    int rc = RV_OK;
    entry->several = true;
    for (const struct rv__tree *child = document->first; child != NULL; child = child->next) {
        if (child == list || child == agents || rv__key_is_private(child->key))
            continue;
        const char *meant = rv__suggest(child->key, keys, sizeof keys / sizeof *keys);
        rv__problem_add(
            &l->problems, &entry->source, child->key_at,
            "unknown key '%s' beside 'workflows'%s%s%s: a file of several manifests has "
            "'workflows' and 'agents'",
            rv__cite(child->key).text, meant ? "; did you mean '" : "", meant ? meant : "",
            meant ? "'?" : "");
    }
    if (rv__tree_real(list)->kind != TREE_LIST || rv__tree_real(list)->count == 0) {
        rv__problem_add(&l->problems, &entry->source, list->at,
                        "'workflows' must be a list of manifests (- name: …)");
        return RV_OK;
    }
    for (struct rv__tree *item = rv__tree_real(list)->first; rc == RV_OK && item != NULL;
         item = item->next) {
        struct rv__tree *tree = (struct rv__tree *)rv__tree_real(item);
        const struct rv__tree *name = rv__tree_get(tree, "name");
        struct rv__entry *part, from = { .source = entry->source,
                                         .directory = entry->directory,
                                         .named = entry->named,
                                         .file = entry,
                                         .manifest = true,
                                         .tree = tree,
                                         .agents = agents };
        if (tree->kind != TREE_MAP || name == NULL || rv__tree_real(name)->kind != TREE_STRING) {
            rv__problem_add(&l->problems, &entry->source, item->at,
                            "each of several manifests must be a mapping with a 'name'");
            continue;
        }
        from.name = rv__tree_real(name)->text;
        rc = add_entry(l, &from, &part);
    }
    return rc;
}

static int parse_entry(struct rv__loader *l, struct rv__entry *entry)
{
    struct rv__tree *tree = NULL;
    assert(entry != NULL);
    int rc = rv__tree_read(&entry->source, &l->arena, &l->problems, &tree);
    if (rc < 0)
        return rv__nomem(l->err);
    if (tree == NULL)
        return RV_OK;
    tree = (struct rv__tree *)rv__tree_real(tree);
    entry->passed_over = !entry->named && !is_workflow(tree);
    if (entry->passed_over)
        return RV_OK;
    if (tree->kind != TREE_MAP) {
        rv__problem_add(&l->problems, &entry->source, tree->at,
                        "a workflow must be a mapping with 'name' and 'steps'; this is %s",
                        rv__tree_phrase(tree));
        return RV_OK;
    }
    if (is_manifest(tree) && rv__tree_get(tree, "workflows") != NULL)
        return split_manifests(l, entry, tree);
    entry->manifest = is_manifest(tree);
    entry->tree = tree;
    const struct rv__tree *name = rv__tree_get(tree, "name");
    if (name == NULL && rv__alias_fault(rv__file_stem(entry->source.file)) == NULL)
        entry->name = rv__file_stem(entry->source.file);
    else if (name != NULL && rv__tree_real(name)->kind == TREE_STRING)
        entry->name = rv__tree_real(name)->text;
    return RV_OK;
}

int rv__entry_add(struct rv__loader *l, const struct rv__entry *from, struct rv__entry **ret)
{
    int rc = add_entry(l, from, ret);
    return rc < 0 ? rc : parse_entry(l, *ret);
}

/* ------------------------------------------------------------------------- all together --- */

/* Refuse the second workflow with the same name. */
static void check_names(struct rv__loader *l)
{
    for (size_t i = 0; i < l->count; i++) {
        struct rv__entry *entry = l->entries[i];
        struct rv__entry *first = rv__str_none(entry->name) ? entry
                                                            : rv__entry_find(l, entry->name);
        if (first == entry)
            continue;
        const struct rv__tree *name = rv__tree_get(entry->tree, "name");
        rv__problem_add(&l->problems, &entry->source, name != NULL ? name->at : entry->tree->at,
                        "workflow '%s' is already registered, by %s", rv__cite(entry->name).text,
                        rv__cite(first->source.file).text);
    }
}

static const struct rv__problem *first_problem(const struct rv__loader *l,
                                               const struct rv__entry *e)
{
    const struct rv__problem *first = NULL;
    for (size_t i = 0; i < l->problems.count; i++) {
        const struct rv__problem *problem = &l->problems.items[i];
        if (rv__str_eq(problem->file, e->source.file) &&
            (first == NULL || problem->line < first->line))
            first = problem;
    }
    return first;
}

/* An entry that nests a bad one is bad too, and so on. */
static void spread(struct rv__loader *l)
{
    bool again = true;
    for (size_t i = 0; i < l->count; i++)
        l->entries[i]->bad = l->entries[i]->told > 0 ||
                             (l->entries[i]->file != NULL && l->entries[i]->file->told > 0);
    while (again) {
        again = false;
        for (struct rv__link *link = l->links; link != NULL; link = link->next) {
            if (!link->to->bad || link->from->bad)
                continue;
            const struct rv__problem *why = first_problem(l, link->to);
            rv__problem_add(&l->problems, &link->from->source, link->at,
                            "this workflow has problems of its own: see %s, line %u",
                            rv__cite(link->to->source.file).text, why != NULL ? why->line : 0);
            link->from->bad = again = true;
        }
    }
    for (struct rv__deferred *d = l->deferred; d != NULL; d = d->next) {
        if (d->entry->bad)
            continue;
        rv__problem_add(&l->problems, &d->entry->source, d->at, "%.*s", RV__ARG(d->message));
        d->entry->bad = true;
    }
}

static int by_place(const void *a, const void *b)
{
    const struct rv__problem *x = a, *y = b;
    int order = rv__str_cmp(x->file, y->file);
    if (order != 0)
        return order;
    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    return rv__str_cmp(x->message, y->message);
}

void rv__definitions_sort(struct rv__definitions *all)
{
    if (all->problem_count > 0)
        qsort(all->problems, all->problem_count, sizeof *all->problems, by_place);
    if (all->warning_count > 0)
        qsort(all->warnings, all->warning_count, sizeof *all->warnings, by_place);
}

static int hand_over(struct rv__loader *l)
{
    struct rv__definitions *out = l->out;
    if (l->problems.rc != RV_OK)
        return rv__nomem(l->err);
    for (size_t i = 0; i < l->count; i++)
        out->file_count += !l->entries[i]->passed_over && l->entries[i]->file == NULL;
    out->warnings = l->warnings.items;
    out->warning_count = l->warnings.count;
    out->problems = l->problems.items;
    out->problem_count = l->problems.count;
    out->dropped = l->problems.dropped;
    rv__definitions_sort(out);
    out->items = rv__arena_zalloc(&out->arena, l->count, sizeof *out->items);
    if (l->count > 0 && out->items == NULL)
        return rv__nomem(l->err);
    for (size_t i = 0; i < l->count; i++) {
        struct rv__entry *entry = l->entries[i];
        struct rv__definition *item = &out->items[out->count];
        if (entry->bad || entry->plan == NULL)
            continue;
        if (rv__str_copy(&out->arena, entry->source.file, &item->file) < 0 ||
            rv__str_copy(&out->arena, entry->directory, &item->directory) < 0)
            return rv__nomem(l->err);
        item->plan = entry->plan;
        item->draft = entry->draft;
        item->name = entry->plan->body.wrap->name;
        item->schema = entry->plan->body.wrap->schema;
        entry->plan = NULL;
        entry->draft = NULL;
        out->count++;
    }
    return RV_OK;
}

static int load(struct rv__loader *l)
{
    int rc = RV_OK;
    for (size_t i = 0; rc == RV_OK && i < l->count; i++) /* entries may be added meanwhile */
        rc = rv__entry_lower(l, l->entries[i]);
    if (rc < 0)
        return rc;
    check_names(l);
    for (size_t i = 0; rc == RV_OK && i < l->count; i++)
        rc = rv__entry_judge(l, l->entries[i]);
    if (rc < 0)
        return rc;
    spread(l);
    return hand_over(l);
}

static void loader_done(struct rv__loader *l)
{
    for (size_t i = 0; i < l->count; i++) {
        rv__plan_free(l->entries[i]->plan);
        rv__draft_free(l->entries[i]->draft);
        rv__buf_done(&l->entries[i]->lowered.json);
    }
    rv__free(l->entries);
    rv__arena_done(&l->arena);
}

static int loader_init(struct rv__loader *l, struct rv__resolver *known,
                       struct rv__expr_compiler *compiler, rv_error *err)
{
    *l = (struct rv__loader){ .known = known, .compiler = compiler, .err = err };
    rv__arena_init(&l->arena, SIZE_MAX); /* bounded by the limits for files */
    l->out = rv__zalloc(1, sizeof *l->out);
    if (l->out == NULL)
        return rv__nomem(err);
    rv__arena_init(&l->out->arena, SIZE_MAX); /* the same */
    l->problems.arena = l->warnings.arena = &l->out->arena;
    l->problems.warnings = &l->warnings;
    return RV_OK;
}

int rv__define_load(const char *const *paths, size_t count, struct rv__resolver *known,
                    struct rv__expr_compiler *compiler, struct rv__definitions **ret, rv_error *err)
{
    struct rv__loader l;
    int rc = loader_init(&l, known, compiler, err);
    for (size_t i = 0; rc == RV_OK && i < count; i++)
        rc = rv__discover(&l, paths[i]);
    if (rc == RV_OK)
        rc = load(&l);
    loader_done(&l);
    if (rc == RV_OK)
        *ret = l.out;
    else
        rv__definitions_free(l.out);
    return rc;
}

int rv__define_name(const char *path, struct rv__arena *arena, struct rv__str *ret, rv_error *err)
{
    struct rv__loader l;
    int rc = loader_init(&l, NULL, NULL, err);
    *ret = (struct rv__str){ NULL, 0 };
    if (rc == RV_OK)
        rc = rv__discover(&l, path);
    if (rc == RV_OK && l.count == 1 && !rv__str_none(l.entries[0]->name) &&
        rv__str_copy(arena, l.entries[0]->name, ret) < 0)
        rc = rv__nomem(err);
    loader_done(&l);
    rv__definitions_free(l.out);
    return rc;
}

int rv__define_text(const char *file, struct rv__str text, struct rv__resolver *known,
                    struct rv__expr_compiler *compiler, struct rv__definitions **ret, rv_error *err)
{
    struct rv__loader l;
    struct rv__entry *entry = NULL;
    int rc = loader_init(&l, known, compiler, err);
    if (rc == RV_OK)
        rc = rv__entry_add(
            &l, &(struct rv__entry){ .source = { rv__str(file), text }, .named = true }, &entry);
    if (rc == RV_OK)
        rc = load(&l);
    loader_done(&l);
    if (rc == RV_OK)
        *ret = l.out;
    else
        rv__definitions_free(l.out);
    return rc;
}

void rv__definitions_free(struct rv__definitions *definitions)
{
    if (definitions == NULL)
        return;
    for (size_t i = 0; i < definitions->count; i++) {
        rv__plan_free(definitions->items[i].plan);
        rv__draft_free(definitions->items[i].draft);
    }
    rv__arena_done(&definitions->arena);
    rv__free(definitions);
}

int rv__definitions_complain(struct rv__definitions *all, struct rv__str file, const char *message)
{
    struct rv__problem *problems = rv__arena_zalloc(&all->arena, all->problem_count + 1,
                                                    sizeof *problems);
    struct rv__str text;
    if (problems == NULL || rv__str_copy(&all->arena, rv__str(message), &text) < 0)
        return RV_ENOMEM;
    if (all->problem_count > 0)
        memcpy(problems, all->problems, all->problem_count * sizeof *problems);
    problems[all->problem_count] = (struct rv__problem){ .file = file, .message = text };
    all->problems = problems;
    all->problem_count++;
    return RV_OK;
}

int rv__definitions_add(struct rv__definitions *all, const char *file, struct rv__plan **plan)
{
    struct rv__definition *items = rv__arena_zalloc(&all->arena, all->count + 1, sizeof *items);
    const char *slash = strrchr(file, '/');
    struct rv__str folder = { slash != NULL ? file : ".", slash == NULL ? 1
                                                          : slash == file
                                                              ? 1
                                                              : (size_t)(slash - file) };
    struct rv__definition item = { .name = (*plan)->body.wrap->name,
                                   .schema = (*plan)->body.wrap->schema };
    if (items == NULL || rv__str_copy(&all->arena, rv__str(file), &item.file) < 0 ||
        rv__str_copy(&all->arena, folder, &item.directory) < 0)
        return RV_ENOMEM;
    if (all->count > 0)
        memcpy(items, all->items, all->count * sizeof *items);
    item.plan = *plan;
    *plan = NULL;
    items[all->count++] = item;
    all->items = items;
    return RV_OK;
}
