/* main.c: finds the command and runs it. A command is a row in `commands` and a file of its own. */
#include "cli/cli.h"

#include <string.h>

#include "base/suggest.h"

static const struct rv__command commands[] = {
    { "check", "[--json] FILE|DIR ...", "find what is wrong with workflow files",
      "Reads workflows in YAML and JSON: files, and folders with all that is in them (hidden\n"
      "files left out). Checks syntax, keys, durations, the input schema, every expression and\n"
      "the nodes it reads, nested workflows. Everything that is wrong is told at once, each as\n"
      "FILE:LINE:COLUMN with the line. Nothing is run. Exit code 0: all good; 1: not.\n"
      "\n"
      "  --json   as a JSON object: {\"ok\", \"files\", \"workflows\", \"problems\": [{\"file\",\n"
      "           \"line\", \"column\", \"message\", \"excerpt\"}], \"others\"}\n"
      "\n"
      "Examples:\n"
      "  rival check order.yaml\n"
      "  rival check workflows/ && echo good\n"
      "  rival check --json . | jq '.problems[].message'\n",
      rv__cmd_check },
    { "demo", "NAME", "show a part of Rival at work",
      "  group    a task group: tasks on threads, results as they finish, a failing\n"
      "           task, a panic, cancellation (Ctrl-C works too)\n"
      "  resume   a run whose process is killed, twice, and that goes on\n"
      "\n"
      "Examples:\n"
      "  rival demo resume\n"
      "  rival demo group | cat      the same without colours\n",
      rv__cmd_demo },
    { "plan", "FILE [--format json|text|mermaid]", "show what a workflow will do",
      "Checks the file as `rival check` does, and prints its plan, nested workflows in their\n"
      "place.\n"
      "\n"
      "  --format json      the plan as it is stored with each run (the default)\n"
      "  --format text      a tree: nodes, conditions, time-outs, retries\n"
      "  --format mermaid   a flowchart for Markdown pages and mermaid.live\n"
      "\n"
      "Examples:\n"
      "  rival plan order.yaml --format text\n"
      "  rival plan order.yaml --format mermaid > order.mmd\n"
      "  rival plan order.yaml | jq '.steps[].alias'\n",
      rv__cmd_plan },
    { "version", "[--json]", "print the version",
      "  --json   as a JSON object: {\"version\":\"…\"}\n", rv__cmd_version },
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void print_overview(FILE *to)
{
    fprintf(to,
            "%srival%s %s: workflows and agents that survive crashes, from one binary\n"
            "\n"
            "Usage: rival COMMAND [ARGUMENTS]\n"
            "\n"
            "Commands:\n",
            rv__colour(to, BOLD), rv__colour(to, PLAIN), rv_version());
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(to, "  %s%-9s%s %-34s %s\n", rv__colour(to, CYAN), commands[i].name,
                rv__colour(to, PLAIN), commands[i].arguments, commands[i].summary);
    fprintf(to, "\n"
                "Options:\n"
                "  -h, --help       this page; after a command, the page of that command\n"
                "  -V, --version    print the version\n");
}

static void print_help(const struct rv__command *command)
{
    printf("Usage: rival %s %s\n\n%c%s.\n\n%s", command->name, command->arguments,
           command->summary[0] - 'a' + 'A', command->summary + 1, command->help);
}

static const struct rv__command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *meant = rv__suggest(rv__str(name), names, COMMANDS);
    if (meant != NULL)
        return rv__cli_usage(NULL, "there is no command '%s'; did you mean '%s'?", name, meant);
    return rv__cli_usage(NULL, "there is no command '%s'", name);
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }

    bool help_command = strcmp(argv[1], "help") == 0;
    if (asks_for_help(argv[1]) || (help_command && argc == 2)) {
        print_overview(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return rv__cmd_version(1, argv);

    if (strcmp(argv[1], "host") == 0) /* not for people, so not in the list */
        return rv__cmd_host(argc - 1, argv + 1);

    const char *name = argv[help_command ? 2 : 1];
    const struct rv__command *command = find(name);
    if (command == NULL)
        return unknown(name);
    for (int i = 2; i < argc; i++)
        help_command |= asks_for_help(argv[i]);
    if (help_command) {
        print_help(command);
        return CLI_OK;
    }
    return command->run(argc - 1, argv + 1);
}
