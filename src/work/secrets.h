/* secrets.h: the values of a plan's secrets: where they come from, who may see them, and what hides them.
 *
 * A value goes out with an attempt and is never recorded: a retry, also after a crash, sends the value of
 * then. Whatever an attempt of the plan says is masked before the engine gets it (rv__ctx_hide()). */
#ifndef RV_WORK_SECRETS_H
#define RV_WORK_SECRETS_H

#include "base/mask.h"
#include "expr/expr.h"
#include "plan/plan.h"

struct rv_ctx;

/* Where values come from. The engine's own is its secrets file and its environment; who runs something for
 * another process can bring that one's. */
struct rv__secret_source {
    /* RV_OK: *value lives as long as the source, or until the environment changes. RV_ENOTFOUND. */
    int (*find)(struct rv__secret_source *self, const char *name, struct rv__str *value);
    void (*free)(struct rv__secret_source *self);
};

enum { RV__SECRETS_FILE_BYTES = 1 << 20 };

/* The file's lines NAME=value first, then the environment: that one, which outlives the source, or (NULL) this
 * process's. `path` NULL: the environment only.
 * Errors: RV_EINVAL: it cannot be read, others may read it, or a line is wrong (which is named by its number,
 * never cited); RV_ENOMEM.   Thread: any. */
int rv__secret_source_new(const char *path, const char *const *environment,
                          struct rv__secret_source **ret, rv_error *err);
static inline void rv__secret_source_free(struct rv__secret_source *source) /* NULL is allowed */
{
    if (source != NULL)
        source->free(source);
}

/* The values of all secrets that a plan declares, nested workflows included. Counted; immutable. */
struct rv__secrets;

/* *ret is NULL if the plan declares none. A secret that has no value, or one that cannot be hidden, has none
 * here: new runs are refused, and steps that send it wait. Errors: RV_ENOMEM. */
int rv__secrets_new(const struct rv__plan *plan, struct rv__secret_source *source,
                    struct rv__secrets **ret, rv_error *err);
struct rv__secrets *rv__secrets_ref(struct rv__secrets *secrets); /* NULL is allowed */
void rv__secrets_unref(struct rv__secrets *secrets);              /* NULL is allowed */

/* Which secrets cannot be used, and why, and what to do about it: a sentence. NULL: all can be used, or there
 * are none. It lives as long as `secrets`. */
const char *rv__secrets_unusable(const struct rv__secrets *secrets);
/* The first secret of this template that cannot be used; "none": all can. */
struct rv__str rv__secrets_missing(const struct rv__secrets *secrets, const struct rv__exprs *set,
                                   uint32_t number);

/* False: it has none. */
bool rv__secrets_get(const struct rv__secrets *secrets, struct rv__str name, struct rv__str *value);
struct rv__mask *rv__secrets_mask(const struct rv__secrets *secrets); /* NULL gives NULL */

/* ------------------------------------------------------------------------------ of an attempt --- */

/* May this expression's scope have secrets? Only the parameters of what sends something. */
bool rv__ctx_may_see_secrets(const struct rv_ctx *ctx);
/* False: the template names a secret that has no value, and the attempt has failed with that. */
bool rv__ctx_secrets_ready(struct rv_ctx *ctx, uint32_t number);
/* What it said so far: result, state and error, with secrets hidden. May be called again. */
void rv__ctx_hide(struct rv_ctx *ctx);
/* A text that it will say, in its arena; `cut`: it may have been cut. */
struct rv__str rv__ctx_hidden(struct rv_ctx *ctx, struct rv__str text, bool cut);

#endif
