/* faulty_vfs.c: see faulty_vfs.h.
 *
 * For each file by name it keeps the bytes as of the last sync (`image`) and the writes and
 * truncations since (`changes`). A loss of power writes back the image with a random choice of the
 * changes applied. Removing a file counts as durable at once. */
#include "unit/store/faulty_vfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECTOR = 512 };

/* The simulator, too, is built with this: no test framework here. */
static void must(bool good)
{
    if (!good)
        abort();
}

struct change { /* data == NULL: a truncation to `at` */
    struct change *next;
    sqlite3_int64 at;
    size_t len;
    char *data;
};

struct faulty_file {
    struct faulty_file *next;
    char *path;
    char *image;
    size_t size, cap;
    struct change *changes, **tail;
};

struct handle {
    sqlite3_file file; /* first */
    struct faulty_vfs *faulty;
    struct faulty_file *disk; /* NULL: not remembered */
    sqlite3_file real;        /* last: the system's is longer */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return &((struct handle *)file)->real;
}

/* ------------------------------------------------------------------------------- images --- */

static void image_size(struct faulty_file *disk, size_t size)
{
    if (size > disk->cap) {
        disk->cap = size * 2;
        disk->image = realloc(disk->image, disk->cap);
        must(disk->image != NULL);
    }
    if (size > disk->size)
        memset(disk->image + disk->size, 0, size - disk->size);
    disk->size = size;
}

static void image_apply(struct faulty_file *disk, const struct change *change, size_t len)
{
    if (change->data == NULL) {
        image_size(disk, (size_t)change->at);
    } else if (len > 0) {
        if (disk->size < (size_t)change->at + len)
            image_size(disk, (size_t)change->at + len);
        memcpy(disk->image + change->at, change->data, len);
    }
}

static void changes_drop(struct faulty_file *disk)
{
    while (disk->changes != NULL) {
        struct change *change = disk->changes;
        disk->changes = change->next;
        free(change->data);
        free(change);
    }
    disk->tail = &disk->changes;
}

static void changes_sync(struct faulty_file *disk)
{
    for (struct change *change = disk->changes; change != NULL; change = change->next)
        image_apply(disk, change, change->len);
    changes_drop(disk);
}

static void remember(struct faulty_file *disk, const void *data, size_t len, sqlite3_int64 at)
{
    if (disk == NULL)
        return;
    struct change *change = calloc(1, sizeof *change);
    must(change != NULL);
    change->at = at;
    change->len = len;
    if (data != NULL) {
        change->data = malloc(len + 1);
        must(change->data != NULL);
        memcpy(change->data, data, len);
    }
    *disk->tail = change;
    disk->tail = &change->next;
}

static struct faulty_file *disk_of(struct faulty_vfs *faulty, const char *path, sqlite3_file *real)
{
    sqlite3_int64 size = 0;
    if (!faulty->power || path == NULL)
        return NULL;
    for (struct faulty_file *disk = faulty->files; disk != NULL; disk = disk->next)
        if (strcmp(disk->path, path) == 0)
            return disk;
    struct faulty_file *disk = calloc(1, sizeof *disk);
    must(disk != NULL);
    disk->path = strdup(path);
    disk->tail = &disk->changes;
    must(real->pMethods->xFileSize(real, &size) == SQLITE_OK);
    image_size(disk, (size_t)size);
    if (size > 0)
        must(real->pMethods->xRead(real, disk->image, (int)size, 0) == SQLITE_OK);
    disk->next = faulty->files;
    faulty->files = disk;
    return disk;
}

static void disk_forget(struct faulty_vfs *faulty, const char *path)
{
    for (struct faulty_file *disk = faulty->files; disk != NULL; disk = disk->next)
        if (strcmp(disk->path, path) == 0) {
            changes_drop(disk);
            disk->size = 0;
        }
}

/* ------------------------------------------------------------------------------- failing --- */

/* SQLITE_OK, or what the call has to answer. */
static int fate(struct faulty_vfs *faulty, unsigned kind)
{
    if (faulty->dead)
        return SQLITE_IOERR;
    if (!(faulty->kinds & kind) || faulty->countdown < 0)
        return SQLITE_OK;
    if (faulty->countdown > 0) {
        faulty->countdown--;
        return SQLITE_OK;
    }
    faulty->hits++;
    faulty->dead = faulty->dies;
    if (!faulty->stays)
        faulty->countdown = -1;
    return faulty->rc;
}

/* Which file of SQLite's own it is does not matter for the extended codes of these. */
static int io_rc(int rc, int extended)
{
    return rc == SQLITE_IOERR ? extended : rc;
}

static int f_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int f_read(sqlite3_file *file, void *to, int len, sqlite3_int64 at)
{
    int rc = fate(((struct handle *)file)->faulty, FAULTY_READ);
    if (rc != SQLITE_OK)
        return io_rc(rc, SQLITE_IOERR_READ);
    return real_of(file)->pMethods->xRead(real_of(file), to, len, at);
}

