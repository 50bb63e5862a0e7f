/* new.c: `rival new`: writes a small workflow file that runs unchanged. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/text.h"

enum { NAME_MAX_BYTES = 200 }; /* of a workflow, as the file format has it */

static const char yaml[] =
    "# %s: run it with: rival exec %s --input '{\"who\": \"world\"}'\n"
    "name: %s\n"
    "description: Say hello, then what time it is\n"
    "\n"
    "input: # JSON Schema: what a run needs to be given\n"
    "  type: object\n"
    "  properties:\n"
    "    who: { type: string, default: world }\n"
    "\n"
    "steps:\n"
    "  # No work, only an expression (jq) over .input, .steps and .lastStep.\n"
    "  - greeting: { value: \"Hello, ${ .input.who }!\" }\n"
    "\n"
    "  # A program. Its result is what it prints: as JSON, if it is, else as text.\n"
    "  - say:\n"
    "      command: [echo, \"${ .steps.greeting.result }\"]\n"
    "      timeout: 10s\n"
    "      maxAttempts: 3\n"
    "      description: \"said ${ .result }\" # shown to people\n"
    "\n"
    "  # A timer that is right even if the process dies meanwhile: try Ctrl-C here.\n"
    "  - rest: { delay: 2s }\n"
    "\n"
    "  - time: { command: [date, +%%H:%%M] }\n";

static const char c_file[] =
    "/* %s: run it with: rival exec %s --input '{\"who\": \"world\"}' */\n"
    "#include <rival/rival.h>\n"
    "\n"
    "/* A step returns its result as JSON; Jansson's formats say how. */\n"
    "static int greet(rv_ctx *c)\n"
    "{\n"
    "    rv_log_info(c, \"greeting %%s\", rv_str(c, \".input.who\"));\n"
    "    return rv_return(c, \"{s:s}\", \"who\", rv_str(c, \".input.who\"));\n"
    "}\n"
    "\n"
    "/* It sees the results of those before it, and may be tried again. */\n"
    "static int say(rv_ctx *c)\n"
    "{\n"
    "    rv_describe(c, \"said hello to %%s\", rv_str(c, \".steps.greet.result.who\"));\n"
    "    return rv_return(c, \"b\", 1);\n"
    "}\n"
    "\n"
    "RV_WORKFLOW(\"%s\", .description = \"Say hello, and rest\",\n"
    "            /* JSON Schema: what a run needs to be given. */\n"
    "            .input = RV_JSON({ \"type\": \"object\",\n"
    "                               \"properties\": { \"who\": { \"type\": \"string\", "
    "\"default\": \"world\" } } }),\n"
    "            /* The timer is right even if the process dies meanwhile: try Ctrl-C there. */\n"
    "            .steps = RV_STEPS(RV_STEP(greet), RV_DELAY(2000, .alias = \"rest\"),\n"
    "                              RV_STEP(say, .timeout_ms = 10000, .max_attempts = 3)))\n";

static const char ts_file[] =
    "// %s: run it with: rival exec %s --input '{\"who\": \"world\"}'\n"
    "import { delayStep, type StepContext } from \"rival\";\n"
    "import { z } from \"zod\";\n"
    "\n"
    "export const name = \"%s\";\n"
    "export const description = \"Say hello, and rest\";\n"
    "\n"
    "// What a run needs to be given. Forms are made of it.\n"
    "export const input = z.object({ who: z.string().default(\"world\") });\n"
    "type Context = StepContext<z.infer<typeof input>>;\n"
    "\n"
    "// A step is a function. What it returns is recorded, as JSON.\n"
    "function greet({ input, log }: Context) {\n"
    "  log.info({ who: input.who }, \"greeting\");\n"
    "  return { text: `Hello, ${input.who}!` };\n"
    "}\n"
    "\n"
    "// It sees the results of those before it, and may be tried again.\n"
    "async function say({ steps, state }: Context) {\n"
    "  state.description = `said ${steps.greet.result.text}`; // shown to people\n"
    "  return true;\n"
    "}\n"
    "\n"
    "// The timer is right even if the process dies meanwhile: try Ctrl-C there.\n"
    "export const steps = [greet, delayStep({ seconds: 2 }), { fn: say, timeout: 10_000, "
    "maxAttempts: 3 }];\n";

/* Is it a valid name in the file format? */
static bool is_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-";
    return *name != '\0' && strchr(first, *name) != NULL && name[strspn(name, others)] == '\0' &&
           strstr(name, "__") == NULL && strlen(name) <= NAME_MAX_BYTES;
}

static int write_file(const char *file, const char *name, const char *form)
{
    char message[600];
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL && errno == EEXIST)
        return rv__cli_usage("new", "%s already exists and is not overwritten", file);
    if (out != NULL) {
        if (strcmp(form, "c") == 0)
            fprintf(out, c_file, file, file, name);
        else if (strcmp(form, "ts") == 0)
            fprintf(out, ts_file, file, file, name);
        else
            fprintf(out, yaml, file, file, name);
        if (fclose(out) == 0)
            return CLI_OK;
    }
    snprintf(message, sizeof message, "cannot write %s: %s", file, strerrordesc_np(errno));
    return rv__cli_fail(CLI_FAILED, message, NULL);
}

struct form {
    bool yaml, c, ts, json;
};

static int run_new(int argc, char **argv)
{
    struct form form = { .yaml = false };
    char file[NAME_MAX_BYTES + 16];
    int count = rv__options(&rv__cmd_new, argc, argv, &form);
    if (count < 0)
        return -count;
    if (!is_name(argv[0]))
        return rv__cli_usage("new",
                             "'%s' is not a name: letters, digits and _ . -, beginning with a "
                             "letter or _, no __",
                             argv[0]);
    if (form.c + form.yaml + form.ts > 1)
        return rv__cli_usage("new", "--yaml, --c or --ts, not several");
    const char *ending = form.c ? "c" : form.ts ? "ts" : "yaml";
    snprintf(file, sizeof file, "%s.%s", argv[0], ending);
    int code = write_file(file, argv[0], ending);
    if (code == CLI_OK && form.json)
        printf("{\"name\":\"%s\",\"file\":\"%s\"}\n", argv[0], file);
    else if (code == CLI_OK)
        printf("created %s; run it with: rival exec %s\n", file, file);
    return code;
}

static const struct rv__option options[] = {
    { "--yaml", .meaning = "a workflow in YAML (the default)", RV__INTO(struct form, yaml) },
    { "--c", .meaning = "a workflow in C", RV__INTO(struct form, c) },
    { "--ts", .meaning = "a workflow in TypeScript; running it needs Node.js 20.6 or newer",
      RV__INTO(struct form, ts) },
    { "--json", .meaning = "print {\"name\", \"file\"}", RV__INTO(struct form, json) },
    { NULL },
};

const struct rv__command rv__cmd_new = {
    .name = "new",
    .section = SECTION_FILES,
    .summary = "create a workflow file to start from",
    .arguments = { { "NAME", "which name?" } },
    .options = options,
    .paragraphs = { "Writes NAME.yaml (NAME.c with --c, NAME.ts with --ts), which runs as it is: "
                    "`rival exec "
                    "NAME.yaml`. An existing file is not overwritten." },
    .examples = { { "rival new hello && rival exec hello.yaml" } },
    .run = run_new,
};
