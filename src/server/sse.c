/* sse.c: events as text for browsers' EventSource. */
#include <string.h>

#include "server/transport.h"

void rv__sse_event(struct rv__buf *out, const rv_event *event)
{
    const char *at = event->json;
    rv__buf_fmt(out, "id: %llu.%llu\nevent: %s\ndata: ", (unsigned long long)event->seq,
                (unsigned long long)event->index, event->kind);
    for (;;) { /* JSON may have line breaks as white space: one would end the field */
        size_t len = strcspn(at, "\r\n");
        rv__buf_add(out, at, len);
        at += len;
        if (*at == '\0')
            break;
        rv__buf_text(out, "\ndata: ");
        at++;
    }
    rv__buf_text(out, "\n\n");
}

static const char *number(const char *text, uint64_t *ret)
{
    uint64_t n = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (n > (UINT64_MAX - 9) / 10)
            return NULL;
        n = n * 10 + (uint64_t)(*at - '0');
    }
    *ret = n;
    return at > text ? at : NULL;
}

bool rv__sse_position(const char *id, uint64_t *seq, uint64_t *index)
{
    uint64_t s, i = 0;
    const char *at = number(id, &s);
    if (at != NULL && *at == '.')
        at = number(at + 1, &i);
    if (at == NULL || *at != '\0' || i > UINT32_MAX)
        return false;
    *seq = s;
    *index = i;
    return true;
}
