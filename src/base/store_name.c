/* store_name.c: reads the name of a store: a file, or the address of a PostgreSQL database. */
#include "base/store_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

enum { NAME_DIGITS = 24 }; /* of a hash: enough for the databases of a user */

/* What follows "postgres://" or "postgresql://"; NULL: the name is no address. */
static const char *after_scheme(const char *name)
{
    static const char *const schemes[] = { "postgres://", "postgresql://" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(name, schemes[i], strlen(schemes[i])) == 0)
            return name + strlen(schemes[i]);
    return NULL;
}

bool rv__store_name_is_address(const char *name)
{
    return after_scheme(name) != NULL;
}

bool rv__store_name_in_memory(const char *name)
{
    return name != NULL && strcmp(name, ":memory:") == 0;
}

/* What follows "user:password@", if that is there. The last '@' before the parameters counts: libpq refuses a
 * password with an unescaped '/', but even that one must not be shown. */
static const char *after_user(const char *address)
{
    const char *end = address;
    for (const char *c = address; *c != '\0' && *c != '?'; c++)
        if (*c == '@')
            end = c + 1;
    return end;
}

/* One parameter after '?' or '&', without its value if that is secret. */
static void show_parameter(const char *from, size_t len, struct rv__buf *out)
{
    static const char *const hidden[] = { "password=", "sslpassword=" };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        size_t name = strlen(hidden[i]);
        if (len >= name && strncmp(from, hidden[i], name) == 0) {
            rv__buf_fmt(out, "%s***", hidden[i]);
            return;
        }
    }
    rv__buf_add(out, from, len);
}

/* Hosts, database and parameters. */
static void show_place(const char *host, struct rv__buf *out)
{
    size_t len = strcspn(host, "?");
    rv__buf_add(out, host, len);
    for (const char *at = host + len; *at != '\0'; at += len) {
        rv__buf_char(out, *at++);
        len = strcspn(at, "&");
        show_parameter(at, len, out);
    }
}

void rv__store_name_shown(const char *name, struct rv__buf *out)
{
    const char *address = after_scheme(name);
    if (address == NULL) {
        rv__buf_text(out, name);
        return;
    }
    const char *host = after_user(address), *colon = address;
    while (colon < host && *colon != ':')
        colon++;
    rv__buf_add(out, name, (size_t)(colon - name)); /* with its '@', if there is no password */
    if (colon < host)
        rv__buf_text(out, ":***@");
    show_place(host, out);
}

bool rv__store_name_exists(const char *name)
{
    return rv__store_name_is_address(name) || access(name, F_OK) == 0;
}

/* Make a folder that only this user can use. */
static int make_folder(struct rv__buf *out, rv_error *err)
{
    struct stat st;
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/' && access(runtime, W_OK | X_OK) == 0)
        rv__buf_fmt(out, "%s/rival", runtime);
    else
        rv__buf_fmt(out, "/tmp/rival-%ld", (long)geteuid());
    int rc = rv__buf_err(out, err);
    if (rc < 0)
        return rc;
    if ((mkdir(out->text, S_IRWXU) < 0 && errno != EEXIST) || lstat(out->text, &st) < 0)
        return rv__fail(err, RV_ESYS,
                        "the folder '%.100s' for the control socket cannot be made: %s", out->text,
                        strerrordesc_np(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return rv__fail(
            err, RV_ESYS,
            "'%.100s' must be a folder that belongs to this user and that no other user may enter",
            out->text);
    return RV_OK;
}

int rv__store_name_beside(const char *name, struct rv__buf *out, rv_error *err)
{
    char digits[RV__SHA256_HEX];
    const char *address = after_scheme(name);
    if (address == NULL) {
        char *real = realpath(name, NULL);
        if (real == NULL)
            return rv__fail(err, RV_ESTORE, "the store '%.100s': %s", name, strerrordesc_np(errno));
        rv__buf_text(out, real);
        free(real);
        return rv__buf_err(out, err);
    }
    int rc = make_folder(out, err);
    if (rc < 0)
        return rc;
    struct rv__buf
        shown; /* without the password, which another command may take from elsewhere for the same store */
    rv__buf_init(&shown, SIZE_MAX);
    show_place(after_user(address), &shown);
    rv__sha256_hex(rv__buf_view(&shown), digits);
    rc = rv__buf_err(&shown, err);
    rv__buf_done(&shown);
    rv__buf_fmt(out, "/%.*s", NAME_DIGITS, digits);
    return rc < 0 ? rc : rv__buf_err(out, err);
}
