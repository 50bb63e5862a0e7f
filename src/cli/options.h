/* options.h: how every command reads its arguments, so that all of them read alike.
 *
 * Options and arguments may be mixed; `--name VALUE` and `--name=VALUE` are the same; "--" ends the
 * options; "-" is an argument. What is wrong is said on stderr, with the option that was meant. */
#ifndef RV_CLI_OPTIONS_H
#define RV_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* An option that may be given again and again, each with one or more names between commas. */
enum { RV__WORDS_MAX = 256 }; /* more names than anybody types */
struct rv__words {
    const char *at[RV__WORDS_MAX + 1]; /* ends in NULL */
    size_t count;
};

/* One of `flag`, `text` and `words` says where it goes. */
struct rv__option {
    const char *name;   /* "--json" */
    const char *letter; /* "-f"; NULL = none */
    bool *flag;
    const char **text;
    struct rv__words *words; /* splits the argument's text in place */
};

/* Read argv[1..]. Returns how many arguments are left, which then are argv[0..]; or -CLI_USAGE, with the
 * reason on stderr. `options` ends in a row without a name. */
int rv__options(const char *command, int argc, char **argv, const struct rv__option *options);

/* As rv__options(), for a command that wants at least `least` arguments and at most `most`; `what` says
 * which, for who forgot them. */
int rv__options_args(const char *command, int argc, char **argv, const struct rv__option *options,
                     int least, int most, const char *what);

/* Which of the words (the list ends in NULL) it is. -1: none, and that is said on stderr with the list. */
int rv__option_choice(const char *command, const char *option, const char *value,
                      const char *const *words);

#endif
