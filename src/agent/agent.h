/* agent.h: model providers, requests to them and their answers. (Tools of MCP servers: tools.h.)
 *
 * A *provider* is an address that speaks one of two protocols. A request is the conversation so far in a form that is the
 * same for both; it is written as the body that the provider's protocol wants, and the body of the answer is read
 * back. Nothing here does I/O: exec/ sends requests. */
#ifndef RV_AGENT_AGENT_H
#define RV_AGENT_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include <rival/base.h>

#include "agent/tools.h"
#include "base/arena.h"
#include "base/media.h"
#include "base/str.h"

enum {
    RV__AGENT_PROVIDERS = 100,   /* most in one configuration */
    RV__AGENT_MAX_TOKENS = 8192, /* of an answer, where the protocol requires a limit */
    RV__AGENT_REQUEST_BYTES =
        32 << 20,                  /* of a conversation with its files: providers take no more */
    RV__AGENT_CALLS = 100,         /* of tools, most in one answer; the same as in plans */
    RV__ENCLOSED_COUNT = 20,       /* files in one message */
    RV__ENCLOSED_BYTES = 10 << 20, /* of one of them, before it becomes base64 */
};

/* ------------------------------------------------------------------------------ providers --- */

struct rv__providers;
struct rv__provider;

enum rv__provider_kind { PROVIDER_OPENAI, PROVIDER_ANTHROPIC, PROVIDER_KINDS };

/* Read the `providers` of a configuration, a JSON object (none: there are no providers). `file` is named in
 * messages. Errors: RV_EINVAL: what is wrong with it, and where; RV_ENOMEM. */
int rv__providers_new(struct rv__str json, const char *file, struct rv__providers **ret,
                      rv_error *err);
void rv__providers_free(struct rv__providers *providers); /* NULL is allowed */
/* NULL: there is none of that name. `providers` may be NULL. */
struct rv__provider *rv__providers_find(const struct rv__providers *providers, struct rv__str name);
/* Append their names, separated by ", ", for messages. */
void rv__providers_names(const struct rv__providers *providers, struct rv__buf *out);

const char *rv__provider_name(const struct rv__provider *provider);
const char *rv__provider_url(const struct rv__provider *provider);      /* where requests go */
bool rv__provider_streams(const struct rv__provider *provider);         /* it is asked to stream */
struct rv__str rv__provider_model(const struct rv__provider *provider); /* none: not said */
/* The value of its key, from the current environment. NULL: its variable is not set; "": it needs no key. */
const char *rv__provider_key(const struct rv__provider *provider);
const char *rv__provider_key_variable(const struct rv__provider *provider);
/* The headers of a request with that key, ending with NULL, in the arena. NULL: no memory. */
const char *const *rv__provider_headers(const struct rv__provider *provider, const char *key,
                                        struct rv__arena *arena);

bool rv__provider_has_prices(const struct rv__provider *provider);
/* For messages, with its name: a budget has a cost, and it has no prices. */
#define RV__NO_PRICES                                                                             \
    "the budget has a cost, but provider '%s' has no prices in the configuration: add 'prices', " \
    "or bound its 'tokens' only"
/* The cost of these tokens by its prices; 0 if it has none. */
double rv__provider_cost(const struct rv__provider *provider, int64_t input, int64_t output);

/* Its configured limits; 0: no limit. The engine enforces them before a request begins. */
struct rv__provider_limits {
    const char *name; /* "provider:<name>" */
    int64_t requests, requests_per_minute, tokens, tokens_per_minute;
};
const struct rv__provider_limits *rv__provider_limits(const struct rv__provider *provider);
bool rv__provider_is_limited(const struct rv__provider *provider); /* at least one is set */
/* For walking over all providers; NULL ends the walk. */
struct rv__provider *rv__providers_first(const struct rv__providers *providers);
struct rv__provider *rv__provider_next(const struct rv__provider *provider);

/* ---------------------------------------------------------------------------------- requests --- */

/* A file in a message. */
struct rv__enclosed {
    enum rv__media_kind kind;
    struct rv__str name;  /* plain, for the model; not empty */
    struct rv__str type;  /* its media type */
    struct rv__str bytes; /* as they are in the file */
};

enum rv__role { ROLE_USER, ROLE_ASSISTANT, ROLE_TOOL };

struct rv__message {
    enum rv__role role;
    struct rv__str text;    /* plain; none: there is none */
    struct rv__str calls;   /* ASSISTANT: a JSON array [{id, name, arguments}]; none: no calls */
    struct rv__str call_id; /* TOOL: the id of the call that it answers, a JSON string */
    bool failed;            /* TOOL: the call failed */
    const struct rv__enclosed *files; /* USER: what is enclosed; sent before the text */
    size_t file_count;
};

struct rv__model_request {
    const struct rv__provider *provider;
    struct rv__str model, system; /* plain text; none: none */
    const struct rv__message *messages;
    size_t count;
    struct rv__str tools;  /* a JSON array [{name, description, schema}]; none: no tools */
    struct rv__str schema; /* JSON Schema of the answer; none: text */
    bool stream;           /* ask for a streamed answer */
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
    bool cut;  /* the answer reached the token limit and is incomplete */
    bool busy; /* a stream failed only because the provider reported that it is overloaded */
};

/* Texts live in `arena` or `body`. Errors: RV_EINVAL: it is not an answer of that protocol, and *err says
 * what is missing; RV_ENOMEM. */
int rv__model_answer_read(const struct rv__provider *provider, struct rv__str body,
                          struct rv__arena *arena, struct rv__model_answer *ret, rv_error *err);

/* ------------------------------------------------------------------------------- streams --- */

/* An answer that is streamed as server-sent events. Thread: one at a time. */
struct rv__incoming;
int rv__incoming_new(const struct rv__provider *provider, struct rv__incoming **ret, rv_error *err);
void rv__incoming_free(struct rv__incoming *stream); /* NULL is allowed */
/* More has arrived: `body` is everything so far. Errors are reported at the end. */
void rv__incoming_take(struct rv__incoming *stream, struct rv__str body);
/* Its plain text so far; it only grows. Valid until the next call. */
struct rv__str rv__incoming_text(const struct rv__incoming *stream);
/* The stream has ended. As rv__model_answer_read(); tokens and `busy` of *ret are set even if it fails. */
int rv__incoming_end(struct rv__incoming *stream, struct rv__str body, struct rv__arena *arena,
                     struct rv__model_answer *ret, rv_error *err);

#endif
