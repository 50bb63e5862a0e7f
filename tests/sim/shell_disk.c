/* shell_disk.c: the disk under an engine: the store in memory, or SQLite on files that fail, tear and
 * lose what was not synced. It outlives the engines that use it. */
#include "shell.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "unit/store/faulty_vfs.h"

#define VFS "rival-shell"

struct shell_disk {
    struct rv__kit_disk kit; /* first */
    struct shell *shell;
    enum rv__kit_death death; /* of the simulated store's next commit */
    /* SQLite: */
    bool sqlite;
    char folder[64], path[96];
    struct faulty_vfs faulty;
    struct rv__store *store;
    int64_t failures_left; /* then the disk has healed */
    /* a member's: */
    struct rv__sim_member *member;
    int place;
    bool dies_next;
};

/* ------------------------------------------------------------------------------- in memory --- */

/* What the store will not take, however often it is asked. A run that begins has no record yet, and of one that
 * was refused not even the end is taken: those are tests/unit/engine/test_trouble.c's. */
static bool says(const struct rv__store_write *write, const char *fact)
{
    return write->facts.len > 0 &&
           memmem(write->facts.at, write->facts.len, fact, strlen(fact)) != NULL;
}

static bool refuses(void *arg, const struct rv__store_write *write)
{
    struct shell_disk *disk = arg;
    struct world *world = &disk->shell->world;
    char id[RV_RUN_ID_SIZE];
    snprintf(id, sizeof id, "%.*s", RV__ARG(write->run));
    struct run *run = shell_find(disk->shell, id);
    const struct rv__run *r = rv__run_find(disk->shell->engine, id);
    bool suspends = says(write, "run.suspended") || says(write, "detached.cancelled") ||
                    (r != NULL && r->suspending); /* of one that was suspended before, too */
    if (write->row != NULL || write->facts.len == 0 || run == NULL || suspends ||
        !strikes(&world->faults, &world->chance, FAULT_REFUSED))
        return false;
    tell(disk->shell, "what %s wants to write is refused", id);
    run->untimely = true;
    disk->shell->refused++;
    return true;
}

static int memory_open(struct rv__kit_disk *self, struct rv__store **ret, rv_error *err)
{
    struct shell_disk *disk = (struct shell_disk *)self;
    (void)err;
    rv__sim_store_restart(&disk->shell->world.store);
    disk->shell->world.store.refuses = refuses;
    disk->shell->world.store.refuses_arg = disk;
    *ret = &disk->shell->world.store.store;
    return RV_OK;
}

static void memory_before(struct rv__kit_disk *self)
{
    struct shell_disk *disk = (struct shell_disk *)self;
    struct world *world = &disk->shell->world;
    shell_before(disk->shell);
    disk->death = KIT_LIVES;
    if (disk->shell->killed) {
        disk->death = KIT_DIED_BEFORE;
        disk->shell->killed = false;
    } else if (strikes(&world->faults, &world->chance, FAULT_STORE)) {
        tell(disk->shell, "the commit fails, and is repeated");
        world->store.fate = SIM_STORE_FAILS;
    } else if (strikes(&world->faults, &world->chance, FAULT_CRASH_COMMIT)) {
        disk->death = one_in(&world->chance, 2) ? KIT_DIED_BEFORE : KIT_DIED_AFTER;
    }
    if (disk->death == KIT_LIVES)
        return;
    tell(disk->shell, "---- the process dies %s it",
         disk->death == KIT_DIED_AFTER ? "in a commit, after" : "in a commit, before");
    world->store.fate = disk->death == KIT_DIED_AFTER ? SIM_STORE_DIES_AFTER
                                                      : SIM_STORE_DIES_BEFORE;
}

static enum rv__kit_death memory_failed(struct rv__kit_disk *self)
{
    struct shell_disk *disk = (struct shell_disk *)self;
    return disk->shell->world.store.dead ? disk->death : KIT_LIVES;
}

