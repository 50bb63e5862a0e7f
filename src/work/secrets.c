/* secrets.c: see secrets.h. */
#include "work/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "work/work.h"

/* --------------------------------------------------------------------------------- the source --- */

struct line {
    struct line *next;
    const char *name;
    struct rv__str value;
};

struct source {
    struct rv__secret_source base; /* first */
    struct rv__arena arena;
    struct line *lines;
    const char *const *environment; /* not owned; NULL: that of this process */
};

static const char *variable(const char *const *environment, const char *name)
{
    size_t len = strlen(name);
    if (environment == NULL)
        return getenv(name);
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
            return *environment + len + 1;
    return NULL;
}

static int source_find(struct rv__secret_source *self, const char *name, struct rv__str *value)
{
    for (const struct line *line = ((struct source *)self)->lines; line != NULL; line = line->next)
        if (strcmp(line->name, name) == 0) {
            *value = line->value;
            return RV_OK;
        }
    const char *text = variable(((struct source *)self)->environment, name);
    if (text == NULL)
        return RV_ENOTFOUND;
    *value = rv__str(text);
    return RV_OK;
}

static void source_free(struct rv__secret_source *self)
{
    struct source *source = (struct source *)self;
    rv__arena_done(&source->arena);
    rv__free(source);
}

static bool is_name(struct rv__str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return name.len > 0;
}

static int add_line(struct source *source, struct rv__str text, const char *path, size_t number,
                    rv_error *err)
{
    if (text.len > 0 && text.at[text.len - 1] == '\r')
        text.len--;
    size_t blank = 0;
    while (blank < text.len && (text.at[blank] == ' ' || text.at[blank] == '\t'))
        blank++;
    if (blank == text.len || text.at[blank] == '#')
        return RV_OK;
    const char *equals = memchr(text.at, '=', text.len);
    struct rv__str name = { text.at, equals != NULL ? (size_t)(equals - text.at) : 0 };
    if (equals == NULL || !is_name(name))
        return rv__fail(err, RV_EINVAL,
                        "%s:%zu: a line must be NAME=value, without spaces around the name", path,
                        number);
    if (memchr(text.at, '\0', text.len) != NULL)
        return rv__fail(err, RV_EINVAL, "%s:%zu: there is a NUL character in it", path, number);
    struct line *line = rv__arena_zalloc(&source->arena, 1, sizeof *line);
    char *copy = line != NULL ? rv__arena_dup(&source->arena, name.at, name.len) : NULL;
    struct rv__str value = { equals + 1, text.len - name.len - 1 };
    if (copy == NULL || rv__str_copy(&source->arena, value, &line->value) < 0)
        return rv__nomem(err);
    line->name = copy;
    for (const struct line *other = source->lines; other != NULL; other = other->next)
        if (strcmp(other->name, copy) == 0)
            return rv__fail(err, RV_EINVAL, "%s:%zu: %s is there twice", path, number, copy);
    line->next = source->lines;
    source->lines = line;
    return RV_OK;
}

static int read_lines(struct source *source, struct rv__str text, const char *path, rv_error *err)
{
    size_t number = 1;
    int rc = RV_OK;
    for (const char *at = text.at, *end = at + text.len; at < end && rc == RV_OK; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline != NULL ? newline : end) - at);
        rc = add_line(source, (struct rv__str){ at, len }, path, number, err);
        at += len + 1;
    }
    return rc;
}

/* Refuse a file that others can read, as ssh does with keys. */
static int check_mode(int file, const char *path, rv_error *err)
{
    struct stat st;
    if (fstat(file, &st) < 0)
        return rv__fail(err, RV_EINVAL, "cannot read the secrets file '%s': %s", path,
                        strerrordesc_np(errno));
    if (!S_ISREG(st.st_mode))
        return rv__fail(err, RV_EINVAL, "the secrets file '%s' is not a regular file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return rv__fail(err, RV_EINVAL, "the secrets file '%s' belongs to another user", path);
    if ((st.st_mode & 077) != 0)
        return rv__fail(err, RV_EINVAL,
                        "others may read or change the secrets file '%s' (mode %03o): chmod 600 it",
                        path, (unsigned)(st.st_mode & 0777));
    return RV_OK;
}

static int read_file(struct source *source, const char *path, rv_error *err)
{
    struct rv__buf text;
    char piece[4096];
    ssize_t n = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC |
                              O_NONBLOCK); /* a FIFO is refused instead of waiting for it */
    if (file < 0)
        return rv__fail(err, RV_EINVAL, "cannot read the secrets file '%s': %s", path,
                        strerrordesc_np(errno));
    rv__buf_init(&text, RV__SECRETS_FILE_BYTES);
    int rc = check_mode(file, path, err);
    while (rc == RV_OK && text.rc == RV_OK && (n = read(file, piece, sizeof piece)) > 0)
        rv__buf_add(&text, piece, (size_t)n);
    if (rc == RV_OK && n < 0)
        rc = rv__fail(err, RV_EINVAL, "cannot read the secrets file '%s': %s", path,
                      strerrordesc_np(errno));
    if (rc == RV_OK && text.rc == RV_ETOOBIG)
        rc = rv__fail(err, RV_EINVAL, "the secrets file '%s' has more than %d bytes", path,
                      RV__SECRETS_FILE_BYTES);
    else if (rc == RV_OK)
        rc = rv__buf_err(&text, err);
    if (rc == RV_OK)
        rc = read_lines(source, rv__buf_view(&text), path, err);
    if (text.text != NULL)
        explicit_bzero(text.text, text.len);
    rv__buf_done(&text);
    close(file);
    return rc;
}

