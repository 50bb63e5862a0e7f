/* panic.h: turns rv_panic() into the error of the running task. */
#ifndef RV_GROUP_PANIC_H
#define RV_GROUP_PANIC_H

#include <setjmp.h>
#include <rival/group.h>

/* A running task; on the stack of its thread. */
struct rv_task {
    rv_group *group;
    rv_cancel *token;
    void *value;
    rv_error err;     /* from rv_task_fail or rv_panic; else unset */
    bool has_message; /* err.message was set by rv_task_fail */
    bool panic_aborts;
    jmp_buf panic; /* the target of rv_panic */
};

/* Run fn(task, arg); a panic returns here. Returns its code; RV_EPANIC after a panic. */
int rv__task_run(rv_task *task, rv_task_fn fn, void *arg);

/* The task that this thread is running, or NULL. */
rv_task *rv__task_current(void);

#endif
