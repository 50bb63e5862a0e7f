/* media.h: the kinds of files that models take: images, PDF and text, as far as the protocols of all providers do. */
#ifndef RV_BASE_MEDIA_H
#define RV_BASE_MEDIA_H

#include <stdbool.h>

#include <rival/base.h>

#include "base/str.h"

enum rv__media_kind { MEDIA_IMAGE, MEDIA_PDF, MEDIA_TEXT };

#define RV__MEDIA_TAKEN "images (png, jpeg, gif, webp), PDF and text in UTF-8" /* for messages */

/* Is it a media type that models take? */
bool rv__media_is_taken(struct rv__str type);

/* Find out the kind of a file and its type, unless that is given (*type is not none). RV_EINVAL: models do not take it, or
 * it is not of that type. */
int rv__media_judge(struct rv__str bytes, struct rv__str *type, enum rv__media_kind *kind,
                    rv_error *err);

#endif
