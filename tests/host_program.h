/* host_program.h: for programs of the build folder: the program of hosts and evaluators is the one that was
 * built beside them, unless the environment names another. */
#ifndef RV_TESTS_HOST_PROGRAM_H
#define RV_TESTS_HOST_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ThreadSanitizer keeps signals back while a library computes, and so the limit of an evaluator's CPU time.
 * That process has one thread: there the release build, if it is there, does as well. */
#if defined(__SANITIZE_THREAD__)
#define HOST_OF_RELEASE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HOST_OF_RELEASE 1
#endif
#endif
#ifndef HOST_OF_RELEASE
#define HOST_OF_RELEASE 0
#endif

/* In BUILD/FOLDER/NAME: BUILD/rival. Call it before there are threads. */
static inline void name_host_program(void)
{
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 30);
    if (n < 0)
        return;
    program[n] = '\0';
    char *slash = strrchr(program, '/');
    snprintf(slash, 30, "/../../build/rival");
    if (!HOST_OF_RELEASE || access(program, X_OK) != 0)
        snprintf(slash, 30, "/../rival");
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread is there yet */
    setenv("RIVAL_HOST", program, 0);
}

#endif