/* --------------------------------------------------------------------------------- members --- */

static int member_open(struct rv__kit_disk *self, struct rv__store **ret, rv_error *err)
{
    struct shell_disk *disk = (struct shell_disk *)self;
    struct rv__sim_store *sim = &disk->shell->world.store;
    if (disk->member != NULL) {
        if (rv__sim_member_lives(sim, disk->member->slot))
            rv__sim_member_dies(disk->member);
        rv__store_close(&disk->member->store);
        disk->member = NULL;
    }
    sim->refuses = refuses;
    sim->refuses_arg = disk;
    int rc = rv__sim_member_new(sim, self->lease_ms, disk->place, &disk->member, err);
    if (rc == RV_OK)
        *ret = &disk->member->store;
    return rc;
}

static void member_before(struct rv__kit_disk *self)
{
    struct shell_disk *disk = (struct shell_disk *)self;
    struct world *world = &disk->shell->world;
    struct rv__sim_member *member = disk->member;
    world->store.refuses_arg = disk;
    shell_before(disk->shell);
    if (member->fate != SIM_STORE_WORKS || disk->shell->engine == NULL)
        return; /* that of the last job, which was no commit; or it is being opened */
    disk->death = KIT_LIVES;
    if (disk->dies_next)
        disk->death = KIT_DIED_BEFORE;
    else if (strikes(&world->faults, &world->chance, FAULT_STORE))
        member->fate = SIM_STORE_FAILS;
    else if (strikes(&world->faults, &world->chance, FAULT_CRASH_COMMIT))
        disk->death = one_in(&world->chance, 2) ? KIT_DIED_BEFORE : KIT_DIED_AFTER;
    else if (crowd_loses_answer(disk->shell))
        member->fate = SIM_STORE_UNHEARD;
    disk->dies_next = false;
    if (disk->death != KIT_LIVES)
        member->fate = disk->death == KIT_DIED_AFTER ? SIM_STORE_DIES_AFTER : SIM_STORE_DIES_BEFORE;
    if (member->fate != SIM_STORE_WORKS)
        tell(disk->shell, "member %lld: the next commit %s", (long long)member->slot,
             member->fate == SIM_STORE_UNHEARD      ? "is not heard of"
             : member->fate == SIM_STORE_FAILS      ? "fails"
             : member->fate == SIM_STORE_DIES_AFTER ? "is its process's last"
                                                    : "is not made: its process dies");
}

static enum rv__kit_death member_failed(struct rv__kit_disk *self)
{
    const struct shell_disk *disk = (const struct shell_disk *)self;
    return disk->member->dead ? disk->death : KIT_LIVES;
}

struct shell_disk *disk_of_member(struct shell *shell, int64_t lease_ms, int place)
{
    struct shell_disk *disk = disk_new(shell, false);
    disk->place = place;
    disk->kit = (struct rv__kit_disk){ member_open, member_before, member_failed, lease_ms };
    return disk;
}

void disk_move(struct shell_disk *disk, int place)
{
    disk->place = place;
}

bool disk_unheard(const struct shell_disk *disk)
{
    return disk->member != NULL && disk->member->unheard != NULL;
}

void disk_kill(struct shell_disk *disk)
{
    rv__sim_member_dies(disk->member);
}

void disk_dies_next(struct shell_disk *disk)
{
    disk->dies_next = true;
}

/* ---------------------------------------------------------------------------------- SQLite --- */

