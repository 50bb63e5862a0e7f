/* read.c: makes a draft from the objects of a JSON text (object.h).
 *
 * Recursive; objects have at most RV__PLAN_JSON_DEPTH levels. */
#include "plan/subject.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "base/json.h"
#include "base/suggest.h"
#include "plan/kinds.h"

_Static_assert(RV__PLAN_JSON_DEPTH <= RV__JSON_MAX_DEPTH, "or rv__json_check() cannot take it");
_Static_assert(RV__PLAN_MAX_DEPTH * 4 + RV__PLAN_VALUE_DEPTH + 4 <= RV__PLAN_JSON_DEPTH,
               "or a plan that was compiled could not be read again");

#define MOST_EXACT 9007199254740992.0 /* 2^53: up to here a double holds integers exactly */

struct rv__subject rv__subject_of(struct rv__draft_node *node, const struct rv__object *object)
{
    return (struct rv__subject){ node->draft, object, &node->complaints, false };
}

void rv__subject_complain(const struct rv__subject *s, const char *key, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    rv__draft_complain(s->draft, s->complaints, s->document ? key : NULL, fmt, args);
    va_end(args);
}

const struct rv__member *rv__subject_get(const struct rv__subject *s, enum rv__key key)
{
    return rv__object_get(s->object, key);
}

struct rv__str rv__subject_raw(const struct rv__subject *s, enum rv__key key)
{
    const struct rv__member *member = rv__subject_get(s, key);
    return member != NULL ? member->value : (struct rv__str){ NULL, 0 };
}

struct rv__str rv__subject_text(const struct rv__subject *s, enum rv__key key)
{
    struct rv__str text = { NULL, 0 };
    const struct rv__member *member = rv__subject_get(s, key);
    if (member == NULL)
        return text;
    int rc = rv__json_string(member->value, &s->draft->arena, &text);
    if (rc == RV_ENOMEM)
        (void)rv__nomem(&s->draft->failure);
    else if (rc < 0)
        rv__subject_complain(s, rv__key_name(key), "invalid %s %s: must be a text",
                             rv__key_name(key), rv__show(member->value).text);
    return text;
}

struct rv__expr rv__subject_expr(const struct rv__subject *s, enum rv__key key)
{
    const struct rv__member *member = rv__subject_get(s, key);
    if (member == NULL)
        return (struct rv__expr){ EXPR_NONE, { NULL, 0 } };
    return (struct rv__expr){ EXPR_JSON, member->value };
}

bool rv__subject_int(const struct rv__subject *s, enum rv__key key, int64_t most, int64_t *ret)
{
    const struct rv__member *member = rv__subject_get(s, key);
    double real;
    int64_t n;
    if (member == NULL)
        return false;
    if (rv__json_int(member->value, &n) < 0) {
        if (rv__json_double(member->value, &real) < 0 ||
            !(real >= -MOST_EXACT && real <= MOST_EXACT) || (double)(int64_t)real != real) {
            rv__subject_complain(s, rv__key_name(key), "invalid %s %s: must be a whole number",
                                 rv__key_name(key), rv__show(member->value).text);
            return false;
        }
        n = (int64_t)real;
    }
    if (n > most) {
        rv__subject_complain(s, rv__key_name(key), "invalid %s %s: it is too large",
                             rv__key_name(key), rv__show(member->value).text);
        return false;
    }
    *ret = n;
    return true;
}

bool rv__subject_bool(const struct rv__subject *s, enum rv__key key)
{
    bool truth = false;
    const struct rv__member *member = rv__subject_get(s, key);
    if (member != NULL && rv__json_bool(member->value, &truth) < 0)
        rv__subject_complain(s, rv__key_name(key), "invalid %s %s: must be true or false",
                             rv__key_name(key), rv__show(member->value).text);
    return truth;
}

int rv__subject_word(const struct rv__subject *s, enum rv__key key, const char *const *words,
                     size_t count, const char *list)
{
    const struct rv__member *member = rv__subject_get(s, key);
    if (member == NULL)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (rv__json_string_is(member->value, rv__str(words[i])))
            return (int)i;

    struct rv__str word = { NULL, 0 }; /* stays none if the value is no text */
    if (rv__json_string(member->value, &s->draft->arena, &word) == RV_ENOMEM)
        (void)rv__nomem(&s->draft->failure);
    const char *meant = rv__suggest(word, words, count);
    rv__subject_complain(s, rv__key_name(key), "unknown %s %s: must be %s%s%s%s", rv__key_name(key),
                         rv__show(member->value).text, list, meant ? "; did you mean '" : "",
                         meant ? meant : "", meant ? "'?" : "");
    return -1;
}

