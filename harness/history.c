#include "history.h"

#ifdef MHA_HAVE_SQLITE

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "diag.h"
#include "stats.h"

/// A writer may have to wait for others that add hundreds of files.
enum { BUSY_MS = 60000 };

/// Each entry brings a file from the version of its index to the next one.
static const char *const migrations[HISTORY_VERSION] = {
    "CREATE TABLE machines("
    "  id INTEGER PRIMARY KEY,"
    "  identity TEXT NOT NULL UNIQUE,"
    "  fingerprint TEXT NOT NULL,"
    "  cpu TEXT NOT NULL);"
    "CREATE TABLE cases("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE runs("
    "  id INTEGER PRIMARY KEY,"
    "  machine_id INTEGER NOT NULL REFERENCES machines(id),"
    "  compiler TEXT NOT NULL,"
    "  commit_name TEXT NOT NULL,"
    "  started INTEGER NOT NULL,"
    "  version TEXT NOT NULL,"
    "  UNIQUE(machine_id, compiler, commit_name, started));"
    "CREATE TABLE results("
    "  id INTEGER PRIMARY KEY,"
    "  case_id INTEGER NOT NULL REFERENCES cases(id),"
    "  run_id INTEGER NOT NULL REFERENCES runs(id),"
    "  verdict TEXT NOT NULL,"
    "  median_ns REAL CHECK(median_ns IS NULL OR (median_ns > 0 AND verdict = 'PASSED')),"
    "  spread_between REAL,"
    "  launches INTEGER NOT NULL,"
    "  code_hash TEXT NOT NULL,"
    "  UNIQUE(case_id, run_id));"
    "CREATE INDEX results_by_run ON results(run_id);",

    "CREATE TABLE acknowledged("
    "  machine_id INTEGER NOT NULL REFERENCES machines(id),"
    "  case_id INTEGER NOT NULL REFERENCES cases(id),"
    "  commit_name TEXT NOT NULL,"
    "  PRIMARY KEY(machine_id, case_id, commit_name)) WITHOUT ROWID;",
};

enum statement {
    ADD_MACHINE,
    FIND_MACHINE,
    ADD_CASE,
    FIND_CASE,
    ADD_RUN,
    FIND_RUN,
    ADD_RESULT,
    SELECT_CASES,
    SELECT_POINTS,
    FIND_ACKNOWLEDGED,
    ADD_ACKNOWLEDGED,
    BEGIN_WRITE,
    COMMIT,
    ROLLBACK,
    STATEMENTS,
};

static const char *const statements[STATEMENTS] = {
    [ADD_MACHINE] =
        "INSERT INTO machines(identity, fingerprint, cpu) VALUES(?1, ?2, ?3)"
        " ON CONFLICT DO NOTHING",
    [FIND_MACHINE] = "SELECT id FROM machines WHERE identity = ?1",
    [ADD_CASE] = "INSERT INTO cases(name) VALUES(?1) ON CONFLICT DO NOTHING",
    [FIND_CASE] = "SELECT id FROM cases WHERE name = ?1",
    [ADD_RUN] =
        "INSERT INTO runs(machine_id, compiler, commit_name, started, version)"
        " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
    [FIND_RUN] =
        "SELECT id FROM runs WHERE machine_id = ?1 AND compiler = ?2"
        " AND commit_name = ?3 AND started = ?4",
    [ADD_RESULT] =
        "INSERT INTO results(case_id, run_id, verdict, median_ns, spread_between,"
        " launches, code_hash) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"
        " ON CONFLICT DO NOTHING",
    [SELECT_CASES] = "SELECT id, name FROM cases WHERE name GLOB ?1 ORDER BY name",
    // The unique index over (case_id, run_id) finds a case's results, CROSS JOIN keeps it first.
    [SELECT_POINTS] =
        "SELECT machines.id, machines.cpu, machines.fingerprint, results.id, runs.started,"
        "  runs.commit_name, runs.compiler, results.verdict, results.median_ns,"
        "  results.spread_between, results.launches, results.code_hash"
        " FROM results CROSS JOIN runs ON runs.id = results.run_id"
        " CROSS JOIN machines ON machines.id = runs.machine_id"
        " WHERE results.case_id = ?1 ORDER BY machines.id, runs.started, results.id",
    [FIND_ACKNOWLEDGED] =
        "SELECT 1 FROM acknowledged WHERE machine_id = ?1 AND case_id = ?2"
        " AND commit_name = ?3",
    [ADD_ACKNOWLEDGED] =
        "INSERT INTO acknowledged(machine_id, case_id, commit_name)"
        " VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING",
    // A transaction that reads first and writes later could find that another has written between.
    [BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
};

struct history {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *prepared[STATEMENTS];
    struct history_work work;
};

static int complain(const struct history *h, const char *what) {
    diag_error("history '%s': %s", h->path, what);
    return EXIT_USAGE;
}

/// Says what SQLite found wrong, in words of a user.
static int complain_sqlite(const struct history *h, int code) {
    // The index of the write-ahead log could not grow, or SQLite passes on what the system said.
    if (code == SQLITE_IOERR_SHMSIZE ||
        ((code & 0xff) == SQLITE_IOERR && sqlite3_system_errno(h->db) == ENOSPC)) {
        code = SQLITE_FULL;
    }
    switch (code & 0xff) {
        case SQLITE_NOTADB:
            return complain(h, "it is no SQLite database");
        case SQLITE_CORRUPT:
            return complain(h,
                            "the database is damaged; restore it from a copy, or make a new one "
                            "from the result files");
        case SQLITE_FULL:
            return complain(h, "the disk is full; nothing was changed");
        case SQLITE_READONLY:
            return complain(h, "it, or its folder, cannot be written to");
        case SQLITE_CANTOPEN:
            diag_error("history '%s': it cannot be opened: %s", h->path,
                       sqlite3_system_errno(h->db) != 0 ? strerror(sqlite3_system_errno(h->db))
                                                        : "SQLite needs to make files beside it");
            return EXIT_USAGE;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return complain(h, "another program has been writing to it for a minute; try again");
        case SQLITE_NOMEM:
            diag_alloc(NULL);
            return EXIT_USAGE;
        default:
            diag_error("history '%s': %s", h->path, sqlite3_errmsg(h->db));
            return EXIT_USAGE;
    }
}

// --- statements

/// Gets a prepared statement, reset and without values; NULL after a message.
static sqlite3_stmt *statement(struct history *h, enum statement which) {
    sqlite3_stmt **prepared = &h->prepared[which];
    if (*prepared == NULL) {
        const int code = sqlite3_prepare_v3(h->db, statements[which], -1, SQLITE_PREPARE_PERSISTENT,
                                            prepared, NULL);
        if (code != SQLITE_OK) {
            complain_sqlite(h, code);
            return NULL;
        }
    }
    (void)sqlite3_clear_bindings(*prepared);
    return *prepared;
}

static void bind_text(sqlite3_stmt *s, int index, const char *text) {
    if (sqlite3_bind_text(s, index, text, -1, SQLITE_TRANSIENT) != SQLITE_OK) {
        diag_alloc(NULL);
    }
}

static void bind_number(sqlite3_stmt *s, int index, int64_t number) {
    (void)sqlite3_bind_int64(s, index, number);
}

/// Binds a number, or NULL when it is not known.
static void bind_real(sqlite3_stmt *s, int index, double number) {
    if (isfinite(number)) {
        (void)sqlite3_bind_double(s, index, number);
    } else {
        (void)sqlite3_bind_null(s, index);
    }
}

/// Runs a statement whose rows do not matter, and resets it.
static int run(struct history *h, sqlite3_stmt *s) {
    if (s == NULL) {
        return EXIT_USAGE;
    }
    const int code = sqlite3_step(s);
    h->work.statements++;
    const int result =
        code == SQLITE_DONE || code == SQLITE_ROW ? EXIT_DONE : complain_sqlite(h, code);
    (void)sqlite3_reset(s);
    return result;
}

static int run_plain(struct history *h, enum statement which) {
    const int code = run(h, statement(h, which));
    if (which == COMMIT && code == EXIT_DONE) {
        h->work.transactions++;
    }
    return code;
}

/// Runs a statement that yields one number; *found tells whether it did.
static int run_number(struct history *h, sqlite3_stmt *s, int64_t *number, bool *found) {
    if (s == NULL) {
        return EXIT_USAGE;
    }
    const int code = sqlite3_step(s);
    h->work.statements++;
    *found = code == SQLITE_ROW;
    if (*found) {
        *number = sqlite3_column_int64(s, 0);
    }
    const int result =
        code == SQLITE_DONE || code == SQLITE_ROW ? EXIT_DONE : complain_sqlite(h, code);
    (void)sqlite3_reset(s);
    return result;
}

/// Ends a transaction: commits when all went well, else takes everything back.
static int finish(struct history *h, int code) {
    if (code == EXIT_DONE) {
        code = run_plain(h, COMMIT);
    }
    // SQLite may have taken everything back by itself, as when the disk is full.
    if (code != EXIT_DONE && sqlite3_get_autocommit(h->db) == 0) {
        (void)run_plain(h, ROLLBACK);
    }
    return code;
}

// --- opening

static int pragma_number(struct history *h, const char *sql, int64_t *number) {
    sqlite3_stmt *s = NULL;
    const int code = sqlite3_prepare_v2(h->db, sql, -1, &s, NULL);
    if (code != SQLITE_OK) {
        return complain_sqlite(h, code);
    }
    bool found = false;
    const int result = run_number(h, s, number, &found);
    (void)sqlite3_finalize(s);
    return result;
}

static int execute(struct history *h, const char *sql) {
    const int code = sqlite3_exec(h->db, sql, NULL, NULL, NULL);
    h->work.statements++;
    return code == SQLITE_OK ? EXIT_DONE : complain_sqlite(h, code);
}

/// Reads the marks of a file. Within one transaction, or another writer could make the file a
/// history between two of them, and it would look like someone else's.
static int read_marks(struct history *h, int64_t *application, int64_t *version, int64_t *objects) {
    const bool own = sqlite3_get_autocommit(h->db) != 0;
    if (own && execute(h, "BEGIN") != EXIT_DONE) {
        return EXIT_USAGE;
    }
    int code = pragma_number(h, "PRAGMA application_id", application);
    if (code == EXIT_DONE) {
        code = pragma_number(h, "PRAGMA user_version", version);
    }
    if (code == EXIT_DONE) {
        code = pragma_number(h, "SELECT count(*) FROM sqlite_schema", objects);
    }
    if (own && sqlite3_get_autocommit(h->db) == 0) {
        const int ended = execute(h, "COMMIT");
        code = code == EXIT_DONE ? ended : code;
    }
    return code;
}

/// Tells by its marks whether the file is ours, or empty (version 0), and of a version that is
/// known.
static int identify(struct history *h, int64_t *version) {
    int64_t application = 0, objects = 0;
    if (read_marks(h, &application, version, &objects) != EXIT_DONE) {
        return EXIT_USAGE;
    }
    if (application != HISTORY_APPLICATION && (application != 0 || *version != 0 || objects != 0)) {
        return complain(h, "it is a database of another program; nothing was changed");
    }
    if (*version > HISTORY_VERSION) {
        diag_error(
            "history '%s': its version is %lld and this program knows versions up to %d; use a "
            "newer mhabench",
            h->path, (long long)*version, HISTORY_VERSION);
        return EXIT_USAGE;
    }
    if (*version < 0 || (*version == 0 && objects != 0)) {
        return complain(h, "the database is damaged: it has tables but no version");
    }
    return EXIT_DONE;
}

/// Brings the tables up to date, in one transaction; another process may be doing the same.
static int migrate(struct history *h) {
    int64_t version = 0;
    if (run_plain(h, BEGIN_WRITE) != EXIT_DONE) {
        return EXIT_USAGE;
    }
    int code = identify(h, &version);
    for (; code == EXIT_DONE && version < HISTORY_VERSION; version++) {
        code = execute(h, migrations[version]);
    }
    if (code == EXIT_DONE) {
        char sql[128];
        (void)snprintf(sql, sizeof(sql), "PRAGMA application_id = %d; PRAGMA user_version = %d",
                       HISTORY_APPLICATION, HISTORY_VERSION);
        code = execute(h, sql);
    }
    return finish(h, code);
}

/// Turns the write-ahead log on. This needs the file for itself for a moment, for which SQLite
/// does not wait.
static int enable_log(struct history *h) {
    enum { TRIES = 500, PAUSE_US = 10000 };
    for (int i = 0; i < TRIES; i++) {
        sqlite3_stmt *s = NULL;
        int code = sqlite3_prepare_v2(h->db, "PRAGMA journal_mode = WAL", -1, &s, NULL);
        if (code == SQLITE_OK) {
            code = sqlite3_step(s);
        }
        // What some network file systems answer instead ("delete") is as safe, only slower.
        (void)sqlite3_finalize(s);
        if (code == SQLITE_ROW) {
            return EXIT_DONE;
        }
        if ((code & 0xff) != SQLITE_BUSY && (code & 0xff) != SQLITE_LOCKED) {
            return complain_sqlite(h, code);
        }
        (void)usleep(PAUSE_US);
    }
    return complain_sqlite(h, SQLITE_BUSY);
}

static int prepare_file(struct history *h, enum history_access access) {
    int64_t version = 0;
    if (identify(h, &version) != EXIT_DONE) {
        return EXIT_USAGE;
    }
    if (version == 0 && access != HISTORY_CREATE) {
        return complain(h, "it is empty; `mhabench history add` fills it");
    }
    if (version < HISTORY_VERSION && migrate(h) != EXIT_DONE) {
        return EXIT_USAGE;
    }
    return execute(h, "PRAGMA foreign_keys = ON");
}

/// Tells whether a file begins as every SQLite file does. SQLite itself takes a short file of
/// anything for an empty database, and would write over it.
static bool begins_well(const char *path) {
    static const char magic[16] = "SQLite format 3";
    char start[sizeof(magic)];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return true;  // SQLite says why.
    }
    const size_t length = fread(start, 1, sizeof(start), file);
    (void)fclose(file);  // Read only.
    return length == 0 || (length == sizeof(start) && memcmp(start, magic, sizeof(magic)) == 0);
}

int history_open(const char *path, enum history_access access, struct history **history) {
    *history = NULL;
    struct history *h = diag_alloc(calloc(1, sizeof(*h)));
    h->path = diag_alloc(strdup(path));
    struct stat status;
    int code = EXIT_DONE;
    // SQLite's own words for these are hard to understand.
    if (stat(path, &status) != 0) {
        if (errno != ENOENT || access != HISTORY_CREATE) {
            code = complain(h, strerror(errno));
        }
    } else if (!S_ISREG(status.st_mode)) {
        code = complain(h, S_ISDIR(status.st_mode) ? strerror(EISDIR) : "it is no regular file");
    }
    if (code == EXIT_DONE && !begins_well(path)) {
        code = complain_sqlite(h, SQLITE_NOTADB);
    }
    if (code == EXIT_DONE) {
        const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                          (access == HISTORY_CREATE ? SQLITE_OPEN_CREATE : 0);
        const int opened = sqlite3_open_v2(path, &h->db, flags, NULL);
        if (opened != SQLITE_OK) {
            code = complain_sqlite(h, opened);
        }
    }
    if (code == EXIT_DONE) {
        (void)sqlite3_extended_result_codes(h->db, 1);
        (void)sqlite3_busy_timeout(h->db, BUSY_MS);
        // A file from elsewhere must not run functions of its own making.
        (void)sqlite3_db_config(h->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        (void)sqlite3_db_config(h->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        // The write-ahead log comes only after the file is known to be ours: it changes the file.
        int64_t version = 0;
        code = identify(h, &version);
        if (code == EXIT_DONE && version == 0 && access == HISTORY_CREATE) {
            code = enable_log(h);
        }
    }
    if (code == EXIT_DONE) {
        code = prepare_file(h, access);
    }
    if (code == EXIT_DONE) {
        *history = h;
    } else {
        history_close(h);
    }
    return code;
}

void history_close(struct history *h) {
    if (h == NULL) {
        return;
    }
    for (size_t i = 0; i < STATEMENTS; i++) {
        (void)sqlite3_finalize(h->prepared[i]);
    }
    (void)sqlite3_close(h->db);
    free(h->path);
    free(h);
}

struct history_work history_work(const struct history *h) {
    return h->work;
}

int history_begin(struct history *h) {
    return run_plain(h, BEGIN_WRITE);
}

int history_finish(struct history *h, int code) {
    return finish(h, code);
}

// --- adding

/// Gets what identifies the machine of a result, one line, to be freed: series of machines that
/// differ in it are kept apart. Host names are no part of it: the runners of a CI pool are alike.
static char *machine_text(const json_t *context) {
    // What decides how fast a kernel is and does not change by itself. Microcode and kernel do:
    // what they cost is a step that a user wants to see.
    static const char *const facts[] = {"cpu",      "cores",    "threads_allowed", "quota",
                                        "smt",      "governor", "emulated",        "l1_bytes",
                                        "l2_bytes", "l3_bytes"};
    const json_t *machine = json_object_get(json_object_get(context, "mhabench"), "machine");
    json_t *identity = diag_alloc(json_object());
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        json_t *fact = json_object_get(machine, facts[i]);
        if (json_object_set(identity, facts[i], fact != NULL ? fact : json_null()) != 0) {
            diag_alloc(NULL);
        }
    }
    char *text = diag_alloc(json_dumps(identity, JSON_COMPACT | JSON_SORT_KEYS));
    json_decref(identity);
    return text;
}

/// FNV-1a, 64 bits (Fowler, Noll and Vo, RFC 9923): short, and the same on every machine.
static void make_fingerprint(const char *text, char fingerprint[17]) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    (void)snprintf(fingerprint, 17, "%016llx", (unsigned long long)hash);
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/// Reads a time such as "2026-11-27T22:37:54Z".
static bool read_time(const char *text, int64_t *seconds) {
    struct tm utc = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (end == NULL || *end != '\0') {
        return false;
    }
    *seconds = (int64_t)timegm(&utc);
    return true;
}

/// Inserts a row unless it is there, and gets its id.
static int intern(struct history *h, sqlite3_stmt *add, sqlite3_stmt *find, int64_t *id) {
    bool found = false;
    int code = run_number(h, find, id, &found);
    if (code == EXIT_DONE && !found) {
        code = run(h, add);
        *id = sqlite3_last_insert_rowid(h->db);
    }
    return code;
}

static int add_machine(struct history *h, const struct result *result, int64_t *id) {
    const json_t *machine =
        json_object_get(json_object_get(result->context, "mhabench"), "machine");
    char *identity = machine_text(result->context);
    char fingerprint[17];
    make_fingerprint(identity, fingerprint);
    sqlite3_stmt *add = statement(h, ADD_MACHINE);
    sqlite3_stmt *find = statement(h, FIND_MACHINE);
    int code = EXIT_USAGE;
    if (add != NULL && find != NULL) {
        bind_text(add, 1, identity);
        bind_text(add, 2, fingerprint);
        bind_text(add, 3, text_of(machine, "cpu"));
        bind_text(find, 1, identity);
        code = intern(h, add, find, id);
    }
    free(identity);
    return code;
}

static int add_run(struct history *h, const struct result *result, int64_t started, int64_t *id) {
    const json_t *own = json_object_get(result->context, "mhabench");
    const json_t *compiler = json_object_get(own, "compiler");
    int64_t machine = 0;
    if (add_machine(h, result, &machine) != EXIT_DONE) {
        return EXIT_USAGE;
    }
    char compiler_text[256];
    (void)snprintf(compiler_text, sizeof(compiler_text), "%s %s", text_of(compiler, "name"),
                   text_of(compiler, "version"));
    sqlite3_stmt *both[] = {statement(h, ADD_RUN), statement(h, FIND_RUN)};
    if (both[0] == NULL || both[1] == NULL) {
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < 2; i++) {
        bind_number(both[i], 1, machine);
        bind_text(both[i], 2, compiler_text);
        bind_text(both[i], 3, text_of(own, "commit"));
        bind_number(both[i], 4, started);
    }
    bind_text(both[0], 5, text_of(own, "version"));
    return intern(h, both[0], both[1], id);
}

static int add_row(struct history *h, const struct row *row, int64_t run_id,
                   struct history_added *added) {
    if (row->verdict == VERDICT_UNTESTED) {
        added->untested++;
        return EXIT_DONE;
    }
    char name[CASE_NAME_BYTES];
    problem_case_name(name, &row->problem, row->isa, row->tag, row->threads);
    sqlite3_stmt *add = statement(h, ADD_CASE);
    sqlite3_stmt *find = statement(h, FIND_CASE);
    sqlite3_stmt *result = statement(h, ADD_RESULT);
    if (add == NULL || find == NULL || result == NULL) {
        return EXIT_USAGE;
    }
    int64_t case_id = 0;
    bind_text(add, 1, name);
    bind_text(find, 1, name);
    if (intern(h, add, find, &case_id) != EXIT_DONE) {
        return EXIT_USAGE;
    }
    const bool timed = row_has_time(row);
    bind_number(result, 1, case_id);
    bind_number(result, 2, run_id);
    bind_text(result, 3, verdict_text(row->verdict));
    bind_real(result, 4, timed ? row->median_ns : UNKNOWN);
    bind_real(result, 5, timed ? row->spread_between : UNKNOWN);
    bind_number(result, 6, (int64_t)row->launches);
    bind_text(result, 7, row->code_hash != NULL ? row->code_hash : "");
    const int code = run(h, result);
    if (code == EXIT_DONE) {
        const bool is_new = sqlite3_changes(h->db) > 0;
        added->added += is_new;
        added->present += !is_new;
    }
    return code;
}

static int add_result(struct history *h, const struct result *result, int64_t started,
                      struct history_added *added) {
    int64_t run_id = 0;
    int code = add_run(h, result, started, &run_id);
    for (size_t i = 0; i < result->count && code == EXIT_DONE; i++) {
        code = add_row(h, &result->rows[i], run_id, added);
    }
    return code;
}

int history_add(struct history *h, char *const *paths, size_t count, struct history_added *added) {
    memset(added, 0, sizeof(*added));
    struct result *results = diag_alloc(calloc(count + 1, sizeof(*results)));
    int64_t *started = diag_alloc(calloc(count + 1, sizeof(*started)));
    int code = EXIT_DONE;
    for (size_t i = 0; i < count && code == EXIT_DONE; i++) {
        code = results_read(paths[i], &results[i]);
        if (code != EXIT_DONE) {
            break;
        }
        const json_t *own = json_object_get(results[i].context, "mhabench");
        if (!read_time(text_of(own, "started"), &started[i])) {
            diag_error("'%s': context.mhabench.started is no time such as 2026-11-27T22:37:54Z",
                       paths[i]);
            code = EXIT_USAGE;
        } else if (!json_is_object(json_object_get(own, "machine"))) {
            diag_error("'%s': context.mhabench.machine is missing: whose times are these?",
                       paths[i]);
            code = EXIT_USAGE;
        }
    }
    if (code == EXIT_DONE) {
        code = run_plain(h, BEGIN_WRITE);
        for (size_t i = 0; i < count && code == EXIT_DONE; i++) {
            code = add_result(h, &results[i], started[i], added);
        }
        code = finish(h, code);
    }
    for (size_t i = 0; i < count; i++) {
        results_free(&results[i]);
    }
    free(results);
    free(started);
    return code;
}

// --- reading

static char *column_text(sqlite3_stmt *s, int column) {
    const unsigned char *text = sqlite3_column_text(s, column);
    return diag_alloc(strdup(text != NULL ? (const char *)text : ""));
}

static double column_real(sqlite3_stmt *s, int column) {
    return sqlite3_column_type(s, column) == SQLITE_NULL ? UNKNOWN
                                                         : sqlite3_column_double(s, column);
}

static struct history_point read_point(sqlite3_stmt *s) {
    const unsigned char *verdict = sqlite3_column_text(s, 7);
    const int64_t launches = sqlite3_column_int64(s, 10);
    struct history_point point = {
        .id = sqlite3_column_int64(s, 3),
        .started = sqlite3_column_int64(s, 4),
        .commit = column_text(s, 5),
        .compiler = column_text(s, 6),
        .verdict = verdict_find(verdict != NULL ? (const char *)verdict : ""),
        .median_ns = column_real(s, 8),
        .spread_between = column_real(s, 9),
        .launches = launches > 0 ? (size_t)launches : 0,
        .code_hash = column_text(s, 11),
    };
    return point;
}

void history_label(char label[HISTORY_LABEL_BYTES], const struct history_point *point) {
    if (point->commit[0] != '\0') {
        (void)snprintf(label, HISTORY_LABEL_BYTES, "%s", point->commit);
        return;
    }
    const time_t at = (time_t)point->started;
    struct tm utc = {0};
    if (gmtime_r(&at, &utc) == NULL ||
        strftime(label, HISTORY_LABEL_BYTES, "@%Y-%m-%dT%H:%M:%SZ", &utc) == 0) {
        (void)snprintf(label, HISTORY_LABEL_BYTES, "@%lld", (long long)point->started);
    }
}

static void free_point(struct history_point *point) {
    free(point->commit);
    free(point->compiler);
    free(point->code_hash);
}

/// Gets the room for `count` items, which doubles: a power of two.
static void *grow(void *items, size_t count, size_t size) {
    if ((count & (count - 1)) != 0) {
        return items;
    }
    return diag_alloc(reallocarray(items, count > 0 ? 2 * count : 1, size));
}

static void keep_last(struct history_series *series, size_t last) {
    if (last == 0 || series->count <= last) {
        return;
    }
    const size_t gone = series->count - last;
    for (size_t i = 0; i < gone; i++) {
        free_point(&series->points[i]);
    }
    memmove(series->points, &series->points[gone], last * sizeof(*series->points));
    series->count = last;
}

/// Appends the series of one case.
static int select_points(struct history *h, int64_t case_id, const char *name, size_t last,
                         struct history_list *list) {
    sqlite3_stmt *s = statement(h, SELECT_POINTS);
    if (s == NULL) {
        return EXIT_USAGE;
    }
    bind_number(s, 1, case_id);
    const size_t before = list->count;
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        const int64_t machine = sqlite3_column_int64(s, 0);
        if (list->count == before || list->series[list->count - 1].machine_id != machine) {
            list->series = grow(list->series, list->count, sizeof(*list->series));
            struct history_series *series = &list->series[list->count++];
            memset(series, 0, sizeof(*series));
            series->machine_id = machine;
            series->case_id = case_id;
            series->name = diag_alloc(strdup(name));
            series->machine = column_text(s, 1);
            const unsigned char *fingerprint = sqlite3_column_text(s, 2);
            (void)snprintf(series->fingerprint, sizeof(series->fingerprint), "%s",
                           fingerprint != NULL ? (const char *)fingerprint : "");
        }
        struct history_series *series = &list->series[list->count - 1];
        series->points = grow(series->points, series->count, sizeof(*series->points));
        series->points[series->count++] = read_point(s);
    }
    h->work.statements++;
    (void)sqlite3_reset(s);
    for (size_t i = before; i < list->count; i++) {
        keep_last(&list->series[i], last);
    }
    return code == SQLITE_DONE ? EXIT_DONE : complain_sqlite(h, code);
}

int history_select(struct history *h, const char *glob, size_t last, struct history_list *list) {
    memset(list, 0, sizeof(*list));
    sqlite3_stmt *s = statement(h, SELECT_CASES);
    if (s == NULL) {
        return EXIT_USAGE;
    }
    bind_text(s, 1, glob != NULL ? glob : "*");
    int code = SQLITE_ROW, result = EXIT_DONE;
    while (result == EXIT_DONE && (code = sqlite3_step(s)) == SQLITE_ROW) {
        char *name = column_text(s, 1);
        result = select_points(h, sqlite3_column_int64(s, 0), name, last, list);
        free(name);
    }
    h->work.statements++;
    (void)sqlite3_reset(s);
    if (result == EXIT_DONE && code != SQLITE_DONE) {
        result = complain_sqlite(h, code);
    }
    if (result != EXIT_DONE) {
        history_free(list);
    }
    return result;
}

void history_free(struct history_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        struct history_series *series = &list->series[i];
        for (size_t p = 0; p < series->count; p++) {
            free_point(&series->points[p]);
        }
        free(series->points);
        free(series->machine);
        free(series->name);
    }
    free(list->series);
    memset(list, 0, sizeof(*list));
}

