/* manager.c: the steps of a task group.
 *
 *   accept ──▶ queue ──start──▶ running ──finish──▶ results ──take──▶ the caller
 *
 * Every function ends in check(), which asserts what group.h promises. */
#include "group/manager.h"

#include <assert.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

enum { SLAB_TASKS = 127 }; /* with the link, 4 KB */

struct rv__group_slab {
    struct rv__group_slab *next;
    struct rv__group_task tasks[SLAB_TASKS];
};

/* The invariants of group.h, and of rv__manager_need(). */
static void check(const struct rv__manager *m)
{
#ifdef RV_DEBUG_CHECKS
    assert(m->owned && pthread_equal(m->owner, pthread_self()));  /* only the manager's thread */
    assert(m->accepted == m->finished + rv__manager_inflight(m)); /* counted once, finishes once */
    assert(m->finished == m->taken + m->results.count);
    assert(m->running <= m->threads && m->threads <= m->max_threads);
    assert(m->idle + m->coming + m->running <= m->threads);
    assert(m->coming <= 1);
    assert(m->queue.count <= m->max_queued);
    assert((m->queue.first == NULL) == (m->queue.count == 0));
    assert((m->results.first == NULL) == (m->results.count == 0));
#endif
    (void)m;
}

void rv__manager_enter(struct rv__manager *m)
{
#ifdef RV_DEBUG_CHECKS
    assert(!m->owned);
    m->owned = true;
    m->owner = pthread_self();
#endif
    (void)m;
}

void rv__manager_leave(struct rv__manager *m)
{
    check(m);
#ifdef RV_DEBUG_CHECKS
    m->owned = false;
#endif
}

static void list_add(struct rv__group_list *list, struct rv__group_task *task)
{
    if (list->first == NULL)
        list->last = &list->first;
    task->next = NULL;
    *list->last = task;
    list->last = &task->next;
    list->count++;
}

static struct rv__group_task *list_pop(struct rv__group_list *list)
{
    struct rv__group_task *task = list->first;
    if (task == NULL)
        return NULL;
    list->first = task->next;
    list->count--;
    return task;
}

static struct rv__group_task *task_new(struct rv__manager *m)
{
    if (m->spare == NULL) {
        struct rv__group_slab *slab = rv__alloc(sizeof *slab);
        if (slab == NULL)
            return NULL;
        slab->next = m->slabs;
        m->slabs = slab;
        for (size_t i = 0; i < SLAB_TASKS; i++) {
            slab->tasks[i].next = m->spare;
            m->spare = &slab->tasks[i];
        }
    }
    struct rv__group_task *task = m->spare;
    m->spare = task->next;
    return task;
}

static void task_free(struct rv__manager *m, struct rv__group_task *task)
{
    task->next = m->spare;
    m->spare = task;
}

void rv__manager_init(struct rv__manager *m, size_t max_threads, size_t max_queued)
{
    *m = (struct rv__manager){ .max_threads = max_threads, .max_queued = max_queued };
}

void rv__manager_done(struct rv__manager *m)
{
    assert(rv__manager_drained(m) && m->threads == 0);
    while (m->slabs != NULL) {
        struct rv__group_slab *next = m->slabs->next;
        rv__free(m->slabs);
        m->slabs = next;
    }
}

int rv__manager_accept(struct rv__manager *m, rv_task_fn fn, void *arg)
{
    if (m->closed)
        return RV_ECLOSED;
    if (m->queue.count >= m->max_queued)
        return RV_EBUSY;

    struct rv__group_task *task = task_new(m);
    if (task == NULL)
        return RV_ENOMEM;
    task->fn = fn;
    task->arg = arg;
    list_add(&m->queue, task);
    m->accepted++;
    check(m);
    return RV_OK;
}

void rv__manager_unaccept(struct rv__manager *m)
{
    assert(m->queue.count == 1 && m->threads == 0); /* no other task was queued or taken */
    task_free(m, list_pop(&m->queue));
    m->accepted--;
    check(m);
}

struct rv__group_task *rv__manager_start(struct rv__manager *m)
{
    struct rv__group_task *task = list_pop(&m->queue);
    if (task != NULL)
        m->running++;
    check(m);
    return task;
}

void rv__manager_failed(struct rv__manager *m, const rv_error *err)
{
    if (m->first_error.code == 0)
        m->first_error = *err;
    check(m);
}

void rv__manager_finish(struct rv__manager *m, struct rv__group_task *task, void *value,
                        const rv_error *err)
{
    assert(m->running > 0);
    m->running--;
    m->finished++;
    task->value = value;
    task->code = err != NULL ? err->code : 0;
    task->err = NULL;
    if (err != NULL) {
        if (m->first_error.code == 0)
            m->first_error = *err;
        task->err = rv__alloc(sizeof *task->err);
        if (task->err != NULL) /* else only its code is left */
            *task->err = *err;
    }
    list_add(&m->results, task);
    check(m);
}

bool rv__manager_take(struct rv__manager *m, rv_group_result *out)
{
    struct rv__group_task *task = list_pop(&m->results);
    if (task == NULL)
        return false;

    out->value = task->value;
    out->err.code = task->code;
    out->err.message[0] = '\0';
    if (task->err != NULL)
        out->err = *task->err;
    else if (task->code != 0)
        rv__fail(&out->err, task->code, "%s", rv_strerror(task->code));
    rv__free(task->err);
    task_free(m, task);
    m->taken++;
    check(m);
    return true;
}

void rv__manager_discard(struct rv__manager *m)
{
    struct rv__group_task *task = list_pop(&m->results); /* the only one: results are not stored */
    assert(task != NULL && m->results.first == NULL);
    rv__free(task->err);
    task_free(m, task);
    m->taken++;
    check(m);
}

void rv__manager_close(struct rv__manager *m)
{
    m->closed = true;
    check(m);
}

/* One thread at a time: the new thread takes a task and asks again. So a burst of short tasks does not start a
 * burst of threads, and a burst of long ones gets its threads one after the other. ADR 0002 has the numbers. */
enum rv__group_need rv__manager_need(struct rv__manager *m)
{
    if (m->queue.count == 0 || m->coming > 0)
        return NEED_NOBODY;
    if (m->idle > 0) {
        m->idle--;
        m->coming++;
        check(m);
        return NEED_IDLE;
    }
    if (m->threads < m->max_threads) {
        m->threads++;
        m->coming++;
        check(m);
        return NEED_NEW;
    }
    return NEED_NOBODY;
}

void rv__manager_arrived(struct rv__manager *m)
{
    assert(m->coming > 0);
    m->coming--;
    check(m);
}

void rv__manager_not_made(struct rv__manager *m)
{
    assert(m->coming > 0 && m->threads > 0);
    m->coming--;
    m->threads--;
    check(m);
}

void rv__manager_idle(struct rv__manager *m)
{
    m->idle++;
    check(m);
}

void rv__manager_leaves(struct rv__manager *m)
{
    assert(m->idle > 0 && m->threads > 0);
    m->idle--;
    m->threads--;
    check(m);
}
