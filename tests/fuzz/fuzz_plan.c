/* fuzz_plan.c: any bytes against src/plan.
 *
 * Beyond "does not crash": what is refused is refused with a reason and a place; what is accepted
 * can be written, and read again as the same plan with the same version. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static void check_nodes(const struct rv__plan *plan)
{
    static const int64_t vector[RV__PLAN_MAX_DEPTH];
    struct rv__buf path;
    rv__buf_init(&path, RV__PLAN_MAX_BYTES);
    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct rv__node *node = plan->nodes[i];
        MUST(node->id == i);
        MUST(node->is_handler || rv__body_find(node->body, node->alias) == node);
        MUST(node->is_handler || node->body->owner == NULL || node->body->owner->id < i);
        MUST(node->kind != NODE_STEP || rv__str_none(node->step.with) ||
             rv__json_check(node->step.with, RV__PLAN_VALUE_DEPTH, NULL, NULL) == RV_OK);
        rv__buf_reset(&path);
        rv__node_path(node, vector, &path);
        MUST(path.rc == RV_OK && path.len > 0);
    }
    rv__buf_done(&path);
}

static void check_round_trip(const struct rv__plan *plan)
{
    struct rv__plan *again = NULL;
    struct rv__buf once, twice;
    rv__buf_init(&once, RV__PLAN_MAX_BYTES);
    rv__buf_init(&twice, RV__PLAN_MAX_BYTES);
    MUST(rv__plan_write(plan, &once, NULL) == RV_OK);
    MUST(rv__plan_read(rv__buf_view(&once), &again, NULL) == RV_OK);
    MUST(rv__plan_write(again, &twice, NULL) == RV_OK);
    MUST(rv__str_eq(rv__buf_view(&once), rv__buf_view(&twice)));
    MUST(strcmp(plan->version, again->version) == 0);
    MUST(plan->node_count == again->node_count);
    rv__plan_free(again);
    rv__buf_done(&once);
    rv__buf_done(&twice);
}

/* Every workflow that is asked for is this very draft, under whatever name: circles included. */
struct mirror {
    struct rv__resolver base;
    const struct rv__draft *draft;
    struct rv__str name;
};

static int find_itself(struct rv__resolver *self, struct rv__str name, const struct rv__draft **ret)
{
    struct mirror *mirror = (struct mirror *)self;
    if (!rv__str_eq(name, mirror->name))
        return RV_ENOTFOUND;
    *ret = mirror->draft;
    return RV_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv__str text = { (const char *)data, size };
    struct rv__draft *inner = NULL, *draft = NULL;
    struct rv__plan *plan = NULL;
    struct rv__arena arena;
    struct rv__violations bad;
    rv_error err;

    rv__arena_init(&arena, SIZE_MAX);
    rv__violations_init(&bad, &arena);
    if (rv__draft_new("inner", &inner, &err) < 0 || rv__draft_read(text, &draft, &err) < 0)
        goto out;
    rv__draft_inline(rv__draft_root(inner), draft, (struct rv__expr){ EXPR_NONE, { NULL, 0 } },
                     NULL);
    struct mirror mirror = { { find_itself }, inner, rv__str("inner") };
    int rc = rv__plan_compile(draft, &mirror.base, &bad, &plan, &err);
    if (rc == RV_OK) {
        MUST(bad.count == 0);
        check_nodes(plan);
        check_round_trip(plan);
    } else {
        MUST(rc == RV_ETOOBIG || (rc == RV_EINVAL && bad.count > 0));
        MUST(plan == NULL && err.message[0] != '\0');
        for (size_t i = 0; i < bad.count; i++)
            MUST(bad.items[i].message.len > 0);
    }
out:
    rv__plan_free(plan);
    rv__draft_free(draft);
    rv__draft_free(inner);
    rv__arena_done(&arena);
    return 0;
}
