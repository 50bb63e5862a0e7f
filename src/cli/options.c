/* options.c: parses the arguments of every command, by its description. */
#include "cli/command.h"

#include <string.h>

#include "base/str.h"
#include "base/suggest.h"
#include "cli/cli.h"

static int unknown(const struct rv__command *command, const char *argument)
{
    const char *names[RV__OPTIONS_MAX];
    size_t count = 0, len = strcspn(argument, "=");
    for (const struct rv__option *o = command->options; o != NULL && o->name != NULL; o++)
        if (count < RV__OPTIONS_MAX)
            names[count++] = o->name;
    const char *meant = rv__suggest((struct rv__str){ argument, len }, names, count);
    if (meant != NULL)
        return -rv__cli_usage(command->name, "unknown option '%s'; did you mean '%s'?", argument,
                              meant);
    return -rv__cli_usage(command->name, "unknown option '%s'", argument);
}

const struct rv__option *rv__option_find(const struct rv__command *command, const char *argument,
                                         const char **value)
{
    size_t len = strcspn(argument, "=");
    *value = argument[len] == '=' ? argument + len + 1 : NULL;
    for (const struct rv__option *o = command->options; o != NULL && o->name != NULL; o++) {
        bool is_letter = o->letter != NULL && strcmp(argument, o->letter) == 0;
        if (is_letter || (strlen(o->name) == len && strncmp(argument, o->name, len) == 0))
            return o;
    }
    return NULL;
}

const struct rv__argument *rv__argument_at(const struct rv__command *command, int index)
{
    const struct rv__argument *argument = command->arguments;
    for (; argument->name != NULL && index > 0 && !argument->many; index--)
        argument++;
    return argument->name != NULL ? argument : NULL;
}

static bool add_words(struct rv__words *words, char *text)
{
    for (;;) {
        char *comma = strchr(text, ',');
        if (comma != NULL)
            *comma = '\0';
        if (words->count == RV__WORDS_MAX)
            return false;
        if (*text != '\0')
            words->at[words->count++] = text;
        words->at[words->count] = NULL;
        if (comma == NULL)
            return true;
        text = comma + 1;
    }
}

static int keep_value(const struct rv__command *command, const struct rv__option *o, char *value,
                      void *values)
{
    void *into = (char *)values + o->at;
    int choice;
    switch (o->kind) {
    case RV__OPTION_FLAG: *(bool *)into = true; return CLI_OK;
    case RV__OPTION_TEXT: *(const char **)into = value; return CLI_OK;
    case RV__OPTION_CHOICE:
        choice = rv__option_choice(command->name, o->name, value, o->choices);
        if (choice < 0)
            return -CLI_USAGE;
        *(int *)into = choice;
        return CLI_OK;
    case RV__OPTION_WORDS:
        if (!add_words(into, value))
            return -rv__cli_usage(command->name, "%s: too many names", o->name);
        return CLI_OK;
    }
    return CLI_OK;
}

/* Store the options in `values`, and move the arguments to the front. Returns how many. */
static int read_options(const struct rv__command *command, int argc, char **argv, void *values)
{
    int count = 0;
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) {
        const char *given;
        if (only_arguments || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[count++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            only_arguments = true;
            continue;
        }
        const struct rv__option *o = rv__option_find(command, argv[i], &given);
        if (o == NULL)
            return unknown(command, argv[i]);
        char *value = given != NULL ? argv[i] + (given - argv[i]) : NULL;
        if (o->kind == RV__OPTION_FLAG && value != NULL)
            return -rv__cli_usage(command->name, "%s takes no value", o->name);
        if (o->kind != RV__OPTION_FLAG && value == NULL && i + 1 < argc)
            value = argv[++i];
        if (o->kind != RV__OPTION_FLAG && value == NULL)
            return -rv__cli_usage(command->name, "%s needs a value: %s", o->name, o->argument);
        int rc = keep_value(command, o, value, values);
        if (rc < 0)
            return rc;
    }
    return count;
}

int rv__options(const struct rv__command *command, int argc, char **argv, void *values)
{
    int count = read_options(command, argc, argv, values);
    if (count < 0)
        return count;
    for (int i = 0; i < count; i++) {
        const struct rv__argument *argument = rv__argument_at(command, i);
        if (argument == NULL)
            return -rv__cli_usage(command->name, "unexpected argument '%s'", argv[i]);
        if (argument->choices != NULL &&
            rv__option_choice(command->name, NULL, argv[i], argument->choices) < 0)
            return -CLI_USAGE;
    }
    const struct rv__argument *next = rv__argument_at(command, count);
    if (next != NULL && next->missing != NULL && !(next->many && count > 0))
        return -rv__cli_usage(command->name, "%s", next->missing);
    return count;
}

int rv__option_choice(const char *command, const char *option, const char *value,
                      const char *const *words)
{
    char list[200] = "";
    size_t count = 0, len = 0;
    for (; words[count] != NULL; count++) {
        if (strcmp(words[count], value) == 0)
            return (int)count;
        int n = snprintf(list + len, sizeof list - len, "%s%s", count ? ", " : "", words[count]);
        len += n > 0 && (size_t)n < sizeof list - len ? (size_t)n : 0;
    }
    const char *meant = rv__suggest(rv__str(value), words, count);
    (void)rv__cli_usage(command, "%s%s'%s' is not one of: %s%s%s%s", option ? option : "",
                        option ? " " : "", value, list, meant ? "; did you mean '" : "",
                        meant ? meant : "", meant ? "'?" : "");
    return -1;
}
