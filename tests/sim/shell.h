/* shell.h: the simulator with a real engine in it: src/engine on a simulated store, or on SQLite over
 * a file system that fails and loses power.
 *
 *   shell.c ──▶ rival.h ──▶ engine ──▶ disk (shell_disk.c)
 *      │                      │ ▲         │
 *      │             work.c ◀─┘ └─ kit    ▼ what is on disk, and nothing else
 *      └──────── oracle ──▶ work      shell_judge.c ──▶ record, shadow, reference
 *
 * The judge reads the journal as it is on disk, never what the engine has in mind; so the record never
 * goes back, over all deaths. */
#ifndef RV_TESTS_SIM_SHELL_H
#define RV_TESTS_SIM_SHELL_H

#include "sim.h"

#include "work/work.h"
#include "engine/attempt.h"
#include "engine/kit.h"

/* An answer to a handle, which somebody outside will give. */
struct answer {
    struct answer *next;
    struct run *run;
    char handle[24];
    int64_t due_ms; /* by shell_ms() */
    bool fails;
    char *text; /* JSON, or of the error: the message */
};

struct shell_disk;

/* A timer that was due when a commit began, and which commit that was. */
struct late {
    const struct run *run;
    const rv_engine *engine;
    uint64_t actor, token;
    int64_t since;
    bool seen;
};

enum { CREW_MOST = 3 };

struct crowd; /* members.c */

enum { LIMITS_SEEN = 8 };
struct shell {
    struct world world; /* plans, oracle, faults, runs, the verdict */
    rv_engine *engine;  /* of several members: the one that is at work */
    struct shell_disk *disk;
    struct crowd *crowd; /* NULL: there is one process */
    struct gen_drafts drafts[2];
    uint64_t works;  /* begun */
    uint64_t lives;  /* engines made */
    int64_t base_ms; /* shell_ms() when the engine was made */
    int workers;
    int64_t credits[LANES]; /* of executors, at first; 0 = as the kit says */
    unsigned unsaid_one_in, begin_one_in, lose_one_in; /* as in the engine's kit */
    unsigned hosted_one_in;          /* so many functions are in hosts; 0 = none */
    struct crew {                    /* workers that come and go; shell_workers.c */
        struct chance chance;        /* of their own: what they do moves no other seed */
        int most;                    /* of them; 0 = none */
        unsigned one_in;             /* so many functions are theirs */
        uint32_t tickets[CREW_MOST]; /* 0: not there */
        uint64_t life[CREW_MOST];    /* of the engine that gave it; another one does not know it */
        bool away[CREW_MOST];
        int64_t credits[CREW_MOST]; /* as they are when all is well */
    } crew;
    unsigned beside_one_in,
        late_one_in; /* batches that go by the desk; time that passes meanwhile */
    struct rv__limit limits[SIM_PROVIDERS]; /* of providers; those without a name have none */
    size_t snapshot_from, value_inline;     /* bytes, as in the engine's rv__commits */
    int turn_facts;
    int burst;
    int64_t idle_limit_ms[LIMITS_SEEN]; /* since when one waits for a limit that nobody has; or 0 */
    size_t piece, budget; /* bytes: of one transaction; of cells that are loaded unasked */
    struct answer *answers;
    uint64_t lines;       /* of logs, said */
    bool killed;          /* a step takes the process with it: in the next commit */
    bool interrupted;     /* a step has something to tell to whoever lets time pass: */
    int64_t steps_left;   /* so many begin before that is interrupted */
    bool missing;         /* some function is not there */
    uint64_t refused;     /* writes that the store has refused */
    struct late late[64]; /* timers that were due when a commit began, and not taken */
    size_t late_count;
    uint64_t print;  /* of all that happened: same seed, same print */
    uint64_t stored; /* lines of logs on disk, while they are counted */
};

enum shell_kind { SHELL_MEMORY, SHELL_SQLITE, SHELL_MEMBERS };
void shell_init(struct shell *shell, uint64_t seed, enum shell_kind kind, bool trace);
void shell_run(struct shell *shell);
void shell_done(struct shell *shell);

/* Time, over the deaths of engines. */
int64_t shell_ms(const struct shell *shell);
void tell(struct shell *shell, const char *fmt, ...) RV_PRINTF(2, 3);
void shell_from_inside(struct shell *shell); /* a step does something to a run, perhaps its own */
struct run *shell_find(struct shell *shell, const char *id);

