/* media.c: see media.h. What a file is, its first bytes say, and not its name: a provider refuses a picture whose type is
 * wrong, but only after the whole request was sent. A type that is given must agree with them. */
#include "base/media.h"

#include <string.h>

#include "base/error.h"

static const struct form {
    const char *type;
    enum rv__media_kind kind;
    size_t at; /* where the mark is */
    const char *mark;
} forms[] = {
    { "image/png", MEDIA_IMAGE, 0, "\x89PNG\r\n\x1a\n" },
    { "image/jpeg", MEDIA_IMAGE, 0, "\xff\xd8\xff" },
    { "image/gif", MEDIA_IMAGE, 0, "GIF87a" },
    { "image/gif", MEDIA_IMAGE, 0, "GIF89a" },
    { "image/webp", MEDIA_IMAGE, 8, "WEBPVP8" },
    { "application/pdf", MEDIA_PDF, 0, "%PDF-" },
};
enum { FORMS = sizeof forms / sizeof *forms };

static bool has_mark(const struct form *form, struct rv__str bytes)
{
    size_t len = strlen(form->mark);
    return bytes.len >= form->at + len && memcmp(bytes.at + form->at, form->mark, len) == 0;
}

static bool begins(struct rv__str text, const char *with)
{
    return text.len >= strlen(with) && memcmp(text.at, with, strlen(with)) == 0;
}

bool rv__media_is_taken(struct rv__str type)
{
    static const char *const texts[] = { "application/json", "application/xml",
                                         "application/yaml" };
    bool known = begins(type, "text/") && type.len > 5;
    for (size_t i = 0; i < FORMS && !known; i++)
        known = rv__str_is(type, forms[i].type);
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !known; i++)
        known = rv__str_is(type, texts[i]);
    return known;
}

int rv__media_judge(struct rv__str bytes, struct rv__str *type, enum rv__media_kind *kind,
                    rv_error *err)
{
    const struct form *form = NULL, *said = NULL;
    for (size_t i = 0; i < FORMS; i++) {
        if (form == NULL && has_mark(&forms[i], bytes))
            form = &forms[i];
        if (rv__str_is(*type, forms[i].type))
            said = &forms[i];
    }
    if (!rv__str_none(*type) && !rv__media_is_taken(*type))
        return rv__fail(err, RV_EINVAL,
                        "its type '%.*s' is none that models take: " RV__MEDIA_TAKEN,
                        (int)(type->len < 100 ? type->len : 100), type->at);
    if (bytes.len == 0)
        return rv__fail(err, RV_EINVAL, "it is empty");
    if (said != NULL && (form == NULL || strcmp(said->type, form->type) != 0))
        return rv__fail(err, RV_EINVAL, "its type is said to be %s, but it is %s", said->type,
                        form != NULL ? form->type : "something else");
    if (form != NULL && (said != NULL || rv__str_none(*type))) {
        *kind = form->kind;
        *type = rv__str(form->type);
        return RV_OK;
    }
    if (!rv__str_utf8(bytes) || memchr(bytes.at, '\0', bytes.len) != NULL)
        return rv__fail(err, RV_EINVAL, "it is none of what models take: " RV__MEDIA_TAKEN);
    *kind = MEDIA_TEXT;
    if (rv__str_none(*type))
        *type = rv__str("text/plain");
    return RV_OK;
}
