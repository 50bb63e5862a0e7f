/* trace.c: what happens, readable, a line each; and the names of faults and of work. */
#include "sim.h"

#include <stdarg.h>

void trace(const struct world *world, const char *fmt, ...)
{
    if (!world->trace)
        return;
    va_list args;
    va_start(args, fmt);
    printf("%10lld ms  ", (long long)world->mono_ms);
    vprintf(fmt, args);
    putchar('\n');
    va_end(args);
}

const char *fault_name(enum fault fault)
{
    static const char *const names[FAULT_KINDS] = {
#define FAULT_TEXT(name, text) text,
        FAULTS(FAULT_TEXT)
#undef FAULT_TEXT
    };
    return names[fault];
}

/* The path of the node or body that the actor is. */
const char *work_name(const struct run *run, uint64_t id, char *room, size_t size)
{
    const struct rec_actor *actor = record_actor(&run->rec, id);
    struct rv__buf buf;
    rv__buf_init(&buf, 100000);
    if (actor == NULL)
        rv__buf_text(&buf, "nobody");
    else if (actor->body == -1)
        rv__node_path(run->plan->plan->nodes[actor->inst->node], actor->vector, &buf);
    else
        rv__body_path(actor->plan_body, actor->vector, &buf);
    snprintf(room, size, "%.*s (%llu)", RV__ARG(rv__buf_view(&buf)), (unsigned long long)id);
    rv__buf_done(&buf);
    return room;
}
