/* protocol.h: what a protocol of providers has to say; a row for each in providers.c. Inside agent/ only. */
#ifndef RV_AGENT_PROTOCOL_H
#define RV_AGENT_PROTOCOL_H

#include "agent/agent.h"
#include "base/json.h"

struct rv__protocol {
    const char *name; /* in a configuration */
    const char *path; /* behind the base address */
    /* Its headers beside the content type; %s is the key. NULL ends them. */
    const char *key_header, *more_header;
    void (*write)(const struct rv__model_request *request, struct rv__buf *out);
    int (*read)(struct rv__str body, struct rv__arena *arena, struct rv__model_answer *ret,
                rv_error *err);
    const char *finish_cut; /* the reason to finish of an answer that was too long */
    /* Of a stream: one event, a JSON object; */
    void (*event)(struct rv__incoming *stream, struct rv__str json);
    const char *last_word; /* an event that is no JSON, and ends it; NULL: an event says so; */
    const char *cut_words; /* and what one that was cut has not had. */
};
extern const struct rv__protocol rv__openai, rv__anthropic;
const struct rv__protocol *rv__provider_protocol(const struct rv__provider *provider);

/* A call of a tool that comes in pieces. */
struct rv__incoming_call {
    struct rv__incoming_call *next;
    int64_t index;           /* as the protocol counts */
    struct rv__str id, name; /* JSON strings; none: not said yet */
    struct rv__buf arguments;
};

struct rv__incoming {
    const struct rv__protocol *protocol;
    size_t line,
        seen; /* of the body: where the line begins that has not ended; what was looked at */
    size_t events;
    bool in_event;
    bool over; /* the protocol's last word has come */
    bool busy;
    int rc;       /* what is wrong, the first thing; */
    rv_error err; /* in words */
    struct rv__arena arena;
    struct rv__buf event; /* the data of the one that has not ended */
    struct rv__buf text;
    struct rv__incoming_call *calls, **end;
    struct rv__str model, finish; /* plain; none: not said */
    int64_t input_tokens, output_tokens;
};

/* The call of that number, a new one if there is none. NULL: s->rc says why. */
struct rv__incoming_call *rv__incoming_call(struct rv__incoming *s, int64_t index);
/* Keep a member that is a string: as JSON, or plain. Nothing, if it is not there. */
void rv__incoming_keep(struct rv__incoming *s, struct rv__str object, const char *key,
                       struct rv__str *ret);
void rv__incoming_keep_text(struct rv__incoming *s, struct rv__str object, const char *key,
                            struct rv__str *ret);
/* Append a member that is a string, plain. */
void rv__incoming_add(struct rv__incoming *s, struct rv__str object, const char *key,
                      struct rv__buf *to);
/* The provider gives up in the midst of it: {"type"|"code", "message"}, or anything. */
void rv__incoming_refuse(struct rv__incoming *s, struct rv__str error);

/* "key":"text", with a comma before it; nothing, if it is none. */
void rv__model_request_text(struct rv__buf *out, const char *key, struct rv__str text);
/* A part of a message that is text: {"type":"text","text":…}. */
void rv__model_request_part(struct rv__buf *out, struct rv__str text);
/* ,"content":[…] of a message with files: each as `put` writes it, then its text. */
void rv__model_request_content(struct rv__buf *out, const struct rv__message *message,
                               void (*put)(struct rv__buf *out, const struct rv__enclosed *file));
/* The same of the system prompt; `words`: it also says that the answer is to fit the schema. */
void rv__model_request_system(struct rv__buf *out, const char *key,
                              const struct rv__model_request *request, bool words);
/* ,"tools":[…]: each from `open`, which ends before its name, to `close`, with its schema under that key. */
void rv__model_request_tools(struct rv__buf *out, struct rv__str tools, const char *open,
                             const char *schema_key, const char *close);
/* A member of an object that is a string, plain; none: it is not there, or is none. RV_ENOMEM: *err. */
int rv__model_answer_text(struct rv__str object, const char *key, struct rv__arena *arena,
                          struct rv__str *ret, rv_error *err);
int64_t rv__model_answer_count(struct rv__str object, const char *key); /* 0: it is not there */
/* One more call of a reply: {"id":…,"name":…,"arguments":…}. `arguments` is JSON. */
void rv__model_answer_call(struct rv__buf *calls, struct rv__str id, struct rv__str name,
                           struct rv__str arguments);
/* The same with arguments that should be JSON: as they are, if they are; else as a string. */
void rv__model_answer_call_text(struct rv__buf *calls, struct rv__str id, struct rv__str name,
                                struct rv__str text);
/* The calls that were put: into the reply, in the arena. */
int rv__model_answer_calls(struct rv__buf *calls, struct rv__arena *arena,
                           struct rv__model_answer *ret, rv_error *err);
bool rv__json_is(struct rv__str json, enum rv__json_type type);
/* narrow.c: append a JSON Schema that /v1/messages takes for its structured output and that allows all that `schema`
 * does. *left_out: it also allows what that does not. False: there is none; `out` has a part of one, then. */
bool rv__schema_narrow(struct rv__str schema, struct rv__buf *out, bool *left_out);
bool rv__provider_native(const struct rv__provider *provider); /* its protocol takes schemas */

#endif
