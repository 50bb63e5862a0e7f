/* command.h: what a command of `rival` is: one description, in the command's own file.
 *
 * From it come its row in `rival --help`, its page, the reading of its arguments and what is said when
 * they are wrong, its part of the man page, and what the shells complete: none of them can differ from
 * another. `rv__commands` lists them all; a new one is a line there and a file.
 *
 * How arguments are read: options and arguments may be mixed; `--name VALUE` and `--name=VALUE` are the
 * same; "--" ends the options; "-" is an argument. */
#ifndef RV_CLI_COMMAND_H
#define RV_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What a shell may offer in a place. */
enum rv__completes {
    COMPLETES_NOTHING,
    COMPLETES_FILE,
    COMPLETES_FOLDER,
    COMPLETES_INPUT,        /* JSON, or @FILE */
    COMPLETES_RUN,          /* ids of the store */
    COMPLETES_LIVE_RUN,     /* of those that have not ended */
    COMPLETES_WORKFLOW,     /* names in the files of --from, or of this folder */
    COMPLETES_RUN_WORKFLOW, /* names that runs of the store have */
    COMPLETES_STEP,         /* aliases of the run that was named before */
};

/* An option that may be given again and again, each with one or more names between commas. */
enum { RV__WORDS_MAX = 256 }; /* more names than anybody types */
struct rv__words {
    const char *at[RV__WORDS_MAX + 1]; /* ends in NULL */
    size_t count;
};

/* What kind of value an option has; it follows from where it goes. */
enum rv__option_kind {
    RV__OPTION_FLAG,   /* bool */
    RV__OPTION_TEXT,   /* const char *: argv's own */
    RV__OPTION_CHOICE, /* int: the index among `choices` */
    RV__OPTION_WORDS,  /* struct rv__words; splits the argument's text in place */
};

struct rv__option {
    const char *name;     /* "--json" */
    const char *argument; /* "FILE", as help shows it; NULL: a flag */
    const char *meaning;  /* a phrase, with the default in brackets */
    const char *letter;   /* "-f"; NULL = none */
    const char *const *choices;
    enum rv__completes completes;
    enum rv__option_kind kind;
    size_t at;
};

/* Where an option's value goes: a member of the struct that the command gives to rv__options(). */
#define RV__INTO(type, member) \
    .kind = _Generic(((type *)NULL)->member,         \
                     bool: RV__OPTION_FLAG,          \
                     const char *: RV__OPTION_TEXT,  \
                     int: RV__OPTION_CHOICE,         \
                     struct rv__words: RV__OPTION_WORDS), \
    .at = offsetof(type, member)

/* What a command takes besides options. Those that may be left out come last. */
struct rv__argument {
    const char *name;           /* "ID", as help shows it */
    const char *missing;        /* what to ask who forgot it; NULL: it may be left out */
    bool many;                  /* the last one: any number of them */
    const char *const *choices; /* it has to be one of these */
    enum rv__completes completes;
};

struct rv__example {
    const char *line;
    const char *says; /* NULL: it speaks for itself */
};

struct rv__exit {
    int code;
    const char *meaning;
};

/* Sections of the list of commands, in its order. */
enum rv__section {
    SECTION_DO,
    SECTION_LOOK,
    SECTION_TELL,
    SECTION_FILES,
    SECTION_STORE,
    SECTION_PROGRAM,
    SECTION_HIDDEN, /* not for people */
};

enum {
    RV__ARGUMENTS_MAX = 4,
    RV__PARAGRAPHS_MAX = 8,
    RV__EXAMPLES_MAX = 8,
    RV__EXITS_MAX = 8,
    RV__OPTIONS_MAX = 32,
};

/* Arrays end in a row of zeros. Paragraphs are one line each, wrapped where they are shown; what is in
 * backquotes is for typing. */
struct rv__command {
    const char *name;
    enum rv__section section;
    const char *summary; /* one line for the list: a small letter, no stop */
    struct rv__argument arguments[RV__ARGUMENTS_MAX + 1];
    const struct rv__option *options; /* NULL: none */
    const char *paragraphs[RV__PARAGRAPHS_MAX + 1];
    struct rv__example examples[RV__EXAMPLES_MAX + 1];
    struct rv__exit exits[RV__EXITS_MAX + 1]; /* beyond those of all commands */
    int (*run)(int argc, char **argv);        /* argv[0] is the command's name */
};

extern const struct rv__command *const rv__commands[]; /* by section, then name; ends in NULL */
const struct rv__command *rv__command_find(const char *name); /* NULL: there is none */

/* Read argv[1..] as the command says, into its options' struct `values`, which has the defaults. Returns
 * how many arguments are left, which then are argv[0..]; or -CLI_USAGE, with the reason on stderr. */
int rv__options(const struct rv__command *command, int argc, char **argv, void *values);

/* The option that the argument names; *value: what follows its "=", or NULL. NULL: there is none. */
const struct rv__option *rv__option_find(const struct rv__command *command, const char *argument,
                                         const char **value);

/* The argument in that place; NULL: there is no place for one more. */
const struct rv__argument *rv__argument_at(const struct rv__command *command, int index);

/* Which of the words (the list ends in NULL) it is. -1: none, and that is said on stderr with the list. */
int rv__option_choice(const char *command, const char *option, const char *value,
                      const char *const *words);

/* help.c: `rival --help`, and the page of a command. */
void rv__help_overview(FILE *to);
void rv__help_command(FILE *to, const struct rv__command *command);
/* "rival exec FILE [OPTIONS]" */
struct rv__buf;
void rv__help_usage(struct rv__buf *out, const struct rv__command *command);
/* "-f, --follow", "--step ALIAS" */
void rv__help_option(struct rv__buf *out, const struct rv__option *option);
/* Headings of the sections; NULL for the hidden one. */
const char *rv__help_section(enum rv__section section);

#endif
