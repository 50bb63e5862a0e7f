/* store_name.h: the name of a store: a file, or an address of PostgreSQL.
 *
 * A name is what users give with --store: a path, ":memory:", or "postgres://…". An address may contain a password:
 * use rv__store_name_shown() to show it to people. */
#ifndef RV_BASE_STORE_NAME_H
#define RV_BASE_STORE_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Is it an address of PostgreSQL? Else it is a path, or ":memory:". */
bool rv__store_name_is_address(const char *name);

/* Is it ":memory:"? Such a store is not kept, and no other process can use it. */
bool rv__store_name_in_memory(const char *name);

/* The name for people: passwords are "***". */
void rv__store_name_shown(const char *name, struct rv__buf *out);

/* Does a store with this name exist? For an address this is unknown before it is opened: yes. */
bool rv__store_name_exists(const char *name);

/* The real path with which the names of files beside the store begin. For PostgreSQL: a name made from the address,
 * without user and password, in a folder of the user's own, which is created if missing ($XDG_RUNTIME_DIR/rival,
 * else /tmp/rival-UID). Two spellings of one address give two names.
 * Errors: RV_ESTORE (no such file), RV_ESYS (no folder, or not the user's own). */
int rv__store_name_beside(const char *name, struct rv__buf *out, rv_error *err);

#endif
