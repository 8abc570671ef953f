/// Results: what is derived, the file (strict, atomic, complete against its schema, the same in
/// every locale), what is refused when read, the table and the images.
///
/// With the name of a result file as its argument the program holds that file against the schema.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd_plot.h"
#include "diag.h"
#include "op.h"
#include "results.h"
#include "stats.h"

/// A folder of this test's own.
static char folder[64];
static char caught[80];  ///< What is printed while it is caught.

static const char *path_of(const char *name) {
    static char paths[4][PATH_MAX];
    static size_t next;
    char *path = paths[next++ % 4];
    assert_true(snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX);
    return path;
}

static int remove_tree(const char *path) {
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return unlink(path);
    }
    const struct dirent *entry = NULL;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            char inner[PATH_MAX];
            assert_true(snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) < PATH_MAX);
            (void)remove_tree(inner);
        }
    }
    (void)closedir(dir);
    return rmdir(path);
}

static int make_folder(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/mhabench-test-results-XXXXXX");
    const bool made = mkdtemp(folder) != NULL;
    (void)snprintf(caught, sizeof(caught), "%s/caught", folder);
    return made ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return remove_tree(folder);
}

static size_t files_in(const char *path) {
    DIR *dir = opendir(path);
    assert_non_null(dir);
    size_t count = 0;
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count - 2;
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    char *text = NULL;
    size_t room = 0;
    // No file here holds a zero byte, so that reads everything.
    const ssize_t length = getdelim(&text, &room, '\0', file);
    (void)fclose(file);
    if (length < 0) {
        free(text);
        text = strdup("");
        assert_non_null(text);
    }
    return text;
}

// --- catching what is printed
// -----------------------------------------------------------------------

static int kept_descriptor = -1;

static void catch_begin(int descriptor) {
    (void)fflush(NULL);
    kept_descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
    const int file = open(caught, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(kept_descriptor >= 0 && file >= 0);
    assert_true(dup2(file, descriptor) >= 0);
    (void)close(file);
}

/// Ends catching and returns the text, to be freed.
static char *catch_end(int descriptor) {
    (void)fflush(NULL);
    assert_true(dup2(kept_descriptor, descriptor) >= 0);
    (void)close(kept_descriptor);
    char *text = read_text(caught);
    assert_int_equal(unlink(caught), 0);
    return text;
}

/// Tells whether `text` is one line that holds `part`.
static void assert_one_line(const char *text, const char *part) {
    const char *end = strchr(text, '\n');
    if (end == NULL || end[1] != '\0' || strstr(text, part) == NULL) {
        fail_msg("not one line with '%s': '%s'", part, text);
    }
}

static void assert_write_fails(const json_t *json, const char *path, const char *part) {
    catch_begin(STDERR_FILENO);
    const int code = results_write(json, path);
    char *text = catch_end(STDERR_FILENO);
    assert_int_equal(code, EXIT_USAGE);
    assert_one_line(text, part);
    free(text);
}

static void assert_unwritable(const char *path) {
    catch_begin(STDERR_FILENO);
    const int code = results_check_writable(path);
    char *text = catch_end(STDERR_FILENO);
    assert_int_equal(code, EXIT_USAGE);
    assert_one_line(text, path);
    free(text);
}

static void assert_read_fails(const char *path, const char *part) {
    struct result result;
    catch_begin(STDERR_FILENO);
    const int code = results_read(path, &result);
    char *text = catch_end(STDERR_FILENO);
    assert_int_equal(code, EXIT_USAGE);
    assert_one_line(text, part);
    assert_non_null(strstr(text, path));
    assert_null(result.rows);
    assert_null(result.context);
    free(text);
}

// --- results to test with
// ---------------------------------------------------------------------------

static void add_launch(struct row *row, const double *ns, size_t count) {
    row->samples = realloc(row->samples, (row->launches + 1) * sizeof(*row->samples));
    assert_non_null(row->samples);
    struct launch_samples *launch = &row->samples[row->launches++];
    launch->count = count;
    launch->ns = malloc(count * sizeof(*ns));
    assert_non_null(launch->ns);
    memcpy(launch->ns, ns, count * sizeof(*ns));
}

/// Adds a case of qk: heads 12, head_dim 64, seq 128, with three launches about `ns` when `ns` > 0.
static struct row *add_row(struct result *result, const char *isa, const char *tag, bool peer,
                           int threads, enum verdict verdict, double ns) {
    result->rows = realloc(result->rows, (result->count + 1) * sizeof(*result->rows));
    assert_non_null(result->rows);
    struct row *row = &result->rows[result->count++];
    memset(row, 0, sizeof(*row));
    row->problem.op = op_find("qk")->name;
    row->problem.dtype = "f32";
    row->problem.shape = (struct mha_shape){1, 12, 12, 128, 128, 64};
    char name[64];
    (void)snprintf(name, sizeof(name), "qk_f32_%s_%s", isa, tag);
    row->kernel = strdup(name);
    row->isa = strdup(isa);
    row->tag = strdup(tag);
    row->peer = peer;
    row->threads = threads;
    row->verdict = verdict;
    row->max_ulp = 3.5;
    row->bound_share = 0.1;
    row->checked_share = 1.0;
    row->flops = 2e6;
    row->bytes = 1e6;
    row->effective_ghz = 3.0;
    row->ceiling_share = 0.7;
    row->ceiling_kind = "fma";
    row->pack_ns = row->create_ns = UNKNOWN;
    row->code_hash = strdup("0123456789abcdef");
    row->repro = strdup("mhabench check --kernel qk_f32_avx2_6x16 --heads 12");
    assert_true(row->kernel != NULL && row->isa != NULL && row->tag != NULL);
    if (ns > 0.0) {
        row->iterations = 100;
        add_launch(row, (double[]){ns * 1.01, ns, ns * 0.99}, 3);
        add_launch(row, (double[]){ns * 1.03, ns * 1.02, ns * 1.04}, 3);
        add_launch(row, (double[]){ns * 0.9, ns * 0.98, ns * 1.1}, 3);
    }
    return row;
}

static json_t *make_context(void) {
    json_t *context = results_context_base("mhabench");
    json_t *own = json_pack(
        "{s:i, s:s, s:s, s:s, s:I, s:f, s:s, s:s, s:b, s:{s:s, s:n, s:[s,s], s:i, s:i, s:n, s:n, "
        "s:n, "
        "s:s, s:b, s:s, s:b, s:i, s:i, s:i, s:b}, s:{s:s, s:s, s:s, s:{s:s}}, s:[{s:s, s:s, s:s}], "
        "s:[s]}",
        "schema_version", RESULTS_SCHEMA_VERSION, "version", "0.1.0", "commit", "1a4f269",
        "command", "mhabench run", "seed", (json_int_t)9007199254740993, "min_time_s", 0.01,
        "started", "2026-11-27T22:00:00Z", "finished", "2026-11-27T22:30:00Z", "interrupted", 0,
        "machine", "cpu", "Made-up CPU", "microcode", "features", "avx2", "fma", "cores", 2,
        "threads_allowed", 2, "quota", "governor", "smt", "thp", "madvise", "ftz", 0, "kernel",
        "Linux 6.1", "emulated", 0, "l1_bytes", 32768, "l2_bytes", 1048576, "l3_bytes", 33554432,
        "l3_capped", 0, "compiler", "name", "GNU", "version", "12.2.0", "build", "-O3", "flags",
        "avx2", "-mavx2", "peers", "name", "libxsmm", "version", "1.17", "isa", "avx2", "missing",
        "hwloc");
    assert_non_null(own);
    struct ceiling items[] = {
        {"fma", "avx2", "f32", "", "", 0.0, 1, 100.0, 0.01, 9},
        {"bandwidth", "avx2", "f32", "L1", "read", 16384.0, 1, 300.0, 0.01, 9},
        {"bandwidth", "avx2", "f32", "DRAM", "streaming copy", 1e9, 1, 20.0, UNKNOWN, 9},
    };
    const struct ceiling_list list = {sizeof(items) / sizeof(items[0]), items};
    assert_int_equal(json_object_set_new(own, "ceilings", ceilings_to_json(&list)), 0);
    assert_int_equal(json_object_set_new(context, "mhabench", own), 0);
    return context;
}

/// Makes one of everything.
static struct result make_result(void) {
    struct result result = {0};
    result.context = make_context();
    add_row(&result, "scalar", "naive", false, 1, VERDICT_PASSED, 800e3);
    add_row(&result, "avx2", "autovec", false, 1, VERDICT_PASSED, 100e3);
    add_row(&result, "avx2", "6x16", false, 1, VERDICT_PASSED, 40e3);
    add_row(&result, "avx2", "openblas", true, 1, VERDICT_PASSED, 50e3);
    add_row(&result, "avx2", "libxsmm", true, 1, VERDICT_PASSED, 60e3);
    add_row(&result, "avx512", "libxsmm", true, 1, VERDICT_PASSED, 30e3);
    add_row(&result, "avx512", "14x32", false, 1, VERDICT_PASSED, 20e3);
    add_row(&result, "scalar", "wrong", false, 1, VERDICT_FAILED, 1e3)->reason =
        strdup("element [0, 1, 2]: got 1.5, want 1.25\x1b[2J");
    add_row(&result, "scalar", "impossible", false, 1, VERDICT_ACCOUNTING, 10.0)->reason =
        strdup("share 1.4");
    add_row(&result, "avx2", "odd", false, 1, VERDICT_UNSUPPORTED, 0.0)->reason =
        strdup("head_dim is odd");
    add_row(&result, "avx2", "6x16", false, 2, VERDICT_PASSED, 21e3);
    add_row(&result, "neon", "untimed", false, 1, VERDICT_PASSED, 0.0)->reason =
        strdup("emulated: no time");
    results_derive(&result);
    return result;
}

static const struct row *find_row(const struct result *result, const char *kernel, int threads) {
    for (size_t i = 0; i < result->count; i++) {
        if (strcmp(result->rows[i].kernel, kernel) == 0 && result->rows[i].threads == threads) {
            return &result->rows[i];
        }
    }
    fail_msg("no row %s", kernel);
    return NULL;
}

static json_t *make_json(void) {
    struct result result = make_result();
    json_t *json = results_to_json(&result);
    results_free(&result);
    return json;
}

// --- verdicts
// ---------------------------------------------------------------------------------------

static void verdicts_have_words(void **state) {
    (void)state;
    for (enum verdict verdict = VERDICT_UNTESTED; verdict <= VERDICT_ACCOUNTING; verdict++) {
        assert_int_equal(verdict_find(verdict_text(verdict)), verdict);
    }
    assert_int_equal(verdict_find("passed"), VERDICT_UNTESTED);
    assert_int_equal(verdict_find(""), VERDICT_UNTESTED);
}

static void verdicts_ask_for_exit_codes(void **state) {
    (void)state;
    const enum verdict good[] = {VERDICT_PASSED, VERDICT_SKIPPED, VERDICT_UNSUPPORTED};
    const enum verdict bad[] = {VERDICT_UNTESTED, VERDICT_FAILED,  VERDICT_MISTRUSTED,
                                VERDICT_CRASHED,  VERDICT_TIMEOUT, VERDICT_ACCOUNTING};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(verdict_exit(good[i]), EXIT_DONE);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(verdict_exit(bad[i]), EXIT_FOUND);
    }
}

