/* scope.h: a scope for tests: pieces by name, counting how often each is asked for. */
#ifndef RV_TESTS_UNIT_EXPR_SCOPE_H
#define RV_TESTS_UNIT_EXPR_SCOPE_H

#include "base/blob.h"
#include "base/error.h"
#include "expr/expr.h"

enum { PIECES = 32 };

struct test_scope {
    struct rv__scope scope; /* first */
    struct {
        const char *root, *name, *field;
        struct rv__blob *blob;
        uint64_t key;   /* not 0: no text at hand, only made when asked */
        bool reference; /* the blob stands for a text that is not at hand */
        bool far;       /* it has to be waited for */
    } pieces[PIECES];
    size_t count;
    int finds, texts;
};

static int test_scope_find(struct rv__scope *self, struct rv__str root, struct rv__str name,
                           struct rv__str field, struct rv__scope_text *ret)
{
    struct test_scope *s = (struct test_scope *)self;
    s->finds++;
    for (size_t i = 0; i < s->count; i++) {
        if (!rv__str_eq(root, rv__str(s->pieces[i].root)) ||
            !rv__str_eq(name, rv__str(s->pieces[i].name)) ||
            !rv__str_eq(field, rv__str(s->pieces[i].field)))
            continue;
        if (s->pieces[i].far && self->at_hand)
            return RV_EBUSY;
        if (s->pieces[i].key != 0) {
            ret->key[0] = 1;
            ret->key[1] = s->pieces[i].key;
            ret->origin = s->pieces[i].blob;
        } else {
            ret->blob = s->pieces[i].blob;
            if (!s->pieces[i].reference)
                ret->json = rv__blob_str(ret->blob);
        }
        return RV_OK;
    }
    return RV_ENOTFOUND;
}

static int test_scope_text(struct rv__scope *self, const struct rv__scope_text *found,
                           struct rv__blob **ret, rv_error *err)
{
    struct test_scope *s = (struct test_scope *)self;
    s->texts++;
    const struct rv__blob *from = found->blob != NULL ? found->blob : found->origin;
    *ret = rv__blob_new(rv__blob_str(from)); /* another blob each time */
    return *ret != NULL ? RV_OK : rv__nomem(err);
}

static int test_scope_alias(struct rv__scope *self, size_t i, struct rv__str *ret)
{
    struct test_scope *s = (struct test_scope *)self;
    for (size_t p = 0; p < s->count; p++) {
        if (s->pieces[p].field == NULL || strcmp(s->pieces[p].field, "status") != 0)
            continue;
        if (i-- == 0) {
            *ret = rv__str(s->pieces[p].name);
            return 1;
        }
    }
    return 0;
}

static inline void test_scope_init(struct test_scope *s)
{
    memset(s, 0, sizeof *s);
    s->scope = (struct rv__scope){ test_scope_find, test_scope_text, test_scope_alias, NULL,
                                   false };
}

static inline void test_scope_done(struct test_scope *s)
{
    for (size_t i = 0; i < s->count; i++)
        rv__blob_unref(s->pieces[i].blob);
    s->count = 0;
}

static inline void test_scope_put(struct test_scope *s, const char *root, const char *name,
                                  const char *field, const char *json)
{
    s->pieces[s->count].root = root;
    s->pieces[s->count].name = name;
    s->pieces[s->count].field = field;
    s->pieces[s->count].key = 0;
    s->pieces[s->count].reference = s->pieces[s->count].far = false;
    s->pieces[s->count++].blob = rv__blob_new(rv__str(json));
}

#endif
