/* tools.h: servers of the Model Context Protocol, and calls of their tools.
 *
 * A *server* of the configuration is a program that we start and speak with by its stdin and stdout, or an
 * address that we send requests to. It is begun when it is first needed, begun again (later each time) after it has
 * died, and its list of tools is read when it is there, and again when it says that it has changed. Which of the
 * protocol's revisions it speaks is found out then: 2026-07-28, else one of 2025, which begin with a handshake.
 *
 * All of it is done on the I/O loop's thread (exec.h): no server has a thread. Decisions: ADR 0053. */
#ifndef RV_AGENT_TOOLS_H
#define RV_AGENT_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include <rival/base.h>

#include "agent/note.h"
#include "base/str.h"
#include "exec/exec.h"

enum {
    RV__TOOL_SERVERS = RV__IO_SERVICES, /* of a configuration: all may run at once */
    RV__TOOL_NAME = 128,                /* bytes of a server's name, and of a tool's */
    RV__TOOLS_MAX = 1000,               /* of one server; more are not looked at */
};

struct rv__tool_servers;
struct rv__tool_server;

/* The values of secrets that headers and environments name: as rv__secret_source. */
struct rv__tool_secrets {
    int (*find)(void *arg, const char *name, struct rv__str *value);
    void *arg;
};

/* From the `mcpServers` of a configuration, a JSON object (none: there are none). `file` is for messages, and its
 * folder is where commands run. A secret that has no value makes its server of no use, not the configuration.
 * Errors: RV_EINVAL: what is wrong with it, and where; RV_ENOMEM. */
int rv__tool_servers_new(struct rv__str json, const char *file,
                         const struct rv__tool_secrets *secrets, struct rv__tool_servers **ret,
                         rv_error *err);
void rv__tool_servers_free(
    struct rv__tool_servers *servers); /* after the loop is; NULL is allowed */
/* NULL: there is none of that name. `servers` may be NULL. */
struct rv__tool_server *rv__tool_servers_find(const struct rv__tool_servers *servers,
                                              struct rv__str name);
void rv__tool_servers_names(const struct rv__tool_servers *servers,
                            struct rv__buf *out); /* "a, b" */
const char *rv__tool_server_name(const struct rv__tool_server *server);

enum rv__tool_end {
    TOOL_ANSWERED,
    TOOL_NOTED,     /* it goes on: a person is asked, or the server works on it as a task */
    TOOL_REFUSED,   /* with an error of the protocol */
    TOOL_DOWN,      /* the server could not be started, reached or understood: nothing was called */
    TOOL_LOST,      /* it was called, and the server died or hung up before it answered */
    TOOL_LATE,      /* it was called, and not answered in time */
    TOOL_CANCELLED, /* rv__tool_call_cancel() */
    TOOL_CLOSED,    /* the loop ends */
};

/* Valid during `done` only. The server's secrets are hidden in it. */
struct rv__tool_result {
    enum rv__tool_end end;
    /* ANSWERED: the result, {content, structuredContent?, isError?}; or the tools, an array of {name, description?,
     * inputSchema}. NOTED: the note of the call that goes on with it: note.h */
    struct rv__str json;
    int64_t code;    /* REFUSED */
    char error[600]; /* a sentence, unless ANSWERED or NOTED */
};

/* Somebody else's: it lives, with all it points to, until `done` has been called. */
struct rv__tool_call {
    struct rv__tool_server *server;
    struct rv__str name;      /* of the tool; none: what is asked for is the list of tools */
    struct rv__str arguments; /* a JSON object */
    int64_t timeout_ms;       /* from when it was sent, unless it is a task; 0 = none */
    struct rv__str key;  /* of all calls of one step, and of no other; none: it leaves no note */
    struct rv__str note; /* it goes on with what ended in this note; none: it begins; */
    struct rv__str
        answer;    /* and what the person said, {action, content?}; none: nobody was asked */
    bool gives_up; /* instead: end what the note tells of. The result says nothing */
    void (*begun)(struct rv__tool_call *call); /* it was sent. NULL: nobody asks */
    /* What it says meanwhile: its progress, its log. NULL: nobody listens. */
    void (*said)(struct rv__tool_call *call, struct rv__str text);
    void (*done)(struct rv__tool_call *call, const struct rv__tool_result *result);

    struct { /* the server's; zero before the start */
        struct rv__io *io;
        struct rv__errand start, cancel;
        struct rv__link listed;           /* in its server's `waiting` or `polling` */
        struct rv__tool_request *request; /* that was sent for it; NULL: none is under way */
        struct rv__tool_note note;        /* `note`, read */
        struct rv__buf
            answers; /* of people: pairs as in a note's `told`, or the inside of inputResponses */
        size_t answers_used;   /* how many of those the server has asked for again */
        struct rv__alarm poll; /* of a task: when to ask for it again, */
        bool is_polling;       /* if it is in `polling` */
        bool task_updated;     /* its task was sent the answers */
        int missed_polls;      /* how often in a row its server could not be asked */
        bool resent;           /* once more, because its session had ended */
        bool begun;            /* `begun` was called */
    } own;
};

/* Begin a call. On success `done` is called exactly once, on the loop's thread.
 * Errors: RV_ECLOSED: rv__io_free() has begun.   Thread: any. */
int rv__tool_call_start(struct rv__io *io, struct rv__tool_call *call);
/* It is not wanted any more: the server is told, `done` comes with TOOL_CANCELLED. One that comes too late does
 * nothing, but the call must still exist.   Thread: any. */
void rv__tool_call_cancel(struct rv__io *io, struct rv__tool_call *call);

#endif
