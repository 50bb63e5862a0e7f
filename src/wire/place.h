/* place.h: addresses of sockets, for those who listen and those who ask. */
#ifndef RV_WIRE_PLACE_H
#define RV_WIRE_PLACE_H

#include <sys/un.h>

#include "wire/wire.h"

/* An address for `name` in a folder that is open as `folder`. False: even so the name is too long. */
bool rv__socket_address(const struct rv__socket_place *place, int folder, const char *name,
                        struct sockaddr_un *ret);

#endif
