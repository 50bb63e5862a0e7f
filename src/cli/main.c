/* main.c: finds the command and runs it. A command is a row in `commands` and a file of its own. */
#include "cli/cli.h"

#include <string.h>

#include "base/suggest.h"

static const struct rv__command commands[] = {
    { "backup", "FILE [--store FILE] [--force]", "copy the whole store into one file",
      "Works while another process drives the store, which is not held up. The copy is that of "
      "one\n"
      "moment, is read over, and appears under its name when it is whole. It is a store itself:\n"
      "rival list --store FILE.\n"
      "\n"
      "  --force        a file of that name gives way\n"
      "  --store FILE   where the runs are (rival.db)\n"
      "  --json         print {\"file\", \"bytes\"}\n"
      "\n"
      "Examples:\n"
      "  rival backup nightly.db --force\n"
      "  rival backup /mnt/backup/rival-$(date +%F).db --store /var/lib/rival/rival.db\n",
      rv__cmd_backup },
    { "cancel", "ID [--store FILE]", "end a run, and all that is alive in it",
      "A run that has ended is left as it is; what it had detached is cancelled.\n"
      "  --store FILE   where the runs are (rival.db)\n"
      "  --json         print {\"runId\", \"status\"}\n"
      "\n"
      "An id may be cut, as long as it is the only one that begins so.\n"
      "\n"
      "Examples:\n"
      "  rival cancel order-1\n"
      "  rival cancel 01k7h     the only run that begins so\n",
      rv__cmd_cancel },
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
    { "decide", "ID resume|abort [--reason TEXT]", "say what becomes of a suspended run",
      "  resume         it goes on, with fresh attempts\n"
      "  abort          it fails\n"
      "  --reason TEXT  kept with the decision\n"
      "  --store FILE   where the runs are (rival.db)\n"
      "  --json         print {\"runId\", \"status\"}\n"
      "\n"
      "`rival why ID` says why it is suspended.\n"
      "\n"
      "Examples:\n"
      "  rival decide order-1 resume\n"
      "  rival decide order-1 abort --reason \"the customer has gone\"\n",
      rv__cmd_decide },
    { "demo", "NAME", "show a part of Rival at work",
      "  group    a task group: tasks on threads, results as they finish, a failing\n"
      "           task, a panic, cancellation (Ctrl-C works too)\n"
      "  resume   a run whose process is killed, twice, and that goes on\n"
      "\n"
      "Examples:\n"
      "  rival demo resume\n"
      "  rival demo group | cat      the same without colours\n",
      rv__cmd_demo },
    { "exec", "FILE [--input JSON] [--run-id ID]", "run a workflow file, here and now",
      "Opens the store, runs the workflow, shows it, and prints the outcome as JSON on stdout:\n"
      "{\"runId\", \"status\", \"results\", \"error\", \"failedStep\"}. Progress goes to stderr: "
      "live on a\n"
      "terminal, else a line for each event. No server is needed, and other runs of the store are\n"
      "left alone. Workflows that it nests are found beside the file.\n"
      "\n"
      "  --input JSON       the input; @FILE reads it from a file, - from stdin\n"
      "  --run-id ID        the run's name; made if it is not given. The same again goes on with\n"
      "                     a run that was stopped or died (its input need not be given again),\n"
      "                     and prints the outcome of one that has ended\n"
      "  --store FILE       where the runs are (rival.db), made if it is not there\n"
      "  --on-suspend WHAT  what to do when the run is suspended: wait, abort or resume\n"
      "                     (on a terminal you are asked, else it is aborted)\n"
      "  --allow-env NAME   let expressions see this variable, as .env.NAME; again for more\n"
      "  --json             nothing but the outcome\n"
      "\n"
      "Ctrl-C stops it in order and says how to go on; a second one leaves at once.\n"
      "Exit code: 0 completed; 1 failed; 2 wrong use, file or input: nothing was run; 3 "
      "cancelled;\n"
      "4 suspended; 130 stopped by Ctrl-C.\n"
      "\n"
      "Examples:\n"
      "  rival exec order.yaml --input '{\"item\": \"desk\"}'\n"
      "  rival exec order.yaml --input @order.json --run-id order-1\n"
      "  rival exec order.yaml --run-id order-1              goes on with it\n"
      "  rival exec order.yaml --json | jq .results.pay.result\n",
      rv__cmd_exec },
    { "export", "ID [FILE] [--store FILE]", "write one run, with all that is its, into a file",
      "Definition, input, history and logs, as lines of JSON; to stdout, if no FILE is named or "
      "it\n"
      "is -. `rival import` takes it over into another store, where it goes on from where it was.\n"
      "The run stays here, and goes on here too: cancel it before it is imported elsewhere, "
      "unless\n"
      "it has ended.\n"
      "\n"
      "  --force        a file of that name gives way\n"
      "  --store FILE   where the runs are (rival.db)\n"
      "\n"
      "Examples:\n"
      "  rival export order-1 order-1.jsonl\n"
      "  rival export order-1 | gzip > order-1.jsonl.gz\n"
      "  rival export order-1 | head -1 | jq .rival\n",
      rv__cmd_export },
    { "import", "FILE [--store FILE]", "take over a run that was exported",
      "All of it or nothing: a file that is cut or altered is refused, and so is a run whose id "
      "the\n"
      "store has already. FILE may be - for stdin. The run keeps its id, and goes on when a "
      "process\n"
      "drives the store: rival exec WORKFLOW --run-id ID.\n"
      "\n"
      "  --store FILE   where it is put (rival.db), made if it is not there\n"
      "  --json         print {\"runId\", \"status\"}\n"
      "\n"
      "Examples:\n"
      "  rival import order-1.jsonl --store other.db\n"
      "  rival export order-1 | ssh host rival import -\n",
      rv__cmd_import },
    { "list", "[--status S] [--workflow NAME] ...", "list runs, the newest first",
      "  --status S       running, suspended, completed, failed or cancelled\n"
      "  --workflow NAME  of this workflow\n"
      "  --since WHEN     begun since: 2h, 30d, 2026-11-15, \"2026-11-15 12:30\"\n"
      "  --text TEXT      with this in its id, workflow, error or input\n"
      "  --limit N        at most so many (50)\n"
      "  --cursor C       behind those of the list before\n"
      "  --store FILE     where the runs are (rival.db)\n"
      "  --json           {\"runs\": [...], \"nextCursor\"}\n"
      "\n"
      "Examples:\n"
      "  rival list --status failed --since 1d\n"
      "  rival list --json | jq -r '.runs[].runId'\n",
      rv__cmd_list },
    { "logs", "ID [-f] [--step ALIAS] [--level L]", "print what the steps of a run said",
      "  -f, --follow     go on until the run has ended\n"
      "  --step ALIAS     of this step\n"
      "  --level L        debug, info, warn or error: this one and graver (info)\n"
      "  --text TEXT      with this in the message\n"
      "  --store FILE     where the runs are (rival.db)\n"
      "  --json           a JSON object for each line\n"
      "\n"
      "Examples:\n"
      "  rival logs order-1 -f\n"
      "  rival logs order-1 --step charge --level warn\n",
      rv__cmd_logs },
    { "new", "NAME [--yaml|--c]", "make a workflow file to begin with",
      "Writes NAME.yaml, or with --c NAME.c, which runs as it is: rival exec NAME.yaml. A file "
      "that\n"
      "is there already is left as it is.\n"
      "\n"
      "Example:\n"
      "  rival new hello && rival exec hello.yaml\n",
      rv__cmd_new },
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
    { "retain", "[--older-than AGE] [--keep N] ...", "remove finished runs, the oldest first",
      "A run goes if one of these bounds says so; runs that have not ended never go. The file "
      "does\n"
      "not shrink, but what was removed makes room for new runs.\n"
      "\n"
      "  --older-than AGE   that ended longer ago: 12h, 30d\n"
      "  --keep N           but for the N that ended last\n"
      "  --max-bytes SIZE   until the store holds no more than this: 500M, 2G\n"
      "  --dry-run          only say how many (with --max-bytes: about)\n"
      "  --store FILE       where the runs are (rival.db)\n"
      "  --json             print {\"removed\", \"left\", \"freedBytes\", \"bytes\", \"dryRun\"}\n"
      "\n"
      "Examples:\n"
      "  rival retain --older-than 30d --dry-run\n"
      "  rival retain --keep 10000 --max-bytes 2G\n",
      rv__cmd_retain },
    { "run", "NAME [--input JSON] [--wait] ...", "begin a run of a workflow by its name",
      "Finds the workflow among the files of a folder, records the run and prints its id. It goes "
      "on\n"
      "when a process drives the store; with --wait this one does, and shows it as `exec` does.\n"
      "\n"
      "  --from DIR         where the files are (.)\n"
      "  --wait             drive it to its end, and print the outcome\n"
      "  --input, --run-id, --store, --on-suspend, --allow-env, --json: as for `rival exec`;\n"
      "  without --wait, --json prints {\"runId\", \"status\"}\n"
      "\n"
      "Examples:\n"
      "  rival run greet --wait\n"
      "  id=$(rival run order --from workflows --input @order.json)\n",
      rv__cmd_run },
    { "show", "ID [--store FILE]", "show a run: its nodes and how each fared",
      "  --store FILE   where the runs are (rival.db)\n"
      "  --json         all of it, nodes within nodes\n"
      "\n"
      "Works also while another process drives the run. Iterations that went well are counted, "
      "not\n"
      "listed, if they are many.\n"
      "\n"
      "Examples:\n"
      "  rival show order-1\n"
      "  rival show order-1 --json | jq '.nodes[] | {alias, status, duration}'\n",
      rv__cmd_show },
    { "signal", "ID NAME [JSON]", "send a run a signal",
      "It is kept until a step takes it. JSON is what the step gets as its result (null); @FILE "
      "reads\n"
      "it from a file, - from stdin.\n"
      "\n"
      "  --store FILE   where the runs are (rival.db)\n"
      "  --json         print {\"runId\", \"status\"}\n"
      "\n"
      "Examples:\n"
      "  rival signal order-1 approved '{\"by\": \"kim\"}'\n",
      rv__cmd_signal },
    { "version", "[--json]", "print the version",
      "  --json   as a JSON object: {\"version\":\"…\"}\n", rv__cmd_version },
    { "wait", "ID [--timeout DURATION]", "wait until a run has ended",
      "Prints the outcome as `rival exec` does, and exits with its code.\n"
      "\n"
      "  --timeout DURATION   give up after: 30s, 5m (never); exit code 1\n"
      "  --store FILE         where the runs are (rival.db)\n"
      "\n"
      "Example:\n"
      "  rival wait order-1 --timeout 5m | jq .status\n",
      rv__cmd_wait },
    { "why", "ID [--store FILE]", "say what a run waits for",
      "Everything alive in a run has exactly one reason to wait; those with the same one are told\n"
      "together, the oldest first.\n"
      "\n"
      "  --store FILE   where the runs are (rival.db)\n"
      "  --json         {\"runId\", \"status\", \"waits\": [...]}\n"
      "\n"
      "Example:\n"
      "  rival why order-1\n",
      rv__cmd_why },
    { "workflows", "[DIR|FILE ...]", "list the workflows of files and folders",
      "Those of this folder, if none is named.\n"
      "\n"
      "  --json   {\"workflows\": [{\"name\", \"description\", \"file\", \"version\", \"nodes\", "
      "\"inputSchema\"}]}\n"
      "\n"
      "Examples:\n"
      "  rival workflows\n"
      "  rival workflows examples/ --json | jq -r '.workflows[].name'\n",
      rv__cmd_workflows },
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
