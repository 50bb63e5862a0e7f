/* commands.c: the list of commands, in the order in which help shows them. */
#include <string.h>

#include "cli/cli.h"

const struct rv__command *const rv__commands[] = {
    /* do */
    &rv__cmd_exec,
    &rv__cmd_mcp,
    &rv__cmd_run,
    &rv__cmd_serve,
    /* look */
    &rv__cmd_attachments,
    &rv__cmd_audit,
    &rv__cmd_list,
    &rv__cmd_logs,
    &rv__cmd_members,
    &rv__cmd_show,
    &rv__cmd_wait,
    &rv__cmd_why,
    /* tell */
    &rv__cmd_cancel,
    &rv__cmd_complete_handle,
    &rv__cmd_decide,
    &rv__cmd_signal,
    /* files */
    &rv__cmd_check,
    &rv__cmd_manifest,
    &rv__cmd_new,
    &rv__cmd_plan,
    &rv__cmd_workflows,
    /* the store */
    &rv__cmd_backup,
    &rv__cmd_export,
    &rv__cmd_import,
    &rv__cmd_copy,
    &rv__cmd_retain,
    /* the program */
    &rv__cmd_demo,
    &rv__cmd_version,
    /* hidden */
    &rv__cmd_complete,
    &rv__cmd_describe,
    &rv__cmd_evaluator,
    &rv__cmd_host,
    &rv__cmd_kit,
    NULL,
};

const struct rv__command *rv__command_find(const char *name)
{
    for (size_t i = 0; rv__commands[i] != NULL; i++)
        if (strcmp(rv__commands[i]->name, name) == 0)
            return rv__commands[i];
    return NULL;
}
