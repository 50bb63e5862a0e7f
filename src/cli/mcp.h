/* mcp.h: MCP over standard input and output: mcp_stdio.c, for mcp.c. */
#ifndef RV_CLI_MCP_H
#define RV_CLI_MCP_H

#include <rival/rival.h>

#include "server/server.h"

/* The API that calls use, and how to wait for a run there. */
struct rv__mcp_place {
    struct rv__mcp_via via;
    /* Wait until the run has ended, the time is over or `by` fires. Thread: any, several at once. */
    void (*wait)(void *arg, const char *run_id, int64_t timeout_ms, rv_cancel *by);
};

/* Read messages from `in`, one per line, and answer them on `out`, several at once, until `in` ends or `interrupt`
 * fires. Calls under way then get a moment to end. Returns an exit code. */
int rv__mcp_serve(const struct rv__mcp_place *place, int in, int out, rv_cancel *interrupt);

#endif
