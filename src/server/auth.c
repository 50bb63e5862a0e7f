/* auth.c: access: tokens, and sessions of browsers that logged in with one.
 *
 * A session belongs to its token: it ends when the token is removed, and has the token's current role. Anything
 * longer than a request (a stream, a wait) checks regularly whether it may continue, so a removed token loses
 * access everywhere. Only hashes of tokens and of session names are stored. Sessions are in memory: a restart ends
 * all of them. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/random.h"
#include "server/transport.h"

enum { SESSION_MS = 12 * 3600 * 1000 }; /* a working day: then the token is needed again */

struct rv__session {
    uint64_t number; /* its place is number % max; 0: free */
    enum rv__role role;
    int64_t until_ms;
    char name[RV__SHA256_HEX], token[RV__SHA256_HEX];
    char owner[RV__TOKEN_NAME_SIZE];
};

int rv__auth_init(struct rv__auth *auth, size_t sessions, size_t per_token, rv_error *err)
{
    *auth = (struct rv__auth){ .max = sessions, .per_token = per_token, .begun = 1 };
    auth->at = rv__zalloc(sessions, sizeof *auth->at);
    if (auth->at == NULL)
        return rv__nomem(err);
    if (pthread_mutex_init(&auth->lock, NULL) != 0) {
        rv__free(auth->at);
        auth->at = NULL;
        return rv__fail(err, RV_ESYS, "cannot make a lock: %m");
    }
    return RV_OK;
}

void rv__auth_done(struct rv__auth *auth)
{
    if (auth->at == NULL)
        return;
    pthread_mutex_destroy(&auth->lock);
    rv__tokens_done(&auth->tokens);
    rv__free(auth->at);
    auth->at = NULL;
}

static void end(struct rv__session *s)
{
    *s = (struct rv__session){ .role = RV__ROLE_NONE };
}

size_t rv__auth_change(struct rv__auth *auth, struct rv__tokens *tokens)
{
    size_t ended = 0;
    pthread_mutex_lock(&auth->lock);
    struct rv__tokens old = auth->tokens;
    auth->tokens = *tokens;
    *tokens = old;
    for (size_t i = 0; i < auth->max; i++) {
        struct rv__session *s = &auth->at[i];
        if (s->number == 0)
            continue;
        const struct rv__token *token = rv__tokens_find(&auth->tokens, s->token);
        if (token != NULL) {
            s->role = token->role;
            memcpy(s->owner, token->name, sizeof s->owner);
            continue;
        }
        end(s);
        ended++;
    }
    pthread_mutex_unlock(&auth->lock);
    return ended;
}

bool rv__auth_token(struct rv__auth *auth, struct rv__str token, struct rv__who *ret)
{
    struct rv__who who = { .session = 0 };
    if (!rv__token_hash(token, who.token))
        return false;
    pthread_mutex_lock(&auth->lock);
    const struct rv__token *found = rv__tokens_find(&auth->tokens, who.token);
    if (found != NULL) {
        who.role = found->role;
        memcpy(who.name, found->name, sizeof who.name);
    }
    pthread_mutex_unlock(&auth->lock);
    if (found == NULL)
        return false;
    *ret = who;
    return true;
}

/* 256 random bits from the system. */
static int make_name(char ret[RV__SESSION_SIZE], rv_error *err)
{
    for (int i = 0; i < 4; i++) {
        uint64_t chance;
        int rc = rv__random_seed_system(&chance, err);
        if (rc < 0)
            return rc;
        snprintf(ret + 16 * (size_t)i, 17, "%016llx", (unsigned long long)chance);
    }
    return RV_OK;
}

/* The place for a new session of this token: a free one; else the oldest session of the token if it has too many;
 * else the oldest of all. */
static size_t place_for(const struct rv__auth *auth, const char *token, int64_t now_ms)
{
    size_t of_all = 0, of_token = 0, count = 0;
    for (size_t i = 0; i < auth->max; i++) {
        const struct rv__session *s = &auth->at[i];
        if (s->until_ms < auth->at[of_all].until_ms)
            of_all = i;
        if (s->number == 0 || s->until_ms <= now_ms || !rv__same_hash(s->token, token))
            continue;
        if (count++ == 0 || s->until_ms < auth->at[of_token].until_ms)
            of_token = i;
    }
    return count >= auth->per_token ? of_token : of_all;
}

int rv__auth_begin(struct rv__auth *auth, const struct rv__who *by, int64_t now_ms,
                   char ret[RV__SESSION_SIZE], rv_error *err)
{
    int rc = make_name(ret, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&auth->lock);
    size_t place = place_for(auth, by->token, now_ms);
    struct rv__session *s = &auth->at[place];
    s->number = auth->begun++ * auth->max + place;
    s->role = by->role;
    s->until_ms = now_ms + SESSION_MS;
    memcpy(s->token, by->token, sizeof s->token);
    memcpy(s->owner, by->name, sizeof s->owner);
    rv__sha256_hex(rv__str(ret), s->name);
    pthread_mutex_unlock(&auth->lock);
    return RV_OK;
}

static struct rv__session *find(struct rv__auth *auth, struct rv__str name, int64_t now_ms)
{
    struct rv__session *found = NULL;
    char hash[RV__SHA256_HEX];
    if (name.len != RV__SESSION_SIZE - 1)
        return NULL;
    rv__sha256_hex(name, hash);
    for (size_t i = 0; i < auth->max; i++) {
        struct rv__session *s = &auth->at[i];
        if (s->number != 0 && s->until_ms > now_ms && rv__same_hash(s->name, hash))
            found = s;
    }
    return found;
}

bool rv__auth_session(struct rv__auth *auth, struct rv__str name, int64_t now_ms,
                      struct rv__who *ret)
{
    pthread_mutex_lock(&auth->lock);
    const struct rv__session *s = find(auth, name, now_ms);
    if (s != NULL) {
        *ret = (struct rv__who){ .role = s->role, .session = s->number };
        memcpy(ret->token, s->token, sizeof ret->token);
        memcpy(ret->name, s->owner, sizeof ret->name);
    }
    pthread_mutex_unlock(&auth->lock);
    return s != NULL;
}

void rv__auth_end(struct rv__auth *auth, struct rv__str name, int64_t now_ms)
{
    pthread_mutex_lock(&auth->lock);
    struct rv__session *s = find(auth, name, now_ms);
    if (s != NULL)
        end(s);
    pthread_mutex_unlock(&auth->lock);
}

bool rv__auth_holds(struct rv__auth *auth, const struct rv__who *who, int64_t now_ms)
{
    bool holds;
    if (who->token[0] == '\0') /* no tokens are used */
        return true;
    pthread_mutex_lock(&auth->lock);
    if (who->session != 0) {
        const struct rv__session *s = &auth->at[who->session % auth->max];
        holds = s->number == who->session && s->until_ms > now_ms;
    } else {
        holds = rv__tokens_find(&auth->tokens, who->token) != NULL;
    }
    pthread_mutex_unlock(&auth->lock);
    return holds;
}

int64_t rv__session_seconds(void)
{
    return SESSION_MS / 1000;
}
