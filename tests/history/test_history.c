/// The history file: what goes in and comes out, files of other versions and kinds, writers at the
/// same time, and how much work a large one makes.
///
/// `test_history make FOLDER` writes result files for history.sh instead.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <limits.h>
#include <math.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "diag.h"
#include "history.h"
#include "history_judge.h"
#include "op.h"
#include "sparkline.h"
#include "stats.h"

static char folder[64];

static const char *path_of(const char *name) {
    static char paths[8][PATH_MAX];
    static size_t next;
    char *path = paths[next++ % 8];
    assert_true(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
    return path;
}

static int make_folder(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/mhabench-test-history-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

// --- result files

/// What a result file is to hold: `count` cases of one kernel that differ in seq_q, from `first`
/// on.
struct recipe {
    size_t first, count;
    const char *commit, *compiler_version, *cpu;
    int64_t started;
    enum verdict verdict;
    double ns;
};

static const struct recipe plain = {
    .first = 1,
    .count = 1,
    .commit = "aaaaaaaaaaaa",
    .compiler_version = "12.2.0",
    .cpu = "Made-up CPU",
    .started = 1767225600,  // 2026-01-01T00:00:00Z
    .verdict = VERDICT_PASSED,
    .ns = 1000.0,
};

static json_t *make_context(const struct recipe *recipe) {
    char when[32];
    const time_t at = (time_t)recipe->started;
    struct tm utc;
    assert_non_null(gmtime_r(&at, &utc));
    assert_true(strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc) > 0);
    json_t *context = json_pack(
        "{s:s, s:{s:i, s:s, s:s, s:s, s:{s:s, s:i, s:i}, s:{s:s, s:s}}}", "host_name", "any",
        "mhabench", "schema_version", RESULTS_SCHEMA_VERSION, "version", "0.1.0", "commit",
        recipe->commit, "started", when, "machine", "cpu", recipe->cpu, "cores", 2,
        "threads_allowed", 2, "compiler", "name", "GNU", "version", recipe->compiler_version);
    assert_non_null(context);
    return context;
}

static void fill_row(struct row *row, const struct recipe *recipe, size_t seq_q) {
    row->problem.op = op_find("softmax")->name;
    row->problem.dtype = "f32";
    row->problem.shape = (struct mha_shape){1, 12, 12, seq_q, 128, 64};
    row->kernel = strdup("softmax_f32_scalar_libm");
    row->isa = strdup("scalar");
    row->tag = strdup("libm");
    row->threads = 1;
    row->verdict = recipe->verdict;
    row->reason = recipe->verdict == VERDICT_PASSED ? NULL : strdup("made up");
    row->max_ulp = row->bound_share = row->checked_share = UNKNOWN;
    row->flops = row->bytes = 1e6;
    row->effective_ghz = row->ceiling_share = row->pack_ns = row->create_ns = UNKNOWN;
    row->code_hash = strdup("0123456789abcdef");
    row->repro = strdup("mhabench check");
    if (recipe->verdict == VERDICT_PASSED) {
        row->iterations = 1;
        row->launches = 1;
        row->samples = calloc(1, sizeof(*row->samples));
        row->samples[0].count = 1;
        row->samples[0].ns = malloc(sizeof(double));
        row->samples[0].ns[0] = recipe->ns;
    }
}

static void write_result(const char *path, const struct recipe *recipe) {
    struct result result = {.context = make_context(recipe), .count = recipe->count};
    result.rows = calloc(recipe->count, sizeof(*result.rows));
    assert_non_null(result.rows);
    for (size_t i = 0; i < recipe->count; i++) {
        fill_row(&result.rows[i], recipe, recipe->first + i);
    }
    results_derive(&result);
    json_t *json = results_to_json(&result);
    assert_int_equal(results_write(json, path), EXIT_DONE);
    json_decref(json);
    results_free(&result);
}

static struct history *open_history(const char *path) {
    struct history *history = NULL;
    assert_int_equal(history_open(path, HISTORY_CREATE, &history), EXIT_DONE);
    assert_non_null(history);
    return history;
}

/// Adds one made result.
static struct history_added add(struct history *history, const struct recipe *recipe) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/result-%ld.json", folder, (long)getpid());
    write_result(path, recipe);
    char *paths[] = {path};
    struct history_added added;
    assert_int_equal(history_add(history, paths, 1, &added), EXIT_DONE);
    return added;
}