// --- derived numbers
// --------------------------------------------------------------------------------

static void assert_close(double got, double want) {
    if (!(fabs(got - want) <= 1e-9 * fabs(want))) {
        fail_msg("got %.17g, want %.17g", got, want);
    }
}

static void numbers_are_derived(void **state) {
    (void)state;
    struct result result = make_result();
    const struct row *row = find_row(&result, "qk_f32_avx2_6x16", 1);
    // Medians of the launches: 1, 1.03 and 0.98 times 40 us.
    assert_close(row->median_ns, 40e3);
    assert_close(row->min_ns, 36e3);
    // Within: 0.01/1, 0.01/1.03, 0.08/0.98; between: deviations 0, 0.03, 0.02.
    assert_close(row->spread_within, 0.01);
    assert_close(row->spread_between, 0.02);
    assert_close(row->gflops, 50.0);
    assert_close(row->gbytes_per_s, 25.0);
    results_free(&result);
}

static void speedups_are_over_the_right_rows(void **state) {
    (void)state;
    struct result result = make_result();
    const struct row *row = find_row(&result, "qk_f32_avx2_6x16", 1);
    assert_close(row->speedup_scalar, 20.0);
    assert_close(row->speedup_autovec, 2.5);
    assert_close(row->speedup_best_peer, 1.25);
    assert_string_equal(row->best_peer, "qk_f32_avx2_openblas");
    // Another ISA level has its own peers, and here no autovec.
    row = find_row(&result, "qk_f32_avx512_14x32", 1);
    assert_close(row->speedup_scalar, 40.0);
    assert_true(isnan(row->speedup_autovec));
    assert_close(row->speedup_best_peer, 1.5);
    assert_string_equal(row->best_peer, "qk_f32_avx512_libxsmm");
    // Another number of threads has nothing to be held against.
    row = find_row(&result, "qk_f32_avx2_6x16", 2);
    assert_close(row->gflops, 2e6 / 21e3);
    assert_true(isnan(row->speedup_scalar));
    assert_true(isnan(row->speedup_autovec));
    assert_true(isnan(row->speedup_best_peer));
    assert_null(row->best_peer);
    results_free(&result);
}

static void plugins_are_no_baseline(void **state) {
    (void)state;
    struct result result = {0};
    add_row(&result, "scalar", "naive", false, 1, VERDICT_PASSED, 800e3);
    add_row(&result, "scalar", "mine", false, 1, VERDICT_PASSED, 400e3)->plugin = strdup("./k.so");
    results_derive(&result);
    assert_close(result.rows[0].speedup_scalar, 1.0);
    assert_close(result.rows[1].speedup_scalar, 2.0);
    results_free(&result);
}

static void no_number_without_passed(void **state) {
    (void)state;
    struct result result = make_result();
    const struct row *row = find_row(&result, "qk_f32_scalar_wrong", 1);
    assert_int_equal(row->launches, 0);
    assert_true(isnan(row->median_ns) && isnan(row->min_ns) && isnan(row->gflops));
    assert_true(isnan(row->speedup_scalar) && isnan(row->ceiling_share));
    // ACCOUNTING keeps its evidence, and lends no speed-up: the scalar baseline is the right one.
    row = find_row(&result, "qk_f32_scalar_impossible", 1);
    assert_close(row->median_ns, 10.0);
    assert_true(isnan(row->speedup_scalar));
    assert_false(row_has_time(row));
    results_free(&result);
}

