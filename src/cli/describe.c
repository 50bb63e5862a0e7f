/* describe.c: `rival describe man|markdown`: the commands as a man page, for the build, and as
 * docs/reference/commands.md, which a test compares.
 *
 * man(7) and not mdoc(7): every formatter reads it. Words in backquotes become bold. */
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"

enum { PAGE_BYTES = 1 << 22 };

static const struct {
    const char *term, *meaning;
} environment[] = {
    { "NO_COLOR", "if it is set and not empty, the output has no colours." },
    { "TERM", "dumb: no colours, and no live progress." },
    { "LC_ALL, LC_CTYPE, LANG",
      "the first one that is set must name UTF-8, or only ASCII symbols are used." },
};

static const struct rv__exit exits[] = {
    { CLI_OK, "success; for a run: completed." },
    { CLI_FAILED, "failed." },
    { CLI_USAGE, "wrong usage, a broken file, a refused input: nothing was run." },
    { CLI_CANCELLED, "the run was cancelled." },
    { CLI_SUSPENDED, "the run is suspended." },
    { CLI_GONE, "the store was deleted or replaced while it was in use." },
    { CLI_INTERRUPTED, "stopped by Ctrl-C: the run can be continued." },
};

/* ------------------------------------------------------------------------------------ man --- */

/* Text for roff: nothing becomes a request, and a hyphen stays a hyphen. */
static void put(struct rv__buf *out, const char *text)
{
    bool bold = false;
    if (*text == '.' || *text == '\'')
        rv__buf_text(out, "\\&");
    for (; *text != '\0'; text++) {
        if (*text == '`') {
            bold = !bold;
            rv__buf_text(out, bold ? "\\fB" : "\\fR");
        } else if (*text == '\\') {
            rv__buf_text(out, "\\e");
        } else if (*text == '-') {
            rv__buf_text(out, "\\-");
        } else if (*text == '\'') {
            rv__buf_text(out, "\\(aq");
        } else {
            rv__buf_char(out, *text);
        }
    }
    rv__buf_char(out, '\n');
}

static void put_heading(struct rv__buf *out, const char *request, const char *text)
{
    rv__buf_fmt(out, "%s ", request);
    put(out, text);
}

static void put_term(struct rv__buf *out, const char *term, const char *meaning)
{
    rv__buf_text(out, ".TP\n.B ");
    put(out, term);
    put(out, meaning);
}

static void put_examples(struct rv__buf *out, const struct rv__command *command)
{
    if (command->examples[0].line == NULL)
        return;
    rv__buf_text(out, ".PP\nExamples:\n.PP\n.in +4n\n.EX\n");
    for (const struct rv__example *e = command->examples; e->line != NULL; e++) {
        if (e->says != NULL)
            rv__buf_fmt(out, "# %s\n", e->says);
        put(out, e->line);
    }
    rv__buf_text(out, ".EE\n.in\n");
}

static void put_command(struct rv__buf *out, const struct rv__command *command)
{
    struct rv__buf text;
    rv__buf_init(&text, PAGE_BYTES);
    rv__help_usage(&text, command);
    put_heading(out, ".SS", rv__buf_view(&text).at);
    rv__buf_reset(&text);
    rv__buf_fmt(&text, "%c%s.", command->summary[0] - 'a' + 'A', command->summary + 1);
    put(out, rv__buf_view(&text).at);
    for (size_t i = 0; command->paragraphs[i] != NULL; i++) {
        rv__buf_text(out, ".PP\n");
        put(out, command->paragraphs[i]);
    }
    for (const struct rv__option *o = command->options; o != NULL && o->name != NULL; o++) {
        rv__buf_reset(&text);
        rv__help_option(&text, o);
        put_term(out, rv__buf_view(&text).at, o->meaning);
    }
    put_examples(out, command);
    if (command->exits[0].meaning != NULL)
        rv__buf_text(out, ".PP\nExit code:\n");
    for (const struct rv__exit *e = command->exits; e->meaning != NULL; e++) {
        rv__buf_reset(&text);
        rv__buf_fmt(&text, "%d", e->code);
        put_term(out, rv__buf_view(&text).at, e->meaning);
    }
    rv__buf_done(&text);
}

static void put_commands(struct rv__buf *out)
{
    const char *before = NULL;
    for (size_t i = 0; rv__commands[i] != NULL; i++) {
        const char *section = rv__help_section(rv__commands[i]->section);
        if (section == NULL)
            continue;
        if (section != before) {
            rv__buf_text(out, ".SH ");
            for (const char *at = section; *at != '\0'; at++) {
                bool small = *at >= 'a' && *at <= 'z';
                rv__buf_fmt(out, "%c", small ? *at - 'a' + 'A' : *at);
            }
            rv__buf_char(out, '\n');
        }
        before = section;
        put_command(out, rv__commands[i]);
    }
}

