/* assets.c: the files of the web UI, embedded in the program. Paths are looked up in a table: no file system is
 * involved. */
#include <string.h>

#include "server/transport.h"

static const struct rv__asset *find(const char *path)
{
    size_t low = 0, high = rv__assets_count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(path, rv__assets[mid].path);
        if (order == 0)
            return &rv__assets[mid];
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

const struct rv__asset *rv__asset_find(const char *path, bool page)
{
    static const char files[] = "/assets/";
    const struct rv__asset *asset = find(path);
    if (asset != NULL)
        return asset;
    if (strncmp(path, files, sizeof files - 1) == 0)
        return NULL;
    if (page ||
        strchr(strrchr(path, '/'), '.') == NULL) /* the UI's own routes, also ids with dots */
        return find("/index.html");
    return NULL;
}
