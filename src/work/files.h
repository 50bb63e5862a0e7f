/* files.h: workflow files, as engine/register.c takes them. */
#ifndef RV_WORK_FILES_H
#define RV_WORK_FILES_H

#include <sys/types.h>

#include <rival/rival.h>

#include "base/str.h"

struct rv__definitions;
struct rv__draft;
struct rv__hosts;
struct rv__services;

struct rv__c_files;

/* The definitions as the public sees them; takes them over, and *all is NULL then. `files`: those of them
 * that were not loaded are told as such; NULL: none. Errors: RV_ENOMEM. */
int rv__report_new(struct rv__definitions **all, const struct rv__c_files *files, rv_report **ret,
                   rv_error *err);

/* C files (.c, .so) and scripts (TypeScript, JavaScript): each looked at once. A script may have several workflows, each an item
 * of its own. */
struct rv__c_file {
    char *path;
    char *real;   /* of a script: absolute, as its host calls it; NULL: a C file */
    dev_t device; /* by which it is known again, however it is named */
    ino_t inode;
    rv_workflow *workflow;      /* NULL: it was not loaded, or could not be */
    struct rv__draft *stand_in; /* has its name, and nothing else: where it was not to be loaded */
    bool done;                  /* registered, or nothing that could be */
    bool taken;                 /* another file has the name of its workflow: that was freed */
    rv_error why;               /* code 0: nothing is wrong with it */
    struct rv__buf said;        /* what the compiler printed */
};

struct rv__c_files {
    struct rv__services *services; /* whose hosts look into them; NULL: hosts of our own */
    int depth;                     /* enum rv_c_files: how far they are looked into */
    const rv_file_opts *opts;      /* NULL: defaults */
    struct rv__hosts *hosts;
    struct rv__c_file **items;
    size_t count, cap;
    char **texts; /* files in YAML and JSON that they nest */
    size_t text_count, text_cap;
    size_t script_count,
        asked_count; /* scripts among the items; of those, how many were looked into */
    struct rv__script_host *script_host; /* of an engine: which has them; its own to keep */
    void *registry;                      /* for whom that is: opaque here */
};

/* Everything that a script host said of its files becomes items; or the scripts are only named, as depth says. What cannot be
 * had is there with its reason. `root`: the path that was given. Errors: RV_ENOMEM. */
int rv__c_files_load_scripts(struct rv__c_files *files, const char *root, rv_error *err);
/* What both need (cfiles.c). */
int rv__c_files_add(struct rv__c_files *files, const char *path, struct rv__c_file **ret,
                    rv_error *err);
int rv__c_file_nested(struct rv__c_files *files, struct rv__c_file *file);
int rv__c_file_directory(struct rv__c_file *file);
int rv__c_file_stand_in(struct rv__c_file *file, rv_error *err);

/* Look into those that were found among the others. `named`: those are meant; of the rest only what has an
 * RV_WORKFLOW or RV_FUNCTIONS in it. What cannot be had is there with its reason. Errors: RV_ENOMEM. */
int rv__c_files_load(struct rv__c_files *files, const struct rv__definitions *found,
                     const char *const *named, size_t count, rv_error *err);
/* One of them, looked into if it was not yet, with the C files that it nests. Errors: RV_ENOMEM. */
int rv__c_files_take(struct rv__c_files *files, const char *path, struct rv__c_file **ret,
                     rv_error *err);
/* As rv__resolver has them: among those that were looked into; a file is looked into, too. */
int rv__c_files_find(const struct rv__c_files *files, struct rv__str name,
                     const struct rv__draft **ret);
int rv__c_files_find_file(struct rv__c_files *files, const char *path,
                          const struct rv__draft **ret);
/* Refuse each file whose workflow has the name of another file's: one of `texts`, or an earlier one of `files`. */
void rv__c_files_refuse_taken(struct rv__c_files *files, const struct rv__definitions *texts);
/* What is wrong with those that are not done. Errors: RV_ENOMEM. */
int rv__c_files_complain(const struct rv__c_files *files, struct rv__definitions *to);
void rv__c_files_done(struct rv__c_files *files);

/* The paths and what C files nest besides, in an array to be freed; NULL: no memory. */
const char **rv__c_files_paths(const struct rv__c_files *files, const char *const *paths,
                               size_t count);

#endif
