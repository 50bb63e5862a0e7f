/* files.h: workflow files, as engine/register.c uses them. */
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

/* Make a public report of the definitions. On success it owns them, and *all is NULL. `files`: those that were not
 * loaded are marked in the report; may be NULL. Errors: RV_ENOMEM. */
int rv__report_new(struct rv__definitions **all, const struct rv__c_files *files, rv_report **ret,
                   rv_error *err);
/* The place where the report keeps the process that has described the files with this fingerprint. NULL: there is
 * none. `report` may be NULL. */
struct rv__script_kept **rv__report_kept(rv_report *report, uint64_t print);

/* C files (.c, .so) and scripts (TypeScript, JavaScript). Each file is read once. A script may have several
 * workflows; each is an item. */
struct rv__c_file {
    char *path;
    char *real;   /* of a script: the absolute path, as its host writes it; NULL: a C file */
    dev_t device; /* with the inode: identifies the file, whatever path leads to it */
    ino_t inode;
    rv_workflow *workflow; /* NULL: it was not loaded, or could not be */
    struct rv__draft
        *stand_in; /* a placeholder with its name, for a file that is not to be loaded */
    bool done;     /* registered, or there was nothing to register */
    bool taken;    /* the name of its workflow belongs to another file: the workflow was freed */
    rv_error why;  /* code 0: no error */
    struct rv__buf said; /* what the compiler printed */
};

struct rv__c_files {
    struct rv__services *services; /* their hosts load the files; NULL: own hosts are started */
    int depth;                /* enum rv_c_files: compile or load them, or only read their names */
    const rv_file_opts *opts; /* NULL: defaults */
    struct rv__hosts *hosts;
    struct rv__c_file **items;
    size_t count, cap;
    char **texts; /* files in YAML and JSON that they nest */
    size_t text_count, text_cap;
    size_t script_count,
        asked_count; /* scripts among the items; and those of them that were loaded */
    struct rv__script_host *script_host; /* of an engine: the host that has them; not owned */
    void *registry;                      /* the registry of that host; opaque here */
    bool keep;                           /* keep the process that describes scripts, */
    struct rv__script_kept *kept;        /* here; NULL: there is none */
    uint64_t kept_print;                 /* fingerprint of the files that it has described */
};

/* Make items of everything that a script host reports about its files; or only name the scripts, as `depth` says. If
 * a script cannot be loaded, its item has the reason. `root`: the path that was given. Errors: RV_ENOMEM. */
int rv__c_files_load_scripts(struct rv__c_files *files, const char *root, rv_error *err);
/* Used by cfiles.c and scripts.c; defined in cfiles.c. */
int rv__c_files_add(struct rv__c_files *files, const char *path, struct rv__c_file **ret,
                    rv_error *err);
int rv__c_file_nested(struct rv__c_files *files, struct rv__c_file *file);
int rv__c_file_directory(struct rv__c_file *file);
int rv__c_file_stand_in(struct rv__c_file *file, rv_error *err);

/* Load those of the `found` files that are C files or scripts: the files that are `named`, and those that contain
 * RV_WORKFLOW or RV_FUNCTIONS. If a file cannot be loaded, its item has the reason. Errors: RV_ENOMEM. */
int rv__c_files_load(struct rv__c_files *files, const struct rv__definitions *found,
                     const char *const *named, size_t count, rv_error *err);
/* Get one of them. If it is not loaded yet, it is loaded now, with the C files that it nests. Errors: RV_ENOMEM. */
int rv__c_files_take(struct rv__c_files *files, const char *path, struct rv__c_file **ret,
                     rv_error *err);
/* Find a workflow, as struct rv__resolver says: by name among the loaded ones, or by file, which is loaded if
 * necessary. */
int rv__c_files_find(const struct rv__c_files *files, struct rv__str name,
                     const struct rv__draft **ret);
int rv__c_files_find_file(struct rv__c_files *files, const char *path,
                          const struct rv__draft **ret);
/* Refuse each file whose workflow has the name of another file's: one of `texts`, or an earlier one of `files`. */
void rv__c_files_refuse_taken(struct rv__c_files *files, const struct rv__definitions *texts);
/* Add to `to` what is wrong with the files that are not done. Errors: RV_ENOMEM. */
int rv__c_files_complain(const struct rv__c_files *files, struct rv__definitions *to);
void rv__c_files_done(struct rv__c_files *files);

/* The given paths and the files that C files nest, in an array to be freed. NULL: no memory. */
const char **rv__c_files_paths(const struct rv__c_files *files, const char *const *paths,
                               size_t count);

#endif
