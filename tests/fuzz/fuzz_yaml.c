/* fuzz_yaml.c: any bytes against src/define, as YAML and as JSON.
 *
 * Beyond "does not crash": what is refused is refused with a place that is in the text and a line to
 * show; what is accepted is a plan that can be written and read again, and can be shown. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "define/define.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                     \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                        \
        }                                                                   \
    } while (0)

static void check_problem(const struct rv__problem *problem, struct rv__str text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    MUST(problem->message.len > 0 && problem->line <= lines);
    MUST(rv__str_utf8(problem->message) && rv__str_utf8(problem->excerpt));
    MUST(problem->caret <= problem->excerpt.len);
    for (size_t i = 0; i < problem->excerpt.len; i++)
        MUST((unsigned char)problem->excerpt.at[i] >= ' ');
}

static void check_plan(const struct rv__plan *plan)
{
    struct rv__plan *again = NULL;
    struct rv__buf out;
    rv__buf_init(&out, 4u * RV__PLAN_MAX_BYTES);
    rv__plan_render_text(plan, &out);
    rv__plan_render_mermaid(plan, &out);
    MUST(out.rc == RV_OK && rv__str_utf8(rv__buf_view(&out)));
    rv__buf_reset(&out);
    MUST(rv__plan_write(plan, &out, NULL) == RV_OK);
    MUST(rv__plan_read(rv__buf_view(&out), &again, NULL) == RV_OK);
    MUST(strcmp(plan->version, again->version) == 0);
    rv__plan_free(again);
    rv__buf_done(&out);
}

static void try(const char *file, struct rv__str text)
{
    struct rv__definitions *found = NULL;
    rv_error err;
    MUST(rv__define_text(file, text, NULL, NULL, &found, &err) == RV_OK);
    MUST(found->count + found->problem_count + found->other_count > 0);
    MUST(found->count == 0 || found->problem_count == 0);
    for (size_t i = 0; i < found->problem_count; i++)
        check_problem(&found->problems[i], text);
    for (size_t i = 0; i < found->count; i++)
        check_plan(found->items[i].plan);
    rv__definitions_free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rv__str text = { (const char *)data, size };
    try("fuzz.yaml", text);
    if (size > 0 && (*data == '{' || *data == '['))
        try("fuzz.json", text);
    return 0;
}
