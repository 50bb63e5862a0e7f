/* fetch.h: what the files of requests share. */
#ifndef RV_EXEC_FETCH_H
#define RV_EXEC_FETCH_H

#include "base/timers.h"
#include "exec/multi.h"
#include "exec/exec.h"

struct rv__fetches;

enum { RV__ADDRESS_TEXT = 46 };
void rv__address_text(const struct sockaddr *address, char ret[RV__ADDRESS_TEXT]); /* address.c */

/* A request under way: fetch.c.
 *
 *   begin ─▶ waits for a look-up ─▶ under way ─▶ over ─▶ freed
 *               ▲                       │ │
 *               └────── redirected ─────┘ └─ ended while its name is looked up ─▶ orphan ─▶ freed */
struct rv__transfer {
    struct rv__link listed; /* among those that wait for a look-up, or those under way */
    struct rv__fetches *all;
    struct rv__fetch *fetch; /* NULL: an orphan. `done` was called, its look-up goes on */
    CURL *easy;
    struct curl_slist *headers;
    CURLU *first, *url; /* where it was sent first; where it goes now */
    struct rv__timer deadline;
    struct rv__buf head, body;
    int redirects;
    int socket_errno;  /* why there was no socket for it; 0: there was */
    bool waits;        /* for a look-up */
    bool looking;      /* it has one of the places for look-ups */
    bool foreign;      /* redirected to another host: without headers that may hold a secret */
    bool denied;       /* an address was private, and may not be gone to */
    bool as_get;       /* redirected to be asked for with GET */
    uint64_t saved;    /* bytes of the body that are in its file, */
    char unsaved[256]; /* and why one could not be written; "": they could */
    bool in_body;      /* headers that come now are trailers */
    bool unwanted;     /* who receives its body wants no more of it */
    char error[CURL_ERROR_SIZE];
    char denied_address[RV__ADDRESS_TEXT]; /* that `denied` is about */
};

#define RV__DENIED_WORDS                                                                       \
    "it is an address of this machine or of a private network, and requests of steps may not " \
    "go there (serve --http-allow-private allows it)"

/* What libcurl's code means, and a sentence for it; fetch_end.c. Pure but for questions to libcurl. */
enum rv__fetch_end rv__transfer_end(const struct rv__transfer *t, CURLcode code, char *sentence,
                                    size_t room);
/* A sentence for a request that took too long: what it was at. */
void rv__transfer_late(const struct rv__transfer *t, char *sentence, size_t room);
/* "http://host:80/path": without name and password, and without the query, which may hold keys. */
void rv__url_for_people(CURLU *url, char *text, size_t room);

#endif