int rv__secret_source_new(const char *path, const char *const *environment,
                          struct rv__secret_source **ret, rv_error *err)
{
    struct source *source = rv__zalloc(1, sizeof *source);
    if (source == NULL)
        return rv__nomem(err);
    source->base = (struct rv__secret_source){ source_find, source_free };
    source->environment = environment;
    rv__arena_init(&source->arena, SIZE_MAX); /* bounded by the file */
    int rc = path != NULL ? read_file(source, path, err) : RV_OK;
    if (rc < 0)
        source_free(&source->base);
    else
        *ret = &source->base;
    return rc;
}

/* --------------------------------------------------------------------------------- the values --- */

struct secret {
    struct rv__str name, value;
};

struct rv__secrets {
    atomic_uint refs;
    struct rv__arena arena;
    struct secret *items; /* those that have a value, sorted by name */
    size_t count;
    struct rv__mask *mask; /* NULL: no secret has a value */
    const char *
        unusable; /* a sentence about secrets without a value, and what to do; NULL: there are none */
};

static int by_name(const void *a, const void *b)
{
    return rv__str_cmp(((const struct secret *)a)->name, ((const struct secret *)b)->name);
}

/* All secret names of the plan, each once, sorted. The texts belong to the plan and end in NUL. */
static int gather(const struct rv__plan *plan, struct rv__arena *arena, struct secret **ret,
                  size_t *ret_count)
{
    size_t most = plan->body.wrap->secrets_count, count = 0, kept = 0;
    for (uint32_t i = 0; i < plan->node_count; i++)
        for (uint32_t b = 0; b < plan->nodes[i]->body_count; b++)
            if (plan->nodes[i]->bodies[b].wrap != NULL)
                most += plan->nodes[i]->bodies[b].wrap->secrets_count;
    *ret_count = 0;
    if (most == 0)
        return RV_OK;
    struct secret *items = rv__arena_zalloc(arena, most, sizeof *items);
    if (items == NULL)
        return RV_ENOMEM;
    for (uint32_t k = 0; k < plan->body.wrap->secrets_count; k++)
        items[count++].name = plan->body.wrap->secrets[k];
    for (uint32_t i = 0; i < plan->node_count; i++)
        for (uint32_t b = 0; b < plan->nodes[i]->body_count; b++) {
            const struct rv__wrap *wrap = plan->nodes[i]->bodies[b].wrap;
            for (uint32_t k = 0; wrap != NULL && k < wrap->secrets_count; k++)
                items[count++].name = wrap->secrets[k];
        }
    qsort(items, count, sizeof *items, by_name);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !rv__str_eq(items[i].name, items[kept - 1].name))
            items[kept++] = items[i];
    *ret = items;
    *ret_count = kept;
    return RV_OK;
}

/* Find the value of a secret. Returns why it cannot be used; NULL: it can. */
static const char *find_value(struct rv__secret_source *source, struct rv__str name,
                              struct rv__str *value)
{
    if (source->find(source, name.at, value) < 0)
        return "has no value";
    if (value->len < RV__MASK_SHORTEST)
        return "has fewer than 8 bytes";
    if (!rv__str_utf8(*value))
        return "is not UTF-8";
    return NULL;
}

#define WHERE_THEY_GO "in the environment of the engine or in its --secrets file"
enum { NAMED_MOST = 2 }; /* secrets without a value that a message names; the others are counted */

static int make_mask(struct rv__secrets *secrets)
{
    struct rv__str *values = rv__arena_zalloc(&secrets->arena, secrets->count, sizeof *values);
    if (values == NULL)
        return RV_ENOMEM;
    for (size_t i = 0; i < secrets->count; i++)
        values[i] = secrets->items[i].value;
    int rc = rv__mask_new(values, secrets->count, &secrets->mask, NULL);
    if (rc == RV_ETOOBIG) { /* the secrets could not be masked, so nothing may be sent */
        secrets->count = 0;
        secrets->unusable =
            "its secrets have more than 64 KiB together; set shorter ones " WHERE_THEY_GO;
        rc = RV_OK;
    }
    return rc;
}

