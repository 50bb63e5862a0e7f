/* peer.c: which values and programs an evaluator process has cached, as decided on this side.
 *
 * This side gives each value a slot and sends the content of a slot before the first request that needs it;
 * so neither side ever has to ask. The estimated memory of the values is limited, and the least recently used
 * goes first. Values of the current request stay even above the limit: they must be cached when the request
 * arrives. */
#include "expr/peer.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/error.h"

enum {
    BUCKETS = 8192,
    VALUE_BYTES = 40, /* about, of a value in libjq: 16 in an array, more in an object */
};
#define PROGRAM_BYTES ((size_t)64 << 20) /* far above RV__PROGRAM_TOKENS or RV__EXPR_MAX_BYTES */

struct cached {
    uint64_t key[2]; /* blob and place in it; or the scope's key, and `keyed` */
    bool keyed;
    uint64_t question;     /* the last request that used it */
    struct rv__blob *blob; /* held, so that no other blob gets its address; NULL: keyed */
    size_t bytes;
    struct cached *next;          /* of its bucket, or of the free ones */
    struct cached *newer, *older; /* by use */
};

struct rv__expr_peer {
    struct rv__expr_sender *sender;
    struct cached values[RV__PEER_VALUES];
    struct cached *buckets[BUCKETS];
    struct cached *free, *newest, *oldest;
    size_t bytes, max_bytes;
    uint64_t question;

    uint64_t programs[RV__PEER_PROGRAMS]; /* their serials; 0: none */
    uint64_t used[RV__PEER_PROGRAMS];     /* by this question, last */
    unsigned last;
    struct rv__buf text;
};

int rv__expr_peer_new(size_t max_bytes, struct rv__expr_sender *sender, struct rv__expr_peer **ret,
                      rv_error *err)
{
    struct rv__expr_peer *peer = rv__zalloc(1, sizeof *peer);
    if (peer == NULL)
        return rv__nomem(err);
    peer->sender = sender;
    peer->max_bytes = max_bytes > 0 ? max_bytes : RV__EXPR_CACHE_BYTES;
    for (size_t i = RV__PEER_VALUES; i-- > 0;) {
        peer->values[i].next = peer->free;
        peer->free = &peer->values[i];
    }
    rv__buf_init(&peer->text, PROGRAM_BYTES);
    *ret = peer;
    return RV_OK;
}

void rv__expr_peer_free(struct rv__expr_peer *peer)
{
    if (peer == NULL)
        return;
    for (struct cached *t = peer->newest; t != NULL; t = t->older)
        rv__blob_unref(t->blob);
    rv__buf_done(&peer->text);
    rv__free(peer);
}

/* --------------------------------------------------------------------------------- values --- */

static void identify(const struct rv__scope_text *text, struct cached *ret)
{
    bool held = text->blob != NULL; /* a text that is not loaded: the whole blob */
    *ret = (struct cached){ .keyed = !held };
    ret->key[0] = held ? (uint64_t)(uintptr_t)text->blob : text->key[0];
    ret->key[1] = held ? (uint64_t)(uintptr_t)text->json.at : text->key[1];
}

static struct cached **bucket_of(struct rv__expr_peer *peer, const struct cached *who)
{
    uint64_t hash = (who->key[0] ^ (who->key[1] * UINT64_C(0x9E3779B97F4A7C15))) *
                    UINT64_C(0xD6E8FEB86659FD93);
    return &peer->buckets[(hash >> 40) % BUCKETS];
}

static void leave_order(struct rv__expr_peer *peer, struct cached *t)
{
    *(t->newer != NULL ? &t->newer->older : &peer->newest) = t->older;
    *(t->older != NULL ? &t->older->newer : &peer->oldest) = t->newer;
}

static void become_newest(struct rv__expr_peer *peer, struct cached *t)
{
    t->newer = NULL;
    t->older = peer->newest;
    *(peer->newest != NULL ? &peer->newest->newer : &peer->oldest) = t;
    peer->newest = t;
}