void rv__subject_check_keys(const struct rv__subject *s, unsigned sort, const char *what)
{
    const char *candidates[KEYS];
    size_t count = 0;
    for (int key = 0; key < KEYS; key++)
        if (rv__key_fits((enum rv__key)key, sort))
            candidates[count++] = rv__key_name((enum rv__key)key);
    for (const struct rv__member *m = s->object->members; m != NULL; m = m->next) {
        if (rv__key_fits(m->key, sort))
            continue;
        const char *meant = rv__suggest(m->name, candidates, count);
        struct rv__str shown = rv__draft_text(s->draft, rv__str(rv__show(m->name).text));
        rv__subject_complain(s, shown.at, "unknown key '%.*s' of %s%s%s%s", RV__ARG(shown), what,
                             meant ? "; did you mean '" : "", meant ? meant : "",
                             meant ? "'?" : "");
    }
}

struct rv__draft_node *rv__subject_handler(const struct rv__subject *of, enum rv__key key,
                                           unsigned depth)
{
    static const char *const types[] = { "step" };
    const struct rv__member *member = rv__subject_get(of, key);
    if (member == NULL)
        return NULL;
    if (*member->value.at == '[') {
        struct rv__draft_node *list = rv__draft_handler_new(of->draft, depth, NODE_SEQUENCE);
        rv__subject_body(of, key, false, rv__draft_body(list, 0, NULL, false));
        return list;
    }
    if (*member->value.at != '{') {
        rv__subject_complain(of, rv__key_name(key),
                             "invalid %s %s: must be a step or a list of nodes", rv__key_name(key),
                             rv__show(member->value).text);
        return NULL;
    }
    struct rv__draft_node *node = rv__draft_handler_new(of->draft, depth, NODE_STEP);
    struct rv__subject s = rv__subject_of(node, member->first);
    (void)rv__subject_word(&s, KEY_TYPE, types, 1, "step");
    rv__subject_check_keys(&s, SORT_HANDLER, "a handler");
    rv__draft_work_read(node, &s);
    return node;
}

void rv__subject_names(const struct rv__subject *s, enum rv__key key, struct rv__str **names,
                       uint32_t *names_count)
{
    const struct rv__member *member = rv__subject_get(s, key);
    const char *word = key == KEY_SECRETS ? "secrets" : "needs";
    const char *one = key == KEY_SECRETS ? "name" : "alias";
    struct rv__json_iter it;
    struct rv__str value;
    if (member == NULL)
        return;
    size_t count = rv__json_count(member->value);
    if (*member->value.at != '[' || count > RV__PLAN_MAX_NODES) {
        rv__subject_complain(s, word, "invalid %s %s: must be a list of %s", word,
                             rv__show(member->value).text,
                             key == KEY_SECRETS ? "names" : "aliases");
        return;
    }
    *names = rv__draft_alloc(s->draft, count, sizeof **names);
    if (*names == NULL)
        return;
    rv__json_iter_init(&it, member->value);
    while (rv__json_next(&it, NULL, &value)) {
        int rc = rv__json_string(value, &s->draft->arena, &(*names)[*names_count]);
        if (rc == RV_OK)
            ++*names_count;
        else if (rc == RV_ENOMEM)
            (void)rv__nomem(&s->draft->failure);
        else
            rv__subject_complain(s, word, "invalid %s %s in %s: must be a text", one,
                                 rv__show(value).text, word);
    }
}

static void fill_needs(struct rv__draft_node *node, const struct rv__subject *s)
{
    if (rv__subject_get(s, KEY_NEEDS) != NULL)
        node->given |= GIVEN_NEEDS;
    rv__subject_names(s, KEY_NEEDS, &node->needs, &node->needs_count);
}

