/* params.h: converts parameters of the built-in kinds from the YAML form to a plan's `with`. Inside define/ only. */
#ifndef RV_DEFINE_PARAMS_H
#define RV_DEFINE_PARAMS_H

#include "define/lower.h"

struct rv__params {
    const struct rv__source *source;
    struct rv__problems *problems;
    struct rv__buf *out;          /* ,"with":… is appended here */
    const struct rv__tree *body;  /* the node's mapping, for parameters beside the kind's key */
    const struct rv__tree *value; /* of the kind's key */
    bool agent; /* an agent of a manifest: the prompt of a chat may come from its parameters */
};

void rv__params_http(
    const struct rv__params
        *p); /* {url, method?, headers?, body?, responseType?, timeout?, throwOnError?} */
void rv__params_command(const struct rv__params *p); /* {argv, stdin?, output?, cwd?, env?} */
void rv__params_delay(const struct rv__params *p); /* milliseconds; unchanged if it has templates */
void rv__params_signal(const struct rv__params *p); /* {name, timeout?, default?} */
/* {provider, prompt, model?, system?, returnType?, access?}; and maxTurns, budget beside it. Does not read its
 * tools. */
void rv__params_chat(const struct rv__params *p);
void rv__params_tool(const struct rv__params *p); /* {server, name, arguments?} */

/* Warn about a time-out that is a small bare number: it means milliseconds, but looks like seconds. */
void rv__params_check_timeout(const struct rv__source *source, struct rv__problems *problems,
                              const char *key, const struct rv__tree *value);

/* Append a value written in C (rv_node_def) as JSON: a text that begins with {, [ or " is JSON, and so are true,
 * false, null and numbers; anything else is a text. RV_EPARSE: it begins like JSON, but is not. */
int rv__text_value(struct rv__str text, struct rv__buf *out, rv_error *err);
/* The parameters of a kind (http, command, delay, signal, tool) given as such a text, checked as in the YAML form.
 * Appends ,"with":… Errors: RV_EINVAL: the first problem; RV_ENOMEM. */
int rv__params_of_text(enum rv__form_kind kind, struct rv__str text, struct rv__buf *out,
                       rv_error *err);

/* The position of the value at a pointer into a plan's `with`. */
const struct rv__tree *rv__params_at(const struct rv__spot *spot, struct rv__str pointer);

#endif
