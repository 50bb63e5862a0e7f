/* secrets.h: the values of a plan's secrets: where they come from, who may see them, and how they are masked.
 *
 * A value is sent by an attempt and never recorded: a retry, also after a crash, sends the value of that time.
 * Everything that an attempt of the plan produces is masked before the engine gets it (rv__ctx_hide()). */
#ifndef RV_WORK_SECRETS_H
#define RV_WORK_SECRETS_H

#include "base/mask.h"
#include "expr/expr.h"
#include "plan/plan.h"

struct rv_ctx;

/* Where values come from. An engine uses its secrets file and its environment. If it runs something for another
 * process, it uses those of that process. */
struct rv__secret_source {
    /* RV_OK: *value lives as long as the source, or until the environment changes. RV_ENOTFOUND. */
    int (*find)(struct rv__secret_source *self, const char *name, struct rv__str *value);
    void (*free)(struct rv__secret_source *self);
};

enum { RV__SECRETS_FILE_BYTES = 1 << 20 };

/* Look first in the file, lines of NAME=value, then in `environment`, which must outlive the source; NULL means the
 * environment of this process. `path` NULL: only the environment. Errors: RV_EINVAL (the file cannot be read, others
 * can read it, or a line is wrong; the message has the line's number, never its text), RV_ENOMEM. Thread: any. */
int rv__secret_source_new(const char *path, const char *const *environment,
                          struct rv__secret_source **ret, rv_error *err);
static inline void rv__secret_source_free(struct rv__secret_source *source) /* NULL is allowed */
{
    if (source != NULL)
        source->free(source);
}

/* The values of all secrets that a plan declares, including those of nested workflows. Counted; immutable. */
struct rv__secrets;

/* *ret is NULL if the plan declares none. A secret without a value, or one that cannot be masked, is missing here:
 * then new runs are refused, and steps that send the secret wait. Errors: RV_ENOMEM. */
int rv__secrets_new(const struct rv__plan *plan, struct rv__secret_source *source,
                    struct rv__secrets **ret, rv_error *err);
struct rv__secrets *rv__secrets_ref(struct rv__secrets *secrets); /* NULL is allowed */
void rv__secrets_unref(struct rv__secrets *secrets);              /* NULL is allowed */

/* A sentence that says which secrets cannot be used, why, and what to do. NULL: all can be used, or there are none.
 * It is valid as long as `secrets`. */
const char *rv__secrets_unusable(const struct rv__secrets *secrets);
/* The first secret of this template that cannot be used. "none": all can. */
struct rv__str rv__secrets_missing(const struct rv__secrets *secrets, const struct rv__exprs *set,
                                   uint32_t number);

/* False: it has no value. */
bool rv__secrets_get(const struct rv__secrets *secrets, struct rv__str name, struct rv__str *value);
struct rv__mask *rv__secrets_mask(const struct rv__secrets *secrets); /* NULL for NULL */

/* ------------------------------------------------------------------------------ of an attempt --- */

/* Whether this expression may use secrets. Only parameters of steps that send something may. */
bool rv__ctx_may_see_secrets(const struct rv_ctx *ctx);
/* False: the template uses a secret that has no value, and the attempt has failed for that. */
bool rv__ctx_secrets_ready(struct rv_ctx *ctx, uint32_t number);
/* Mask its result, state and error. May be called again. */
void rv__ctx_hide(struct rv_ctx *ctx);
/* Mask a text that it will produce; the copy is in its arena. `cut`: the text may be cut at its end. */
struct rv__str rv__ctx_hidden(struct rv_ctx *ctx, struct rv__str text, bool cut);

#endif