static struct history_list select_all(struct history *history, const char *glob, size_t last) {
    struct history_list list;
    assert_int_equal(history_select(history, glob, last, &list), EXIT_DONE);
    return list;
}

/// Runs one statement on a file from outside.
static void execute(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t number_of(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(s, 0);
    assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return number;
}

static char *read_bytes(const char *path, size_t *length) {
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    char *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *length = fread(bytes, 1, 1 << 20, file);
    (void)fclose(file);
    return bytes;
}

/// Opens what cannot be opened, in both ways, and holds the message against `part`; the file is
/// left as it was.
static void assert_refused(const char *path, const char *part) {
    struct stat status;
    const bool regular = stat(path, &status) == 0 && S_ISREG(status.st_mode);
    size_t before_length = 0, after_length = 0;
    char *before = regular ? read_bytes(path, &before_length) : NULL;
    for (enum history_access access = HISTORY_EXISTING; access <= HISTORY_CREATE; access++) {
        int ends[2];
        char text[1024] = "";
        const int kept = dup(STDERR_FILENO);
        assert_int_equal(pipe(ends), 0);
        assert_true(kept >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
        struct history *history = NULL;
        const int code = history_open(path, access, &history);
        assert_true(dup2(kept, STDERR_FILENO) >= 0);
        assert_true(read(ends[0], text, sizeof(text) - 1) > 0);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)close(kept);
        assert_int_equal(code, EXIT_USAGE);
        assert_null(history);
        assert_non_null(strstr(text, path));
        if (strstr(text, part) == NULL) {
            fail_msg("'%s' lacks '%s'", text, part);
        }
        assert_int_equal(strcspn(text, "\n"), strlen(text) - 1);
    }
    if (regular) {
        char *after = read_bytes(path, &after_length);
        assert_int_equal(before_length, after_length);
        assert_memory_equal(before, after, before_length);
        free(after);
    }
    free(before);
}

static void write_text(const char *path, const char *text, size_t length) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

// --- what goes in

static void test_add_and_select(void **state) {
    (void)state;
    struct history *history = open_history(path_of("add.db"));
    struct recipe recipe = plain;
    recipe.count = 3;
    struct history_added added = add(history, &recipe);
    assert_int_equal(added.added, 3);
    assert_int_equal(added.present, 0);
    // The same result is one, however often it is added.
    added = add(history, &recipe);
    assert_int_equal(added.added, 0);
    assert_int_equal(added.present, 3);
    // Each part of the key makes another.
    struct recipe others[] = {recipe, recipe, recipe, recipe};
    others[0].commit = "bbbbbbbbbbbb";
    others[1].compiler_version = "13.1.0";
    others[2].cpu = "Another CPU";
    others[3].started += 1;
    for (size_t i = 0; i < 4; i++) {
        added = add(history, &others[i]);
        assert_int_equal(added.added, 3);
    }
    struct history_list list = select_all(history, NULL, 0);
    assert_int_equal(list.count, 6);  // three cases on two machines
    for (size_t i = 0; i < list.count; i++) {
        assert_int_equal(list.series[i].count,
                         strcmp(list.series[i].machine, plain.cpu) == 0 ? 4 : 1);
        assert_int_equal(strlen(list.series[i].fingerprint), 16);
    }
    assert_string_not_equal(list.series[0].fingerprint, list.series[1].fingerprint);
    assert_string_equal(list.series[0].name, list.series[1].name);
    const struct history_point *point = &list.series[0].points[0];
    assert_string_equal(point->commit, plain.commit);
    assert_string_equal(point->compiler, "GNU 12.2.0");
    assert_string_equal(point->code_hash, "0123456789abcdef");
    assert_true(fabs(point->median_ns - 1000.0) < 1e-9);
    assert_int_equal(point->started, plain.started);
    assert_int_equal(point->launches, 1);
    history_free(&list);
    list = select_all(history, "*seq_q:2/*", 2);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.series[0].count, 2);
    history_free(&list);
    list = select_all(history, "nothing", 0);
    assert_int_equal(list.count, 0);
    history_free(&list);
    history_close(history);
}

