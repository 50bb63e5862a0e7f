/* visitor.h: a server on a real engine and real sockets, and a client that says exactly what it is told. */
#ifndef RV_TESTS_UNIT_SERVER_VISITOR_H
#define RV_TESTS_UNIT_SERVER_VISITOR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/server.h"

struct place {
    char folder[64], store[96], tokens[96];
    rv_engine *engine;
    struct rv__server *server;
    unsigned port;
    int fds[64]; /* closed at the end, whatever happens */
    size_t fd_count;
    char *heard; /* of the last hear() or ask() */
    void *kept;  /* freed at the end, whatever happens */
    pthread_t annoyer;
    atomic_bool annoys;
    rv_error err;
};

int place_setup(
    void **state); /* workflows: three (steps a, b, c), hold (waits for the signal go) */
int place_teardown(void **state);

/* Begin to serve; NULL: with every default, at a free port of the loopback. */
void place_serve(struct place *p, const struct rv__server_opts *opts);
void place_start(struct place *p, const char *workflow, const char *id);
void place_end(struct place *p, const char *id); /* wait for it */

/* Somebody holds the hub's lock most of the time: others wait for it, and windows between two takings of it
 * are wide. Until place_calm(), or the end. */
void place_annoy(struct place *p);
void place_calm(struct place *p);

int dial(struct place *p);
void say(int fd, const char *text);
/* Read until `text` comes (true) or the other side closes (false); p->heard is what came. */
bool hear(struct place *p, int fd, const char *text);
/* A request on a connection of its own; the status, 0: closed without one. */
int ask(struct place *p, const char *text);
/* The same, with the usual head: "GET /path", more header lines (each ending in \r\n) or NULL, a body or NULL. */
int ask_for(struct place *p, const char *what, const char *headers, const char *body);
int status_in(const char *text);
bool has(const struct place *p, const char *text); /* in p->heard */

#endif