static void few_samples_claim_no_spread(void **state) {
    (void)state;
    struct result result = {0};
    struct row *row = add_row(&result, "avx2", "one", false, 1, VERDICT_PASSED, 0.0);
    add_launch(row, (double[]){5.0}, 1);
    row->flops = 0.0;
    results_derive(&result);
    assert_close(row->median_ns, 5.0);
    assert_true(isnan(row->spread_within) && isnan(row->spread_between));
    // A copy has no rate of 0 GFLOP/s: it has none.
    assert_true(isnan(row->gflops));
    results_free(&result);
}

// --- schema
// -----------------------------------------------------------------------------------------

static json_t *schema;

/// Loads results/schema.json, which lies beside this test's folder.
static void load_schema(void) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", __FILE__);
    char *slash = strrchr(path, '/');
    const size_t length = slash != NULL ? (size_t)(slash - path) : 0;
    (void)snprintf(path + length, sizeof(path) - length, "%s../results/schema.json",
                   slash != NULL ? "/" : "");
    json_error_t error;
    schema = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (schema == NULL) {
        fail_msg("%s: line %d: %s", path, error.line, error.text);
    }
}

/// What a value breaks, the first of it.
struct finding {
    size_t count;
    char first[512];
};

__attribute__((format(printf, 3, 4))) static void report(struct finding *finding, const char *where,
                                                         const char *format, ...) {
    if (finding->count++ == 0) {
        const int length = snprintf(finding->first, sizeof(finding->first), "%s: ", where);
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(finding->first + length, sizeof(finding->first) - (size_t)length, format,
                        arguments);
        va_end(arguments);
    }
}

static bool has_type(const json_t *value, const char *type) {
    const struct {
        const char *type;
        bool has;
    } types[] = {{"object", json_is_object(value)}, {"array", json_is_array(value)},
                 {"string", json_is_string(value)}, {"integer", json_is_integer(value)},
                 {"number", json_is_number(value)}, {"boolean", json_is_boolean(value)},
                 {"null", json_is_null(value)}};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].type, type) == 0) {
            return types[i].has;
        }
    }
    fail_msg("the schema has a type '%s'", type);
    return false;
}

static bool contains(const json_t *array, const json_t *value) {
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (json_equal(json_array_get(array, i), value)) {
            return true;
        }
    }
    return false;
}

static void check_value(struct finding *finding, const char *where, json_t *rule,
                        const json_t *value);

static void check_members(struct finding *finding, const char *where, json_t *rule,
                          const json_t *value) {
    const json_t *properties = json_object_get(rule, "properties");
    json_t *others = json_object_get(rule, "additionalProperties");
    // Walking an object takes a pointer that is not const.
    json_t *walked = json_deep_copy(value);
    const char *key = NULL;
    json_t *member = NULL;
    json_object_foreach(walked, key, member) {
        char inner[512];
        (void)snprintf(inner, sizeof(inner), "%.400s.%.100s", where, key);
        json_t *member_rule = json_object_get(properties, key);
        if (member_rule != NULL) {
            check_value(finding, inner, member_rule, member);
        } else if (json_is_object(others)) {
            check_value(finding, inner, others, member);
        } else {
            report(finding, inner, "the schema does not know it");
        }
    }
    json_decref(walked);
    const json_t *required = json_object_get(rule, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        if (json_object_get(value, name) == NULL) {
            report(finding, where, "%s is missing", name);
        }
    }
    json_t *dependent = json_object_get(rule, "dependentRequired");
    const char *cause = NULL;
    json_t *wanted = NULL;
    json_object_foreach(dependent, cause, wanted) {
        for (size_t i = 0; i < json_array_size(wanted); i++) {
            const char *name = json_string_value(json_array_get(wanted, i));
            if (json_object_get(value, cause) != NULL && json_object_get(value, name) == NULL) {
                report(finding, where, "%s is missing beside %s", name, cause);
            }
        }
    }
}

/// Holds a value against a rule, with the keywords that our schema uses; any other keyword fails
/// the test, so that nothing in the schema goes unchecked.
static void check_value(struct finding *finding, const char *where, json_t *rule,
                        const json_t *value) {
    const char *keyword = NULL;
    json_t *argument = NULL;
    json_object_foreach(rule, keyword, argument) {
        const double number = json_number_value(value);
        const double limit = json_number_value(argument);
        if (strcmp(keyword, "$ref") == 0) {
            static const char prefix[] = "#/$defs/";
            const char *name = json_string_value(argument);
            assert_int_equal(strncmp(name, prefix, strlen(prefix)), 0);
            json_t *target =
                json_object_get(json_object_get(schema, "$defs"), name + strlen(prefix));
            assert_non_null(target);
            check_value(finding, where, target, value);
        } else if (strcmp(keyword, "type") == 0) {
            bool good = json_is_string(argument) && has_type(value, json_string_value(argument));
            for (size_t i = 0; i < json_array_size(argument); i++) {
                good = good || has_type(value, json_string_value(json_array_get(argument, i)));
            }
            if (!good) {
                report(finding, where, "wrong type");
            }
        } else if (strcmp(keyword, "enum") == 0) {
            if (!contains(argument, value)) {
                report(finding, where, "none of the words");
            }
        } else if (strcmp(keyword, "const") == 0) {
            if (!json_equal(argument, value)) {
                report(finding, where, "not the one value");
            }
        } else if (strcmp(keyword, "minimum") == 0 || strcmp(keyword, "maximum") == 0 ||
                   strcmp(keyword, "exclusiveMinimum") == 0) {
            const bool good = strcmp(keyword, "minimum") == 0   ? number >= limit
                              : strcmp(keyword, "maximum") == 0 ? number <= limit
                                                                : number > limit;
            if (json_is_number(value) && !good) {
                report(finding, where, "breaks %s %g", keyword, limit);
            }
        } else if (strcmp(keyword, "maxItems") == 0) {
            if ((double)json_array_size(value) > limit) {
                report(finding, where, "too many items");
            }
        } else if (strcmp(keyword, "pattern") == 0) {
            regex_t pattern;
            assert_int_equal(
                regcomp(&pattern, json_string_value(argument), REG_EXTENDED | REG_NOSUB), 0);
            if (json_is_string(value) &&
                regexec(&pattern, json_string_value(value), 0, NULL, 0) != 0) {
                report(finding, where, "does not match %s", json_string_value(argument));
            }
            regfree(&pattern);
        } else if (strcmp(keyword, "items") == 0) {
            for (size_t i = 0; i < json_array_size(value); i++) {
                char inner[512];
                (void)snprintf(inner, sizeof(inner), "%.400s[%zu]", where, i);
                check_value(finding, inner, argument, json_array_get(value, i));
            }
        } else if (strcmp(keyword, "properties") == 0) {
            if (json_is_object(value)) {
                check_members(finding, where, rule, value);
            }
        } else if (strcmp(keyword, "additionalProperties") == 0) {
            // Of an object without properties of its own; else check_members() has seen it.
            if (json_is_object(argument) && json_object_get(rule, "properties") == NULL) {
                check_members(finding, where, rule, value);
            }
        } else {
            static const char *const known[] = {"description", "title",    "$schema",
                                                "$defs",       "required", "dependentRequired",
                                                "format"};
            bool found = false;
            for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
                found = found || strcmp(known[i], keyword) == 0;
            }
            if (!found) {
                fail_msg("%s: the schema uses '%s', which this test does not check", where,
                         keyword);
            }
        }
    }
}

static struct finding check_file(const json_t *json) {
    if (schema == NULL) {
        load_schema();
    }
    struct finding finding = {0};
    check_value(&finding, "file", schema, json);
    return finding;
}

