/* host_program.h: for programs of the build folder: the program of hosts and evaluators is the one that was
 * built beside them, unless the environment names another. */
#ifndef RV_TESTS_HOST_PROGRAM_H
#define RV_TESTS_HOST_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In BUILD/FOLDER/NAME: BUILD/rival. Call it before there are threads. */
static inline void name_host_program(void)
{
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 20);
    if (n < 0)
        return;
    program[n] = '\0';
    snprintf(strrchr(program, '/'), 20, "/../rival");
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
    setenv("RIVAL_HOST", program, 0);
}

#endif
