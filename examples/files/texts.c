/* texts.c: a library of steps: shout.yaml calls them by name. */
#include <rival/rival.h>
#include <ctype.h>
#include <stdio.h>

static int shout(rv_ctx *c)
{
    char text[200];
    const char *quiet = rv_str(c, ".input.text");
    if (quiet == NULL)
        return rv_stop(c, "the input has no text");
    size_t len = 0;
    for (; quiet[len] != '\0' && len + 1 < sizeof text; len++)
        text[len] = (char)toupper((unsigned char)quiet[len]);
    text[len] = '\0';
    return rv_return(c, "s", text);
}

static int count(rv_ctx *c)
{
    const char *text = rv_str(c, ".lastStep.result");
    int letters = 0;
    for (; *text != '\0'; text++)
        letters += isalpha((unsigned char)*text) != 0;
    return rv_return(c, "{s:i}", "letters", letters);
}

RV_FUNCTIONS(shout, count)
