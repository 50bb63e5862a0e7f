/* user.c: the login name of a user. */
#include "base/user.h"

#include <pwd.h>
#include <stdio.h>

enum { ENTRY_BYTES = 4096 }; /* of the user database; a longer entry counts as none */

void rv__user_name(uid_t uid, char ret[RV__USER_NAME_SIZE])
{
    char texts[ENTRY_BYTES];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(uid, &entry, texts, sizeof texts, &found) == 0 && found != NULL &&
        found->pw_name[0] != '\0')
        snprintf(ret, RV__USER_NAME_SIZE, "%.*s", RV__USER_NAME_SIZE - 1, found->pw_name);
    else
        snprintf(ret, RV__USER_NAME_SIZE, "uid %lu", (unsigned long)uid);
}
