/* listener.c: see listener.h. */
#include "unit/listener.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024, STACK_BYTES = 256 << 10 };

struct connection {
    struct listener *listener;
    int fd;
};

static void *connection_main(void *arg)
{
    struct connection connection = *(struct connection *)arg;
    free(arg);
    connection.listener->serve(connection.fd);
    close(connection.fd);
    atomic_fetch_sub(&connection.listener->under_way, 1);
    return NULL;
}

static void *listener_main(void *arg)
{
    struct listener *listener = arg;
    pthread_attr_t attr;
    pthread_t thread;
    int fd;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    while ((fd = accept(listener->fd, NULL, NULL)) >= 0) {
        struct connection *connection = malloc(sizeof *connection);
        if (connection == NULL)
            abort();
        *connection = (struct connection){ listener, fd };
        atomic_fetch_add(&listener->connections, 1);
        atomic_fetch_add(&listener->under_way, 1);
        if (pthread_create(&thread, &attr, connection_main, connection) != 0)
            abort();
    }
    pthread_attr_destroy(&attr);
    return NULL;
}

int listener_start(struct listener *listener)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof at;
    listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener->fd < 0 || bind(listener->fd, (struct sockaddr *)&at, sizeof at) < 0 ||
        listen(listener->fd, BACKLOG) < 0 ||
        getsockname(listener->fd, (struct sockaddr *)&at, &size) < 0)
        return -1;
    listener->port = ntohs(at.sin_port);
    return pthread_create(&listener->thread, NULL, listener_main, listener);
}

void listener_stop(struct listener *listener)
{
    shutdown(listener->fd, SHUT_RDWR);
    pthread_join(listener->thread, NULL);
    close(listener->fd);
    while (atomic_load(&listener->under_way) > 0) /* their clients have gone */
        usleep(1000);
}
