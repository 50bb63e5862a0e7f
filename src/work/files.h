/* files.h: workflow files, as engine/register.c takes them. */
#ifndef RV_WORK_FILES_H
#define RV_WORK_FILES_H

#include <rival/rival.h>

#include "base/str.h"

struct rv__definitions;
struct rv__hosts;
struct rv__workshop;

/* The definitions as the public sees them; takes them over, and *all is NULL then. Errors: RV_ENOMEM. */
int rv__report_new(struct rv__definitions **all, rv_report **ret, rv_error *err);

/* C files (.c, .so): each compiled once, and looked at once. */
struct rv__c_file {
    char *path;
    rv_workflow *workflow; /* NULL: it could not be loaded, */
    bool done;             /* registered, or nothing that could be */
    bool beside, asked;    /* nobody named it; it was asked for */
    rv_error why;          /* and this is why; or why it was not registered */
    struct rv__buf said;   /* what the compiler printed */
};

struct rv__c_files {
    struct rv__workshop *shop; /* whose hosts look into them; NULL: hosts of our own */
    struct rv__hosts *hosts;   /* those */
    struct rv__c_file *items;
    size_t count, cap;
};

/* Look into those that were found among the others. `named`: those are meant; of the rest only what has an
 * RV_WORKFLOW in it. What cannot be loaded is there with its reason. Errors: RV_ENOMEM. */
int rv__c_files_load(struct rv__c_files *files, const struct rv__definitions *found,
                     const char *const *named, size_t count, const rv_file_opts *opts,
                     rv_error *err);
/* The same with those that lie beside a file; beside a folder there is nothing. */
int rv__c_files_beside(struct rv__c_files *files, const char *path, rv_error *err);
/* What is wrong with those that are not done. Errors: RV_ENOMEM. */
int rv__c_files_complain(const struct rv__c_files *files, struct rv__definitions *to);
void rv__c_files_done(struct rv__c_files *files);

#endif