static void put_man(struct rv__buf *out)
{
    rv__buf_fmt(out, ".TH RIVAL 1 \"\" \"rival %s\" \"User Commands\"\n", rv_version());
    rv__buf_text(out, ".SH NAME\nrival \\- workflows and agents that survive crashes\n"
                      ".SH SYNOPSIS\n.B rival\n.I COMMAND\n.RI [ ARGUMENTS ]\n"
                      ".SH DESCRIPTION\n");
    put(out, "Rival runs workflows whose runs are recorded in a store, step by step, so that they "
             "continue where they were after the process or the machine dies.");
    rv__buf_text(out, ".PP\n");
    put(out, "Results go to stdout, everything else to stderr. Options and arguments may be mixed; "
             "`--name VALUE` and `--name=VALUE` are the same; `--` ends the options. A unique "
             "prefix of an ID is enough for commands that only read. `rival COMMAND --help` shows "
             "the page of a command.");
    put_commands(out);
    rv__buf_text(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", exits[i].code);
        put_term(out, code, exits[i].meaning);
    }
    rv__buf_text(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
        put_term(out, environment[i].term, environment[i].meaning);
    rv__buf_text(out, ".SH FILES\n");
    put_term(out, "rival.db", "the store, in the current folder, unless `--store` says otherwise.");
}

/* ------------------------------------------------------------------------------- markdown --- */

/* In a table a bar ends the cell, and "<" and "*" would be markup. */
static void put_cell(struct rv__buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("|<*", *text) != NULL)
            rv__buf_char(out, '\\');
        rv__buf_char(out, *text);
    }
}

static void put_markdown_command(struct rv__buf *out, const struct rv__command *command)
{
    rv__buf_fmt(out, "\n### %s\n\n`", command->name);
    rv__help_usage(out, command);
    rv__buf_fmt(out, "`: %s.\n", command->summary);
    for (size_t i = 0; command->paragraphs[i] != NULL; i++)
        rv__buf_fmt(out, "\n%s\n", command->paragraphs[i]);
    if (command->options != NULL)
        rv__buf_text(out, "\n| option | |\n|---|---|\n");
    for (const struct rv__option *o = command->options; o != NULL && o->name != NULL; o++) {
        rv__buf_text(out, "| `");
        rv__help_option(out, o);
        rv__buf_text(out, "` | ");
        put_cell(out, o->meaning);
        rv__buf_text(out, " |\n");
    }
    if (command->examples[0].line != NULL)
        rv__buf_text(out, "\n```sh\n");
    for (const struct rv__example *e = command->examples; e->line != NULL; e++)
        rv__buf_fmt(out, "%s%s%s\n", e->line, e->says != NULL ? "  # " : "",
                    e->says != NULL ? e->says : "");
    if (command->examples[0].line != NULL)
        rv__buf_text(out, "```\n");
    if (command->exits[0].meaning != NULL)
        rv__buf_text(out, "\nExit code: ");
    for (const struct rv__exit *e = command->exits; e->meaning != NULL; e++)
        rv__buf_fmt(out, "%d %s%s", e->code, e->meaning, e[1].meaning != NULL ? "; " : ".\n");
}

static void put_markdown(struct rv__buf *out)
{
    const char *before = NULL;
    rv__buf_text(
        out,
        "# The commands\n\n"
        "The output of `rival COMMAND --help`, on one page. What all commands have in common is in "
        "[the command line](cli.md).\nThis page is made by "
        "`rival describe markdown`.\n");
    for (size_t i = 0; rv__commands[i] != NULL; i++) {
        const char *section = rv__help_section(rv__commands[i]->section);
        if (section == NULL)
            continue;
        if (section != before)
            rv__buf_fmt(out, "\n## %s\n", section);
        before = section;
        put_markdown_command(out, rv__commands[i]);
    }
}

static const char *const forms[] = { "man", "markdown", NULL };

static int run_describe(int argc, char **argv)
{
    struct rv__buf out;
    int count = rv__options(&rv__cmd_describe, argc, argv, NULL);
    if (count < 0)
        return -count;
    rv__buf_init(&out, PAGE_BYTES);
    if (strcmp(argv[0], "man") == 0)
        put_man(&out);
    else
        put_markdown(&out);
    int rc = out.rc;
    if (rc == RV_OK)
        fputs(out.text, stdout);
    rv__buf_done(&out);
    return rc == RV_OK ? CLI_OK : rv__cli_fail(CLI_FAILED, rv_strerror(rc), NULL);
}

const struct rv__command rv__cmd_describe = {
    .name = "describe",
    .section = SECTION_HIDDEN,
    .summary = "print the commands as a man page, or in Markdown",
    .arguments = { { "man|markdown", "as what? there are: man, markdown", .choices = forms } },
    .run = run_describe,
};