static void file_obeys_its_schema(void **state) {
    (void)state;
    json_t *json = make_json();
    const struct finding finding = check_file(json);
    if (finding.count > 0) {
        fail_msg("%s", finding.first);
    }
    json_decref(json);
}

/// Every member of a row is required, and none more is taken: a field that is added to the program
/// or to the schema alone is found.
/// Tells whether files may lack a member because earlier versions did not write it.
static bool is_newer(const char *key) {
    return strcmp(key, "data") == 0;
}

static void schema_misses_nothing(void **state) {
    (void)state;
    json_t *json = make_json();
    json_t *entry = json_array_get(json_object_get(json, "benchmarks"), 0);
    json_t *row = json_object_get(entry, "mhabench");
    json_t *copy = json_deep_copy(row);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(copy, key, value) {
        assert_int_equal(json_object_del(row, key), 0);
        const struct finding finding = check_file(json);
        if (is_newer(key)) {
            assert_int_equal(finding.count, 0);
        } else {
            assert_int_equal(finding.count, 1);
            assert_non_null(strstr(finding.first, key));
        }
        assert_int_equal(json_object_set(row, key, value), 0);
    }
    json_decref(copy);
    assert_int_equal(json_object_set_new(row, "surprise", json_true()), 0);
    assert_int_equal(check_file(json).count, 1);
    assert_int_equal(json_object_del(row, "surprise"), 0);
    assert_int_equal(json_object_set_new(row, "median_ns", json_integer(0)), 0);
    assert_int_equal(check_file(json).count, 1);
    assert_int_equal(json_object_set_new(row, "verdict", json_string("passed")), 0);
    assert_int_equal(check_file(json).count, 2);
    json_decref(json);
}

// --- what other readers see
// -------------------------------------------------------------------------

static void entries_are_google_benchmarks(void **state) {
    (void)state;
    json_t *json = make_json();
    const json_t *entries = json_object_get(json, "benchmarks");
    struct result result = make_result();
    assert_int_equal(json_array_size(entries), result.count);
    for (size_t i = 0; i < result.count; i++) {
        const json_t *entry = json_array_get(entries, i);
        const struct row *row = &result.rows[i];
        const double real = json_number_value(json_object_get(entry, "real_time"));
        const double cpu = json_number_value(json_object_get(entry, "cpu_time"));
        const bool error = json_is_true(json_object_get(entry, "error_occurred"));
        assert_true(cpu >= real && cpu <= real);
        // These would be taken for the value.
        assert_null(json_object_get(entry, "bytes_per_second"));
        assert_null(json_object_get(entry, "items_per_second"));
        assert_int_equal(error, !row_has_time(row));
        assert_int_equal(json_object_get(entry, "error_message") != NULL, error);
        if (error) {
            assert_true(real >= 0.0 && real <= 0.0);
            assert_int_equal(json_integer_value(json_object_get(entry, "iterations")), 0);
            const char *message = json_string_value(json_object_get(entry, "error_message"));
            assert_int_equal(
                strncmp(message, verdict_text(row->verdict), strlen(verdict_text(row->verdict))),
                0);
        } else {
            assert_close(real, row->median_ns);
        }
    }
    // The same kernel at one and at two threads: one family, two instances.
    const json_t *first = json_array_get(entries, 2);
    const json_t *second = json_array_get(entries, 10);
    assert_int_equal(json_integer_value(json_object_get(first, "family_index")),
                     json_integer_value(json_object_get(second, "family_index")));
    assert_int_equal(json_integer_value(json_object_get(first, "per_family_instance_index")), 0);
    assert_int_equal(json_integer_value(json_object_get(second, "per_family_instance_index")), 1);
    results_free(&result);
    json_decref(json);
}

static void what_is_not_finite_is_null(void **state) {
    (void)state;
    const double bad[] = {UNKNOWN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct result result = {0};
        result.context = make_context();
        struct row *row = add_row(&result, "avx2", "6x16", false, 1, VERDICT_PASSED, 0.0);
        add_launch(row, (double[]){bad[i], 1.0}, 2);
        row->max_ulp = row->bound_share = row->checked_share = row->median_ns = row->min_ns =
            bad[i];
        row->spread_within = row->spread_between = row->flops = row->bytes = row->gflops = bad[i];
        row->gbytes_per_s = row->ceiling_share = row->effective_ghz = row->pack_ns = bad[i];
        row->speedup_scalar = row->speedup_autovec = row->speedup_best_peer = bad[i];
        row->create_ns = bad[i];
        row->reason = strdup("not UTF-8: \xff\xfe");
        json_t *json = results_to_json(&result);
        const struct finding finding = check_file(json);
        if (finding.count > 0) {
            fail_msg("%s", finding.first);
        }
        assert_int_equal(results_write(json, path_of("bad.json")), EXIT_DONE);
        json_t *back = json_load_file(path_of("bad.json"), JSON_REJECT_DUPLICATES, NULL);
        assert_true(json_equal(json, back));
        json_decref(back);
        json_decref(json);
        results_free(&result);
    }
}

// --- locale
// -----------------------------------------------------------------------------------------

/// Sets a locale whose decimal point is a comma; makes one where the system has none.
static bool set_comma_locale(void) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "es_ES.UTF-8", "pt_BR.UTF-8"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (setlocale(LC_ALL, names[i]) != NULL) {
            return strcmp(localeconv()->decimal_point, ",") == 0;
        }
    }
    char target[PATH_MAX];
    (void)snprintf(target, sizeof(target), "%s/de_DE.UTF-8", folder);
    char *arguments[] = {(char[]){"localedef"},
                         (char[]){"-i"},
                         (char[]){"de_DE"},
                         (char[]){"-f"},
                         (char[]){"UTF-8"},
                         target,
                         NULL};
    pid_t child = 0;
    int status = 1;
    if (posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
        return false;
    }
    (void)setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") != NULL &&
           strcmp(localeconv()->decimal_point, ",") == 0;
}

static void file_is_the_same_in_every_locale(void **state) {
    (void)state;
    json_t *json = make_json();
    assert_int_equal(results_write(json, path_of("c.json")), EXIT_DONE);
    if (!set_comma_locale()) {
        json_decref(json);
        print_message("no locale with a decimal comma, and none could be made\n");
        skip();
    }
    char probe[16];
    (void)snprintf(probe, sizeof(probe), "%.1f", 1.5);
    assert_string_equal(probe, "1,5");
    json_t *again = make_json();
    assert_int_equal(json_object_set(json_object_get(again, "context"), "load_avg",
                                     json_object_get(json_object_get(json, "context"), "load_avg")),
                     0);
    assert_int_equal(json_object_set(json_object_get(again, "context"), "date",
                                     json_object_get(json_object_get(json, "context"), "date")),
                     0);
    assert_int_equal(results_write(again, path_of("de.json")), EXIT_DONE);
    struct result result;
    assert_int_equal(results_read(path_of("de.json"), &result), EXIT_DONE);
    assert_close(find_row(&result, "qk_f32_avx2_6x16", 1)->speedup_best_peer, 1.25);
    results_free(&result);
    (void)setlocale(LC_ALL, "C");
    (void)unsetenv("LOCPATH");
    char *c = read_text(path_of("c.json"));
    char *de = read_text(path_of("de.json"));
    assert_string_equal(c, de);
    free(c);
    free(de);
    json_decref(json);
    json_decref(again);
}

// --- reading
// ----------------------------------------------------------------------------------------