static void test_only_passed_times_enter(void **state) {
    (void)state;
    const char *path = path_of("verdicts.db");
    struct history *history = open_history(path);
    for (enum verdict verdict = VERDICT_UNTESTED; verdict <= VERDICT_ACCOUNTING; verdict++) {
        struct recipe recipe = plain;
        recipe.verdict = verdict;
        recipe.started += verdict;
        const struct history_added added = add(history, &recipe);
        assert_int_equal(added.added, verdict != VERDICT_UNTESTED);
        assert_int_equal(added.untested, verdict == VERDICT_UNTESTED);
    }
    struct history_list list = select_all(history, NULL, 0);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.series[0].count, VERDICT_ACCOUNTING);
    for (size_t i = 0; i < list.series[0].count; i++) {
        const struct history_point *point = &list.series[0].points[i];
        assert_int_equal(point->verdict, VERDICT_PASSED + i);
        assert_int_equal(isfinite(point->median_ns), point->verdict == VERDICT_PASSED);
    }
    history_free(&list);
    history_close(history);
}

/// All files or none.
static void test_add_is_one_transaction(void **state) {
    (void)state;
    struct history *history = open_history(path_of("whole.db"));
    struct recipe recipe = plain;
    char *paths[3] = {strdup(path_of("w1.json")), strdup(path_of("w2.json")),
                      strdup(path_of("w3.json"))};
    recipe.count = 5;
    write_result(paths[0], &recipe);
    recipe.started++;
    write_result(paths[1], &recipe);
    write_text(paths[2], "{\"context\": {}, \"benchmarks\"", 28);
    struct history_added added;
    assert_int_equal(history_add(history, paths, 3, &added), EXIT_USAGE);
    struct history_list list = select_all(history, NULL, 0);
    assert_int_equal(list.count, 0);
    history_free(&list);
    const struct history_work before = history_work(history);
    assert_int_equal(history_add(history, paths, 2, &added), EXIT_DONE);
    assert_int_equal(added.added, 10);
    assert_int_equal(history_work(history).transactions - before.transactions, 1);
    history_close(history);
    for (size_t i = 0; i < 3; i++) {
        free(paths[i]);
    }
}

/// The order of adding does not count, that of the runs does.
static void test_order(void **state) {
    (void)state;
    struct history *history = open_history(path_of("order.db"));
    static const int order[] = {3, 0, 4, 1, 2};
    for (size_t i = 0; i < 5; i++) {
        struct recipe recipe = plain;
        char commit[16];
        (void)snprintf(commit, sizeof(commit), "commit%d", order[i]);
        recipe.commit = commit;
        recipe.started += order[i] / 2;  // pairs start at the same second
        (void)add(history, &recipe);
    }
    static const char *const expected[] = {"commit0", "commit1", "commit3", "commit2", "commit4"};
    struct history_list list = select_all(history, NULL, 0);
    for (size_t i = 0; i < 5; i++) {
        assert_string_equal(list.series[0].points[i].commit, expected[i]);
    }
    history_free(&list);
    history_close(history);
}

// --- what it says

/// Adds `count` commits from number `from` on, of about `ns`.
static void add_commits(struct history *history, size_t from, size_t count, double ns) {
    static const double noise[] = {0.0, 0.004, -0.004, 0.008, -0.008, 0.002, -0.002};
    for (size_t i = from; i < from + count; i++) {
        struct recipe recipe = plain;
        char commit[24];
        (void)snprintf(commit, sizeof(commit), "%012zx", i + 0x1000);
        recipe.commit = commit;
        recipe.started += (int64_t)i * 3600;
        recipe.ns = ns * (1.0 + noise[i % (sizeof(noise) / sizeof(noise[0]))]);
        (void)add(history, &recipe);
    }
}

