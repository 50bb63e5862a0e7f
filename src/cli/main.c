/* main.c: finds the command and runs it. */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/suggest.h"

enum { COMMANDS_MAX = 64 };

static int unknown(const char *name)
{
    const char *names[COMMANDS_MAX];
    size_t count = 0;
    for (size_t i = 0; rv__commands[i] != NULL && count < COMMANDS_MAX; i++)
        if (rv__commands[i]->section != SECTION_HIDDEN)
            names[count++] = rv__commands[i]->name;
    const char *meant = rv__suggest(rv__str(name), names, count);
    if (meant != NULL)
        return rv__cli_usage(NULL, "there is no command '%s'; did you mean '%s'?", name, meant);
    return rv__cli_usage(NULL, "there is no command '%s'", name);
}

static bool asks_for_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Flush the output, and report an error. A closed pipe (`| head`) is no error. */
static int end_output(int code)
{
    struct pollfd out = { .fd = STDOUT_FILENO };
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    if (errno == EPIPE || (poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0))
        return code;
    (void)rv__cli_fail(CLI_FAILED, "cannot write all of the output",
                       errno != 0 ? strerrordesc_np(errno) : NULL);
    return code == CLI_OK ? CLI_FAILED : code;
}

/* Half of the descriptors may be used by connections of http steps. The usual limit protects programs that use
 * select(), which this one does not. Raise it no further than needed: our child processes inherit it, and some
 * close every possible descriptor. */
static void raise_descriptors(void)
{
    const rlim_t enough = 20480;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= enough)
        return;
    limit.rlim_cur = limit.rlim_max < enough ? limit.rlim_max : enough;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* if refused, continue with fewer */
}

static int run_command(int argc, char **argv)
{
    if (argc < 2) {
        rv__help_overview(stderr);
        return CLI_USAGE;
    }

    bool help = strcmp(argv[1], "help") == 0;
    if (asks_for_help(argv[1]) || (help && argc == 2)) {
        rv__help_overview(stdout);
        return CLI_OK;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return rv__cmd_version.run(1, argv);

    const char *name = argv[help ? 2 : 1];
    const struct rv__command *command = rv__command_find(name);
    if (command == NULL)
        return unknown(name);
    for (int i = 2; i < argc && command->section != SECTION_HIDDEN; i++)
        help |= asks_for_help(argv[i]);
    if (help) {
        rv__help_command(stdout, command);
        return CLI_OK;
    }
    return command->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    raise_descriptors();
    return end_output(run_command(argc, argv));
}