static int file_open(struct rv__kit_disk *self, struct rv__store **ret, rv_error *err)
{
    struct shell_disk *disk = (struct shell_disk *)self;
    struct world *world = &disk->shell->world;
    struct rv__store_opts opts = { .path = disk->path, .vfs = VFS, .busy_timeout_ms = 10 };
    if (disk->store != NULL) {
        disk->faulty.dead = true; /* a dead process does not tidy up */
        rv__store_close(disk->store);
        disk->store = NULL;
        bool power = one_in(&world->chance, 2);
        tell(disk->shell, "the file system %s", power ? "lost power" : "is as it was left");
        if (power)
            faulty_power_loss(&disk->faulty, &world->chance.random);
    }
    faulty_heal(&disk->faulty);
    disk->faulty.dies = disk->faulty.stays = false;
    int rc = rv__store_open(&opts, &disk->store, err);
    if (rc < 0) {
        fprintf(stderr, "the store cannot be opened again: %s\n", err->message);
        abort(); /* nothing can be judged from here on */
    }
    *ret = disk->store;
    return RV_OK;
}

static void file_before(struct rv__kit_disk *self)
{
    enum { CHANGES = FAULTY_WRITE | FAULTY_SYNC | FAULTY_TRUNCATE };
    struct shell_disk *disk = (struct shell_disk *)self;
    struct world *world = &disk->shell->world;
    struct chance *c = &world->chance;
    shell_before(disk->shell);
    if (disk->shell->killed || strikes(&world->faults, c, FAULT_CRASH_COMMIT)) {
        disk->shell->killed = false;
        disk->faulty.dies = true;
        disk->faulty.short_write = one_in(c, 2);
        faulty_fail(&disk->faulty, CHANGES, (long)skewed(c, 0, 12), SQLITE_IOERR);
        tell(disk->shell, "---- the process will die after %ld writes", disk->faulty.countdown);
    } else if (!disk->faulty.dies && strikes(&world->faults, c, FAULT_STORE)) {
        disk->failures_left = between(c, 1, 3);
        disk->faulty.stays = true;
        disk->faulty.short_write = one_in(c, 2);
        faulty_fail(&disk->faulty, one_in(c, 3) ? FAULTY_SYNC : CHANGES, (long)skewed(c, 0, 8),
                    one_in(c, 2) ? SQLITE_FULL : SQLITE_IOERR);
        tell(disk->shell, "the disk will fail after %ld writes", disk->faulty.countdown);
    }
}

static enum rv__kit_death file_failed(struct rv__kit_disk *self)
{
    struct shell_disk *disk = (struct shell_disk *)self;
    if (disk->faulty.dead) {
        tell(disk->shell, "---- the process dies in a commit");
        return KIT_DIED_BEFORE;
    }
    tell(disk->shell, "a commit fails");
    if (--disk->failures_left <= 0) {
        faulty_heal(&disk->faulty);
        disk->faulty.stays = false;
    }
    return KIT_LIVES;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

/* ------------------------------------------------------------------------------------ both --- */

struct shell_disk *disk_new(struct shell *shell, bool sqlite)
{
    struct shell_disk *disk = sim_alloc(sizeof *disk);
    disk->shell = shell;
    disk->sqlite = sqlite;
    disk->kit = (struct rv__kit_disk){ memory_open, memory_before, memory_failed, 0 };
    if (!sqlite)
        return disk;
    disk->kit = (struct rv__kit_disk){ file_open, file_before, file_failed, 0 };
    snprintf(disk->folder, sizeof disk->folder, "/tmp/rival-sim-XXXXXX");
    if (mkdtemp(disk->folder) == NULL)
        abort();
    snprintf(disk->path, sizeof disk->path, "%s/a.db", disk->folder);
    faulty_init(&disk->faulty, VFS);
    disk->faulty.power = true;
    return disk;
}

void disk_free(struct shell_disk *disk)
{
    if (disk->sqlite) {
        faulty_heal(&disk->faulty);
        rv__store_close(disk->store);
        faulty_done(&disk->faulty);
        (void)nftw(disk->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
    if (disk->member != NULL)
        rv__store_close(&disk->member->store);
    free(disk);
}

struct rv__kit_disk *disk_kit(struct shell_disk *disk)
{
    return &disk->kit;
}
