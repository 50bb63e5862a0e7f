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
    uint64_t actor, token;
    int64_t since;
    bool seen;
};

enum { CREW_MOST = 3 };

struct shell {
    struct world world; /* plans, oracle, faults, runs, the verdict */
    rv_engine *engine;
    struct shell_disk *disk;
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

void shell_init(struct shell *shell, uint64_t seed, bool sqlite, bool trace);
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
void disk_free(struct shell_disk *disk); /* its engine is gone */
struct rv__kit_disk *disk_kit(struct shell_disk *disk);

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
