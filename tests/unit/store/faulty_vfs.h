/* faulty_vfs.h: a disk under SQLite that fails when told to, and forgets what was not synced.
 *
 * A VFS over the system's. Nothing is really synced (tests would wait for the disk for minutes):
 * a sync only marks what a loss of power would leave. */
#ifndef RV_TESTS_UNIT_STORE_FAULTY_VFS_H
#define RV_TESTS_UNIT_STORE_FAULTY_VFS_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/random.h"

enum faulty_kind { /* bits: which calls count, and may fail */
                   FAULTY_READ = 1,
                   FAULTY_WRITE = 2,
                   FAULTY_SYNC = 4,
                   FAULTY_TRUNCATE = 8,
                   FAULTY_OPEN = 16, /* of a file that may be made */
};

struct faulty_file;

struct faulty_vfs {
    sqlite3_vfs vfs; /* first; its name is for struct rv__store_opts */
    sqlite3_vfs *real;
    unsigned kinds;
    long countdown;   /* the call at 0 fails; negative: none does */
    int rc;           /* what it answers, SQLITE_FULL or so */
    bool short_write; /* a failing write leaves its first half */
    bool stays;       /* and all later ones fail too, until it is healed */
    bool dies;        /* the call at 0 is the process's last: all later ones fail */
    bool dead;
    long hits;  /* calls that failed */
    bool power; /* remember what was synced, so that faulty_power_loss() can forget the rest */
    struct faulty_file *files;
};

void faulty_init(struct faulty_vfs *faulty, const char *name); /* and registers it */
void faulty_done(struct faulty_vfs *faulty);                   /* no file of it may be open */

/* From now on: the n-th call of these kinds, counted from 0, fails with `rc`. */
void faulty_fail(struct faulty_vfs *faulty, unsigned kinds, long n, int rc);
void faulty_heal(struct faulty_vfs *faulty);

/* Every file loses a random part of what was written since its last sync: a write is kept, lost, or
 * torn between two sectors, each for itself. No file may be open. The process is alive again. */
void faulty_power_loss(struct faulty_vfs *faulty, struct rv__random *random);

#endif
