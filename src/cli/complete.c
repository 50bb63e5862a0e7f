/* complete.c: `rival offer WORD...`: completions for the last word, for shells.
 *
 * The words are those after `rival` up to the cursor; the last one is to be completed, "" if it is empty. Each line
 * of the answer is a word, a tab and its meaning. A line that begins with a tab is for the shell: "\tfiles" or
 * "\tfolders" (which the shell completes), "\tinput" (a file after an "@").
 *
 * The shells' own scripts (completions/) know nothing about our commands: completions come from the descriptions
 * that help is made of, for all shells, so that the scripts cannot become outdated. Errors offer nothing: a message
 * in the middle of typing would only disturb. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/runs.h"
#include "cli/text.h"

enum {
    RUNS_OFFERED = 50,
    RUNS_READ = 500, /* searched for these: a store may have millions */
    STEPS_OFFERED = 200,
    MEANING_WIDTH = 60,
};

struct completing {
    const struct rv__command *command;
    const char *word;       /* the typed part */
    char before[64];        /* "--store=", if the word begins so; else "" */
    struct rv__where where; /* from the words before */
    const char *from, *run_id;
};

static void offer(const struct completing *c, const char *word, const char *meaning)
{
    struct rv__buf line;
    if (strncmp(word, c->word, strlen(c->word)) != 0)
        return;
    rv__buf_init(&line, 1u << 16);
    rv__buf_fmt(&line, "%s%s\t", c->before, word);
    (void)rv__text_fit(&line, rv__str(meaning), MEANING_WIDTH);
    if (line.rc == RV_OK)
        puts(line.text);
    rv__buf_done(&line);
}

static void offer_commands(const struct completing *c)
{
    for (size_t i = 0; rv__commands[i] != NULL; i++)
        if (rv__commands[i]->section != SECTION_HIDDEN)
            offer(c, rv__commands[i]->name, rv__commands[i]->summary);
}

static void offer_options(const struct completing *c)
{
    for (const struct rv__option *o = c->command->options; o != NULL && o->name != NULL; o++)
        offer(c, o->name, o->meaning);
    offer(c, "--help", "the page of this command");
}

static struct rv__client *open_runs(const struct completing *c)
{
    int code;
    return rv__client_open(&c->where, ACCESS_LOOK, &code);
}

static bool has_ended(const rv_run_state *run)
{
    return run->status != RV_RUNNING && run->status != RV_SUSPENDED;
}

static void offer_runs(const struct completing *c, bool live)
{
    struct rv__client *client = open_runs(c);
    rv_run_list *list = NULL;
    size_t offered = 0;
    rv_query query = { .size = sizeof query,
                       .text = *c->word != '\0' ? c->word : NULL,
                       .limit = RUNS_READ };
    if (client != NULL && rv__client_list(client, &query, &list, NULL) < 0)
        list = NULL;
    for (size_t i = 0; list != NULL && i < list->count && offered < RUNS_OFFERED; i++) {
        const rv_run_state *run = &list->runs[i];
        char meaning[300];
        if ((live && has_ended(run)) || strncmp(run->run_id, c->word, strlen(c->word)) != 0)
            continue;
        snprintf(meaning, sizeof meaning, "%s %.200s", rv_status_name(run->status), run->workflow);
        offer(c, run->run_id, meaning);
        offered++;
    }
    rv_run_list_free(list);
    rv__client_close(client);
}

/* The workflow names of the newest runs, each once. Quadratic in a constant. */
static void offer_run_workflows(const struct completing *c)
{
    struct rv__client *client = open_runs(c);
    rv_run_list *list = NULL;
    if (client != NULL && rv__client_list(client, RV_QUERY(.limit = RUNS_READ), &list, NULL) < 0)
        list = NULL;
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        size_t first = 0;
        while (strcmp(list->runs[first].workflow, list->runs[i].workflow) != 0)
            first++;
        if (first == i)
            offer(c, list->runs[i].workflow, "");
    }
    rv_run_list_free(list);
    rv__client_close(client);
}

/* The workflows of the server, if there is one; else those of the files, found in their text: completion never
 * compiles or runs anything. */
static void offer_workflows(const struct completing *c)
{
    rv_report *report = NULL;
    rv_workflow_list *list = NULL;
    const char *from = c->from != NULL ? c->from : ".", *store;
    int code;
    struct rv__client *client = c->from == NULL ? rv__client_server(&c->where, &store, &code)
                                                : NULL;
    if (client != NULL && rv__client_workflows(client, &list, NULL) < 0)
        list = NULL;
    for (size_t i = 0; list != NULL && i < list->count; i++)
        offer(c, list->items[i].name, list->items[i].description);
    rv_workflow_list_free(list);
    rv__client_close(client);
    if (client != NULL || rv_check_files(&from, 1, NULL, &report, NULL) < 0)
        return;
    for (size_t i = 0; i < report->workflow_count; i++)
        offer(c, report->workflows[i].name, report->workflows[i].description);
    for (size_t i = 0; i < report->c_file_count; i++)
        offer(c, report->c_files[i].name, report->c_files[i].file);
    rv_report_free(report);
}

