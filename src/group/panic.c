/* panic.c: functions for running tasks: their error, their token, and panics.
 *
 * A panic jumps out of the user's function back into rv__task_run(). setjmp without the signal mask
 * costs some ten nanoseconds a task; unwinding would need the user's code to be compiled for it. */
#include "group/panic.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "group/group.h"

static _Thread_local rv_task *current;

rv_task *rv__task_current(void)
{
    return current;
}

/* All state that must survive the jump is in *task, not in locals. */
int rv__task_run(rv_task *task, rv_task_fn fn, void *arg)
{
    int code;
    current = task;
    if (_setjmp(task->panic) == 0)
        code = fn(task, arg, &task->value);
    else
        code = RV_EPANIC;
    current = NULL; /* tasks of one thread do not nest */
    return code;
}

struct guarded {
    int (*fn)(void *arg);
    void *arg;
};

static int run_guarded(rv_task *task, void *arg, void **value)
{
    struct guarded *guarded = arg;
    (void)task;
    (void)value;
    (void)guarded->fn(guarded->arg);
    return 0;
}

int rv__panic_guard(int (*fn)(void *arg), void *arg, rv_error *err)
{
    struct guarded guarded = { fn, arg };
    rv_task task = { .group = NULL };
    int rc = rv__task_run(&task, run_guarded, &guarded);
    if (rc < 0)
        *err = task.err;
    return rc;
}

void rv_panic(const char *fmt, ...)
{
    rv_error err;
    va_list args;
    va_start(args, fmt);
    rv__vfail(&err, RV_EPANIC, fmt, args);
    va_end(args);

    rv_task *task = current;
    if (task == NULL || task->panic_aborts) {
        /* The only place where the library prints: there is no caller to return to. */
        fprintf(stderr, "rival: panic%s: %s\n", task ? " in a task" : " outside of any task",
                err.message);
        abort();
    }
    task->err = err;
    task->has_message = true;
    _longjmp(task->panic, 1);
}

int rv_task_fail(rv_task *task, int code, const char *fmt, ...)
{
    if (code == 0) /* a call of rv_task_fail is always a failure */
        code = RV_EFAILED;
    if (task == NULL)
        return code;

    va_list args;
    va_start(args, fmt);
    rv__vfail(&task->err, code, fmt, args);
    va_end(args);
    task->has_message = true;
    return code;
}

bool rv_task_cancelled(rv_task *task)
{
    return task != NULL && rv_cancel_fired(task->token);
}

rv_cancel *rv_task_token(rv_task *task)
{
    return task != NULL ? task->token : NULL;
}
