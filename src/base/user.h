/* user.h: names of users of this machine. */
#ifndef RV_BASE_USER_H
#define RV_BASE_USER_H

#include <sys/types.h>

enum { RV__USER_NAME_SIZE = 65 }; /* with its NUL; longer names are cut */

/* The name of a user in the system's database; without one "uid 1000". May query a directory service and take as
 * long. Thread: any. */
void rv__user_name(uid_t uid, char ret[RV__USER_NAME_SIZE]);

#endif
