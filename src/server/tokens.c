/* tokens.c: reads the token file, and other small secret files.
 *
 * Only the SHA-256 of tokens is stored. A guess is hashed before it is compared, so the time of a comparison
 * reveals nothing; all the same, every token is compared in full. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/hash.h"
#include "server/transport.h"

enum {
    TOKENS_MAX = 256,
    TOKEN_GOOD_BYTES = 16, /* shorter ones could be guessed */
    TOKEN_MAX_BYTES = 512,
    FILE_MAX_BYTES = 256 << 10,
};

bool rv__same_hash(const char *a, const char *b)
{
    unsigned differs = 0;
    for (size_t i = 0; i < RV__SHA256_HEX - 1; i++)
        differs |= (unsigned)(a[i] ^ b[i]);
    return differs == 0;
}

/* ------------------------------------------------------------------------------ token file --- */

/* Is the file acceptable? */
static int check_file(int fd, const char *path, bool secret, rv_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return rv__fail(err, RV_ESYS, "cannot look at '%s': %m", path);
    if (!S_ISREG(st.st_mode))
        return rv__fail(err, RV_EINVAL, "'%s' is not a file", path);
    if (secret && (st.st_mode & 077) != 0)
        return rv__fail(err, RV_EINVAL, "others may read or change '%s' (mode %03o): chmod 600 it",
                        path, (unsigned)(st.st_mode & 0777));
    if (st.st_size > FILE_MAX_BYTES)
        return rv__fail(err, RV_EINVAL, "'%s' is too long: at most %d bytes", path, FILE_MAX_BYTES);
    return RV_OK;
}

