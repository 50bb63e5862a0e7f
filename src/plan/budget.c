/* budget.c: what the chats of a workflow, or of one chat, may use up together: tokens, and money where the provider has
 * prices. Money is counted in billionths, so that sums are exact and the same on every machine. */
#include "plan/kinds.h"

#include "base/error.h"
#include "base/json.h"

#define MOST_COST (INT64_C(1000000) * RV__COST_UNIT)

static bool read_part(struct rv__str key, struct rv__str value, struct rv__budget *ret)
{
    if (rv__json_string_is(key, rv__str("tokens")))
        return rv__json_int(value, &ret->tokens) == RV_OK && ret->tokens >= 1;
    return rv__json_string_is(key, rv__str("cost")) && rv__cost_read(value, &ret->cost) &&
           ret->cost >= 1 && ret->cost <= MOST_COST;
}

bool rv__subject_budget(const struct rv__subject *s, struct rv__budget *ret)
{
    const struct rv__member *budget = rv__subject_get(s, KEY_BUDGET);
    struct rv__budget read = { 0 };
    struct rv__json_iter it;
    struct rv__str key, value;
    bool good = true, any = false;
    if (budget == NULL)
        return false;
    rv__json_iter_init(&it, budget->value);
    while (it.object && good && rv__json_next(&it, &key, &value)) {
        good = read_part(key, value, &read);
        any = true;
    }
    if (!good || !any) {
        rv__subject_complain(
            s, "budget",
            "invalid budget %s: must be {\"tokens\": a whole number of 1 or more}, "
            "{\"cost\": a number above 0, at most 1000000}, or both",
            rv__show(budget->value).text);
        return false;
    }
    *ret = read;
    return true;
}

void rv__write_budget(struct rv__writer *w, const struct rv__budget *budget)
{
    if (budget->tokens == 0 && budget->cost == 0)
        return;
    rv__write_key(w, "budget");
    rv__buf_char(w->out, '{');
    if (budget->tokens > 0) {
        rv__buf_text(w->out, "\"tokens\":");
        rv__buf_int(w->out, budget->tokens);
    }
    if (budget->cost > 0) {
        rv__buf_text(w->out, budget->tokens > 0 ? ",\"cost\":" : "\"cost\":");
        rv__cost_write(budget->cost, w->out);
    }
    rv__buf_char(w->out, '}');
}

bool rv__node_bounds_cost(const struct rv__node *node)
{
    for (;;) { /* outwards, as rv__node_wrap() */
        const struct rv__body *body = node->handler_in != NULL ? node->handler_in : node->body;
        if (node->handler_of == NULL && body->wrap != NULL && body->wrap->budget.cost > 0)
            return true;
        node = node->handler_of != NULL ? node->handler_of : body->owner;
        if (node == NULL)
            return false;
        if (node->kind == NODE_CHAT && node->chat.budget.cost > 0)
            return true;
    }
}

bool rv__cost_read(struct rv__str json, int64_t *ret)
{
    double units;
    if (rv__json_type(json) != RV__JSON_NUMBER || rv__json_double(json, &units) < 0 || units < 0 ||
        units > (double)(INT64_MAX / 2 / RV__COST_UNIT))
        return false;
    *ret = (int64_t)(units * (double)RV__COST_UNIT + 0.5);
    return true;
}

void rv__cost_write(int64_t cost, struct rv__buf *out)
{
    int64_t rest = cost % RV__COST_UNIT, digit = RV__COST_UNIT / 10;
    rv__buf_int(out, cost / RV__COST_UNIT);
    if (rest > 0)
        rv__buf_char(out, '.');
    for (; rest > 0; digit /= 10) {
        rv__buf_char(out, (char)('0' + rest / digit));
        rest %= digit;
    }
}