int history_plan(struct history *h, history_plan_fn *print, void *to) {
    static const enum statement asked[] = {SELECT_CASES, SELECT_POINTS, FIND_MACHINE,
                                           FIND_RUN,     FIND_CASE,     FIND_ACKNOWLEDGED};
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
        char sql[1024];
        (void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", statements[asked[i]]);
        sqlite3_stmt *s = NULL;
        int code = sqlite3_prepare_v2(h->db, sql, -1, &s, NULL);
        if (code != SQLITE_OK) {
            return complain_sqlite(h, code);
        }
        enum { DETAIL = 3 };  // The column of EXPLAIN QUERY PLAN that is text.
        while ((code = sqlite3_step(s)) == SQLITE_ROW) {
            print((const char *)sqlite3_column_text(s, DETAIL), to);
        }
        (void)sqlite3_finalize(s);
        if (code != SQLITE_DONE) {
            return complain_sqlite(h, code);
        }
    }
    return EXIT_DONE;
}

// --- acknowledging

static sqlite3_stmt *bind_step(struct history *h, enum statement which,
                               const struct history_series *series, const char *commit) {
    sqlite3_stmt *s = statement(h, which);
    if (s != NULL) {
        bind_number(s, 1, series->machine_id);
        bind_number(s, 2, series->case_id);
        bind_text(s, 3, commit);
    }
    return s;
}

int history_acknowledged(struct history *h, const struct history_series *series, const char *commit,
                         bool *acknowledged) {
    int64_t one = 0;
    return run_number(h, bind_step(h, FIND_ACKNOWLEDGED, series, commit), &one, acknowledged);
}

int history_acknowledge(struct history *h, const struct history_series *series,
                        const char *commit) {
    return run(h, bind_step(h, ADD_ACKNOWLEDGED, series, commit));
}

#endif
