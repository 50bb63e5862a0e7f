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
    struct rv__fetch *fetch; /* NULL: `done` was called, but its look-up continues (an orphan) */
    CURL *easy;
    struct curl_slist *headers;
    CURLU *first, *url; /* the original and the current address */
    struct rv__timer deadline;
    struct rv__buf head, body;
    int redirects;
    int socket_errno;  /* why no socket could be made; 0: no such error */
    bool waits;        /* for a look-up */
    bool looking;      /* it counts as one of RV__FETCH_LOOKUPS */
    bool foreign;      /* redirected to another host: without headers that may hold a secret */
    bool denied;       /* refused: the address is private */
    bool as_get;       /* redirected with a change to GET */
    uint64_t saved;    /* bytes of the body written to its file */
    char unsaved[256]; /* why a write failed; "": none did */
    bool in_body;      /* headers that come now are trailers */
    bool unwanted;     /* `received` wants no more of the body */
    char error[CURL_ERROR_SIZE];
    char denied_address[RV__ADDRESS_TEXT]; /* the address that `denied` refused */
};

#define RV__DENIED_WORDS                                                                       \
    "it is an address of this machine or of a private network, and requests of steps may not " \
    "go there (serve --http-allow-private allows it)"

/* Translate libcurl's code, and write a sentence about it; fetch_end.c. Pure except for queries to libcurl. */
enum rv__fetch_end rv__transfer_end(const struct rv__transfer *t, CURLcode code, char *sentence,
                                    size_t room);
/* A sentence for a request that took too long: what it was doing. */
void rv__transfer_late(const struct rv__transfer *t, char *sentence, size_t room);
/* "http://host:80/path": without user, password, and the query, which may hold keys. */
void rv__url_for_people(CURLU *url, char *text, size_t room);

#endif