/* shell_work.c: what every function does: it asks the oracle. */
extern struct shell *shell_now; /* the one whose engine is at work */
int shell_work(rv_ctx *ctx);

/* shell_workers.c: workers, as the engine's loop knows them. */
void crew_init(struct shell *shell, uint64_t seed);
void crew_place(struct shell *shell);   /* some of the functions are theirs from now on */
void crew_meddle(struct shell *shell);  /* they change their credits, leave, come back, die */
bool crew_restore(struct shell *shell); /* all of them are there; false: they were */
void crew_check(struct shell *shell, struct run *run); /* none has more than its credits */

/* shell_disk.c */
struct shell_disk *disk_new(struct shell *shell, bool sqlite);
struct shell_disk *disk_of_member(struct shell *shell, int64_t lease_ms, int place);
void disk_move(struct shell_disk *disk, int place); /* its next process is somewhere else */
bool disk_unheard(
    const struct shell_disk *disk);           /* its last commit is on disk, and it does not know */
void disk_kill(struct shell_disk *disk);      /* the process does nothing more */
void disk_dies_next(struct shell_disk *disk); /* in its next commit */
void disk_free(struct shell_disk *disk);      /* its engine is gone */
struct rv__kit_disk *disk_kit(struct shell_disk *disk);

/* members.c: several engines, each a member of the same store, that die, stand still and come back. */
void crowd_new(struct shell *shell, uint64_t seed);
void crowd_free(struct shell *shell);
int64_t crowd_ms(const struct shell *shell);
void crowd_open(struct shell *shell); /* all of them join */
void crowd_place(
    struct shell *shell); /* it has registered: some of its functions it does not offer */
bool crowd_has(const struct shell *shell, struct rv__str function); /* the program at work */
void crowd_pick(struct shell *shell); /* somebody whom the next call is made to */
/* Time passes, as rv__kit_drive() lets it pass, but by shell_ms(). */
void crowd_drive(struct shell *shell, const bool *done, int64_t until_ms);
void crowd_meddle(struct shell *shell);
bool crowd_loses_answer(struct shell *shell); /* of the next commit */
void crowd_kills(struct shell *shell);        /* a step takes its process with it */
void crowd_restore(struct shell *shell);      /* all are there, and stay */
/* Of all, or of those that still are members. */
void crowd_each(struct shell *shell, bool all, void (*check)(struct shell *shell));
bool crowd_is_deep(const struct shell *shell);         /* no more calls inside of calls */
bool crowd_is_stale(const struct shell *shell);        /* the one at work has lost its runs */
bool crowd_excuses(const struct shell *shell, int rc); /* a call may say so: the store was away */
/* A signal was given, with that number in it. */
void crowd_gave(struct shell *shell, struct run *run, int number, int rc);
void crowd_row(struct shell *shell, struct run *run, uint64_t seq, struct rv__str facts);
bool crowd_wrote(struct shell *shell, const struct run *run, int64_t t); /* the one at work did */
void crowd_holds(struct shell *shell, struct run *run, const struct rv__run *r);
bool crowd_owns(const struct shell *shell, const struct run *run);      /* the one at work has it */
bool crowd_is_behind(const struct shell *shell, const struct run *run); /* and had it */
const char *crowd_whose(struct shell *shell, const struct run *run);    /* for people */
bool crowd_given(const struct shell *shell, const struct run *run);     /* by its last owner */
bool crowd_busy(struct shell *shell, const struct run *run); /* somebody is about to write it */
bool crowd_is_punctual(const struct shell *shell); /* nothing comes later than it has to */
void crowd_over(struct shell *shell);

/* shell.c */
void shell_open(struct shell *shell, int64_t wall_ms, bool late);

/* shell_judge.c */
void shell_watch(struct shell *shell, struct run *run); /* what is new on disk goes to the record */
void shell_begins(struct shell *shell, struct run *run, rv_ctx *ctx);
void shell_before(struct shell *shell); /* a commit: nothing that it holds has been acted on */
void shell_check(struct shell *shell);  /* between two calls */
void shell_quiet(struct shell *shell, struct run *run);
void shell_over(struct shell *shell); /* all of it */
void shell_state(struct shell *shell, struct run *run);
void shell_list(struct shell *shell);
/* The outcome that a wait brought. */
void shell_outcome(struct shell *shell, struct run *run, const rv_outcome *outcome);

#endif