static void file_reads_back(void **state) {
    (void)state;
    json_t *json = make_json();
    assert_int_equal(results_write(json, path_of("one.json")), EXIT_DONE);
    struct result result;
    assert_int_equal(results_read(path_of("one.json"), &result), EXIT_DONE);
    json_t *second = results_to_json(&result);
    assert_true(json_equal(json, second));
    assert_int_equal(results_write(second, path_of("two.json")), EXIT_DONE);
    char *one = read_text(path_of("one.json"));
    char *two = read_text(path_of("two.json"));
    assert_string_equal(one, two);
    // Deriving again changes nothing.
    results_derive(&result);
    json_t *third = results_to_json(&result);
    assert_true(json_equal(json, third));
    free(one);
    free(two);
    json_decref(json);
    json_decref(second);
    json_decref(third);
    results_free(&result);
}

static void every_mask_and_cache_reads_back(void **state) {
    (void)state;
    struct result result = {0};
    result.context = make_context();
    for (enum mha_mask_kind mask = MHA_MASK_NONE; mask <= MHA_MASK_WINDOW; mask++) {
        for (enum cache_state cache = CACHE_HOT; cache <= CACHE_COLD; cache++) {
            struct row *row = add_row(&result, "avx2", "6x16", false, 1, VERDICT_PASSED, 1e3);
            row->problem.mask = mask;
            row->problem.window = mask == MHA_MASK_WINDOW ? 17 : 0;
            row->problem.cache = cache;
            row->problem.shape.kv_heads = 4;
        }
    }
    results_derive(&result);
    json_t *json = results_to_json(&result);
    assert_int_equal(results_write(json, path_of("masks.json")), EXIT_DONE);
    struct result back;
    assert_int_equal(results_read(path_of("masks.json"), &back), EXIT_DONE);
    assert_int_equal(back.count, result.count);
    for (size_t i = 0; i < back.count; i++) {
        assert_true(problem_equal(&back.rows[i].problem, &result.rows[i].problem));
    }
    results_free(&back);
    results_free(&result);
    json_decref(json);
}

/// The data class is part of what a case is; a file from before there was one is of the default.
static void data_classes_read_back(void **state) {
    (void)state;
    static const char *const classes[] = {NULL, "x30", "x100"};
    struct result result = {0};
    result.context = make_context();
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        // Each is held against the scalar kernel of its own data.
        const double ns = 1e3 * (double)(i + 1);
        add_row(&result, "scalar", "dot", false, 1, VERDICT_PASSED, ns * (double)(i + 2))
            ->problem.data = classes[i];
        add_row(&result, "avx2", "6x16", false, 1, VERDICT_PASSED, ns)->problem.data = classes[i];
    }
    results_derive(&result);
    json_t *json = results_to_json(&result);
    assert_int_equal(results_write(json, path_of("data.json")), EXIT_DONE);
    struct result back;
    assert_int_equal(results_read(path_of("data.json"), &back), EXIT_DONE);
    assert_int_equal(back.count, result.count);
    for (size_t i = 0; i < back.count; i++) {
        assert_true(problem_equal(&back.rows[i].problem, &result.rows[i].problem));
        if (i % 2 == 1) {
            assert_true(fabs(back.rows[i].speedup_scalar - (double)(i / 2 + 2)) < 1e-9);
        }
    }
    json_t *row = row_to_json(&result.rows[0]);
    char why[256] = "";
    struct row read;
    assert_int_equal(json_object_del(row, "data"), 0);
    assert_true(row_from_json(row, &read, why, sizeof(why)));
    assert_null(read.problem.data);
    row_free(&read);
    // The op's own first class is the default under its name.
    assert_int_equal(json_object_set_new(row, "data", json_string("normal")), 0);
    assert_true(row_from_json(row, &read, why, sizeof(why)));
    assert_null(read.problem.data);
    row_free(&read);
    json_decref(row);
    results_free(&back);
    results_free(&result);
    json_decref(json);
}

static void ceilings_read_back(void **state) {
    (void)state;
    json_t *context = make_context();
    struct ceiling_list list;
    ceilings_from_json(context, &list);
    assert_int_equal(list.count, 3);
    assert_string_equal(list.items[0].kind, "fma");
    assert_string_equal(list.items[2].level, "DRAM");
    assert_string_equal(list.items[2].mix, "streaming copy");
    assert_true(isnan(list.items[2].spread));
    json_t *again = ceilings_to_json(&list);
    assert_true(
        json_equal(again, json_object_get(json_object_get(context, "mhabench"), "ceilings")));
    json_decref(again);
    ceilings_free(&list);
    json_decref(context);
}

