/* mcp.h: MCP over standard input and output: mcp_stdio.c, for mcp.c. */
#ifndef RV_CLI_MCP_H
#define RV_CLI_MCP_H

#include <rival/rival.h>

#include "server/server.h"

/* Where calls go, and how to wait for a run there. */
struct rv__mcp_place {
    struct rv__mcp_via via;
    /* Until the run has ended, the time is over or `by` fires. Thread: any, several at once. */
    void (*wait)(void *arg, const char *run_id, int64_t timeout_ms, rv_cancel *by);
};

/* Read messages from `in`, a line each, and answer them on `out`, several at once, until `in` ends or
 * `interrupt` fires. Calls that are under way then have a moment to end. An exit code. */
int rv__mcp_serve(const struct rv__mcp_place *place, int in, int out, rv_cancel *interrupt);

#endif
