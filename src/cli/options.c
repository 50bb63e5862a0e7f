/* options.c: how every command reads its arguments. */
#include "cli/options.h"

#include <string.h>

#include "base/str.h"
#include "base/suggest.h"
#include "cli/cli.h"

enum { OPTIONS_MAX = 32 }; /* of one command */

static int unknown(const char *command, const char *argument, const struct rv__option *options)
{
    const char *names[OPTIONS_MAX];
    size_t count = 0, len = strcspn(argument, "=");
    for (; options[count].name != NULL && count < OPTIONS_MAX; count++)
        names[count] = options[count].name;
    const char *meant = rv__suggest((struct rv__str){ argument, len }, names, count);
    if (meant != NULL)
        return -rv__cli_usage(command, "unknown option '%s'; did you mean '%s'?", argument, meant);
    return -rv__cli_usage(command, "unknown option '%s'", argument);
}

/* The option that the argument names; *value: what follows its "=", or NULL. */
static const struct rv__option *find(const struct rv__option *options, char *argument, char **value)
{
    size_t len = strcspn(argument, "=");
    *value = argument[len] == '=' ? argument + len + 1 : NULL;
    for (const struct rv__option *o = options; o->name != NULL; o++) {
        bool is_letter = o->letter != NULL && strcmp(argument, o->letter) == 0;
        if (is_letter || (strlen(o->name) == len && strncmp(argument, o->name, len) == 0))
            return o;
    }
    return NULL;
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

int rv__options(const char *command, int argc, char **argv, const struct rv__option *options)
{
    int count = 0;
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) { /* the arguments move together at the front */
        char *value;
        if (only_arguments || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[count++] = argv[i];
            continue;
        }
        if (strcmp(argv[i], "--") == 0) {
            only_arguments = true;
            continue;
        }
        const struct rv__option *o = find(options, argv[i], &value);
        if (o == NULL)
            return unknown(command, argv[i], options);
        if (o->flag != NULL) {
            if (value != NULL)
                return -rv__cli_usage(command, "%s takes no value", o->name);
            *o->flag = true;
            continue;
        }
        if (value == NULL && i + 1 < argc)
            value = argv[++i];
        if (value == NULL)
            return -rv__cli_usage(command, "%s needs a value", o->name);
        if (o->text != NULL)
            *o->text = value;
        else if (!add_words(o->words, value))
            return -rv__cli_usage(command, "%s: too many names", o->name);
    }
    return count;
}

int rv__options_args(const char *command, int argc, char **argv, const struct rv__option *options,
                     int least, int most, const char *what)
{
    int count = rv__options(command, argc, argv, options);
    if (count >= 0 && count < least)
        return -rv__cli_usage(command, "%s", what);
    if (count > most)
        return -rv__cli_usage(command, "unexpected argument '%s'", argv[most]);
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
    (void)rv__cli_usage(command, "%s '%s' is not one of: %s%s%s%s", option, value, list,
                        meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    return -1;
}
