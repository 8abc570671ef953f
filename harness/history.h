/// The history: an SQLite file of the results of many commits. Every function prints one line and
/// returns EXIT_USAGE when the file cannot be used; nothing half done stays in it.
///
/// Readers and writers may use one file at the same time (write-ahead log, busy timeout).
#ifndef MHA_HISTORY_H
#define MHA_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results.h"

/// Grows by one with every change of the tables; kept in PRAGMA user_version. Older files are
/// brought up to it when they are opened, newer ones are refused.
enum { HISTORY_VERSION = 2 };

/// PRAGMA application_id of our files ("mhaH"), which tells them from other programs' databases.
enum { HISTORY_APPLICATION = 0x6d686148 };

struct history;

enum history_access {
    HISTORY_EXISTING,  ///< The file must exist.
    HISTORY_CREATE,    ///< A file that does not exist is made.
};

/// What adding results came to.
struct history_added {
    size_t added;     ///< Results that are new.
    size_t present;   ///< Results that were there already.
    size_t untested;  ///< Left out: nothing is known of them.
};

/// One result of a case.
struct history_point {
    int64_t id;       ///< In the order of adding.
    int64_t started;  ///< Of its run, seconds since 1970.
    char *commit;     ///< "" when not known.
    char *compiler;
    enum verdict verdict;
    double median_ns;  ///< NAN unless PASSED.
    double spread_between;
    size_t launches;
    char *code_hash;
};

/// One case on one machine, its results in the order of their runs' start, then of adding.
struct history_series {
    int64_t machine_id, case_id;
    char *machine;         ///< Name of the processor; "" when not known.
    char fingerprint[17];  ///< Short form of all that identifies the machine, hexadecimal.
    char *name;            ///< Case name.
    size_t count;
    struct history_point *points;
};

struct history_list {
    size_t count;
    struct history_series *series;
};

/// Opens the file. *history is NULL on failure.
int history_open(const char *path, enum history_access access, struct history **history);

void history_close(struct history *history);

/// Adds the results of all files, or of none: every file is read before the first is written, in
/// one transaction.
int history_add(struct history *history, char *const *paths, size_t count,
                struct history_added *added);

/// Gets the series of the cases whose name matches `glob` (NULL: all), ordered by case name, then
/// machine; of each its last `last` results (0: all).
int history_select(struct history *history, const char *glob, size_t last,
                   struct history_list *list);

/// Tells whether a step of this series, named by its first commit, has been acknowledged.
int history_acknowledged(struct history *history, const struct history_series *series,
                         const char *commit, bool *acknowledged);

/// Remembers that it is. Doing so again changes nothing.
int history_acknowledge(struct history *history, const struct history_series *series,
                        const char *commit);

/// Begins a transaction over several calls of history_acknowledge(), and ends it: with EXIT_DONE it
/// is committed, with another code everything is taken back. Returns the code that counts.
int history_begin(struct history *history);
int history_finish(struct history *history, int code);

void history_free(struct history_list *list);

enum { HISTORY_LABEL_BYTES = 80 };

/// Writes what names a result's commit: the commit, or where that is not known "@" and the time at
/// which its run started.
void history_label(char label[HISTORY_LABEL_BYTES], const struct history_point *point);

/// Hands out how SQLite means to run each of the statements behind history_select(), for tests.
typedef void history_plan_fn(const char *line, void *to);
int history_plan(struct history *history, history_plan_fn *print, void *to);

/// Statements that ran and transactions that were committed since opening, for tests.
struct history_work {
    size_t statements, transactions;
};
struct history_work history_work(const struct history *history);

#endif