static void test_judgement(void **state) {
    (void)state;
    struct history *history = open_history(path_of("judge.db"));
    add_commits(history, 0, 22, 1000.0);
    add_commits(history, 22, 3, 1100.0);
    struct history_list list = select_all(history, NULL, 0);
    struct history_judgement judgement;
    assert_int_equal(history_judge(history, &list.series[0], &judgement), EXIT_DONE);
    assert_int_equal(judgement.commits, 25);
    assert_int_equal(judgement.step_count, 1);
    const struct history_step *step = history_regression(&judgement);
    assert_non_null(step);
    assert_string_equal(step->before.first->commit, "000000001015");
    assert_string_equal(step->after.first->commit, "000000001016");
    assert_string_equal(step->found.first->commit, "000000001018");
    assert_true(fabs(step->before_ns - 1000.0) < 5.0 && fabs(step->after_ns - 1100.0) < 10.0);
    assert_int_equal(history_acknowledge(history, &list.series[0], "000000001016"), EXIT_DONE);
    assert_int_equal(history_acknowledge(history, &list.series[0], "000000001016"), EXIT_DONE);
    history_judgement_free(&judgement);
    assert_int_equal(history_judge(history, &list.series[0], &judgement), EXIT_DONE);
    assert_int_equal(judgement.step_count, 1);
    assert_true(judgement.steps[0].acknowledged);
    assert_null(history_regression(&judgement));
    history_judgement_free(&judgement);
    history_free(&list);
    // A later one is new, and a repair is none.
    add_commits(history, 25, 20, 1100.0);
    add_commits(history, 45, 3, 1200.0);
    list = select_all(history, NULL, 0);
    assert_int_equal(history_judge(history, &list.series[0], &judgement), EXIT_DONE);
    assert_int_equal(judgement.step_count, 2);
    assert_non_null(history_regression(&judgement));
    history_judgement_free(&judgement);
    history_free(&list);
    add_commits(history, 48, 3, 1100.0);
    list = select_all(history, NULL, 0);
    assert_int_equal(history_judge(history, &list.series[0], &judgement), EXIT_DONE);
    assert_int_equal(judgement.step_count, 3);
    assert_null(history_regression(&judgement));
    history_judgement_free(&judgement);
    history_free(&list);
    history_close(history);
}

/// Results of one commit are one commit, at the place of the first; others stand for themselves.
static void test_commits_are_gathered(void **state) {
    (void)state;
    struct history *history = open_history(path_of("gather.db"));
    static const char *const commits[] = {"aaaa",       "bbbb", "aaaa", "aaaa",
                                          "cccc-dirty", "",     "",     "cccc-dirty"};
    for (size_t i = 0; i < 8; i++) {
        struct recipe recipe = plain;
        recipe.commit = commits[i];
        recipe.started += (int64_t)i;
        (void)add(history, &recipe);
    }
    struct history_list list = select_all(history, NULL, 0);
    struct history_judgement judgement;
    assert_int_equal(history_judge(history, &list.series[0], &judgement), EXIT_DONE);
    assert_int_equal(judgement.commits, 6);
    char label[HISTORY_LABEL_BYTES];
    history_label(label, &list.series[0].points[5]);
    assert_string_equal(label, "@2026-01-01T00:00:05Z");
    history_judgement_free(&judgement);
    history_free(&list);
    history_close(history);
}

static void test_verdict_changes(void **state) {
    (void)state;
    struct history *history = open_history(path_of("changes.db"));
    static const enum verdict verdicts[] = {VERDICT_PASSED, VERDICT_PASSED, VERDICT_SKIPPED,
                                            VERDICT_PASSED, VERDICT_FAILED, VERDICT_FAILED};
    for (size_t i = 0; i < 6; i++) {
        struct recipe recipe = plain;
        char commit[8];
        (void)snprintf(commit, sizeof(commit), "c%zu", i);
        recipe.commit = commit;
        recipe.started += (int64_t)i;
        recipe.verdict = verdicts[i];
        (void)add(history, &recipe);
        struct history_list list = select_all(history, NULL, 0);
        struct history_judgement judgement;
        assert_int_equal(history_judge(history, &list.series[0], &judgement), EXIT_DONE);
        assert_int_equal(history_failure(&judgement) != NULL, i >= 4);
        assert_int_equal(judgement.change_count, i < 2 ? 0 : i < 5 ? i - 1 : 3);
        history_judgement_free(&judgement);
        history_free(&list);
    }
    struct history_list list = select_all(history, NULL, 0);
    assert_int_equal(history_acknowledge(history, &list.series[0], "c4"), EXIT_DONE);
    struct history_judgement judgement;
    assert_int_equal(history_judge(history, &list.series[0], &judgement), EXIT_DONE);
    assert_null(history_failure(&judgement));
    history_judgement_free(&judgement);
    history_free(&list);
    history_close(history);
}

// --- files of other versions and kinds