static int keep_values(struct rv__secrets *secrets, const struct secret *all, size_t count,
                       struct rv__secret_source *source, struct rv__buf *unusable)
{
    size_t without = 0;
    for (size_t i = 0; i < count; i++) {
        struct rv__str value = { NULL, 0 };
        const char *why = find_value(source, all[i].name, &value);
        if (why != NULL && without++ < NAMED_MOST)
            rv__buf_fmt(unusable, "%s%.*s %s",
                        without > 1 ? ", " : "its secrets cannot be used: ", RV__ARG(all[i].name),
                        why);
        if (why != NULL)
            continue;
        struct secret *item = &secrets->items[secrets->count];
        if (rv__str_copy(&secrets->arena, all[i].name, &item->name) < 0 ||
            rv__str_copy(&secrets->arena, value, &item->value) < 0)
            return RV_ENOMEM;
        secrets->count++;
    }
    if (without > NAMED_MOST)
        rv__buf_fmt(unusable, ", and %zu more", without - NAMED_MOST);
    if (without > 0)
        rv__buf_text(unusable, "; set them " WHERE_THEY_GO);
    return rv__buf_err(unusable, NULL);
}

int rv__secrets_new(const struct rv__plan *plan, struct rv__secret_source *source,
                    struct rv__secrets **ret, rv_error *err)
{
    struct rv__secrets *secrets = rv__zalloc(1, sizeof *secrets);
    struct secret *all = NULL;
    struct rv__buf unusable;
    size_t count = 0;
    if (secrets == NULL)
        return rv__nomem(err);
    atomic_init(&secrets->refs, 1);
    rv__arena_init(&secrets->arena, SIZE_MAX); /* bounded by the plan and by what a mask takes */
    rv__buf_init(&unusable, SIZE_MAX / 2);     /* bounded by the plan's names */
    int rc = gather(plan, &secrets->arena, &all, &count);
    secrets->items = all;
    if (rc == RV_OK)
        rc = keep_values(secrets, all, count, source, &unusable);
    if (rc == RV_OK && secrets->count > 0)
        rc = make_mask(secrets);
    if (rc == RV_OK && unusable.len > 0) {
        secrets->unusable = rv__arena_dup(&secrets->arena, unusable.text, unusable.len);
        rc = secrets->unusable != NULL ? RV_OK : RV_ENOMEM;
    }
    rv__buf_done(&unusable);
    if (rc < 0 || count == 0) {
        rv__secrets_unref(secrets);
        secrets = NULL;
    }
    if (rc < 0)
        return rv__nomem(err);
    *ret = secrets;
    return RV_OK;
}

struct rv__secrets *rv__secrets_ref(struct rv__secrets *secrets)
{
    if (secrets != NULL)
        atomic_fetch_add_explicit(&secrets->refs, 1, memory_order_relaxed);
    return secrets;
}

