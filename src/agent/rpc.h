/* rpc.h: messages of MCP servers: JSON-RPC, and the events by which HTTP brings several of them. Pure. Inside
 * agent/ only. */
#ifndef RV_AGENT_RPC_H
#define RV_AGENT_RPC_H

#include "base/arena.h"
#include "base/json.h"

enum {
    RV__RPC_BYTES = 32 << 20, /* of one message: more than the result of a step may have */
};

/* Errors that say something about the server; those of headers, capability and version since 2026-07-28. */
enum {
    RV__RPC_NO_METHOD = -32601,
    RV__RPC_PARAMS = -32602,
    RV__RPC_HEADERS = -32020,
    RV__RPC_CAPABILITY = -32021,
    RV__RPC_VERSION = -32022,
    RV__RPC_VISIT = -32042, /* 2025-11-25: a person has to open an address first */
    RV__RPC_BAD_SESSION =
        -32000, /* with status 400, of servers made after the TypeScript SDK's examples */
};

enum rv__rpc_kind { RPC_RESULT, RPC_ERROR, RPC_REQUEST, RPC_NOTIFICATION };

/* Slices of the text. What is not there is "none". */
struct rv__rpc {
    enum rv__rpc_kind kind;
    struct rv__str id;     /* JSON: of a request, a string or a number */
    int64_t number;        /* of an answer: the id, which is ours; -1: it is none of ours */
    struct rv__str method; /* JSON, a string */
    struct rv__str params; /* an object */
    struct rv__str result; /* an object */
    int64_t code;
    struct rv__str message, data; /* of an error: JSON; message a string */
};

/* Errors: RV_EPARSE: it is no message, and *err says what is wrong with it. */
int rv__rpc_read(struct rv__str text, struct rv__rpc *ret, rv_error *err);
/* A member, and of the type that it must have; "none": there is none. */
struct rv__str rv__rpc_member(struct rv__str object, const char *key, enum rv__json_type type);
/* Is it a JSON string of this text? False if there is none. */
bool rv__rpc_is(struct rv__str json, const char *text);
/* The message and code of an error, for a sentence. */
enum { RV__RPC_ERROR_TEXT = 440 };
void rv__rpc_error_text(const struct rv__rpc *rpc, char *text, size_t room);

/* Server-sent events, as bytes come. */
struct rv__sse {
    struct rv__buf line, data, id; /* id: of the last event that had one */
    int64_t retry_ms;              /* when to come back; -1: it did not say */
    bool after_cr, is_message;
};
void rv__sse_init(struct rv__sse *sse);
void rv__sse_done(struct rv__sse *sse);
/* Each event of kind "message" that has data is given to `event`. RV_ETOOBIG, RV_ENOMEM: of one event, and the
 * stream is of no more use. */
int rv__sse_add(struct rv__sse *sse, struct rv__str bytes,
                void (*event)(void *arg, struct rv__str data), void *arg);

/* What a call of this tool says of its arguments in headers (2026-07-28, x-mcp-header): "Name: value" each, in the
 * arena, appended to `lines`, which has room for RV__RPC_PARAM_HEADERS more. Returns how many; RV_ENOMEM. */
enum { RV__RPC_PARAM_HEADERS = 32 };
int rv__rpc_param_headers(struct rv__str schema, struct rv__str arguments, struct rv__arena *arena,
                          const char **lines, rv_error *err);
/* May the schema of a tool say what it says of headers? Else why not. */
const char *rv__rpc_bad_headers(struct rv__str schema);
/* "Name: value", the value as base64 if it could not stand in a header otherwise. NULL: no memory. */
char *rv__rpc_header(struct rv__arena *arena, const char *name, struct rv__str value);

#endif