/// Version 1, as it was: no acknowledgements.
static const char version_1[] =
    "CREATE TABLE machines(id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE,"
    " fingerprint TEXT NOT NULL, cpu TEXT NOT NULL);"
    "CREATE TABLE cases(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);"
    "CREATE TABLE runs(id INTEGER PRIMARY KEY,"
    " machine_id INTEGER NOT NULL REFERENCES machines(id), compiler TEXT NOT NULL,"
    " commit_name TEXT NOT NULL, started INTEGER NOT NULL, version TEXT NOT NULL,"
    " UNIQUE(machine_id, compiler, commit_name, started));"
    "CREATE TABLE results(id INTEGER PRIMARY KEY,"
    " case_id INTEGER NOT NULL REFERENCES cases(id),"
    " run_id INTEGER NOT NULL REFERENCES runs(id), verdict TEXT NOT NULL,"
    " median_ns REAL CHECK(median_ns IS NULL OR (median_ns > 0 AND verdict = 'PASSED')),"
    " spread_between REAL,"
    " launches INTEGER NOT NULL, code_hash TEXT NOT NULL, UNIQUE(case_id, run_id));"
    "CREATE INDEX results_by_run ON results(run_id);"
    "INSERT INTO machines VALUES(1, '{}', '00000000000000ff', 'Old CPU');"
    "INSERT INTO cases VALUES(1, 'old/case');"
    "INSERT INTO runs VALUES(1, 1, 'GNU 11', 'feedface', 1700000000, '0.0.9');"
    "INSERT INTO results VALUES(1, 1, 1, 'PASSED', 12.5, NULL, 3, '');"
    "PRAGMA application_id = 1835557192; PRAGMA user_version = 1;";

static void test_migration(void **state) {
    (void)state;
    const char *path = path_of("old.db");
    assert_int_equal(HISTORY_APPLICATION, 1835557192);
    execute(path, version_1);
    struct history *history = NULL;
    assert_int_equal(history_open(path, HISTORY_EXISTING, &history), EXIT_DONE);
    assert_int_equal(number_of(path, "PRAGMA user_version"), HISTORY_VERSION);
    struct history_list list = select_all(history, NULL, 0);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.series[0].name, "old/case");
    assert_string_equal(list.series[0].machine, "Old CPU");
    assert_true(fabs(list.series[0].points[0].median_ns - 12.5) < 1e-12);
    assert_int_equal(list.series[0].points[0].launches, 3);
    bool acknowledged = true;
    assert_int_equal(history_acknowledged(history, &list.series[0], "feedface", &acknowledged),
                     EXIT_DONE);
    assert_false(acknowledged);
    assert_int_equal(history_acknowledge(history, &list.series[0], "feedface"), EXIT_DONE);
    assert_int_equal(history_acknowledged(history, &list.series[0], "feedface", &acknowledged),
                     EXIT_DONE);
    assert_true(acknowledged);
    history_free(&list);
    const struct history_added added = add(history, &plain);
    assert_int_equal(added.added, 1);
    history_close(history);
    // What was migrated has the tables of a new file.
    history_close(open_history(path_of("new.db")));
    static const char tables[] =
        "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'";
    assert_int_equal(number_of(path, tables), number_of(path_of("new.db"), tables));
}

