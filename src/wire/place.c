/* place.c: where the socket of a store is, and how to name it however long its path. */
#include "wire/place.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/store_name.h"

int rv__socket_place(const char *store, struct rv__socket_place *ret, rv_error *err)
{
    struct rv__buf beside;
    rv__buf_init(&beside, sizeof ret->path);
    int rc = rv__store_name_beside(store, &beside, err);
    int len = rc < 0 ? 0 : snprintf(ret->path, sizeof ret->path, "%s.sock", beside.text);
    rv__buf_done(&beside);
    if (rc < 0)
        return rc;
    const char *slash = strrchr(ret->path, '/');
    ret->name_at = slash != NULL ? (size_t)(slash - ret->path) + 1 : 0;
    if (len < 0 || (size_t)len >= sizeof ret->path || (size_t)len - ret->name_at > NAME_MAX)
        return rv__fail(err, RV_EINVAL, "the name of the store '%.60s…' is too long for a socket",
                        store);
    return RV_OK;
}

bool rv__socket_address(const struct rv__socket_place *place, int folder, const char *name,
                        struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
    int len = snprintf(ret->sun_path, sizeof ret->sun_path, "%.*s%s", (int)place->name_at,
                       place->path, name);
    if (len >= 0 && (size_t)len < sizeof ret->sun_path)
        return true;
    len = snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", folder, name);
    return len >= 0 && (size_t)len < sizeof ret->sun_path;
}
