/* pg_line.c: see pg_server.h: a socket of its own that leads to the server's, byte by byte, until it is cut. */
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "unit/store/pg_server.h"

enum { LINE_MAX_CALLS = 24, LINE_CHUNK = 4096, LINE_POLL_MS = 20 };

struct pg_line {
    char folder[40];
    int listener;
    pthread_t thread;
    atomic_bool stop, refuse, was_cut;
    atomic_long left[2];          /* to the server, to the client */
    atomic_long again;            /* to the client, once it has been cut; -1: no second cut */
    int calls[LINE_MAX_CALLS][2]; /* client, server; -1: free */
};

static struct sockaddr_un socket_of(const char *folder)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%.60s/.s.PGSQL.5432", folder);
    return address;
}

static void hang_up(struct pg_line *line, int call)
{
    for (int side = 0; side < 2; side++)
        if (line->calls[call][side] >= 0)
            (void)close(line->calls[call][side]);
    line->calls[call][0] = line->calls[call][1] = -1;
}

static void accept_call(struct pg_line *line)
{
    struct sockaddr_un address = socket_of(pg_server_folder());
    int client = accept4(line->listener, NULL, NULL, SOCK_CLOEXEC), call = 0;
    if (client < 0)
        return;
    while (call < LINE_MAX_CALLS && line->calls[call][0] >= 0)
        call++;
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (atomic_load(&line->refuse) || call == LINE_MAX_CALLS ||
        connect(server, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(client);
        (void)close(server);
        return;
    }
    line->calls[call][0] = client;
    line->calls[call][1] = server;
}

static void cut(struct pg_line *line)
{
    atomic_store(&line->was_cut, true);
    atomic_store(&line->left[0], -1);
    atomic_store(&line->left[1], atomic_exchange(&line->again, -1));
    for (int call = 0; call < LINE_MAX_CALLS; call++)
        hang_up(line, call);
}

/* What came from one side goes to the other: as much as may. */
static void carry(struct pg_line *line, int call, int from)
{
    char bytes[LINE_CHUNK];
    long left = atomic_load(&line->left[from]);
    size_t want = left >= 0 && left < LINE_CHUNK ? (size_t)left : sizeof bytes;
    ssize_t got = want > 0 ? recv(line->calls[call][from], bytes, want, 0) : 0;
    if (want > 0 && got <= 0) {
        hang_up(line, call);
        return;
    }
    for (ssize_t sent = 0; sent < got;) {
        ssize_t n = send(line->calls[call][!from], bytes + sent, (size_t)(got - sent),
                         MSG_NOSIGNAL);
        if (n <= 0) {
            hang_up(line, call);
            return;
        }
        sent += n;
    }
    if (left >= 0) {
        atomic_store(&line->left[from], left - got);
        if (left - got <= 0)
            cut(line);
    }
}

static void *serve(void *arg)
{
    struct pg_line *line = arg;
    while (!atomic_load(&line->stop)) {
        struct pollfd polled[1 + 2 * LINE_MAX_CALLS];
        int whose[1 + 2 * LINE_MAX_CALLS], sides[1 + 2 * LINE_MAX_CALLS];
        nfds_t count = 1;
        polled[0] = (struct pollfd){ line->listener, POLLIN, 0 };
        for (int call = 0; call < LINE_MAX_CALLS; call++)
            for (int side = 0; side < 2; side++)
                if (line->calls[call][side] >= 0) {
                    polled[count] = (struct pollfd){ line->calls[call][side], POLLIN, 0 };
                    whose[count] = call;
                    sides[count++] = side;
                }
        if (poll(polled, count, LINE_POLL_MS) <= 0)
            continue;
        for (nfds_t i = 1; i < count; i++)
            if (polled[i].revents != 0 && line->calls[whose[i]][sides[i]] == polled[i].fd)
                carry(line, whose[i], sides[i]);
        if (polled[0].revents != 0)
            accept_call(line);
    }
    return NULL;
}

struct pg_line *pg_line_new(const char *address, char ret_address[PG_ADDRESS_MAX])
{
    struct pg_line *line = calloc(1, sizeof *line);
    assert(line != NULL);
    snprintf(line->folder, sizeof line->folder, "/tmp/rival-line-XXXXXX");
    if (mkdtemp(line->folder) == NULL)
        abort();
    memset(line->calls, 0xff, sizeof line->calls);
    pg_line_cut_after(line, -1, -1);
    struct sockaddr_un at = socket_of(line->folder);
    line->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(line->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(line->listener, LINE_MAX_CALLS) != 0 ||
        pthread_create(&line->thread, NULL, serve, line) != 0)
        abort();
    snprintf(ret_address, PG_ADDRESS_MAX, "postgres://rival@%%2Ftmp%%2F%.40s/%.60s",
             line->folder + strlen("/tmp/"), strrchr(address, '/') + 1);
    return line;
}

void pg_line_free(struct pg_line *line)
{
    char path[80];
    atomic_store(&line->stop, true);
    (void)pthread_join(line->thread, NULL);
    for (int call = 0; call < LINE_MAX_CALLS; call++)
        hang_up(line, call);
    (void)close(line->listener);
    snprintf(path, sizeof path, "%s/.s.PGSQL.5432", line->folder);
    (void)unlink(path);
    (void)rmdir(line->folder);
    free(line);
}

void pg_line_cut_after(struct pg_line *line, long to_server, long to_client)
{
    atomic_store(&line->was_cut, false);
    atomic_store(&line->left[0], to_server);
    atomic_store(&line->left[1], to_client);
    atomic_store(&line->again, -1);
}

void pg_line_cut_again_after(struct pg_line *line, long to_client)
{
    atomic_store(&line->again, to_client);
}

long pg_line_left(struct pg_line *line)
{
    return atomic_load(&line->left[1]);
}

int pg_line_was_cut(struct pg_line *line)
{
    return atomic_load(&line->was_cut);
}

void pg_line_refuse(struct pg_line *line, int refuse)
{
    atomic_store(&line->refuse, refuse != 0);
}
