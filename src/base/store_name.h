/* store_name.h: what the name of a store says: a file, or an address of PostgreSQL.
 *
 * A name is what users give with --store: a path, ":memory:", or "postgres://…". An address may have a password in it:
 * whoever shows a name to people shows it with rv__store_name_shown(). */
#ifndef RV_BASE_STORE_NAME_H
#define RV_BASE_STORE_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* Is it an address of PostgreSQL? Else it is a path, or ":memory:". */
bool rv__store_name_is_address(const char *name);

/* The name for people: passwords are "***". */
void rv__store_name_shown(const char *name, struct rv__buf *out);

/* Is a store of this name known to be there? Of an address nobody can tell before it is opened: yes. */
bool rv__store_name_exists(const char *name);

/* The real path that the names of files beside the store begin with. A store in PostgreSQL has none beside it: the
 * name is made from the address, without user and password, in a folder of the user's own, which is made if it is
 * not there ($XDG_RUNTIME_DIR/rival, else /tmp/rival-UID). Two spellings of one address are two names.
 * Errors: RV_ESTORE (no such file), RV_ESYS (no folder, or it is not the user's own). */
int rv__store_name_beside(const char *name, struct rv__buf *out, rv_error *err);

#endif