static int f_write(sqlite3_file *file, const void *from, int len, sqlite3_int64 at)
{
    struct handle *h = (struct handle *)file;
    bool was_dead = h->faulty->dead;
    int rc = fate(h->faulty, FAULTY_WRITE);
    if (rc == SQLITE_OK) {
        remember(h->disk, from, (size_t)len, at);
        return h->real.pMethods->xWrite(&h->real, from, len, at);
    }
    if (h->faulty->short_write && !was_dead && len > 1) {
        remember(h->disk, from, (size_t)len / 2, at);
        (void)h->real.pMethods->xWrite(&h->real, from, len / 2, at);
    }
    return io_rc(rc, SQLITE_IOERR_WRITE);
}

static int f_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct handle *h = (struct handle *)file;
    int rc = fate(h->faulty, FAULTY_TRUNCATE);
    if (rc != SQLITE_OK)
        return io_rc(rc, SQLITE_IOERR_TRUNCATE);
    remember(h->disk, NULL, 0, size);
    return h->real.pMethods->xTruncate(&h->real, size);
}

static int f_sync(sqlite3_file *file, int flags)
{
    struct handle *h = (struct handle *)file;
    int rc = fate(h->faulty, FAULTY_SYNC);
    (void)flags;
    if (rc != SQLITE_OK)
        return io_rc(rc, SQLITE_IOERR_FSYNC);
    if (h->disk != NULL)
        changes_sync(h->disk);
    return SQLITE_OK;
}

static int f_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret);
}

static int f_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int f_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int f_reserved(sqlite3_file *file, int *ret)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret);
}

static int f_control(sqlite3_file *file, int op, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int f_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int f_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int f_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret);
}

static int f_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), at, n, flags);
}

static void f_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int f_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* no memory mapping: every read and write comes by here */
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_traits,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

static int v_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *file, int flags, int *out)
{
    struct faulty_vfs *faulty = (struct faulty_vfs *)vfs;
    struct handle *h = (struct handle *)file;
    memset(h, 0, sizeof *h);
    int rc = flags & SQLITE_OPEN_CREATE ? fate(faulty, FAULTY_OPEN) : SQLITE_OK;
    if (rc != SQLITE_OK || faulty->dead)
        return SQLITE_CANTOPEN;
    rc = faulty->real->xOpen(faulty->real, name, &h->real, flags, out);
    if (rc != SQLITE_OK)
        return rc;
    h->faulty = faulty;
    h->disk = disk_of(faulty, name, &h->real);
    h->file.pMethods = &methods;
    return SQLITE_OK;
}

static int v_delete(sqlite3_vfs *vfs, const char *name, int sync_dir)
{
    struct faulty_vfs *faulty = (struct faulty_vfs *)vfs;
    (void)sync_dir;
    if (faulty->dead)
        return SQLITE_IOERR_DELETE;
    disk_forget(faulty, name);
    return faulty->real->xDelete(faulty->real, name, 0);
}

void faulty_init(struct faulty_vfs *faulty, const char *name)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    must(real != NULL);
    *faulty = (struct faulty_vfs){ .vfs = *real, .real = real, .countdown = -1 };
    faulty->vfs.zName = name;
    faulty->vfs.szOsFile = (int)sizeof(struct handle) + real->szOsFile;
    faulty->vfs.xOpen = v_open;
    faulty->vfs.xDelete = v_delete;
    faulty->vfs.pNext = NULL;
    must(sqlite3_vfs_register(&faulty->vfs, 0) == SQLITE_OK);
}

void faulty_done(struct faulty_vfs *faulty)
{
    (void)sqlite3_vfs_unregister(&faulty->vfs);
    while (faulty->files != NULL) {
        struct faulty_file *disk = faulty->files;
        faulty->files = disk->next;
        changes_drop(disk);
        free(disk->image);
        free(disk->path);
        free(disk);
    }
}

void faulty_fail(struct faulty_vfs *faulty, unsigned kinds, long n, int rc)
{
    faulty->kinds = kinds;
    faulty->countdown = n;
    faulty->rc = rc;
    faulty->hits = 0;
}

void faulty_heal(struct faulty_vfs *faulty)
{
    faulty->countdown = -1;
    faulty->dead = false;
}

/* ---------------------------------------------------------------------------- power loss --- */

static void lose(struct faulty_file *disk, struct rv__random *random)
{
    for (struct change *change = disk->changes; change != NULL; change = change->next) {
        uint64_t dice = rv__random_below(random, 4);
        if (dice < 2) /* it had reached the disk */
            image_apply(disk, change, change->len);
        else if (dice == 2 && change->data != NULL) /* the beginning of it had */
            image_apply(disk, change,
                        (size_t)rv__random_below(random, change->len / SECTOR + 1) * SECTOR);
    }
    changes_drop(disk);
    FILE *file = access(disk->path, F_OK) == 0 ? fopen(disk->path, "wb") : NULL;
    if (file == NULL)
        return; /* removed meanwhile */
    must(disk->size == 0 || fwrite(disk->image, 1, disk->size, file) == disk->size);
    must(fclose(file) == 0);
}

void faulty_power_loss(struct faulty_vfs *faulty, struct rv__random *random)
{
    for (struct faulty_file *disk = faulty->files; disk != NULL; disk = disk->next)
        lose(disk, random);
    faulty_heal(faulty);
}
