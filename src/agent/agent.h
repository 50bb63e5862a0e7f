/* agent.h: models: who they are, what they are asked, what they answer. (Tools of MCP servers: tools.h.)
 *
 * A *provider* is a place where models are: an address that speaks one of two protocols. A *talk* is a
 * conversation so far, in our own words; it becomes the body of a request in those of the provider, and the
 * body of its answer becomes what was *spoken*. All of that is pure; requests go out by exec/. */
#ifndef RV_AGENT_AGENT_H
#define RV_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include <rival/base.h>

#include "agent/tools.h"
#include "base/arena.h"
#include "base/str.h"

enum {
    RV__AGENT_PROVIDERS = 100,          /* in one configuration: more are a mistake */
    RV__AGENT_MAX_TOKENS = 8192,        /* of an answer, where a protocol must be told a bound */
    RV__AGENT_REQUEST_BYTES = 16 << 20, /* of a conversation: models take less */
    RV__AGENT_CALLS = 100,              /* of tools, in one answer: as plans have it */
};

/* ------------------------------------------------------------------------------ providers --- */

struct rv__providers;
struct rv__provider;

enum rv__provider_kind { PROVIDER_OPENAI, PROVIDER_ANTHROPIC, PROVIDER_KINDS };

/* From the `providers` of a configuration, a JSON object (none: there are no providers). `file` is for
 * messages. Errors: RV_EINVAL: what is wrong with it, and where; RV_ENOMEM. */
int rv__providers_new(struct rv__str json, const char *file, struct rv__providers **ret,
                      rv_error *err);
void rv__providers_free(struct rv__providers *providers); /* NULL is allowed */
/* NULL: there is none of that name. `providers` may be NULL. */
struct rv__provider *rv__providers_find(const struct rv__providers *providers, struct rv__str name);
/* "a, b": their names, for messages; of none "". */
void rv__providers_names(const struct rv__providers *providers, struct rv__buf *out);

const char *rv__provider_name(const struct rv__provider *provider);
const char *rv__provider_url(const struct rv__provider *provider); /* where requests go */
bool rv__provider_streams(const struct rv__provider *provider); /* its answers may come in pieces */
struct rv__str rv__provider_model(const struct rv__provider *provider); /* none: not said */
/* The value of its key, from the environment as it is now. NULL: it has a variable for it, and that is not
 * set; "": it needs none. */
const char *rv__provider_key(const struct rv__provider *provider);
const char *rv__provider_key_variable(const struct rv__provider *provider);
/* The headers of a request with that key, ending with NULL, in the arena. NULL: no memory. */
const char *const *rv__provider_headers(const struct rv__provider *provider, const char *key,
                                        struct rv__arena *arena);

/* What so many tokens cost, by its prices; 0 where it has none. */
double rv__provider_cost(const struct rv__provider *provider, int64_t input, int64_t output);

/* What may be sent to it, as its configuration says. Who keeps to it is the engine, before a request is begun. 0: no
 * limit. */
struct rv__provider_limits {
    const char *name; /* "provider:<name>" */
    int64_t requests, requests_per_minute, tokens, tokens_per_minute;
};
const struct rv__provider_limits *rv__provider_limits(const struct rv__provider *provider);
bool rv__provider_is_limited(const struct rv__provider *provider); /* there is any */
/* All of them, one after the other. NULL: there is none, or none more. */
struct rv__provider *rv__providers_first(const struct rv__providers *providers);
struct rv__provider *rv__provider_next(const struct rv__provider *provider);

/* ---------------------------------------------------------------------------------- talks --- */

enum rv__role { ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL };

struct rv__message {
    enum rv__role role;
    struct rv__str text;    /* plain; none: there is none */
    struct rv__str calls;   /* ASSISTANT: a JSON array [{id, name, arguments}]; none: no calls */
    struct rv__str call_id; /* TOOL: which it answers: a JSON string */
    bool failed;            /* TOOL */
};

struct rv__model_request {
    const struct rv__provider *provider;
    struct rv__str model, system; /* plain text; none: none */
    const struct rv__message *messages;
    size_t count;
    struct rv__str tools;  /* a JSON array [{name, description, schema}]; none: no tools */
    struct rv__str schema; /* what its answer must be: JSON Schema; none: text */
    bool stream;           /* the answer is to come piece by piece */
};

/* Append the body of the request. Errors: RV_ETOOBIG: beyond the bound of `out`; RV_ENOMEM. */
int rv__model_request_write(const struct rv__model_request *request, struct rv__buf *out,
                            rv_error *err);

struct rv__model_answer {
    struct rv__str text;  /* plain; empty: none */
    struct rv__str calls; /* a JSON array [{id, name, arguments}]; none: no calls. `arguments` is
                                     JSON; a text that is none, as a string */
    struct rv__str model, finish; /* plain; none: not said */
    int64_t input_tokens, output_tokens;
    bool cut;  /* the answer was longer than it may be, and ends in the midst */
    bool busy; /* of a stream that broke: the provider said that it is too busy, and no more */
};

/* Texts live in `arena` or `body`. Errors: RV_EINVAL: it is not an answer of that protocol, and *err says
 * what is missing; RV_ENOMEM. */
int rv__model_answer_read(const struct rv__provider *provider, struct rv__str body,
                          struct rv__arena *arena, struct rv__model_answer *ret, rv_error *err);

/* ------------------------------------------------------------------------------- streams --- */

/* An answer that comes piece by piece: server-sent events. Thread: one at a time. */
struct rv__incoming;
int rv__incoming_new(const struct rv__provider *provider, struct rv__incoming **ret, rv_error *err);
void rv__incoming_free(struct rv__incoming *stream); /* NULL is allowed */
/* More has come: `body` is all of it so far. What is wrong with it is told at the end. */
void rv__incoming_take(struct rv__incoming *stream, struct rv__str body);
/* Its text so far, plain; only ever longer. Valid until the next call. */
struct rv__str rv__incoming_text(const struct rv__incoming *stream);
/* All of it has come. As rv__model_answer_read(); tokens and `busy` of *ret are set even if it fails. */
int rv__incoming_end(struct rv__incoming *stream, struct rv__str body, struct rv__arena *arena,
                     struct rv__model_answer *ret, rv_error *err);

#endif
