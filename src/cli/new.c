/* new.c: `rival new`: a small file to begin with, that runs as it is. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/options.h"
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

/* A name as the file format wants it. */
static bool is_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char others[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-";
    return *name != '\0' && strchr(first, *name) != NULL && name[strspn(name, others)] == '\0' &&
           strstr(name, "__") == NULL && strlen(name) <= NAME_MAX_BYTES;
}

static int write_file(const char *file, const char *name)
{
    char message[600];
    int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL && errno == EEXIST)
        return rv__cli_usage("new", "%s exists already, and is left as it is", file);
    if (out != NULL) {
        fprintf(out, yaml, file, file, name);
        if (fclose(out) == 0)
            return CLI_OK;
    }
    snprintf(message, sizeof message, "cannot write %s: %s", file, strerrordesc_np(errno));
    return rv__cli_fail(CLI_FAILED, message, NULL);
}

int rv__cmd_new(int argc, char **argv)
{
    bool as_yaml = false, as_c = false, as_ts = false;
    char file[NAME_MAX_BYTES + 16];
    const struct rv__option options[] = { { "--yaml", .flag = &as_yaml },
                                          { "--c", .flag = &as_c },
                                          { "--ts", .flag = &as_ts },
                                          { NULL } };
    int count = rv__options_args("new", argc, argv, options, 1, 1, "which name?");
    if (count < 0)
        return -count;
    if (!is_name(argv[0]))
        return rv__cli_usage("new",
                             "'%s' is not a name: letters, digits and _ . -, beginning with a "
                             "letter or _, no __",
                             argv[0]);
    if (as_c || as_ts)
        return rv__cli_usage("new", "%s files are not run by this version yet; YAML is the default",
                             as_c ? "C" : "TypeScript");
    snprintf(file, sizeof file, "%s.yaml", argv[0]);
    int code = write_file(file, argv[0]);
    if (code == CLI_OK)
        printf("made %s; run it with: rival exec %s\n", file, file);
    return code;
}