static void other_files_are_refused(void **state) {
    (void)state;
    assert_read_fails(path_of("absent.json"), strerror(ENOENT));
    assert_int_equal(mkdir(path_of("dir"), 0700), 0);
    assert_read_fails(path_of("dir"), "");
    const char *path = path_of("other.json");
    const struct {
        const char *text, *part;
    } files[] = {
        {"", "line 1"},
        {"{\"context\": {}, ", "line 1"},
        {"{\"context\": {}, \"context\": {}}", "duplicate"},
        {"{\"context\": {},\n\n \"benchmarks\": [NaN]}", "line 3"},
        {"{} {}", "line 1"},
        {"[]", "not a result file"},
        {"{\"context\": {}, \"benchmarks\": [{\"name\": \"a\", \"real_time\": 1.0}]}",
         "not a result of mhabench"},
        {"{\"context\": {\"mhabench\": {\"schema_version\": 2}}, \"benchmarks\": []}",
         "schema_version is 2"},
        {"{\"context\": {\"mhabench\": {\"schema_version\": 1}}, \"benchmarks\": [{}]}",
         "benchmarks[0]"},
        {"{\"context\": {\"mhabench\": {\"schema_version\": 1}}, \"benchmarks\": [{\"mhabench\": "
         "7}]}",
         "benchmarks[0]"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        write_text(path, files[i].text);
        assert_read_fails(path, files[i].part);
    }
}

static void truncated_files_are_refused(void **state) {
    (void)state;
    json_t *json = make_json();
    const char *path = path_of("short.json");
    assert_int_equal(results_write(json, path), EXIT_DONE);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    // All but the final newline must be there.
    for (off_t length = status.st_size - 2; length > 0; length -= status.st_size / 16) {
        assert_int_equal(truncate(path, length), 0);
        assert_read_fails(path, "line ");
    }
    json_decref(json);
}

static void rows_that_lack_or_twist_a_member_are_refused(void **state) {
    (void)state;
    json_t *json = make_json();
    json_t *row =
        json_object_get(json_array_get(json_object_get(json, "benchmarks"), 2), "mhabench");
    json_t *copy = json_deep_copy(row);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(copy, key, value) {
        char why[256] = "";
        struct row read;
        assert_int_equal(json_object_del(row, key), 0);
        if (is_newer(key)) {
            assert_true(row_from_json(row, &read, why, sizeof(why)));
            row_free(&read);
        } else {
            assert_false(row_from_json(row, &read, why, sizeof(why)));
            assert_non_null(strstr(why, key));
            assert_null(read.kernel);
        }
        // No member may be an object without members.
        assert_int_equal(json_object_set_new(row, key, json_object()), 0);
        assert_false(row_from_json(row, &read, why, sizeof(why)));
        assert_non_null(strstr(why, key));
        assert_int_equal(json_object_set(row, key, value), 0);
        assert_true(row_from_json(row, &read, why, sizeof(why)));
        row_free(&read);
    }
    const struct {
        const char *key;
        json_t *value;
    } twists[] = {
        {"op", json_string("../etc")},       {"op", json_string("")},
        {"threads", json_integer(0)},        {"threads", json_integer(5000000000)},
        {"mask", json_string("window:0")},   {"mask", json_string("window:1x")},
        {"mask", json_string("diagonal")},   {"cache", json_string("warm")},
        {"verdict", json_string("GOOD")},    {"position", json_string("rope:1")},
        {"median_ns", json_real(-1.0)},      {"iterations", json_integer(-1)},
        {"ceiling_kind", json_string("io")}, {"samples_ns", json_pack("[[f]]", 0.0)},
        {"samples_ns", json_pack("[i]", 1)}, {"steps", json_pack("[]")},
        {"disturbed", json_real(0.5)},       {"data", json_string("jmp")},
        {"data", json_integer(1)},
    };
    for (size_t i = 0; i < sizeof(twists) / sizeof(twists[0]); i++) {
        char why[256] = "";
        struct row read;
        assert_int_equal(json_object_set_new(row, twists[i].key, twists[i].value), 0);
        assert_false(row_from_json(row, &read, why, sizeof(why)));
        assert_non_null(strstr(why, twists[i].key));
        assert_int_equal(json_object_set(row, twists[i].key, json_object_get(copy, twists[i].key)),
                         0);
    }
    json_decref(copy);
    json_decref(json);
}

static void equal_names_are_refused(void **state) {
    (void)state;
    json_t *json = make_json();
    json_t *entries = json_object_get(json, "benchmarks");
    assert_int_equal(json_array_append(entries, json_array_get(entries, 3)), 0);
    assert_int_equal(results_write(json, path_of("twice.json")), EXIT_DONE);
    assert_read_fails(path_of("twice.json"), "benchmarks[3] and benchmarks[12] are both qk/f32/");
    json_decref(json);
}

static void endless_files_are_refused(void **state) {
    (void)state;
    // Blanks are JSON until the limit, which is 64 MiB.
    const char *path = path_of("long.json");
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    char blanks[1 << 16];
    memset(blanks, ' ', sizeof(blanks));
    for (size_t i = 0; i <= (64U << 20) / sizeof(blanks); i++) {
        assert_int_equal(fwrite(blanks, 1, sizeof(blanks), file), sizeof(blanks));
    }
    assert_int_equal(fclose(file), 0);
    assert_read_fails(path, "larger than");
    assert_int_equal(unlink(path), 0);
}

// --- writing
// ----------------------------------------------------------------------------------------

static void files_are_replaced(void **state) {
    (void)state;
    json_t *json = make_json();
    assert_int_equal(mkdir(path_of("w"), 0700), 0);
    const char *path = path_of("w/out.json");
    assert_int_equal(results_check_writable(path), EXIT_DONE);
    assert_int_equal(files_in(path_of("w")), 0);
    write_text(path, "old");
    assert_int_equal(chmod(path, 0640), 0);
    struct stat before, after;
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(results_check_writable(path), EXIT_DONE);
    assert_int_equal(results_write(json, path), EXIT_DONE);
    assert_int_equal(stat(path, &after), 0);
    // A new file took the old one's place, with its permissions.
    assert_true(before.st_ino != after.st_ino);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(files_in(path_of("w")), 1);
    json_decref(json);
}

static void links_stay_links(void **state) {
    (void)state;
    json_t *json = make_json();
    assert_int_equal(mkdir(path_of("links"), 0700), 0);
    assert_int_equal(mkdir(path_of("links/real"), 0700), 0);
    write_text(path_of("links/real/out.json"), "old");
    assert_int_equal(symlink("real/out.json", path_of("links/a")), 0);
    assert_int_equal(symlink(path_of("links/a"), path_of("links/b")), 0);
    assert_int_equal(results_check_writable(path_of("links/b")), EXIT_DONE);
    assert_int_equal(results_write(json, path_of("links/b")), EXIT_DONE);
    struct stat status;
    assert_int_equal(lstat(path_of("links/a"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(lstat(path_of("links/b"), &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    json_t *back = json_load_file(path_of("links/real/out.json"), 0, NULL);
    assert_true(json_equal(json, back));
    json_decref(back);
    assert_int_equal(symlink("nowhere", path_of("links/dangling")), 0);
    assert_write_fails(json, path_of("links/dangling"), "does not exist");
    assert_unwritable(path_of("links/dangling"));
    assert_int_equal(symlink("loop", path_of("links/loop")), 0);
    assert_write_fails(json, path_of("links/loop"), strerror(ELOOP));
    assert_int_equal(files_in(path_of("links/real")), 1);
    json_decref(json);
}

static void impossible_targets_are_refused(void **state) {
    (void)state;
    json_t *json = make_json();
    assert_write_fails(json, "", "empty");
    assert_write_fails(json, path_of("no/such/out.json"), strerror(ENOENT));
    assert_unwritable(path_of("no/such/out.json"));
    assert_write_fails(json, folder, strerror(EISDIR));
    assert_unwritable(folder);
    assert_write_fails(json, path_of("out.json/"), strerror(EISDIR));
    write_text(path_of("file"), "");
    assert_write_fails(json, path_of("file/out.json"), strerror(ENOTDIR));
    if (geteuid() != 0) {
        assert_int_equal(chmod(path_of("file"), 0400), 0);
        assert_write_fails(json, path_of("file"), strerror(EACCES));
        assert_unwritable(path_of("file"));
    }
    json_decref(json);
}

static void devices_are_written_directly(void **state) {
    (void)state;
    json_t *json = make_json();
    if (access("/dev/full", W_OK) == 0) {
        assert_write_fails(json, "/dev/full", strerror(ENOSPC));
        struct stat status;
        assert_int_equal(stat("/dev/full", &status), 0);
        assert_true(S_ISCHR(status.st_mode));
    }
    assert_int_equal(results_check_writable("/dev/null"), EXIT_DONE);
    assert_int_equal(results_write(json, "/dev/null"), EXIT_DONE);
    // Standard output that is a file keeps what stands in it already.
    catch_begin(STDOUT_FILENO);
    (void)printf("before\n");
    const int checked = results_check_writable("/dev/stdout");
    const int code = results_write(json, "/dev/stdout");
    (void)printf("after\n");
    char *text = catch_end(STDOUT_FILENO);
    assert_int_equal(checked, EXIT_DONE);
    assert_int_equal(code, EXIT_DONE);
    static const char before[] = "before\n";
    static const char after[] = "after\n";
    const size_t length = strlen(text);
    assert_int_equal(strncmp(text, before, strlen(before)), 0);
    assert_string_equal(text + length - strlen(after), after);
    text[length - strlen(after)] = '\0';
    json_t *back = json_loads(text + strlen(before), 0, NULL);
    assert_true(json_equal(json, back));
    json_decref(back);
    free(text);
    json_decref(json);
}

struct pipe_reader {
    char path[PATH_MAX];
    json_t *json;
};

static void *read_pipe(void *argument) {
    struct pipe_reader *reader = argument;
    reader->json = json_load_file(reader->path, 0, NULL);
    return NULL;
}

static void pipes_are_written_directly(void **state) {
    (void)state;
    json_t *json = make_json();
    struct pipe_reader reader = {.json = NULL};
    (void)snprintf(reader.path, sizeof(reader.path), "%s/pipe", folder);
    assert_int_equal(mkfifo(reader.path, 0600), 0);
    assert_int_equal(results_check_writable(reader.path), EXIT_DONE);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_pipe, &reader), 0);
    assert_int_equal(results_write(json, reader.path), EXIT_DONE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(json_equal(json, reader.json));
    json_decref(reader.json);
    struct stat status;
    assert_int_equal(stat(reader.path, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    // A reader that has gone is an error, not the end of the process.
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    (void)close(ends[0]);
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[1]);
    assert_write_fails(json, path, strerror(EPIPE));
    (void)close(ends[1]);
    json_decref(json);
}

static void a_full_disk_leaves_the_old_file(void **state) {
    (void)state;
    json_t *json = make_json();
    assert_int_equal(mkdir(path_of("full"), 0700), 0);
    const char *path = path_of("full/out.json");
    write_text(path, "old");
    // A limit on the size of files stands in for the disk: the write fails half way.
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {4096, before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    catch_begin(STDERR_FILENO);
    const int code = results_write(json, path);
    char *message = catch_end(STDERR_FILENO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(code, EXIT_USAGE);
    assert_one_line(message, strerror(EFBIG));
    char *text = read_text(path);
    assert_string_equal(text, "old");
    assert_int_equal(files_in(path_of("full")), 1);
    free(message);
    free(text);
    json_decref(json);
}

// --- table
// ------------------------------------------------------------------------------------------

static char *table_text(const struct result *result, bool color) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    results_table(result, out, color);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void table_shows_every_row(void **state) {
    (void)state;
    struct result result = make_result();
    char *text = table_text(&result, false);
    for (size_t i = 0; i < result.count; i++) {
        assert_non_null(strstr(text, result.rows[i].kernel));
        assert_non_null(strstr(text, verdict_text(result.rows[i].verdict)));
    }
    for (const char *c = text; *c != '\0'; c++) {
        assert_true((*c >= ' ' && *c < 0x7f) || *c == '\n');
    }
    assert_non_null(strstr(text, "40.00 us"));
    assert_non_null(strstr(text, "50.00 GFLOP/s"));
    assert_non_null(strstr(text, "70.0% fma"));
    // The escape code of the made-up reason is defused, and the failure has its repro line.
    assert_non_null(strstr(text, "want 1.25?[2J\n    mhabench check --kernel"));
    static const char counts[] = "\n12 cases: 9 PASSED, 1 UNSUPPORTED, 1 ACCOUNTING, 1 FAILED\n";
    assert_string_equal(text + strlen(text) - strlen(counts), counts);
    // An ACCOUNTING number is not for show.
    assert_null(strstr(text, "10.00 ns"));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        assert_true(strlen(line) <= 120);
    }
    free(text);
    results_free(&result);
}

static void table_is_coloured_on_request(void **state) {
    (void)state;
    struct result result = make_result();
    char *plain = table_text(&result, false);
    char *colored = table_text(&result, true);
    assert_null(strchr(plain, '\033'));
    assert_non_null(strstr(colored, "\033[32mPASSED"));
    assert_non_null(strstr(colored, "\033[1;31mFAILED"));
    // Without the codes it is the same text.
    char *to = colored;
    for (const char *from = colored; *from != '\0'; from++) {
        if (*from == '\033') {
            from = strchr(from, 'm');
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    assert_string_equal(plain, colored);
    free(plain);
    free(colored);
    results_free(&result);
}

static void table_of_nothing(void **state) {
    (void)state;
    const struct result result = {0};
    char *text = table_text(&result, false);
    assert_string_equal(text, "no cases\n");
    free(text);
}

static void table_fits_a_narrow_terminal(void **state) {
    (void)state;
    struct result result = {0};
    add_row(&result, "avx2", "a_rather_long_tag_for_a_kernel", false, 1, VERDICT_PASSED, 40e3);
    add_row(&result, "scalar", "naive", false, 1, VERDICT_PASSED, 800e3);
    results_derive(&result);
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) {
        results_free(&result);
        print_message("no pseudo-terminals here\n");
        skip();
    }
    for (unsigned short columns = 40; columns <= 120; columns = (unsigned short)(columns + 8)) {
        const struct winsize size = {.ws_row = 24, .ws_col = columns};
        assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
        FILE *out = fopen(ptsname(master), "we");
        assert_non_null(out);
        results_table(&result, out, false);
        assert_int_equal(fflush(out), 0);
        // The whole table is far below a pseudo-terminal's buffer of 4096 bytes.
        char text[4096] = "";
        size_t length = 0;
        while (strstr(text, "2 cases: 2 PASSED\r\n") == NULL) {
            const ssize_t got = read(master, text + length, sizeof(text) - 1 - length);
            assert_true(got > 0);
            length += (size_t)got;
            text[length] = '\0';
        }
        size_t rows = 0;
        for (char *line = strtok(text, "\r\n"); line != NULL; line = strtok(NULL, "\r\n")) {
            if (line[0] == ' ') {
                assert_true(strlen(line) <= columns);
                rows++;
            }
            if (strstr(line, "PASSED ") != NULL && line[0] == ' ') {
                assert_true(strstr(line, "40.00 us") != NULL || strstr(line, "800.0 us") != NULL);
            }
        }
        assert_int_equal(rows, 3);
        assert_int_equal(fclose(out), 0);
    }
    (void)close(master);
    results_free(&result);
}

// --- images
// -----------------------------------------------------------------------------------------

static int plot(const char *file, const char *out, char **printed, char **messages) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", file);
    char *operands[] = {path};
    struct options options = {0};
    options.operands.count = 1;
    options.operands.items = operands;
    options.out = out;
    char caught_list[PATH_MAX];
    (void)snprintf(caught_list, sizeof(caught_list), "%s/list", folder);
    (void)fflush(NULL);
    const int kept = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
    const int list = open(caught_list, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && list >= 0 && dup2(list, STDOUT_FILENO) >= 0);
    catch_begin(STDERR_FILENO);
    const int code = cmd_plot(&options);
    *messages = catch_end(STDERR_FILENO);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    (void)close(kept);
    (void)close(list);
    *printed = read_text(caught_list);
    return code;
}

static bool has_gnuplot(void) {
    char *arguments[] = {(char[]){"gnuplot"}, (char[]){"--version"}, NULL};
    posix_spawn_file_actions_t actions;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0), 0);
    pid_t child = 0;
    int status = 1;
    const bool ran = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ) == 0 &&
                     waitpid(child, &status, 0) == child && status == 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    return ran;
}

/// Writes a result with a grid of heads and head_dim, and a name that would trip a careless script.
/// In a flat one head_dim does not change the work.
static void write_grid(const char *path, enum verdict verdict, bool flat) {
    struct result result = {0};
    result.context = make_context();
    json_t *machine = json_object_get(json_object_get(result.context, "mhabench"), "machine");
    assert_int_equal(
        json_object_set_new(machine, "cpu", json_string("It's a `CPU` \"{/100 X}\" \\n_0   ")), 0);
    const size_t heads[] = {1, 12, 96};
    const size_t head_dims[] = {64, 128};
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 2; j++) {
            const double ns = 1e3 * (double)(heads[i] * head_dims[j]);
            for (int slow = 0; slow < 2; slow++) {
                struct row *row =
                    add_row(&result, slow ? "scalar" : "avx2", slow ? "naive" : "6x16", false, 1,
                            verdict, slow ? 20.0 * ns : ns);
                row->problem.shape.heads = row->problem.shape.kv_heads = heads[i];
                row->problem.shape.head_dim = head_dims[j];
                row->bytes = flat ? 1e6 : 1e4 * (double)head_dims[j];
            }
        }
    }
    results_derive(&result);
    json_t *json = results_to_json(&result);
    assert_int_equal(results_write(json, path), EXIT_DONE);
    json_decref(json);
    results_free(&result);
}

static void images_are_drawn(void **state) {
    (void)state;
    if (!has_gnuplot()) {
        print_message("gnuplot is not installed\n");
        skip();
    }
    write_grid(path_of("grid.json"), VERDICT_PASSED, false);
    char out[PATH_MAX];
    (void)snprintf(out, sizeof(out), "%s/it's images", folder);
    char *printed = NULL, *messages = NULL;
    const int code = plot(path_of("grid.json"), out, &printed, &messages);
    if (code != EXIT_DONE) {
        fail_msg("exit %d: %s", code, messages);
    }
    assert_string_equal(messages, "");
    size_t count = 0, rooflines = 0, heat_maps = 0, bars = 0;
    for (char *line = strtok(printed, "\n"); line != NULL; line = strtok(NULL, "\n"), count++) {
        assert_int_equal(strncmp(line, out, strlen(out)), 0);
        const char *name = line + strlen(out) + 1;
        rooflines += strncmp(name, "roofline-", 9) == 0;
        heat_maps += strncmp(name, "heat-", 5) == 0;
        bars += strncmp(name, "bars-", 5) == 0;
        FILE *file = fopen(line, "re");
        assert_non_null(file);
        char begin[8];
        assert_int_equal(fread(begin, 1, sizeof(begin), file), sizeof(begin));
        (void)fclose(file);
        const bool png = strcmp(line + strlen(line) - 4, ".png") == 0;
        assert_memory_equal(begin, png ? "\x89PNG\r\n\x1a\n" : "<?xml ve", sizeof(begin));
    }
    // One thread count, two kernels, six problems; each as SVG and PNG.
    assert_int_equal(rooflines, 2);
    assert_int_equal(heat_maps, 4);
    assert_int_equal(bars, 12);
    // Nothing else is left.
    assert_int_equal(files_in(out), count);
    free(printed);
    free(messages);
}

static void a_head_dim_that_does_not_matter_is_not_drawn(void **state) {
    (void)state;
    if (!has_gnuplot()) {
        print_message("gnuplot is not installed\n");
        skip();
    }
    write_grid(path_of("flat.json"), VERDICT_PASSED, true);
    char *printed = NULL, *messages = NULL;
    assert_int_equal(plot(path_of("flat.json"), path_of("flat"), &printed, &messages), EXIT_DONE);
    assert_null(strstr(printed, "/heat-"));
    assert_one_line(messages, "no heat map");
    assert_non_null(strstr(printed, "/bars-"));
    free(printed);
    free(messages);
}

static void nothing_to_draw_is_an_error(void **state) {
    (void)state;
    if (!has_gnuplot()) {
        print_message("gnuplot is not installed\n");
        skip();
    }
    write_grid(path_of("failed.json"), VERDICT_FAILED, false);
    char *printed = NULL, *messages = NULL;
    assert_int_equal(plot(path_of("failed.json"), path_of("none"), &printed, &messages),
                     EXIT_USAGE);
    assert_string_equal(printed, "");
    assert_non_null(strstr(messages, "no roofline"));
    assert_non_null(strstr(messages, "no heat map"));
    assert_non_null(strstr(messages, "no bars"));
    assert_int_equal(files_in(path_of("none")), 0);
    free(printed);
    free(messages);
}

static void emulated_times_are_not_drawn(void **state) {
    (void)state;
    write_grid(path_of("emulated.json"), VERDICT_PASSED, false);
    json_t *json = json_load_file(path_of("emulated.json"), 0, NULL);
    json_t *own = json_object_get(json_object_get(json, "context"), "mhabench");
    assert_int_equal(json_object_set_new(json_object_get(own, "machine"), "emulated", json_true()),
                     0);
    assert_int_equal(results_write(json, path_of("emulated.json")), EXIT_DONE);
    json_decref(json);
    char *printed = NULL, *messages = NULL;
    assert_int_equal(plot(path_of("emulated.json"), path_of("none2"), &printed, &messages),
                     EXIT_USAGE);
    assert_string_equal(printed, "");
    assert_one_line(messages, "emulated");
    free(printed);
    free(messages);
}

static void a_lacking_gnuplot_is_named(void **state) {
    (void)state;
    write_grid(path_of("lacking.json"), VERDICT_PASSED, false);
    const char *variable = getenv("PATH");
    char *kept = strdup(variable != NULL ? variable : "");
    assert_non_null(kept);
    assert_int_equal(setenv("PATH", folder, 1), 0);
    char *printed = NULL, *messages = NULL;
    const int code = plot(path_of("lacking.json"), path_of("none3"), &printed, &messages);
    assert_int_equal(setenv("PATH", kept, 1), 0);
    free(kept);
    assert_int_equal(code, EXIT_USAGE);
    assert_string_equal(printed, "");
    assert_one_line(messages, "gnuplot-nox");
    assert_int_equal(files_in(path_of("none3")), 0);
    free(printed);
    free(messages);
}

static int check_one_file(const char *path) {
    json_error_t error;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        (void)fprintf(stderr, "%s: line %d: %s\n", path, error.line, error.text);
        return EXIT_USAGE;
    }
    const struct finding finding = check_file(json);
    json_decref(json);
    json_decref(schema);
    if (finding.count > 0) {
        (void)fprintf(stderr, "%s: %zu violations of the schema, the first: %s\n", path,
                      finding.count, finding.first);
    }
    return finding.count > 0 ? EXIT_FOUND : EXIT_DONE;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        return check_one_file(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_have_words),
        cmocka_unit_test(verdicts_ask_for_exit_codes),
        cmocka_unit_test(numbers_are_derived),
        cmocka_unit_test(speedups_are_over_the_right_rows),
        cmocka_unit_test(plugins_are_no_baseline),
        cmocka_unit_test(no_number_without_passed),
        cmocka_unit_test(few_samples_claim_no_spread),
        cmocka_unit_test(file_obeys_its_schema),
        cmocka_unit_test(schema_misses_nothing),
        cmocka_unit_test(entries_are_google_benchmarks),
        cmocka_unit_test(what_is_not_finite_is_null),
        cmocka_unit_test(file_is_the_same_in_every_locale),
        cmocka_unit_test(file_reads_back),
        cmocka_unit_test(every_mask_and_cache_reads_back),
        cmocka_unit_test(data_classes_read_back),
        cmocka_unit_test(ceilings_read_back),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(rows_that_lack_or_twist_a_member_are_refused),
        cmocka_unit_test(equal_names_are_refused),
        cmocka_unit_test(endless_files_are_refused),
        cmocka_unit_test(files_are_replaced),
        cmocka_unit_test(links_stay_links),
        cmocka_unit_test(impossible_targets_are_refused),
        cmocka_unit_test(devices_are_written_directly),
        cmocka_unit_test(pipes_are_written_directly),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(table_shows_every_row),
        cmocka_unit_test(table_is_coloured_on_request),
        cmocka_unit_test(table_of_nothing),
        cmocka_unit_test(table_fits_a_narrow_terminal),
        cmocka_unit_test(images_are_drawn),
        cmocka_unit_test(a_head_dim_that_does_not_matter_is_not_drawn),
        cmocka_unit_test(nothing_to_draw_is_an_error),
        cmocka_unit_test(emulated_times_are_not_drawn),
        cmocka_unit_test(a_lacking_gnuplot_is_named),
    };
    const int failed = cmocka_run_group_tests_name("results", tests, make_folder, remove_folder);
    json_decref(schema);
    return failed;
}
