/* judge.c: checks one workflow, and reports each error with its position in the file.
 *
 * plan/, schema/ and expr/ report errors by paths and pointers; here these become positions in the file.
 *
 * Expressions can be checked only in a plan, and a workflow with errors has none. To report all errors at
 * once, the wrong nodes are replaced by harmless ones, and the rest is compiled again, only to check its
 * expressions. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "define/load.h"
#include "define/params.h"
#include "define/refs.h"
#include "schema/schema.h"

enum { ROUNDS = 4 }; /* compilations at most: replacing a node can make another one wrong */

/* ------------------------------------------------------------------------------ nesting --- */

struct nesting {
    struct rv__nesting base; /* first */
    struct rv__loader *loader;
    struct rv__entry *entry;
    bool again;    /* links were made before */
    char why[240]; /* room for a message */
};

static bool link_to(struct nesting *n, struct rv__entry *to, const struct rv__tree *reference,
                    struct rv__str *name, const char **why)
{
    if (rv__str_none(to->name)) {
        (void)snprintf(n->why, sizeof n->why,
                       to->several ? "the file '%s' has several manifests: nest one by its name"
                                   : "the file '%s' has no workflow with a name",
                       rv__cite(rv__tree_real(reference)->text).text);
        *why = n->why;
        return false;
    }
    *name = to->name;
    if (n->again)
        return true;
    struct rv__link *link = rv__arena_zalloc(&n->loader->arena, 1, sizeof *link);
    if (link == NULL) {
        n->base.rc = RV_ENOMEM;
        return true;
    }
    *link = (struct rv__link){ n->loader->links, n->entry, to, reference->at };
    n->loader->links = link;
    return true;
}

static bool is_known(struct nesting *n, struct rv__str name)
{
    const struct rv__draft *draft;
    struct rv__resolver *known = n->loader->known;
    return known != NULL && known->find(known, name, &draft) == RV_OK;
}

/* A workflow that was not loaded may be in the same folder, in a file of its name. */
static struct rv__entry *find_beside(struct nesting *n, struct rv__str name)
{
    static const char *const endings[] = { ".yaml", ".yml", ".json" };
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        struct rv__entry *entry = NULL;
        struct rv__buf file;
        rv__buf_init(&file, RV__PLAN_MAX_NAME + 16);
        rv__buf_str(&file, name);
        rv__buf_text(&file, endings[i]);
        int rc = file.rc == RV_ENOMEM ? RV_ENOMEM : RV_OK;
        if (file.rc == RV_OK)
            rc = rv__discover_reference(n->loader, n->entry->directory, rv__buf_view(&file),
                                        &entry);
        rv__buf_done(&file);
        if (rc < 0)
            n->base.rc = rc;
        if (entry != NULL && rv__str_eq(entry->name, name))
            return entry;
    }
    return NULL;
}

/* The workflow of a C file or a script, which is loaded elsewhere. False, with *why: it cannot be nested. */
static bool find_c_file(struct nesting *n, const char *path, struct rv__str *name, const char **why)
{
    struct rv__resolver *known = n->loader->known;
    const struct rv__draft *draft;
    struct stat st;
    int rc = RV_ENOTFOUND;
    if (known != NULL && known->find_file != NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode))
        rc = known->find_file(known, path, &draft);
    if (rc == RV_ENOMEM)
        n->base.rc = rc;
    if (rc == RV_OK) {
        *name = rv__draft_name(draft);
        return true;
    }
    (void)snprintf(n->why, sizeof n->why,
                   rc == RV_EINVAL ? "'%s' cannot be loaded: see its own problems"
                                   : "there is no workflow file '%s'",
                   rv__cite(rv__str(path)).text);
    *why = n->why;
    return false;
}

