/* store_name.c: what the name of a store says. */
#include "base/store_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

enum { NAME_DIGITS = 24 }; /* of a hash: enough for the databases of a user */

/* Where the address proper begins, behind "postgres://"; NULL: it is none. */
static const char *behind_scheme(const char *name)
{
    static const char *const schemes[] = { "postgres://", "postgresql://" };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(name, schemes[i], strlen(schemes[i])) == 0)
            return name + strlen(schemes[i]);
    return NULL;
}

bool rv__store_name_is_address(const char *name)
{
    return behind_scheme(name) != NULL;
}

/* Where "user:password@" ends: behind its '@', or where it would begin. A password with an unescaped '/' is not
 * one for libpq, and is none to be shown either: so the last '@' before the parameters counts. */
static const char *behind_user(const char *address)
{
    const char *end = address;
    for (const char *c = address; *c != '\0' && *c != '?'; c++)
        if (*c == '@')
            end = c + 1;
    return end;
}

/* One parameter behind '?' or '&', up to the next. */
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
    const char *address = behind_scheme(name);
    if (address == NULL) {
        rv__buf_text(out, name);
        return;
    }
    const char *host = behind_user(address), *colon = address;
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

/* A folder of this user's own, for what others are not to touch. */
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
    const char *address = behind_scheme(name);
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
        shown; /* without the password: a command that takes it from elsewhere means the same */
    rv__buf_init(&shown, SIZE_MAX);
    show_place(behind_user(address), &shown);
    rv__sha256_hex(rv__buf_view(&shown), digits);
    rc = rv__buf_err(&shown, err);
    rv__buf_done(&shown);
    rv__buf_fmt(out, "/%.*s", NAME_DIGITS, digits);
    return rc < 0 ? rc : rv__buf_err(out, err);
}
