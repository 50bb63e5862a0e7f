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
    void (*write)(const struct rv__talk *talk, struct rv__buf *out);
    int (*read)(struct rv__str body, struct rv__arena *arena, struct rv__spoken *ret,
                rv_error *err);
};
extern const struct rv__protocol rv__openai, rv__anthropic;

/* "key":"text", with a comma before it; nothing, if it is none. */
void rv__talk_text(struct rv__buf *out, const char *key, struct rv__str text);
/* ,"tools":[…]: each from `open`, which ends before its name, to `close`, with its schema under that key. */
void rv__talk_tools(struct rv__buf *out, struct rv__str tools, const char *open,
                    const char *schema_key, const char *close);
/* A member of an object that is a string, plain; none: it is not there, or is none. RV_ENOMEM: *err. */
int rv__spoken_text(struct rv__str object, const char *key, struct rv__arena *arena,
                    struct rv__str *ret, rv_error *err);
int64_t rv__spoken_count(struct rv__str object, const char *key); /* 0: it is not there */
/* One more call of a reply: {"id":…,"name":…,"arguments":…}. `arguments` is JSON. */
void rv__spoken_call(struct rv__buf *calls, struct rv__str id, struct rv__str name,
                     struct rv__str arguments);
/* The calls that were put: into the reply, in the arena. */
int rv__spoken_calls(struct rv__buf *calls, struct rv__arena *arena, struct rv__spoken *ret,
                     rv_error *err);
bool rv__json_is(struct rv__str json, enum rv__json_type type);

#endif
