/* test_media.c: what a file is, by its first bytes. For src/base/media.c. */
#include "base/media.h"
#include "unit/test.h"

static const struct row {
    const char *bytes;
    size_t len;
    const char *type;  /* NULL: not given */
    const char *found; /* NULL: refused */
    enum rv__media_kind kind;
} rows[] = {
    { "\x89PNG\r\n\x1a\n", 8, NULL, "image/png", MEDIA_IMAGE },
    { "\xff\xd8\xff\xe0", 4, NULL, "image/jpeg", MEDIA_IMAGE },
    { "GIF89a", 6, NULL, "image/gif", MEDIA_IMAGE },
    { "RIFF\1\2\3\4WEBPVP8 ", 16, NULL, "image/webp", MEDIA_IMAGE },
    { "%PDF-1.7", 8, "application/pdf", "application/pdf", MEDIA_PDF },
    { "plain", 5, NULL, "text/plain", MEDIA_TEXT },
    { "{}", 2, "application/json", "application/json", MEDIA_TEXT },
    { "a,b", 3, "text/csv", "text/csv", MEDIA_TEXT },
    { "GIF89a is a format", 18, "text/plain", "text/plain", MEDIA_TEXT },
    { "GIF89a", 6, "image/png", NULL, MEDIA_TEXT },
    { "plain", 5, "image/png", NULL, MEDIA_TEXT },
    { "plain", 5, "text/", NULL, MEDIA_TEXT },
    { "plain", 5, "audio/wav", NULL, MEDIA_TEXT },
    { "\x89PNG", 4, NULL, NULL, MEDIA_TEXT },
    { "a\0b", 3, NULL, NULL, MEDIA_TEXT },
    { "", 0, "text/plain", NULL, MEDIA_TEXT },
};

static void the_first_bytes_decide(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        struct rv__str type = r->type != NULL ? rv__str(r->type) : (struct rv__str){ NULL, 0 };
        enum rv__media_kind kind = MEDIA_TEXT;
        rv_error err;
        int rc = rv__media_judge((struct rv__str){ r->bytes, r->len }, &type, &kind, &err);
        if ((rc == RV_OK) != (r->found != NULL) ||
            (rc == RV_OK && (!rv__str_is(type, r->found) || kind != r->kind)))
            fail_msg("row %zu: %d", i, rc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_first_bytes_decide) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