/* Read the configuration of a step. Read for every kind: the compiler refuses what does not belong there. */
static void fill_config(struct rv__draft_node *node, const struct rv__subject *s)
{
    static const char *const on_timeouts[] = { "stop", "retry" };
    static const char *const backoffs[] = { "linear", "exponential" };
    struct rv__step_config *config = &node->config;
    const struct rv__member *jitter = rv__subject_get(s, KEY_JITTER);
    int64_t n;

    if (rv__subject_int(s, KEY_TIMEOUT, INT64_MAX, &config->timeout_ms))
        node->given |= GIVEN_TIMEOUT;
    if (rv__subject_int(s, KEY_MAX_ATTEMPTS, INT_MAX, &n)) {
        config->max_attempts = n < INT_MIN ? INT_MIN : (int)n;
        node->given |= GIVEN_MAX_ATTEMPTS;
    }
    if (rv__subject_int(s, KEY_BACKOFF_BASE_MS, INT64_MAX, &config->backoff_base_ms))
        node->given |= GIVEN_BACKOFF_BASE_MS;
    if (rv__subject_int(s, KEY_MAX_BACKOFF_MS, INT64_MAX, &config->max_backoff_ms))
        node->given |= GIVEN_MAX_BACKOFF_MS;
    if (jitter != NULL) {
        node->given |= GIVEN_JITTER;
        if (rv__json_double(jitter->value, &config->jitter) < 0)
            rv__subject_complain(s, "jitter", "invalid jitter %s: must be a number from 0 to 1",
                                 rv__show(jitter->value).text);
    }
    int word = rv__subject_word(s, KEY_ON_TIMEOUT, on_timeouts, 2, "stop or retry");
    if (word >= 0) {
        config->on_timeout = (enum rv__on_timeout)word;
        node->given |= GIVEN_ON_TIMEOUT;
    }
    word = rv__subject_word(s, KEY_BACKOFF, backoffs, 2, "linear or exponential");
    if (word >= 0) {
        config->backoff = (enum rv__backoff)word;
        node->given |= GIVEN_BACKOFF;
    }
    config->retry_on = rv__subject_raw(s, KEY_RETRY_ON);
    config->no_retry_on = rv__subject_raw(s, KEY_NO_RETRY_ON);
    config->continue_on_error = rv__subject_bool(s, KEY_CONTINUE_ON_ERROR);
    node->given |= !rv__str_none(config->retry_on) ? GIVEN_RETRY_ON : 0;
    node->given |= !rv__str_none(config->no_retry_on) ? GIVEN_NO_RETRY_ON : 0;
    if (rv__subject_get(s, KEY_CONTINUE_ON_ERROR) != NULL)
        node->given |= GIVEN_CONTINUE_ON_ERROR;
    if (rv__subject_get(s, KEY_RECORD_INPUT) != NULL) {
        config->hide_input = !rv__subject_bool(s, KEY_RECORD_INPUT);
        node->given |= GIVEN_RECORD_INPUT;
    }
    fill_needs(node, s);
}

void rv__subject_body(const struct rv__subject *s, enum rv__key key, bool one,
                      struct rv__draft_body *body)
{
    const struct rv__member *member = rv__subject_get(s, key);
    char first = *member->value.at;
    if (first != '[' && !(one && first == '{')) {
        rv__subject_complain(s, rv__key_name(key), "invalid %s %s: must be a list of nodes%s",
                             rv__key_name(key), rv__show(member->value).text,
                             one ? ", a step or a workflow" : "");
        return;
    }
    body->bare = first == '{';
    for (const struct rv__object *object = member->first; object != NULL; object = object->next)
        rv__draft_node_read(body, object);
}

/* "a, b or c" */
static void list_words(const char *const *words, size_t count, char *list, size_t room)
{
    size_t len = 0;
    for (size_t i = 0; i < count && len < room; i++)
        len += (size_t)snprintf(list + len, room - len, "%s%s",
                                i == 0          ? ""
                                : i + 1 < count ? ", "
                                                : " or ",
                                words[i]);
}

void rv__draft_node_read(struct rv__draft_body *in, const struct rv__object *object)
{
    enum { TYPES = NODE_SEQUENCE }; /* a sequence has no type in JSON, and is the last kind */
    const char *words[TYPES];
    char list[128];
    for (int kind = 0; kind < TYPES; kind++)
        words[kind] = rv__node_kind_name((enum rv__node_kind)kind);
    list_words(words, TYPES, list, sizeof list);

    struct rv__draft_node *node = rv__draft_node_new(in, NODE_STEP);
    struct rv__subject s = rv__subject_of(node, object);
    node->alias = rv__subject_text(&s, KEY_ALIAS);
    int kind = rv__subject_word(&s, KEY_TYPE, words, TYPES, list);
    if (kind < 0) {
        node->broken = true;
        if (!rv__str_none(object->text))
            rv__subject_complain(&s, NULL, "invalid node %s: must be an object",
                                 rv__show(object->text).text);
        else if (rv__subject_get(&s, KEY_TYPE) == NULL)
            rv__subject_complain(&s, NULL, "it needs a 'type': %s", list);
        return;
    }
    node->kind = (enum rv__node_kind)kind;
    rv__subject_check_keys(&s, 1u << kind, rv__node_kind_phrase(node->kind));
    node->when = rv__subject_expr(&s, KEY_WHEN);
    node->description = rv__subject_expr(&s, KEY_DESCRIPTION);
    fill_config(node, &s);
    if (node->kind != NODE_WORKFLOW) /* there it may belong to the workflow itself */
        node->on_error = rv__subject_handler(&s, KEY_ON_ERROR, node->depth);
    rv__kind_of(node->kind)->read(node, &s);
}

