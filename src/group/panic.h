/* panic.h: the boundary that turns rv_panic() into the error of the task it happened in. */
#ifndef RV_GROUP_PANIC_H
#define RV_GROUP_PANIC_H

#include <setjmp.h>
#include <rival/group.h>

/* A task while it runs; on the stack of the thread that runs it. */
struct rv_task {
    rv_group *group;
    rv_cancel *token;
    void *value;
    rv_error err;     /* from rv_task_fail or rv_panic; else unset */
    bool has_message; /* err.message was set by rv_task_fail */
    bool panic_aborts;
    jmp_buf panic; /* where rv_panic goes */
};

/* Run fn(task, arg) inside the boundary. Returns its code; RV_EPANIC after a panic. */
int rv__task_run(rv_task *task, rv_task_fn fn, void *arg);

/* The task this thread is in, or NULL. */
rv_task *rv__task_current(void);

#endif
