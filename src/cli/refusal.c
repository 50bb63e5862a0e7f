/* refusal.c: reports a store that refuses writes. */
#include "cli/refusal.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"

int rv__refusal_look(struct rv__refusal *r, rv_health *ret)
{
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    bool early = !r->stuck && now_ms - r->looked_ms < RV__REFUSAL_MS;
    if (r->engine == NULL || early || rv_engine_health(r->engine, ret, NULL) < 0)
        return 0;
    bool was = r->stuck;
    r->looked_ms = now_ms;
    r->stuck = ret->stuck;
    return (int)ret->stuck - (int)was;
}

/* The store is gone, so nothing can be recorded: exit at once. */
static void end_if_gone(const rv_health *health)
{
    if (!health->gone)
        return;
    if (rv__terminal_is(stderr))
        rv__terminal_cursor(stderr, true);
    int code = rv__cli_fail(CLI_GONE, health->why.message,
                            "put the store back, or take another, and start again");
    (void)fflush(NULL);
    _exit(code); /* not exit(): the engine's threads are running */
}

void rv__refusal_tell(struct rv__refusal *r, void (*clear)(void *arg), void *arg)
{
    rv_health health;
    int news = rv__refusal_look(r, &health);
    if (news == 0)
        return;
    if (clear != NULL)
        clear(arg);
    if (news > 0)
        end_if_gone(&health);
    if (news > 0)
        fprintf(stderr, "%srival:%s the store cannot be written, so the run waits: %s\n",
                rv__colour(stderr, RED), rv__colour(stderr, PLAIN), health.why.message);
    else
        fprintf(stderr, "the store works again: the run continues\n");
}

/* Nothing is under way that could be lost: the waiting call has changed nothing, and would wait for ever. */
static void end_if_stuck(struct rv__refusal *r, int64_t *since_ms)
{
    rv_health health;
    int64_t now_ms = rv__mono_ms(rv__clock_real());
    if (rv_engine_health(r->engine, &health, NULL) < 0 || !health.stuck) {
        *since_ms = now_ms;
        return;
    }
    end_if_gone(&health);
    if (now_ms - *since_ms < RV__REFUSAL_END_MS)
        return;
    int code = rv__cli_fail(CLI_FAILED, health.why.message, "nothing was changed");
    (void)fflush(NULL);
    _exit(code); /* not exit(): the engine's threads are running */
}

static void *watch(void *arg)
{
    struct rv__refusal *r = arg;
    rv_error why;
    int64_t since_ms = rv__mono_ms(rv__clock_real());
    while (!rv_cancel_wait(r->over, RV__REFUSAL_MS)) {
        if (r->ends)
            end_if_stuck(r, &since_ms);
        else
            rv__refusal_tell(r, NULL, NULL);
    }
    if (!r->stuck || r->interrupt == NULL || rv_cancel_cause(r->interrupt, &why) == 0)
        return NULL;
    fprintf(stderr, "%s: waiting for the store once more; press Ctrl-C again to exit at once\n",
            why.message);
    (void)rv_engine_close(r->engine); /* running steps do not delay the exit */
    return NULL;
}

void rv__refusal_watch(struct rv__refusal *r, rv_cancel *interrupt)
{
    r->interrupt = interrupt;
    r->over = r->engine != NULL ? rv_cancel_new(interrupt) : NULL;
    if (r->over != NULL && pthread_create(&r->thread, NULL, watch, r) != 0) {
        rv_cancel_free(r->over); /* without the thread nothing is reported; all else works */
        r->over = NULL;
    }
}

void rv__refusal_unwatch(struct rv__refusal *r)
{
    if (r->over == NULL)
        return;
    rv_cancel_fire(r->over, RV_ECANCELED, "it is over");
    (void)pthread_join(r->thread, NULL); /* it is our own thread */
    rv_cancel_free(r->over);
    r->over = NULL;
}