/* The first C file or script in the same folder, by its name, that declares a workflow of that name. */
static bool find_c_beside(struct nesting *n, struct rv__str wanted, struct rv__str *name,
                          const char **why)
{
    struct rv__str folder = n->entry->directory;
    struct rv__resolver *known = n->loader->known;
    if (rv__str_none(folder) || known == NULL || known->find_file == NULL)
        return true;
    char **names;
    size_t count;
    bool good = true, found = false;
    int rc = rv__folder_names(n->loader, folder.at, &names, &count); /* ends in NUL */
    if (rc < 0)
        count = 0;
    if (rc == RV_ENOMEM)
        n->base.rc = rc;
    for (size_t i = 0; i < count && !found; i++) {
        struct rv__str declared, text = rv__str(names[i]);
        enum rv__declares declares = DECLARES_NOTHING;
        struct rv__buf path;
        bool source = rv__is_c_file(text) && text.at[text.len - 1] == 'c';
        if (!source && !rv__is_script(text))
            continue;
        rv__buf_init(&path, PATH_MAX);
        if (rv__file_beside(folder, text, &path) < 0 ||
            (path.rc == RV_OK &&
             rv__cfile_name(path.text, &n->loader->arena, &declares, &declared) < 0))
            n->base.rc = RV_ENOMEM;
        found = declares == DECLARES_WORKFLOW && rv__str_eq(declared, wanted);
        if (found)
            good = find_c_file(n, path.text, name, why);
        rv__buf_done(&path);
    }
    return good;
}

static bool find_nested(struct rv__nesting *self, const struct rv__tree *reference,
                        struct rv__str *name, const char **why)
{
    struct nesting *n = RV__CONTAINER(self, struct nesting, base);
    struct rv__str text = rv__tree_real(reference)->text;
    struct rv__entry *to = NULL;
    if ((rv__is_c_file(text) || rv__is_script(text)) && !rv__str_none(n->entry->directory)) {
        struct rv__buf path;
        rv__buf_init(&path, PATH_MAX);
        bool good = rv__file_beside(n->entry->directory, text, &path) == RV_OK &&
                    path.rc == RV_OK && find_c_file(n, path.text, name, why);
        if (path.rc == RV_ENOMEM)
            self->rc = RV_ENOMEM;
        else if (path.rc != RV_OK)
            *why = "the path of this file is too long";
        rv__buf_done(&path);
        return good || self->rc < 0;
    }
    if (rv__is_file_reference(text)) {
        int rc = rv__discover_reference(n->loader, n->entry->directory, text, &to);
        if (rc < 0)
            self->rc = rc;
        if (to == NULL) {
            (void)snprintf(n->why, sizeof n->why, "there is no workflow file '%s' beside this one",
                           rv__cite(text).text);
            *why = n->why;
            return false;
        }
        return link_to(n, to, reference, name, why);
    }
    to = rv__entry_find(n->loader, text);
    if (to == NULL && !is_known(n, text)) {
        to = find_beside(n, text);
        if (to == NULL)
            return find_c_beside(n, text, name, why);
    }
    if (to == NULL || to == n->entry) /* itself: the compiler has the better message */
        return true;
    return link_to(n, to, reference, name, why);
}

static int lower(struct rv__loader *l, struct rv__entry *entry, bool again)
{
    struct nesting nesting = { { find_nested, RV_OK }, l, entry, again, "" };
    struct rv__problems told_before = { .arena = &l->arena };
    struct rv__source quiet = entry->source;
    quiet.told = NULL;
    struct rv__manifest manifest = { entry->agents, l->known };
    int rc = rv__lower(again ? &quiet : &entry->source, entry->tree,
                       entry->manifest ? &manifest : NULL, &l->arena, &nesting.base,
                       again ? &told_before : &l->problems, &entry->lowered);
    if (rc == RV_ENOMEM || told_before.rc == RV_ENOMEM)
        return rv__nomem(l->err);
    if (nesting.base.rc < 0)
        return nesting.base.rc;
    if (rc == RV_ETOOBIG)
        rv__problem_add(&l->problems, &entry->source, RV__NOWHERE,
                        "the workflow's text has more than %d bytes", RV__PLAN_MAX_BYTES);
    return RV_OK;
}