static void test_settings(void **state) {
    (void)state;
    const char *path = path_of("settings.db");
    struct history *history = open_history(path);
    (void)add(history, &plain);
    // Foreign keys hold: a result without its run cannot be written by our connection's rules.
    assert_int_equal(number_of(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_int_equal(number_of(path, "SELECT count(*) FROM pragma_foreign_key_list('results')"), 2);
    assert_int_equal(number_of(path,
                               "SELECT count(*) FROM pragma_journal_mode WHERE"
                               " journal_mode = 'wal'"),
                     1);
    history_close(history);
}

static void test_refused_files(void **state) {
    (void)state;
    const char *foreign = path_of("foreign.db");
    execute(foreign, "CREATE TABLE results(id INTEGER); INSERT INTO results VALUES(1)");
    assert_refused(foreign, "another program");
    const char *marked = path_of("marked.db");
    execute(marked, "PRAGMA application_id = 42; CREATE TABLE t(id INTEGER)");
    assert_refused(marked, "another program");
    const char *newer = path_of("newer.db");
    execute(newer, version_1);
    execute(newer, "PRAGMA user_version = 999");
    assert_refused(newer, "version is 999");
    assert_refused(newer, "newer mhabench");
    const char *text = path_of("text.db");
    for (size_t length = 1; length <= 5000; length = length * 7 + 1) {
        char *words = malloc(length);
        assert_non_null(words);
        memset(words, 'x', length);
        write_text(text, words, length);
        free(words);
        assert_refused(text, "no SQLite database");
    }
    assert_refused(folder, "directory");
    assert_refused("/dev/null", "no regular file");
    assert_refused(path_of("no/such/folder.db"), "No such file");
    struct history *history = NULL;
    assert_int_equal(history_open(path_of("absent.db"), HISTORY_EXISTING, &history), EXIT_USAGE);
    assert_int_equal(access(path_of("absent.db"), F_OK), -1);
}

/// Bytes that were overwritten, at every page: never a crash, always a message and an exit code.
static void test_damaged_files(void **state) {
    (void)state;
    const char *good = path_of("good.db"), *bad = path_of("bad.db");
    struct history *history = open_history(good);
    struct recipe recipe = plain;
    recipe.count = 200;
    (void)add(history, &recipe);
    history_close(history);
    size_t length = 0, refused = 0;
    char *bytes = read_bytes(good, &length);
    for (size_t at = 4096; at + 1024 <= length; at += 4096) {
        char kept[1024];
        memcpy(kept, bytes + at, sizeof(kept));
        memset(bytes + at, 0xa5, sizeof(kept));
        write_text(bad, bytes, length);
        memcpy(bytes + at, kept, sizeof(kept));
        struct history_list list = {0};
        int code = history_open(bad, HISTORY_EXISTING, &history);
        if (code == EXIT_DONE) {
            code = history_select(history, NULL, 0, &list);
        }
        assert_true(code == EXIT_DONE || code == EXIT_USAGE);
        refused += code == EXIT_USAGE;
        history_free(&list);
        history_close(history);
        history = NULL;
    }
    assert_true(refused > 0);
    // Cut short.
    write_text(bad, bytes, length / 2);
    int code = history_open(bad, HISTORY_EXISTING, &history);
    struct history_list list = {0};
    if (code == EXIT_DONE) {
        code = history_select(history, NULL, 0, &list);
    }
    assert_int_equal(code, EXIT_USAGE);
    history_free(&list);
    history_close(history);
    free(bytes);
}

// --- writers at the same time

static void test_two_writers(void **state) {
    (void)state;
    enum { WRITERS = 2, ADDS = 40, ROWS = 5 };
    const char *path = path_of("writers.db");
    pid_t children[WRITERS];
    // Neither finds the file there: they also make it at the same time.
    for (size_t w = 0; w < WRITERS; w++) {
        children[w] = fork();
        assert_true(children[w] >= 0);
        if (children[w] == 0) {
            size_t done = 0;
            for (size_t i = 0; i < ADDS; i++) {
                struct recipe recipe = plain;
                recipe.started += (int64_t)(w * ADDS + i);
                recipe.count = ROWS;
                struct history *history = open_history(path);
                done += add(history, &recipe).added;
                history_close(history);
            }
            _exit(done == (size_t)ADDS * ROWS ? 0 : 1);
        }
    }
    for (size_t w = 0; w < WRITERS; w++) {
        int status = 0;
        assert_int_equal(waitpid(children[w], &status, 0), children[w]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(number_of(path, "SELECT count(*) FROM results"), WRITERS * ADDS * ROWS);
    assert_int_equal(number_of(path, "SELECT count(*) FROM runs"), WRITERS * ADDS);
    assert_int_equal(number_of(path, "SELECT count(*) FROM machines"), 1);
    assert_int_equal(number_of(path,
                               "SELECT count(*) FROM pragma_integrity_check"
                               " WHERE integrity_check = 'ok'"),
                     1);
}

// --- how much work

struct plan {
    size_t lines, scans;
};

static void look_at_plan(const char *line, void *to) {
    struct plan *plan = to;
    plan->lines++;
    // All names are walked through for the glob, once; no other table is.
    if (strncmp(line, "SCAN", 4) == 0 && strstr(line, "cases") == NULL) {
        print_message("a table is walked through: %s\n", line);
        plan->scans++;
    }
}

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/// 100 000 rows: the work is counted, the times are printed and not judged.
static void test_large(void **state) {
    (void)state;
    enum { CASES = 1000, COMMITS = 100 };
    const char *path = path_of("large.db");
    struct history *history = open_history(path);
    struct recipe recipe = plain;
    recipe.count = CASES;
    (void)add(history, &recipe);
    // Written by SQL: making and reading 100 result files would take most of the time.
    char sql[1024];
    (void)snprintf(sql, sizeof(sql),
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)"
                   " INSERT INTO runs(machine_id, compiler, commit_name, started, version)"
                   " SELECT 1, 'GNU 12.2.0', printf('%%012x', i), %lld + i, '' FROM n;"
                   "INSERT INTO results(case_id, run_id, verdict, median_ns, launches, code_hash)"
                   " SELECT cases.id, runs.id, 'PASSED', 1000 + runs.id %% 7, 3, '0123456789abcdef'"
                   " FROM runs JOIN cases WHERE runs.id > 1",
                   COMMITS - 1, (long long)plain.started);
    execute(path, sql);
    assert_int_equal(number_of(path, "SELECT count(*) FROM results"), CASES * COMMITS);

    struct plan plan = {0};
    assert_int_equal(history_plan(history, look_at_plan, &plan), EXIT_DONE);
    assert_true(plan.lines > 0);
    assert_int_equal(plan.scans, 0);

    const char *added_path = path_of("thousand.json");
    recipe.started += COMMITS;
    recipe.commit = "ffffffffffff";
    write_result(added_path, &recipe);
    char *paths[] = {strdup(added_path)};
    struct history_added added;
    struct history_work before = history_work(history);
    double start = seconds();
    assert_int_equal(history_add(history, paths, 1, &added), EXIT_DONE);
    print_message("add of %d rows to %d: %.3f s\n", CASES, CASES * COMMITS, seconds() - start);
    free(paths[0]);
    assert_int_equal(added.added, CASES);
    // A look for the case and an insertion for each row, and a handful for the run.
    assert_int_equal(history_work(history).transactions - before.transactions, 1);
    assert_in_range(history_work(history).statements - before.statements, CASES, 2 * CASES + 10);

    before = history_work(history);
    start = seconds();
    struct history_list list = select_all(history, "*/seq_q:7/*", 20);
    print_message("one case of %d, last 20 of %d: %.4f s\n", CASES, COMMITS + 1, seconds() - start);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.series[0].count, 20);
    assert_string_equal(list.series[0].points[19].commit, "ffffffffffff");
    // The names, and the one case: not a statement for each case.
    assert_int_equal(history_work(history).statements - before.statements, 2);
    history_free(&list);

    start = seconds();
    list = select_all(history, NULL, 20);
    print_message("all %d cases: %.3f s\n", CASES, seconds() - start);
    assert_int_equal(list.count, CASES);
    history_free(&list);
    history_close(history);
}

// --- the line

static void test_sparkline(void **state) {
    (void)state;
    const double values[] = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, UNKNOWN, 1.0};
    char *text = sparkline(values, 10, false);
    assert_string_equal(text, "_.-=+*#@ _");
    free(text);
    text = sparkline(values, 10, true);
    assert_string_equal(text, "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588 \u2581");
    free(text);
    const double level[] = {5.0, 5.0, 5.0};
    text = sparkline(level, 3, false);
    assert_string_equal(text, "___");
    free(text);
    text = sparkline(NULL, 0, true);
    assert_string_equal(text, "");
    free(text);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_false(sparkline_unicode(ends[1]));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/// Writes what history.sh adds: 40 commits, a step of 10 % at the 26th, and a failure after it.
static void make_files(const char *where) {
    (void)snprintf(folder, sizeof(folder), "%s", where);
    static const double noise[] = {0.0, 0.004, -0.004, 0.008, -0.008, 0.002, -0.002};
    for (size_t i = 0; i < 41; i++) {
        struct recipe recipe = plain;
        char commit[24], name[32];
        (void)snprintf(commit, sizeof(commit), "%012zx", i + 0x1000);
        (void)snprintf(name, sizeof(name), "commit-%02zu.json", i);
        recipe.commit = commit;
        recipe.started += (int64_t)i * 3600;
        recipe.ns = (i < 25 ? 1000.0 : 1100.0) * (1.0 + noise[i % 7]);
        recipe.verdict = i < 40 ? VERDICT_PASSED : VERDICT_FAILED;
        write_result(path_of(name), &recipe);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "make") == 0) {
        make_files(argv[2]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_and_select),
        cmocka_unit_test(test_only_passed_times_enter),
        cmocka_unit_test(test_add_is_one_transaction),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_judgement),
        cmocka_unit_test(test_commits_are_gathered),
        cmocka_unit_test(test_verdict_changes),
        cmocka_unit_test(test_migration),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_two_writers),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_sparkline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