static void offer_steps(const struct completing *c)
{
    struct rv__client *client = c->run_id != NULL ? open_runs(c) : NULL;
    rv_node_list *list = NULL;
    if (client != NULL &&
        rv__client_nodes(client, c->run_id, "", 0, STEPS_OFFERED, NULL, &list, NULL) < 0)
        list = NULL;
    for (size_t i = 0; list != NULL && i < list->count; i++)
        offer(c, list->nodes[i].alias, list->nodes[i].status);
    rv_node_list_free(list);
    rv__client_close(client);
}

static void offer_values(const struct completing *c, enum rv__completes completes,
                         const char *const *choices)
{
    for (; choices != NULL && *choices != NULL; choices++)
        offer(c, *choices, "");
    switch (completes) {
    case COMPLETES_NOTHING: break;
    case COMPLETES_FILE: puts("\tfiles"); break;
    case COMPLETES_FOLDER: puts("\tfolders"); break;
    case COMPLETES_INPUT: puts("\tinput"); break;
    case COMPLETES_RUN: offer_runs(c, false); break;
    case COMPLETES_LIVE_RUN: offer_runs(c, true); break;
    case COMPLETES_WORKFLOW: offer_workflows(c); break;
    case COMPLETES_RUN_WORKFLOW: offer_run_workflows(c); break;
    case COMPLETES_STEP: offer_steps(c); break;
    }
}

static void note_value(struct completing *c, const struct rv__option *option, const char *value)
{
    if (strcmp(option->name, "--store") == 0)
        c->where.store = value;
    else if (strcmp(option->name, "--server") == 0)
        c->where.server = value;
    else if (strcmp(option->name, "--token-file") == 0)
        c->where.token_file = value;
    else if (strcmp(option->name, "--from") == 0)
        c->from = value;
}

/* Complete the last word of a command. */
static void complete(struct completing *c, int count, char **words)
{
    const struct rv__option *open = NULL; /* an option whose value comes next */
    const char *value;
    int arguments = 0;
    bool only_arguments = false;
    for (int i = 0; i + 1 < count; i++) {
        if (open != NULL) {
            note_value(c, open, words[i]);
            open = NULL;
        } else if (!only_arguments && strcmp(words[i], "--") == 0) {
            only_arguments = true;
        } else if (!only_arguments && words[i][0] == '-' && words[i][1] != '\0') {
            open = rv__option_find(c->command, words[i], &value);
            if (open != NULL && value != NULL)
                note_value(c, open, value);
            if (open != NULL && (open->kind == RV__OPTION_FLAG || value != NULL))
                open = NULL;
        } else if (arguments++ == 0) {
            c->run_id = words[i];
        }
    }
    c->word = words[count - 1];
    if (open == NULL && !only_arguments && c->word[0] == '-') {
        const struct rv__option *option = rv__option_find(c->command, c->word, &value);
        if (option == NULL || value == NULL) {
            offer_options(c);
            return;
        }
        snprintf(c->before, sizeof c->before, "%s=", option->name);
        c->word = value;
        open = option;
    }
    const struct rv__argument *argument = rv__argument_at(c->command, arguments);
    if (open != NULL)
        offer_values(c, open->completes, open->choices);
    else if (argument != NULL)
        offer_values(c, argument->completes, argument->choices);
}

static int run_complete(int argc, char **argv)
{
    struct completing c = { 0 };
    if (argc < 2 || freopen("/dev/null", "w", stderr) == NULL)
        return CLI_USAGE;
    c.word = argv[argc - 1];
    bool is_help = argc == 3 && strcmp(argv[1], "help") == 0;
    if (argc == 2 || is_help) {
        offer_commands(&c);
        if (!is_help) {
            offer(&c, "help", "the page of a command");
            offer(&c, "--help", "the list of commands");
            offer(&c, "--version", "print the version");
        }
        return CLI_OK;
    }
    c.command = rv__command_find(argv[1]);
    if (c.command != NULL && c.command->section != SECTION_HIDDEN)
        complete(&c, argc - 2, argv + 2);
    return CLI_OK;
}

const struct rv__command rv__cmd_complete = {
    .name = "offer",
    .section = SECTION_HIDDEN,
    .summary = "say what a shell may offer",
    .run = run_complete,
};
