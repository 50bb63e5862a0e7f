/* pg_server.c: see pg_server.h. PostgreSQL refuses to run as root, so then it runs as another user, who owns the
 * folder. It does not sync: what is tested is killed processes, not power cuts. */
#include "unit/store/pg_server.h"

#include <glob.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { START_TRIES = 600, START_PAUSE_MS = 50 };

static struct {
    char folder[64], programs[128];
    pid_t server, owner;
    uid_t uid;
    gid_t gid;
    int databases;
    const char *sync; /* "fsync=off", or on */
} it;

__attribute__((format(printf, 1, 2), noreturn)) static void give_up(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "pg_server: ");
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(1);
}

static void find_programs(void)
{
    glob_t found;
    if (glob("/usr/lib/postgresql/*/bin/initdb", 0, NULL, &found) != 0 || found.gl_pathc == 0)
        give_up("there is no PostgreSQL server: install the package postgresql");
    const char *last = found.gl_pathv[found.gl_pathc - 1];
    snprintf(it.programs, sizeof it.programs, "%.*s", (int)(strrchr(last, '/') - last), last);
    globfree(&found);
}

static void choose_user(void)
{
    const struct passwd *user = NULL;
    it.uid = getuid();
    it.gid = getgid();
    if (it.uid != 0)
        return;
    user = getpwnam("postgres");
    if (user == NULL)
        user = getpwnam("nobody");
    if (user == NULL)
        give_up("there is no user to run PostgreSQL as: not root");
    it.uid = user->pw_uid;
    it.gid = user->pw_gid;
}

/* In the child: become that user, and die with the test program. */
static void become_user(void)
{
    if (getuid() != it.uid &&
        (setgroups(0, NULL) != 0 || setgid(it.gid) != 0 || setuid(it.uid) != 0))
        _exit(126);
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (getppid() != it.owner || chdir(it.folder) != 0)
        _exit(126);
    (void)umask(077);
    if (freopen("log", "a", stdout) == NULL || dup2(fileno(stdout), 2) < 0)
        _exit(126);
}

static pid_t spawn(const char *program, const char *const argv[])
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", it.programs, program);
    it.owner = getpid();
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        become_user();
        execv(path, (char *const *)argv); /* it changes none of them */
        _exit(127);
    }
    if (pid < 0)
        give_up("cannot fork");
    return pid;
}

static void server_address(char ret[PG_ADDRESS_MAX], const char *database)
{
    snprintf(ret, PG_ADDRESS_MAX, "postgres://rival@%%2Ftmp%%2F%.60s/%.60s",
             it.folder + strlen("/tmp/"), database);
}

const char *pg_server_folder(void)
{
    return it.folder;
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void wait_until_ready(void)
{
    char address[PG_ADDRESS_MAX];
    server_address(address, "postgres");
    for (int i = 0; i < START_TRIES; i++) {
        if (PQping(address) == PQPING_OK)
            return;
        if (waitpid(it.server, NULL, WNOHANG) != 0)
            break;
        pause_ms(START_PAUSE_MS);
    }
    give_up("PostgreSQL did not start: see %s/log", it.folder);
}

void pg_server_again(void)
{
    char folder[100];
    snprintf(folder, sizeof folder, "unix_socket_directories=%s", it.folder);
    const char *const argv[] = { "postgres",
                                 "-D",
                                 "data",
                                 "-c",
                                 folder,
                                 "-c",
                                 "listen_addresses=",
                                 "-c",
                                 it.sync,
                                 "-c",
                                 "shared_buffers=32MB",
                                 "-c",
                                 "max_connections=50",
                                 "-c",
                                 "autovacuum=off",
                                 "-c",
                                 "deadlock_timeout=100ms",
                                 NULL };
    it.server = spawn("postgres", argv);
    wait_until_ready();
}

void pg_server_start_synced(void)
{
    it.sync = "fsync=on";
    pg_server_start();
}

void pg_server_start(void)
{
    char template[] = "/tmp/rival-pg-XXXXXX";
    const char *const argv[] = { "initdb", "-D",    "data", "-N",   "-A",          "trust",
                                 "-U",     "rival", "-E",   "UTF8", "--no-locale", NULL };
    int status = 0;
    if (it.sync == NULL)
        it.sync = "fsync=off";
    find_programs();
    choose_user();
    if (mkdtemp(template) == NULL)
        give_up("cannot make a folder");
    snprintf(it.folder, sizeof it.folder, "%s", template);
    if (chown(it.folder, it.uid, it.gid) != 0)
        give_up("cannot give away %s", it.folder);
    pid_t pid = spawn("initdb", argv);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        give_up("initdb failed: see %s/log", it.folder);
    pg_server_again();
}

void pg_server_halt(void)
{
    if (it.server == 0)
        return;
    (void)kill(it.server, SIGQUIT);
    (void)waitpid(it.server, NULL, 0);
    it.server = 0;
}

void pg_server_stop(void)
{
    char command[128];
    pg_server_halt();
    snprintf(command, sizeof command, "rm -rf '%s'", it.folder);
    if (system(command) != 0)
        give_up("cannot remove %s", it.folder);
}

PGconn *pg_connect(const char *address)
{
    PGconn *pg = PQconnectdb(address);
    if (PQstatus(pg) != CONNECTION_OK)
        give_up("%s", PQerrorMessage(pg));
    return pg;
}

void pg_run(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        give_up("%s: %s", sql, PQerrorMessage(pg));
    PQclear(result);
}

long pg_number(PGconn *pg, const char *sql)
{
    PGresult *result = PQexec(pg, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        give_up("%s: %s", sql, PQerrorMessage(pg));
    long number = PQntuples(result) > 0 ? strtol(PQgetvalue(result, 0, 0), NULL, 10) : -1;
    PQclear(result);
    return number;
}

static void on_server(const char *before, const char *database, const char *after)
{
    char address[PG_ADDRESS_MAX], sql[128];
    server_address(address, "postgres");
    snprintf(sql, sizeof sql, "%s %s %s", before, database, after);
    PGconn *pg = pg_connect(address);
    pg_run(pg, sql);
    PQfinish(pg);
}

void pg_database_new(char ret_address[PG_ADDRESS_MAX])
{
    char name[32];
    snprintf(name, sizeof name, "t%d", ++it.databases);
    on_server("CREATE DATABASE", name, "");
    server_address(ret_address, name);
}

void pg_database_drop(const char *address)
{
    on_server("DROP DATABASE", strrchr(address, '/') + 1, "WITH (FORCE)");
}
