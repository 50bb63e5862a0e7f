/* params.h: the parameters of the built-in kinds, from the YAML form to a plan's `with`. Inside define/
 * only. */
#ifndef RV_DEFINE_PARAMS_H
#define RV_DEFINE_PARAMS_H

#include "define/lower.h"

struct rv__params {
    const struct rv__source *source;
    struct rv__problems *problems;
    struct rv__buf *out;          /* takes ,"with":… */
    const struct rv__tree *body;  /* the node's mapping, for parameters beside the kind */
    const struct rv__tree *value; /* of the key that is the kind */
    bool agent; /* it is the agent of a manifest: of a chat, parameters have the prompt */
};

void rv__params_http(
    const struct rv__params
        *p); /* {url, method?, headers?, body?, responseType?, timeout?, throwOnError?} */
void rv__params_command(const struct rv__params *p); /* {argv, stdin?, output?, cwd?, env?} */
void rv__params_delay(
    const struct rv__params *p); /* milliseconds, or as it is if it has templates */
void rv__params_signal(const struct rv__params *p); /* {name, timeout?, default?} */
/* {provider, prompt, model?, system?, returnType?, access?}; and maxTurns, budget beside it. Its tools are not
 * looked at. */
void rv__params_chat(const struct rv__params *p);
void rv__params_tool(const struct rv__params *p); /* {server, name, arguments?} */

/* A warning for a time-out that is a small bare number: it is in milliseconds, and looks like seconds. */
void rv__params_check_timeout(const struct rv__source *source, struct rv__problems *problems,
                              const char *key, const struct rv__tree *value);

/* What C writes (rv_node_def): a text that begins with {, [ or " is JSON, and so are true, false, null and
 * numbers; anything else is a text. Append it as JSON. RV_EPARSE: it begins as JSON, and is none. */
int rv__text_value(struct rv__str text, struct rv__buf *out, rv_error *err);
/* The parameters of a kind (http, command, delay, signal, tool), as such a text, held to the rules of the YAML form. Appends
 * ,"with":… Errors: RV_EINVAL: the first thing that is wrong; RV_ENOMEM. */
int rv__params_of_text(enum rv__form_kind kind, struct rv__str text, struct rv__buf *out,
                       rv_error *err);

/* Where the value of a plan's `with` at that pointer was written. */
const struct rv__tree *rv__params_at(const struct rv__spot *spot, struct rv__str pointer);

#endif
