/* by_pipe.c: an MCP server that is a program of ours: a line is a message. */
#include <stdio.h>

#include "agent/server.h"
#include "base/alloc.h"

static void heard(struct rv__command *command, struct rv__str bytes)
{
    struct rv__tool_server *s = RV__CONTAINER(command, struct rv__tool_server, command);
    while (bytes.len > 0 && !s->ending) {
        const char *end = memchr(bytes.at, '\n', bytes.len);
        size_t len = end != NULL ? (size_t)(end - bytes.at) : bytes.len;
        rv__buf_add(&s->line, bytes.at, len);
        if (s->line.rc != RV_OK) {
            rv__tool_server_lost(s, "it wrote a line that is longer than any message may be");
            return;
        }
        if (end == NULL)
            return;
        struct rv__str line = rv__buf_view(&s->line);
        while (line.len > 0 && strchr(" \t\r", line.at[line.len - 1]) != NULL)
            line.len--;
        if (line.len > 0)
            rv__tool_received(s, NULL, line);
        rv__buf_reset(&s->line);
        bytes = (struct rv__str){ end + 1, bytes.len - len - 1 };
    }
}

static void ended(struct rv__command *command, const struct rv__command_result *result)
{
    struct rv__tool_server *s = RV__CONTAINER(command, struct rv__tool_server, command);
    char why[500], how[120];
    s->runs = false;
    rv__buf_reset(&s->line);
    if (result->end == RV__COMMAND_EXITED)
        snprintf(how, sizeof how, "it exited with code %d", result->status);
    else if (result->end == RV__COMMAND_SIGNAL)
        snprintf(how, sizeof how, "it was killed by signal %d", result->status);
    else
        snprintf(how, sizeof how, "%.110s",
                 result->error.code != 0 ? result->error.message : "it was not started");
    struct rv__str tail = rv__str_end(result->tail, 300);
    snprintf(why, sizeof why, "%s%s%.*s", how, tail.len > 0 ? ": " : "", RV__ARG(tail));
    rv__tool_server_lost(s, why);
}

static void begun(struct rv__command *command)
{
    struct rv__tool_server *s = RV__CONTAINER(command, struct rv__tool_server, command);
    rv__tool_greeting_begin(s);
}

int rv__by_pipe_begin(struct rv__tool_server *s)
{
    s->command = (struct rv__command){ .argv = s->argv,
                                       .env = s->env,
                                       .cwd = s->cwd,
                                       .mask = s->mask,
                                       .service = true,
                                       .heard = heard,
                                       .begun = begun,
                                       .done = ended };
    s->ending = false;
    int rc = rv__command_start(s->io, &s->command);
    s->runs = rc == RV_OK;
    return rc;
}

int rv__by_pipe_send(struct rv__tool_server *s, struct rv__str message)
{
    /* In one piece: what is behind an error would be taken for the next message. */
    struct rv__buf line;
    rv__buf_init(&line, RV__RPC_BYTES + 16);
    rv__buf_str(&line, message);
    rv__buf_char(&line, '\n');
    int rc = rv__buf_err(&line, NULL);
    if (rc == RV_OK)
        rc = rv__command_send(&s->command, rv__buf_view(&line));
    rv__buf_done(&line);
    if (rc != RV_ECLOSED || !s->runs)
        return rc;
    /* It does not listen any more: it has ended, or will. Why, is told when it has. */
    rv__command_kill(s->io, &s->command, RV__KILL_CANCEL);
    return RV_OK;
}

void rv__by_pipe_end(struct rv__tool_server *s)
{
    s->ending = true;
    if (s->runs)
        rv__command_kill(s->io, &s->command, RV__KILL_CANCEL);
}
