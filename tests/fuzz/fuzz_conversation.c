/* fuzz_conversation.c: whatever a worker says, the engine goes on: it answers, or ends the connection and says why.
 *
 * An input is a conversation: one frame a line, after a good hello. "@N" in a line becomes the id of the N-th invocation or question
 * that came, so that answers can meet what they are about; a line that begins with '!' is sent as it is, without a length. The
 * engine is real, and beside its store on disk; the end of the connection, which a bye asks for, says that all was
 * heard. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rival/rival.h>

#include "wire/wire.h"

enum { INPUTS_OF_AN_ENGINE = 300, IDS = 8, LINES = 64, SOON_MS = 8000 };

static rv_engine *engine;
static char folder[64], store[96];

static void remove_store(void)
{
    char path[128];
    static const char *const ends[] = { "", "-wal", "-shm", ".lock", ".sock" };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s%s", store, ends[i]);
        (void)unlink(path);
    }
}

static void open_engine(void)
{
    rv_error err;
    rv_engine_free(engine);
    engine = NULL;
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/tmp/rival-fuzz-XXXXXX");
        if (mkdtemp(folder) == NULL)
            abort();
        snprintf(store, sizeof store, "%s/s.db", folder);
    }
    remove_store();
    if (rv_engine_new(RV_ENGINE_OPTS(.store = store, .control = true, .grace_ms = 1), &engine,
                      &err) < 0) {
        fprintf(stderr, "%s\n", err.message);
        abort();
    }
}

struct talk {
    int fd;
    struct rv__frames frames;
    char ids[IDS][64];
    size_t count;
    bool over;
};

/* What has come; waits for something if `wait`. */
static void hear(struct talk *t, bool wait)
{
    struct rv__frame frame;
    struct rv__str id;
    struct pollfd p = { t->fd, POLLIN, 0 };
    if (wait && poll(&p, 1, SOON_MS) == 0)
        abort(); /* neither an answer nor the end: it hangs */
    int rc = rv__frames_read(&t->frames, t->fd);
    t->over |= rc < 0;
    while ((rc = rv__frames_next(&t->frames, &frame, NULL)) == 1) {
        rv__frame_members(&frame, (const char *[]){ "id" }, &id, 1);
        if (frame.type == FRAME_PING || rv__str_none(id) || t->count == IDS ||
            (frame.type != FRAME_INVOKE && frame.type != FRAME_VALIDATE) || id.len > 60)
            continue;
        snprintf(t->ids[t->count++], 64, "%.*s", (int)id.len, id.at);
    }
    if (rc < 0)
        abort(); /* an engine says frames */
}

static void send_all(struct talk *t, const char *bytes, size_t len)
{
    if (!t->over && send(t->fd, bytes, len, MSG_NOSIGNAL) != (ssize_t)len)
        t->over = true;
}

static void say(struct talk *t, const char *json, size_t len)
{
    char head[4] = { (char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len };
    send_all(t, head, 4);
    send_all(t, json, len);
}

/* A line, with ids in their places. */
static void say_line(struct talk *t, const char *line, size_t len)
{
    char text[8192];
    size_t n = 0;
    for (size_t i = 0; i < len && n < sizeof text - 64; i++) {
        bool is_id = line[i] == '@' && i + 1 < len && line[i + 1] >= '0' && line[i + 1] <= '7';
        if (!is_id) {
            text[n++] = line[i];
            continue;
        }
        const char *id = t->ids[line[++i] - '0'];
        n += (size_t)snprintf(text + n, 64, "%s", id[0] != '\0' ? id : "\"\"");
    }
    if (n > 0 && text[0] == '!')
        send_all(t, text + 1, n - 1);
    else
        say(t, text, n);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static const char hello[] =
        "{\"type\":\"hello\",\"protocol\":2,\"role\":\"worker\",\"credits\":4}";
    static const char bye[] = "{\"type\":\"bye\"}";
    static int inputs;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct talk t = { .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    const char *at = (const char *)data, *end = at + size;
    if (inputs++ % INPUTS_OF_AN_ENGINE == 0)
        open_engine();
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s.sock", store);
    if (connect(t.fd, (struct sockaddr *)&address, sizeof address) < 0)
        abort();
    rv__frames_init(&t.frames);
    say(&t, hello, sizeof hello - 1);
    for (int lines = 0; at < end && lines < LINES && !t.over; lines++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = newline != NULL ? (size_t)(newline - at) : (size_t)(end - at);
        if (len == 0) { /* an empty line: what has come by now is looked at */
            (void)usleep(2000);
            hear(&t, false);
        } else {
            say_line(&t, at, len);
        }
        at += len + 1;
    }
    say(&t, bye, sizeof bye - 1);
    (void)shutdown(t.fd, SHUT_WR); /* half a frame does not become whole */
    while (!t.over)
        hear(&t, true);
    close(t.fd);
    rv__frames_done(&t.frames);
    rv_workflow_list *list = NULL;
    if (rv_workflows(engine, &list, NULL) < 0) /* the engine goes on */
        abort();
    rv_workflow_list_free(list);
    return 0;
}