static void fill_document(struct rv__draft *draft, const struct rv__object *object)
{
    struct rv__draft_workflow *workflow = &draft->workflow;
    struct rv__subject s = { draft, object, &workflow->complaints, true };
    rv__subject_check_keys(&s, SORT_DOCUMENT, "a workflow");
    workflow->name = rv__subject_text(&s, KEY_NAME);
    workflow->description = rv__subject_text(&s, KEY_DESCRIPTION);
    workflow->schema = rv__subject_raw(&s, KEY_INPUT);
    rv__subject_names(&s, KEY_NEEDS, &workflow->needs, &workflow->needs_count);
    rv__subject_names(&s, KEY_SECRETS, &workflow->secrets, &workflow->secrets_count);
    rv__draft_manifest_read(workflow, &s);
    (void)rv__subject_budget(&s, &workflow->budget);
    workflow->hosted = rv__subject_bool(&s, KEY_HOSTED);
    workflow->on_error = rv__subject_handler(&s, KEY_ON_ERROR, workflow->body.depth);
    workflow->finally = rv__subject_handler(&s, KEY_FINALLY, workflow->body.depth);
    if (rv__subject_get(&s, KEY_STEPS) != NULL)
        rv__subject_body(&s, KEY_STEPS, false, &workflow->body);
}

int rv__draft_read(struct rv__str json, struct rv__draft **ret, rv_error *err)
{
    struct rv__draft *draft = NULL;
    struct rv__arena arena; /* the objects */
    struct rv__object *root = NULL;
    struct rv__str text;
    int rc;

    if (json.len > RV__PLAN_MAX_BYTES)
        return rv__fail(err, RV_ETOOBIG, "the workflow's text has more than %d bytes",
                        RV__PLAN_MAX_BYTES);
    rc = rv__json_check(json, RV__PLAN_JSON_DEPTH, &text, err);
    if (rc < 0)
        return rc;
    if (*text.at != '{')
        return rv__fail(err, RV_EINVAL, "a workflow must be an object, with 'name' and 'steps'");

    rv__arena_init(&arena, SIZE_MAX); /* the text and RV__PLAN_MAX_NODES bound it */
    draft = rv__draft_make();
    if (draft == NULL || rv__str_copy(&draft->arena, text, &text) < 0) { /* its texts are slices */
        rc = rv__nomem(err);
        goto out;
    }
    rc = rv__object_read(text, &arena, &root);
    if (rc == RV_ETOOBIG)
        (void)rv__fail(err, rc, "the workflow has more than %d nodes", RV__PLAN_MAX_NODES);
    else if (rc < 0)
        (void)rv__nomem(err);
    if (rc < 0)
        goto out;

    fill_document(draft, root);
    if (draft->failure.code < 0) {
        rc = rv__fail(err, draft->failure.code, "%s", draft->failure.message);
        goto out;
    }
    *ret = draft;
    draft = NULL;
out:
    rv__draft_free(draft);
    rv__arena_done(&arena);
    return rc;
}

int rv__draft_add_json(struct rv__draft_body *in, struct rv__str json, rv_error *err)
{
    struct rv__arena arena; /* the objects */
    struct rv__object *root = NULL;
    struct rv__str text;
    int rc = rv__json_check(json, RV__PLAN_JSON_DEPTH, &text, err);
    if (rc < 0)
        return rc;
    if (*text.at != '{')
        return rv__fail(err, RV_EINVAL, "a node must be an object, with its 'type'");
    text = rv__draft_text(in->draft,
                          text); /* its texts are slices; a failure is remembered by the draft */
    if (rv__str_none(text))
        return RV_OK;
    rv__arena_init(&arena, SIZE_MAX); /* as in rv__draft_read() */
    rc = rv__object_read(text, &arena, &root);
    if (rc == RV_OK)
        rv__draft_node_read(in, root);
    else if (rc == RV_ETOOBIG)
        (void)rv__fail(err, rc, "the node has more than %d nodes in it", RV__PLAN_MAX_NODES);
    else
        (void)rv__nomem(err);
    rv__arena_done(&arena);
    return rc;
}