void rv__secrets_unref(struct rv__secrets *secrets)
{
    if (secrets == NULL || atomic_fetch_sub_explicit(&secrets->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < secrets->count; i++)
        explicit_bzero((char *)(uintptr_t)secrets->items[i].value.at, secrets->items[i].value.len);
    rv__mask_unref(secrets->mask);
    rv__arena_done(&secrets->arena);
    rv__free(secrets);
}

const char *rv__secrets_unusable(const struct rv__secrets *secrets)
{
    return secrets != NULL ? secrets->unusable : NULL;
}

struct rv__str rv__secrets_missing(const struct rv__secrets *secrets, const struct rv__exprs *set,
                                   uint32_t number)
{
    struct rv__expr_use use;
    struct rv__str value;
    if (rv__secrets_unusable(secrets) != NULL)
        for (size_t i = 0; rv__exprs_use(set, number, i, &use); i++)
            if (rv__str_is(use.root, "secrets") && !rv__str_none(use.name) &&
                !rv__secrets_get(secrets, use.name, &value))
                return use.name;
    return (struct rv__str){ NULL, 0 };
}

bool rv__secrets_get(const struct rv__secrets *secrets, struct rv__str name, struct rv__str *value)
{
    struct secret key = { .name = name };
    const struct secret *found = secrets != NULL && secrets->count > 0
                                     ? bsearch(&key, secrets->items, secrets->count, sizeof key,
                                               by_name)
                                     : NULL;
    if (found == NULL)
        return false;
    *value = found->value;
    return true;
}

struct rv__mask *rv__secrets_mask(const struct rv__secrets *secrets)
{
    return secrets != NULL ? secrets->mask : NULL;
}

/* ------------------------------------------------------------------------------ of an attempt --- */

bool rv__ctx_may_see_secrets(const struct rv_ctx *ctx)
{
    const struct rv__node *node = ctx->view.node;
    return ctx->eval < 0 && !ctx->describing && node != NULL && node->kind == NODE_STEP &&
           (node->step.kind == STEP_COMMAND || node->step.kind == STEP_HTTP);
}

bool rv__ctx_secrets_ready(struct rv_ctx *ctx, uint32_t number)
{
    struct rv__str name = rv__secrets_missing(ctx->secrets, ctx->exprs->set, number);
    if (rv__str_none(name))
        return true;
    rv_fail(ctx,
            "the secret %.*s has no value that can be used; set it " WHERE_THEY_GO
            ", and restart it",
            RV__ARG(name));
    return false;
}

struct rv__str rv__ctx_hidden(struct rv_ctx *ctx, struct rv__str text, bool cut)
{
    struct rv__mask *mask = rv__secrets_mask(ctx->secrets);
    struct rv__str copy = RV__STR(RV__MASK_TEXT);
    struct rv__buf masked;
    if (mask == NULL || rv__str_none(text))
        return text;
    rv__buf_init(&masked, SIZE_MAX / 2);
    if (!rv__mask_text(mask, text, cut, &masked))
        copy = text;
    else if (masked.rc == RV_OK)
        (void)rv__str_copy(&ctx->arena, rv__buf_view(&masked),
                           &copy); /* without memory nothing is shown */
    rv__buf_done(&masked);
    return copy;
}

/* Mask JSON. Returns the same blob if nothing is masked; NULL: no memory. `otherwise` replaces a value that must be
 * an object and is none after masking; NULL: any type is allowed. */
static struct rv__blob *hide_json(struct rv__mask *mask, struct rv__blob *blob,
                                  const char *otherwise)
{
    struct rv__buf masked;
    struct rv__blob *hidden = NULL;
    if (blob == NULL || rv__blob_is_reference(blob))
        return rv__blob_ref(blob);
    rv__buf_init(&masked, SIZE_MAX / 2);
    if (!rv__mask_json(mask, rv__blob_str(blob), &masked))
        hidden = rv__blob_ref(blob);
    else if (masked.rc == RV_OK && (otherwise == NULL || masked.text[0] == '{'))
        hidden = rv__blob_new(rv__buf_view(&masked));
    else if (masked.rc == RV_OK)
        hidden = rv__blob_new(rv__str(otherwise));
    rv__buf_done(&masked);
    return hidden;
}

/* Mask the members of the state. A member that cannot be kept is removed. */
static void hide_state(struct rv_ctx *ctx, struct rv__mask *mask)
{
    struct rv__buf *members = &ctx->state_members, whole, masked;
    if (members->len == 0)
        return;
    rv__buf_init(&whole, SIZE_MAX / 2);
    rv__buf_init(&masked, SIZE_MAX / 2);
    rv__buf_char(&whole, '{');
    rv__buf_str(&whole, rv__buf_view(members));
    rv__buf_char(&whole, '}');
    if (whole.rc != RV_OK) {
        rv__buf_reset(members);
    } else if (rv__mask_json(mask, rv__buf_view(&whole), &masked)) {
        rv__buf_reset(members);
        if (masked.rc == RV_OK && masked.text[0] == '{')
            rv__buf_add(members, masked.text + 1, masked.len - 2);
    }
    rv__buf_done(&whole);
    rv__buf_done(&masked);
}

void rv__ctx_hide(struct rv_ctx *ctx)
{
    struct rv__mask *mask = rv__secrets_mask(ctx->secrets);
    if (mask == NULL)
        return;
    if (ctx->outcome == MSG_NOTE) {
        struct rv__blob *note = hide_json(mask, ctx->note, "{}");
        if (note == NULL) {
            ctx->given_up = true; /* the attempt is started again */
            ctx->outcome = MSG_FAILED;
        }
        rv__blob_unref(ctx->note);
        ctx->note = note;
    }
    if (ctx->outcome == MSG_PARK && rv__mask_finds(mask, ctx->handle))
        rv_fail(ctx, "a handle or the name of a signal is recorded, so it cannot contain a secret");
    if (ctx->result != ctx->shown) { /* otherwise it is masked already */
        struct rv__blob *result = hide_json(mask, ctx->result, NULL);
        if (result == NULL && ctx->result != NULL) {
            ctx->given_up = true; /* the attempt is started again */
            ctx->outcome = MSG_FAILED;
        }
        rv__blob_unref(ctx->result);
        ctx->result = result;
        ctx->shown = result;
    }
    struct rv__blob *error = hide_json(mask, ctx->error, "{\"message\":\"" RV__MASK_TEXT "\"}");
    rv__blob_unref(ctx->error);
    ctx->error = error; /* without memory: an error without a message */
    hide_state(ctx, mask);
}