/* Read the lowered JSON into entry->draft; NULL: it is too large, and that was reported. */
static int read_draft(struct rv__loader *l, struct rv__entry *entry)
{
    rv_error why;
    if (entry->lowered.json.rc != RV_OK)
        return RV_OK;
    int rc = rv__draft_read(rv__buf_view(&entry->lowered.json), &entry->draft, &why);
    if (rc == RV_ENOMEM)
        return rv__nomem(l->err);
    if (rc < 0)
        rv__problem_add(&l->problems, &entry->source, RV__NOWHERE, "%s", why.message);
    return RV_OK;
}

int rv__entry_lower(struct rv__loader *l, struct rv__entry *entry)
{
    if (entry->tree == NULL)
        return RV_OK;
    int rc = lower(l, entry, false);
    return rc < 0 ? rc : read_draft(l, entry);
}

/* ------------------------------------------------------------------------------- schema --- */

static int check_schema(struct rv__loader *l, struct rv__entry *entry)
{
    const struct rv__tree *input = rv__tree_get(entry->tree, "input");
    struct rv__schema *schema = NULL;
    struct rv__violations bad;
    struct rv__buf json;
    rv_error why = { .code = 0 };
    if (input == NULL || (rv__tree_real(input)->kind != TREE_MAP &&
                          rv__tree_real(input)->kind != TREE_BOOL)) /* the plan reports that */
        return RV_OK;
    rv__violations_init(&bad, &l->arena);
    rv__buf_init(&json, RV__PLAN_MAX_BYTES);
    rv__tree_json(input, &json);
    int rc = rv__buf_err(&json, &why);
    if (rc == RV_OK)
        rc = rv__schema_new(rv__buf_view(&json), &bad, &schema, &why);
    rv__schema_free(schema);
    rv__buf_done(&json);
    if (rc == RV_ENOMEM || bad.rc == RV_ENOMEM)
        return rv__nomem(l->err);
    for (size_t i = 0; i < bad.count; i++) {
        const struct rv__tree *at = rv__tree_at(input, bad.items[i].path);
        struct rv__str path = bad.items[i].path;
        rv__problem_add(&l->problems, &entry->source, at->key_at,
                        "invalid input schema: %.*s%s%.*s", RV__ARG(path), path.len > 0 ? ": " : "",
                        RV__ARG(bad.items[i].message));
    }
    if (rc < 0 && bad.count == 0)
        rv__problem_add(&l->problems, &entry->source, input->key_at, "invalid input schema: %s",
                        why.message);
    return RV_OK;
}

/* -------------------------------------------------------------------------- expressions --- */

struct telling {
    struct rv__loader *loader;
    struct rv__entry *entry;
    int rc;
};

/* The value in the file that a slot's expression came from. */
static const struct rv__tree *slot_tree(const struct rv__spot *spot, enum rv__slot slot,
                                        struct rv__str pointer)
{
    static const char *const keys[SLOTS] = { "when",    "description", "if",    "while", "until",
                                             "forEach", "label",       "input", NULL };
    if (slot == SLOT_WITH)
        return rv__params_at(spot, pointer);
    if (spot->work != NULL && slot == SLOT_DESCRIPTION) {
        const struct rv__tree *describe = rv__form_get(spot->work, "describe");
        return describe != NULL ? rv__tree_at(describe, pointer) : NULL;
    }
    const struct rv__tree *value = rv__form_get(spot->work != NULL ? spot->work : spot->body,
                                                keys[slot]);
    return value != NULL ? rv__tree_at(value, pointer) : NULL;
}

