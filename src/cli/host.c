/* host.c: `rival host`: not for people: an engine starts it to run the steps of a C file. */
#include "cli/cli.h"

#include <rival/rival.h>

int rv__cmd_host(int argc, char **argv)
{
    return rv_host_main(argc, argv);
}
