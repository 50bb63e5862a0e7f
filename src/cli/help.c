/* help.c: `rival --help`, and the page of a command, wrapped to the terminal. */
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"

enum {
    WIDTH_LEAST = 40, /* if it is narrower, the terminal wraps */
    WIDTH_MOST = 100, /* wider lines are hard to read */
    INDENT = 2,
    SUMMARY_AT = 17, /* the column of a summary in the list */
    MEANING_AT = 24, /* the column of an option's meaning */
    LINE_BYTES = 1 << 16,
};

static const char *const sections[] = {
    [SECTION_DO] = "Run workflows", [SECTION_LOOK] = "Look at runs",
    [SECTION_TELL] = "Act on runs", [SECTION_FILES] = "Workflow files",
    [SECTION_STORE] = "Stores",     [SECTION_PROGRAM] = "The program itself",
    [SECTION_HIDDEN] = NULL,
};

const char *rv__help_section(enum rv__section section)
{
    return sections[section];
}

static int page_width(FILE *to)
{
    int columns = rv__terminal_size(to).columns; /* 80 in a pipe */
    return columns < WIDTH_LEAST ? WIDTH_LEAST : columns > WIDTH_MOST ? WIDTH_MOST : columns;
}

void rv__print_wrapped(FILE *to, const char *text, int at, int indent)
{
    int width = page_width(to) - 1;
    bool first = true;
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        int columns = rv__text_width((struct rv__str){ text, len });
        if (!first && at + 1 + columns > width) {
            fprintf(to, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', to);
            at++;
        }
        fprintf(to, "%.*s", (int)len, text);
        at += columns;
        first = false;
        text += len + (text[len] == ' ');
    }
    fputc('\n', to);
}

/* Print a term, and its meaning from column `column` on: beside it, or below if there is no room. */
static void print_term(FILE *to, const char *term, const char *meaning, int column)
{
    int used = INDENT + rv__text_width(rv__str(term));
    fprintf(to, "%*s%s%s%s", INDENT, "", rv__colour(to, CYAN), term, rv__colour(to, PLAIN));
    if (meaning == NULL || *meaning == '\0') {
        fputc('\n', to);
        return;
    }
    if (used + 2 > column)
        fprintf(to, "\n%*s", column, "");
    else
        fprintf(to, "%*s", column - used, "");
    rv__print_wrapped(to, meaning, column, column);
}

void rv__help_usage(struct rv__buf *out, const struct rv__command *command)
{
    rv__buf_fmt(out, "rival %s", command->name);
    for (const struct rv__argument *a = command->arguments; a->name != NULL; a++)
        rv__buf_fmt(out, " %s%s%s%s", a->missing == NULL ? "[" : "", a->name, a->many ? " ..." : "",
                    a->missing == NULL ? "]" : "");
    if (command->options != NULL)
        rv__buf_text(out, " [OPTIONS]");
}

void rv__help_option(struct rv__buf *out, const struct rv__option *option)
{
    if (option->letter != NULL)
        rv__buf_fmt(out, "%s, ", option->letter);
    rv__buf_text(out, option->name);
    if (option->argument != NULL)
        rv__buf_fmt(out, " %s", option->argument);
}

void rv__help_overview(FILE *to)
{
    fprintf(to,
            "%srival%s %s: workflows and agents that survive crashes, from one binary\n"
            "\n"
            "Usage: rival COMMAND [ARGUMENTS]\n",
            rv__colour(to, BOLD), rv__colour(to, PLAIN), rv_version());
    const char *before = NULL;
    for (size_t i = 0; rv__commands[i] != NULL; i++) {
        const struct rv__command *command = rv__commands[i];
        const char *section = sections[command->section];
        if (section == NULL)
            continue;
        if (section != before)
            fprintf(to, "\n%s%s:%s\n", rv__colour(to, BOLD), section, rv__colour(to, PLAIN));
        before = section;
        print_term(to, command->name, command->summary, SUMMARY_AT);
    }
    fprintf(to, "\n%sOptions:%s\n", rv__colour(to, BOLD), rv__colour(to, PLAIN));
    print_term(to, "-h, --help", "this page; after a command, the page of that command",
               SUMMARY_AT);
    print_term(to, "-V, --version", "print the version", SUMMARY_AT);
    fprintf(to, "\nTo begin: rival new hello && rival exec hello.yaml\n");
}

static void print_examples(FILE *to, const struct rv__command *command)
{
    int column = MEANING_AT, width = page_width(to);
    for (const struct rv__example *e = command->examples; e->line != NULL; e++) {
        int needs = INDENT + rv__text_width(rv__str(e->line)) + 3;
        if (e->says != NULL && needs > column && needs < width - MEANING_AT)
            column = needs;
    }
    for (const struct rv__example *e = command->examples; e->line != NULL; e++)
        print_term(to, e->line, e->says, column);
}

static void print_heading(FILE *to, const char *heading)
{
    fprintf(to, "\n%s%s:%s\n", rv__colour(to, BOLD), heading, rv__colour(to, PLAIN));
}

void rv__help_command(FILE *to, const struct rv__command *command)
{
    struct rv__buf line;
    rv__buf_init(&line, LINE_BYTES);
    rv__help_usage(&line, command);
    fprintf(to, "Usage: %s\n\n%c%s.\n", rv__buf_view(&line).at, command->summary[0] - 'a' + 'A',
            command->summary + 1);
    for (size_t i = 0; command->paragraphs[i] != NULL; i++) {
        fputc('\n', to);
        rv__print_wrapped(to, command->paragraphs[i], 0, 0);
    }
    if (command->options != NULL)
        print_heading(to, "Options");
    for (const struct rv__option *o = command->options; o != NULL && o->name != NULL; o++) {
        rv__buf_reset(&line);
        rv__help_option(&line, o);
        print_term(to, rv__buf_view(&line).at, o->meaning, MEANING_AT);
    }
    if (command->examples[0].line != NULL)
        print_heading(to, "Examples");
    print_examples(to, command);
    if (command->exits[0].meaning != NULL)
        print_heading(to, "Exit code");
    for (const struct rv__exit *e = command->exits; e->meaning != NULL; e++) {
        rv__buf_reset(&line);
        rv__buf_fmt(&line, "%d", e->code);
        print_term(to, rv__buf_view(&line).at, e->meaning, INDENT + 5);
    }
    rv__buf_done(&line);
}