/* Drop an entry without telling the process: the slot is overwritten, or the caller tells it. */
static void forget(struct rv__expr_peer *peer, struct cached *t)
{
    struct cached **at = bucket_of(peer, t);
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    leave_order(peer, t);
    peer->bytes -= t->bytes;
    rv__blob_unref(t->blob);
    *t = (struct cached){ .next = peer->free };
    peer->free = t;
}

void rv__peer_begin(struct rv__expr_peer *peer)
{
    peer->question++;
}

bool rv__peer_has(struct rv__expr_peer *peer, const struct rv__scope_text *text, unsigned *slot)
{
    struct cached who;
    identify(text, &who);
    for (struct cached *t = *bucket_of(peer, &who); t != NULL; t = t->next)
        if (t->key[0] == who.key[0] && t->key[1] == who.key[1] && t->keyed == who.keyed) {
            leave_order(peer, t);
            become_newest(peer, t);
            t->question = peer->question;
            *slot = (unsigned)(t - peer->values);
            return true;
        }
    if (peer->free == NULL && peer->oldest->question != peer->question)
        forget(peer, peer->oldest);
    *slot = peer->free != NULL ? (unsigned)(peer->free - peer->values) : RV__PEER_VALUES;
    return false;
}

/* Estimated memory of the parsed value: each comma, colon and bracket counts as one more value. */
static size_t weight(struct rv__str json)
{
    size_t values = 1;
    for (size_t i = 0; i < json.len; i++)
        values += json.at[i] == ',' || json.at[i] == ':' || json.at[i] == '[' || json.at[i] == '{';
    return json.len + values * VALUE_BYTES;
}

void rv__peer_sent(struct rv__expr_peer *peer, unsigned slot, const struct rv__scope_text *text,
                   struct rv__str json)
{
    struct cached *t = &peer->values[slot], **bucket;
    assert(peer->free == t); /* the slot that rv__peer_has() returned */
    peer->free = t->next;
    identify(text, t);
    t->blob = t->keyed ? NULL : rv__blob_ref(text->blob);
    t->bytes = weight(json);
    t->question = peer->question;
    bucket = bucket_of(peer, t);
    t->next = *bucket;
    *bucket = t;
    become_newest(peer, t);
    peer->bytes += t->bytes;
    while (peer->bytes > peer->max_bytes && peer->oldest->question != peer->question) {
        unsigned old = (unsigned)(peer->oldest - peer->values);
        forget(peer, peer->oldest);
        peer->sender->value(peer->sender, old, (struct rv__str){ NULL, 0 });
    }
    peer->sender->value(peer->sender, slot, json);
}

/* ------------------------------------------------------------------------------- programs --- */

int rv__peer_program(struct rv__expr_peer *peer, const struct rv__exprs *set, uint32_t number,
                     bool quickly, unsigned *slot, rv_error *err)
{
    const struct rv__program *program = &set->programs[number];
    unsigned at = peer->last, oldest = 0;
    for (unsigned i = 0; i < RV__PEER_PROGRAMS && peer->programs[at] != program->serial; i++) {
        at = i;
        if (peer->used[i] < peer->used[oldest])
            oldest = i;
    }
    if (peer->programs[at] != program->serial) {
        if (quickly)
            return RV_EBUSY;
        if (peer->programs[oldest] != 0 && peer->used[oldest] == peer->question)
            return rv__fail(err, RV_ETOOBIG, "too many large expressions in one value");
        rv__buf_reset(&peer->text);
        rv__program_text(set, program, &peer->text);
        int rc = rv__buf_err(&peer->text, err);
        if (rc < 0)
            return rc;
        at = oldest;
        peer->programs[at] = program->serial;
        peer->sender->program(peer->sender, at, rv__buf_view(&peer->text));
    }
    peer->used[at] = peer->question;
    peer->last = at;
    *slot = at;
    return RV_OK;
}