/* Is the expression at this place a shell's: ${HOME}, ${1:-x}? */
static bool is_shells(const struct rv__source *source, uint32_t at)
{
    const char *text = source->text.at, *end = text + source->text.len, *c = text + at;
    while (c > text && *c != '\n' && !(c[0] == '{' && c[-1] == '$'))
        c--;
    if (c == text || c == end || *c != '{')
        return false;
    const char *name = ++c;
    while (c < end && (*c == '_' || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
        c++;
    return c > name && c < end && strchr("}:#%-+=?", *c) != NULL;
}

static void tell_finding(void *arg, const struct rv__finding *finding)
{
    struct telling *t = arg;
    struct rv__buf path;
    bool beyond;
    if (rv__problems_full(&t->entry->source)) {
        t->loader->problems.dropped++;
        return;
    }
    rv__buf_init(&path, RV__PLAN_MAX_BYTES);
    if (finding->body != NULL)
        rv__body_path(finding->body, NULL, &path);
    else
        rv__node_path(finding->node, NULL, &path);
    if (path.rc != RV_OK)
        t->rc = RV_ENOMEM;
    const struct rv__spot *spot = rv__spot_find(&t->entry->lowered.root, rv__buf_view(&path), "",
                                                &beyond);
    rv__buf_done(&path);
    if (spot == NULL || beyond ||
        spot->body == NULL) /* in a nested workflow: reported for its own file */
        return;
    const struct rv__tree *tree = slot_tree(spot, finding->slot, finding->pointer);
    uint32_t at = spot->at;
    if (tree != NULL && finding->character == 0)
        at = tree->at;
    else if (tree != NULL)
        at = rv__tree_character(tree, &t->entry->source, finding->character, finding->near);
    bool shells = spot->kind == FORM_COMMAND && is_shells(&t->entry->source, at);
    rv__problem_add(&t->loader->problems, &t->entry->source, at, "%s%s", finding->message,
                    shells ? "; if it is for the shell, write $${ instead" : "");
}

static int check_expressions(struct rv__loader *l, struct rv__entry *entry,
                             const struct rv__plan *plan)
{
    struct telling telling = { l, entry, RV_OK };
    rv_error why;
    int rc = rv__refs_find(plan, l->compiler, tell_finding, &telling, &why);
    if (rc == RV_ENOMEM || telling.rc < 0)
        return rv__nomem(l->err);
    if (rc < 0)
        rv__problem_add(&l->problems, &entry->source, RV__NOWHERE, "%s", why.message);
    return RV_OK;
}

/* ------------------------------------------------------------------------------ compile --- */

struct finder {
    struct rv__resolver base; /* first */
    struct rv__loader *loader;
};

static int find_draft(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret)
{
    struct rv__loader *l = RV__CONTAINER(self, struct finder, base)->loader;
    struct rv__entry *entry = rv__entry_find(l, name);
    if (entry != NULL && entry->draft != NULL) {
        *ret = entry->draft;
        return RV_OK;
    }
    return l->known != NULL ? l->known->find(l->known, name, ret) : RV_ENOTFOUND;
}

static int defer(struct rv__loader *l, struct rv__entry *entry, uint32_t at, struct rv__str message)
{
    struct rv__deferred *deferred = rv__arena_zalloc(&l->arena, 1, sizeof *deferred);
    if (deferred == NULL || rv__str_copy(&l->arena, message, &deferred->message) < 0)
        return rv__nomem(l->err);
    deferred->entry = entry;
    deferred->at = at;
    deferred->next = l->deferred;
    l->deferred = deferred;
    return RV_OK;
}

static bool is_own_cycle(const struct rv__entry *entry, const char *message)
{
    char begin[300];
    (void)snprintf(begin, sizeof begin, "workflow '%s' contains itself",
                   rv__cite(entry->name).text);
    return strncmp(message, begin, strlen(begin)) == 0;
}

/* Rewrite the message in the terms of manifests. Errors: RV_ENOMEM. */
static int say_as_manifest(struct rv__loader *l, struct rv__str *message)
{
    struct rv__buf text;
    rv__buf_init(&text, 4096);
    rv__manifest_words(message->at, &text);
    int rc = RV_OK;
    if (text.rc == RV_ENOMEM ||
        (text.rc == RV_OK && rv__str_copy(&l->arena, rv__buf_view(&text), message) < 0))
        rc = rv__nomem(l->err);
    rv__buf_done(&text);
    return rc;
}

/* Report a violation at its place, and mark the node as wrong. */
static int tell_violation(struct rv__loader *l, struct rv__entry *entry,
                          const struct rv__violation *violation, bool aloud)
{
    bool beyond;
    const char *message = violation->message.at; /* ends in NUL */
    const struct rv__spot *spot = rv__spot_find(&entry->lowered.root, violation->path, message,
                                                &beyond);
    if (spot == NULL) { /* about the workflow itself: its path is a key */
        const struct rv__tree *key = entry->tree->first;
        struct rv__key_room room;
        while (key != NULL && !rv__str_eq(rv__camel(key->key, &room), violation->path))
            key = key->next;
        if (aloud)
            rv__problem_add(&l->problems, &entry->source,
                            key != NULL ? key->key_at : entry->tree->at, "%s", message);
        return RV_OK;
    }
    uint32_t at = rv__spot_at(spot, message);
    struct rv__str words = violation->message;
    int rc = entry->manifest ? say_as_manifest(l, &words) : RV_OK;
    if (rc < 0)
        return rc;
    message = words.at;
    if (spot->body != NULL && !(beyond && !is_own_cycle(entry, message)))
        spot->body->broken += spot->body->broken < 2;
    if (!aloud)
        return RV_OK;
    if (beyond && !is_own_cycle(entry, message))
        return defer(l, entry, at, words);
    rv__problem_add(&l->problems, &entry->source, at, "%s", message);
    return RV_OK;
}

/* Compile the draft. *ret NULL: there were violations, which are reported. */
static int compile(struct rv__loader *l, struct rv__entry *entry, const struct rv__draft *draft,
                   bool aloud, struct rv__plan **ret)
{
    struct finder finder = { { find_draft }, l };
    struct rv__violations bad;
    rv_error why = { .code = 0 };
    rv__violations_init(&bad, &l->arena);
    int rc = rv__plan_compile(draft, &finder.base, &bad, ret, &why);
    if (rc == RV_ENOMEM || bad.rc == RV_ENOMEM)
        return rv__nomem(l->err);
    if (rc < 0 && rc != RV_EINVAL && aloud)
        rv__problem_add(&l->problems, &entry->source, RV__NOWHERE, "%s", why.message);
    for (size_t i = 0; i < bad.count; i++) {
        int told = tell_violation(l, entry, &bad.items[i], aloud);
        if (told < 0)
            return told;
    }
    return rc == RV_OK ? RV_OK : RV_EINVAL;
}

/* Compile again without the wrong nodes, to check the expressions of the rest. */
static int check_rest(struct rv__loader *l, struct rv__entry *entry)
{
    struct rv__draft *original = entry->draft;
    struct rv__plan *plan = NULL;
    int rc = RV_EINVAL;
    for (int round = 1; round < ROUNDS && rc == RV_EINVAL; round++) {
        rv__buf_done(&entry->lowered.json);
        rc = lower(l, entry, true);
        if (rc < 0)
            break;
        entry->draft = NULL;
        rc = read_draft(l, entry);
        struct rv__draft *draft = entry->draft;
        entry->draft = original; /* the one that others nest */
        if (rc == RV_OK)
            rc = draft != NULL ? compile(l, entry, draft, false, &plan) : RV_ENOTFOUND;
        rv__draft_free(draft);
    }
    if (rc == RV_OK)
        rc = check_expressions(l, entry, plan);
    rv__plan_free(plan);
    return rc == RV_EINVAL || rc == RV_ENOTFOUND ? RV_OK : rc;
}

int rv__entry_judge(struct rv__loader *l, struct rv__entry *entry)
{
    if (entry->tree == NULL || entry->draft == NULL)
        return RV_OK;
    int rc = check_schema(l, entry);
    if (rc < 0)
        return rc;
    rc = compile(l, entry, entry->draft, true, &entry->plan);
    if (rc == RV_EINVAL)
        return check_rest(l, entry);
    return rc < 0 ? rc : check_expressions(l, entry, entry->plan);
}
