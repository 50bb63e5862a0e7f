/* reading.c: what all readers of one engine share: a store handle, plans, and the list of feeds. */
#include "read/read.h"

#include "base/alloc.h"
#include "base/error.h"

int rv__reading_new(struct rv__store *store, struct rv__reading **ret, rv_error *err)
{
    struct rv__reading *reading = rv__zalloc(1, sizeof *reading);
    if (reading == NULL)
        return rv__nomem(err);
    int rc = rv__overview_new(&reading->overview, err);
    if (rc == RV_OK)
        rc = rv__store_reader(store, &reading->store, err);
    if (rc < 0) {
        rv__overview_free(reading->overview);
        rv__free(reading);
        return rc;
    }
    rv__plan_cache_init(&reading->plans);
    pthread_mutex_init(&reading->lock, NULL);
    pthread_mutex_init(&reading->hub, NULL);
    *ret = reading;
    return RV_OK;
}

void rv__reading_free(struct rv__reading *reading)
{
    if (reading == NULL)
        return;
    rv__feeds_detach(reading);
    rv__node_cache_free(reading->nodes);
    rv__overview_free(reading->overview);
    rv__plan_cache_done(&reading->plans);
    rv__store_close(reading->store);
    pthread_mutex_destroy(&reading->lock);
    pthread_mutex_destroy(&reading->hub);
    rv__free(reading);
}
