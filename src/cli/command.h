/* command.h: the description of one command of `rival`, in the command's own file.
 *
 * Everything is made from it: its row in `rival --help`, its page, the reading of its arguments and their errors,
 * its part of the man page, and shell completion; so these cannot differ. `rv__commands` lists all commands: a new
 * one is a line there and a file.
 *
 * Arguments: options and arguments may be mixed; `--name VALUE` and `--name=VALUE` are the same; "--" ends the
 * options; "-" is an argument. */
#ifndef RV_CLI_COMMAND_H
#define RV_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What shells complete at a place. */
enum rv__completes {
    COMPLETES_NOTHING,
    COMPLETES_FILE,
    COMPLETES_FOLDER,
    COMPLETES_INPUT,        /* JSON, or @FILE */
    COMPLETES_RUN,          /* ids of runs in the store */
    COMPLETES_LIVE_RUN,     /* of runs that have not ended */
    COMPLETES_WORKFLOW,     /* names in the files of --from, or of this folder */
    COMPLETES_RUN_WORKFLOW, /* workflow names of runs in the store */
    COMPLETES_STEP,         /* aliases in the run named before */
};

/* An option that may be repeated, each time with one or more names between commas. */
enum { RV__WORDS_MAX = 256 }; /* more than anybody types */
struct rv__words {
    const char *at[RV__WORDS_MAX + 1]; /* ends in NULL */
    size_t count;
};

/* The type of an option's value; it follows from the member it is stored in. */
enum rv__option_kind {
    RV__OPTION_FLAG,   /* bool */
    RV__OPTION_TEXT,   /* const char *: points into argv */
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

/* Where an option's value is stored: a member of the struct that the command passes to rv__options(). */
#define RV__INTO(type, member) \
    .kind = _Generic(((type *)NULL)->member,         \
                     bool: RV__OPTION_FLAG,          \
                     const char *: RV__OPTION_TEXT,  \
                     int: RV__OPTION_CHOICE,         \
                     struct rv__words: RV__OPTION_WORDS), \
    .at = offsetof(type, member)

/* An argument besides the options. Optional ones come last. */
struct rv__argument {
    const char *name;           /* "ID", as help shows it */
    const char *missing;        /* the question to a user who forgot it; NULL: optional */
    bool many;                  /* the last one only: any number of them */
    const char *const *choices; /* it must be one of these */
    enum rv__completes completes;
};

struct rv__example {
    const char *line;
    const char *says; /* NULL: needs no explanation */
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

/* Arrays end in a row of zeros. Paragraphs are one line each, wrapped when shown; backquotes mark what to type. */
struct rv__command {
    const char *name;
    enum rv__section section;
    const char *summary; /* one line for the list: lower case, no full stop */
    struct rv__argument arguments[RV__ARGUMENTS_MAX + 1];
    const struct rv__option *options; /* NULL: none */
    const char *paragraphs[RV__PARAGRAPHS_MAX + 1];
    struct rv__example examples[RV__EXAMPLES_MAX + 1];
    struct rv__exit exits[RV__EXITS_MAX + 1]; /* besides those of all commands */
    int (*run)(int argc, char **argv);        /* argv[0] is the command's name */
};

extern const struct rv__command *const rv__commands[]; /* by section, then name; ends in NULL */
const struct rv__command *rv__command_find(const char *name); /* NULL: there is none */

/* Parse argv[1..] into the options' struct `values`, which holds the defaults. Returns the number of remaining
 * arguments, which are then argv[0..]; or -CLI_USAGE, with the reason on stderr. */
int rv__options(const struct rv__command *command, int argc, char **argv, void *values);

/* The option that the argument names; *value: the text after its "=", or NULL. NULL: no such option. */
const struct rv__option *rv__option_find(const struct rv__command *command, const char *argument,
                                         const char **value);

/* The argument at this position; NULL: too many. */
const struct rv__argument *rv__argument_at(const struct rv__command *command, int index);

/* The index of `value` in the words (the list ends in NULL). -1: not found, reported on stderr with the list.
 * `option` NULL: it is an argument. */
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
/* Print text from column `at` (the cursor's) on, wrapped between words to the width of the terminal, with later
 * lines indented by `indent`. */
void rv__print_wrapped(FILE *to, const char *text, int at, int indent);

#endif