int rv__small_file(const char *path, bool secret, struct rv__buf *out, rv_error *err)
{
    char piece[4096];
    ssize_t got = 1;
    rv__buf_init(out, FILE_MAX_BYTES + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return rv__fail(err, RV_EINVAL, "cannot read '%s': %m", path);
    int rc = check_file(fd, path, secret, err);
    while (rc == RV_OK && got != 0) {
        got = read(fd, piece, sizeof piece);
        if (got > 0)
            rv__buf_add(out, piece, (size_t)got);
        else if (got < 0 && errno != EINTR)
            rc = rv__fail(err, RV_ESYS, "cannot read '%s': %m", path);
    }
    if (rc == RV_OK)
        rc = rv__buf_err(out, err);
    explicit_bzero(piece, sizeof piece);
    close(fd);
    if (rc < 0)
        rv__secret_done(out);
    return rc;
}

void rv__secret_done(struct rv__buf *secret)
{
    if (secret->text != NULL)
        explicit_bzero(secret->text, secret->len);
    rv__buf_done(secret);
}

static struct rv__str next_word(struct rv__str *line)
{
    struct rv__str word = { line->at, 0 };
    while (line->len > 0 && (*line->at == ' ' || *line->at == '\t'))
        line->at++, line->len--;
    word.at = line->at;
    while (line->len > 0 && *line->at != ' ' && *line->at != '\t')
        line->at++, line->len--, word.len++;
    return word;
}

/* A line of the file: `role token [name]`. */
struct token_line {
    enum rv__role role;
    struct rv__str token, name;
};

static bool is_owner(struct rv__str name)
{
    static const char more[] = "._@-";
    for (size_t i = 0; i < name.len; i++)
        if (!isalnum((unsigned char)name.at[i]) &&
            memchr(more, name.at[i], sizeof more - 1) == NULL)
            return false;
    return name.len < RV__TOKEN_NAME_SIZE;
}

/* 1: a token; 0: an empty line or a comment. A wrong line may contain a secret: it is not quoted in the error. */
static int read_line(struct rv__str line, const char *path, int number, struct token_line *ret,
                     rv_error *err)
{
    struct rv__str role = next_word(&line), token = next_word(&line), name = next_word(&line);
    *ret = (struct token_line){ .token = token, .name = name };
    if (role.len == 0 || role.at[0] == '#')
        return 0;
    for (int r = RV__ROLE_WORKER; r <= RV__ROLE_ADMIN; r++)
        if (rv__str_is(role, rv__role_name((enum rv__role)r)))
            ret->role = (enum rv__role)r;
    if (ret->role == RV__ROLE_NONE)
        return rv__fail(err, RV_EINVAL,
                        "%s:%d: a line must be `role token [name]`, with the role viewer, "
                        "operator, admin or worker",
                        path, number);
    if (token.len == 0 || token.len > TOKEN_MAX_BYTES)
        return rv__fail(err, RV_EINVAL,
                        "%s:%d: a token has 1 to %d characters, this one %zu; make "
                        "one with: openssl rand -hex 32",
                        path, number, TOKEN_MAX_BYTES, token.len);
    for (size_t i = 0; i < token.len; i++)
        if (token.at[i] <= 0x20 || token.at[i] >= 0x7f)
            return rv__fail(err, RV_EINVAL, "%s:%d: a token is made of visible ASCII characters",
                            path, number);
    if (!is_owner(name))
        return rv__fail(err, RV_EINVAL,
                        "%s:%d: the name after a token has up to %d letters, digits and . _ @ -",
                        path, number, RV__TOKEN_NAME_SIZE - 1);
    if (next_word(&line).len > 0)
        return rv__fail(err, RV_EINVAL, "%s:%d: there is text after the name", path, number);
    return 1;
}

/* Call `take` for each token in the text, until it fails or returns 1: enough. */
static int each_line(struct rv__str text, const char *path,
                     int (*take)(void *arg, const struct token_line *line, int number,
                                 rv_error *err),
                     void *arg, rv_error *err)
{
    int rc = RV_OK;
    for (int number = 1; rc == RV_OK && text.len > 0; number++) {
        struct token_line parsed;
        const char *end = memchr(text.at, '\n', text.len);
        struct rv__str line = { text.at, end != NULL ? (size_t)(end - text.at) : text.len };
        size_t used = line.len + (end != NULL);
        if (line.len > 0 && line.at[line.len - 1] == '\r')
            line.len--;
        rc = read_line(line, path, number, &parsed, err);
        if (rc == 1)
            rc = take(arg, &parsed, number, err);
        text = (struct rv__str){ text.at + used, text.len - used };
    }
    return rc;
}

static int no_token(const char *path, rv_error *err)
{
    return rv__fail(err, RV_EINVAL,
                    "there is no token in '%s': a line is `role token [name]`, for example `admin` "
                    "and the output of `openssl rand -hex 32`",
                    path);
}

struct loading {
    const char *path;
    struct rv__tokens tokens;
};

static int take_token(void *arg, const struct token_line *line, int number, rv_error *err)
{
    struct loading *l = arg;
    struct rv__tokens *tokens = &l->tokens;
    struct rv__token *ret = &tokens->at[tokens->count];
    if (line->token.len < TOKEN_GOOD_BYTES)
        (void)rv__fail(&tokens->weak, RV_EINVAL,
                       "%s:%d: a token of fewer than %d characters can be guessed; make one with: "
                       "openssl rand -hex 32",
                       l->path, number, TOKEN_GOOD_BYTES);
    if (tokens->count == TOKENS_MAX)
        return rv__fail(err, RV_EINVAL, "%s:%d: there are more than %d tokens", l->path, number,
                        TOKENS_MAX);
    *ret = (struct rv__token){ .role = line->role };
    memcpy(ret->name, line->name.at, line->name.len);
    rv__sha256_hex(line->token, ret->hash);
    if (rv__tokens_find(tokens, ret->hash) != NULL)
        return rv__fail(err, RV_EINVAL, "%s:%d: this token is given twice", l->path, number);
    tokens->count++;
    return RV_OK;
}

int rv__tokens_load(const char *path, struct rv__tokens *ret, rv_error *err)
{
    struct loading l = { .path = path };
    struct rv__buf text;
    struct stat st;
    int rc = rv__small_file(path, false, &text, err);
    if (rc < 0)
        return rc;
    if (stat(path, &st) == 0 && (st.st_mode & 077) != 0)
        (void)rv__fail(&l.tokens.weak, RV_EINVAL,
                       "others may read or change '%s' (mode %03o): chmod 600 it", path,
                       (unsigned)(st.st_mode & 0777));
    l.tokens.at = rv__zalloc(TOKENS_MAX + 1, sizeof *l.tokens.at);
    rc = l.tokens.at != NULL ? each_line(rv__buf_view(&text), path, take_token, &l, err)
                             : rv__nomem(err);
    if (rc == RV_OK && l.tokens.count == 0)
        rc = no_token(path, err);
    rv__secret_done(&text);
    if (rc < 0) {
        rv__tokens_done(&l.tokens);
        return rc;
    }
    *ret = l.tokens;
    return RV_OK;
}

static int take_first(void *arg, const struct token_line *line, int number, rv_error *err)
{
    struct rv__buf *ret = arg;
    (void)number;
    (void)err;
    if (line->role == RV__ROLE_WORKER)
        return RV_OK;
    rv__buf_str(ret, line->token);
    return 1;
}

int rv__token_file_first(const char *path, struct rv__buf *ret, rv_error *err)
{
    struct rv__buf text;
    rv__buf_init(ret, TOKEN_MAX_BYTES + 1);
    int rc = rv__small_file(path, false, &text, err);
    if (rc < 0)
        return rc;
    rc = each_line(rv__buf_view(&text), path, take_first, ret, err);
    rv__secret_done(&text);
    if (rc == RV_OK)
        rc = no_token(path, err);
    if (rc > 0)
        rc = rv__buf_err(ret, err);
    return rc;
}

/* -------------------------------------------------------------------------------- workers --- */

struct rv__worker_tokens {
    struct rv__tokens all;
};

static bool is_workers(const struct rv__token *token)
{
    return token != NULL && (token->role == RV__ROLE_WORKER || token->role == RV__ROLE_ADMIN);
}

int rv__worker_tokens_load(const char *path, bool exposed, struct rv__worker_tokens **ret,
                           rv_error *err)
{
    struct rv__worker_tokens *tokens = rv__zalloc(1, sizeof *tokens);
    bool some = false;
    if (tokens == NULL)
        return rv__nomem(err);
    int rc = rv__tokens_load(path, &tokens->all, err);
    for (size_t i = 0; rc == RV_OK && i < tokens->all.count; i++)
        some |= is_workers(&tokens->all.at[i]);
    if (rc == RV_OK && !some)
        rc = rv__fail(err, RV_EINVAL,
                      "there is no token for workers in '%s': a line is `worker TOKEN [NAME]`",
                      path);
    if (rc == RV_OK && exposed && tokens->all.weak.code != 0)
        rc = rv__fail(err, RV_EINVAL, "others can reach the address of workers, and %s",
                      tokens->all.weak.message);
    if (rc < 0)
        rv__worker_tokens_free(tokens);
    else
        *ret = tokens;
    return rc;
}

bool rv__worker_tokens_have(const struct rv__worker_tokens *tokens, const char *token)
{
    char hash[RV__SHA256_HEX];
    return rv__token_hash(rv__str(token), hash) && is_workers(rv__tokens_find(&tokens->all, hash));
}

void rv__worker_tokens_free(struct rv__worker_tokens *tokens)
{
    if (tokens != NULL)
        rv__tokens_done(&tokens->all);
    rv__free(tokens);
}

void rv__tokens_done(struct rv__tokens *tokens)
{
    rv__free(tokens->at);
    *tokens = (struct rv__tokens){ .count = 0 };
}

bool rv__token_hash(struct rv__str token, char ret[RV__SHA256_HEX])
{
    if (token.len == 0 || token.len > TOKEN_MAX_BYTES)
        return false;
    rv__sha256_hex(token, ret);
    return true;
}

const struct rv__token *rv__tokens_find(const struct rv__tokens *tokens,
                                        const char hash[RV__SHA256_HEX])
{
    const struct rv__token *found = NULL;
    for (size_t i = 0; i < tokens->count; i++)
        if (rv__same_hash(tokens->at[i].hash, hash))
            found = &tokens->at[i];
    return found;
}
