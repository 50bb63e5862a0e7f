/* pg_server.h: a real PostgreSQL for tests: started by the test program, on a socket in a folder of its own, gone
 * with it. Everything here ends the program if it fails: without a server there is nothing to test. */
#ifndef RV_TESTS_UNIT_STORE_PG_SERVER_H
#define RV_TESTS_UNIT_STORE_PG_SERVER_H

#include <libpq-fe.h>
#include <stddef.h>

enum { PG_ADDRESS_MAX = 200 };

void pg_server_start(void);
void pg_server_start_synced(void); /* for measuring: every commit goes to the disk */
void pg_server_stop(void);         /* and its folder is removed */
void pg_server_halt(void);         /* at once, as if it had been killed; its data stay */
void pg_server_again(void);        /* start it after that */

const char *pg_server_folder(void); /* where its socket is */

/* A new, empty database; its address. */
void pg_database_new(char ret_address[PG_ADDRESS_MAX]);
void pg_database_drop(const char *address);

/* A line to the server that can be cut. The address leads through it; databases are those of the server. */
struct pg_line;
struct pg_line *pg_line_new(const char *address, char ret_address[PG_ADDRESS_MAX]);
void pg_line_free(struct pg_line *line);
/* Cut all connections after so many more bytes to the server, or to the client; -1: never. */
void pg_line_cut_after(struct pg_line *line, long to_server, long to_client);
void pg_line_cut_again_after(struct pg_line *line, long to_client); /* once more, after that cut */
long pg_line_left(
    struct pg_line *line); /* until it is cut: bytes to the client; -1: it is not going to be */
int pg_line_was_cut(struct pg_line *line);             /* since that was said */
void pg_line_refuse(struct pg_line *line, int refuse); /* new connections */

/* A connection of the test's own. */
PGconn *pg_connect(const char *address);
void pg_run(PGconn *pg, const char *sql);
long pg_number(PGconn *pg, const char *sql); /* the first column of the first row; -1: no row */

#endif
