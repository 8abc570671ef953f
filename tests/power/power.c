/// What `ab`, `compare` and Google Benchmark's compare.py say of kernels that were slowed on
/// purpose.
///
/// A table has 60 rows, all of them real kernels; in the new library one of them, another one each
/// time, does some per cent more work (slowed.c), calibrated before by a long comparison with
/// itself. Counted are rows that are called slower and did not change, and tables in which the
/// slowed row is called slower, against the time that was spent. A second process may
/// load the last CPU now and then.
///
/// usage: power --short PROGRAM SLOWED.so KERNELS.so
///        power [--tables N] [--row-seconds S,...] [--effects P,...] [--load no|yes|both]
///              [--methods ab,compare,compare.py] [--calibration SECONDS] [--out FILE]
///              PROGRAM SLOWED.so KERNELS.so
///        power --summary FILE [DATA]
/// --out gets one JSON object a line for each table and method, with how busy the CPUs were that
/// this process may not use (taskset -c 0 power ... leaves the others to whatever goes on there).
/// --summary prints such a file as the tables of results/README.md, and writes what plots/power.gp
/// draws.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buffers.h"
#include "data.h"
#include "mha_kernel.h"
#include "op.h"
#include "stats.h"
#include "team.h"

enum { OPS = 3, ALIASES = 20, ROWS = OPS * ALIASES, LIST_MAX = 16 };

static const char *const ops[OPS] = {"softmax", "concat", "qk"};

/// The one problem of each op; small, so that a row costs what its samples cost.
static const struct mha_shape shape = {1, 4, 4, 64, 64, 64};
#define SELECTION(kernels)                                                            \
    "--op", "softmax,concat,qk", "--kernel", kernels, "--batch", "1", "--heads", "4", \
        "--head-dim", "64", "--seq", "64", "--mask", "none", "--threads", "1"

static char folder[] = "/tmp/mhabench-power-XXXXXX";

_Noreturn __attribute__((format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fputs("power: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    exit(1);
}

// --- files and processes
// -------------------------------------------------------------------------------

/// Writes the path of a file in the scratch folder.
static const char *path_of(char path[256], const char *name) {
    snprintf(path, 256, "%s/%s", folder, name);
    return path;
}

static void copy_file(const char *from, const char *to) {
    char buffer[65536];
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    size_t count = 0;
    while (in && out && (count = fread(buffer, 1, sizeof(buffer), in)) > 0) {
        if (fwrite(buffer, 1, count, out) != count) {
            break;
        }
    }
    if (!in || !out || ferror(in) || fclose(out) != 0) {
        fail("%s cannot be copied to %s: %s", from, to, strerror(errno));
    }
    fclose(in);
}

static void remove_folder(void) {
    const char *const names[] = {
        "base.so",      "new.so",      "base.so.conf", "new.so.conf",       "base-real.so",
        "new-real.so",  "out",         "err",          "base.json",         "new.json",
        "base-gb.json", "new-gb.json", "peer.json",    "base.json.journal", "new.json.journal"};
    char path[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        remove(path_of(path, names[i]));
    }
    rmdir(folder);
}

/// Runs a command with stdout and stderr in files of the scratch folder. `library`, when given,
/// stands in for the program's kernels. Returns the exit code.
static int run(const char *const *words, const char *library) {
    char out[256], err[256];
    path_of(out, "out");
    path_of(err, "err");
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        const int o = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int e = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(o, STDOUT_FILENO);
        dup2(e, STDERR_FILENO);
        if (library) {
            setenv("MHABENCH_LIBRARY", library, 1);
        }
        char *argv[48] = {NULL};
        for (size_t i = 0; words[i] && i < 47; i++) {
            memcpy(&argv[i], &words[i], sizeof(argv[i]));  // exec only reads them
        }
        execvp(argv[0], argv);
        _exit(127);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static json_t *read_json(const char *name) {
    char path[256];
    json_error_t error;
    json_t *json = json_load_file(path_of(path, name), 0, &error);
    if (!json) {
        char text[512] = "";
        FILE *file = fopen(path_of(path, "err"), "re");
        if (file) {
            text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
            fclose(file);
        }
        fail("%s: %s\n%s", name, error.text, text);
    }
    return json;
}

static pid_t load_start(void) {
    const pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    cpu_set_t set;
    sched_getaffinity(0, sizeof(set), &set);
    size_t last = 0;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        last = CPU_ISSET(i, &set) ? i : last;
    }
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    sched_setaffinity(0, sizeof(set), &set);
    // Busy and idle in turn, each for 0.1 to 1 s.
    for (uint64_t i = 0;; i += 2) {
        const double until = team_now_ns() + 1e8 + 9e8 * (double)(data_mix(1, i) >> 11) * 0x1p-53;
        while (team_now_ns() < until) {
        }
        usleep((useconds_t)(1e5 + 9e5 * (double)(data_mix(1, i + 1) >> 11) * 0x1p-53));
    }
}

static void load_stop(pid_t pid) {
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

// --- the two libraries
// ---------------------------------------------------------------------------------

/// Lays out both libraries, each with its own copy of the kernels.
static void make_libraries(const char *slowed, const char *kernels) {
    static const char *const sides[] = {"base", "new"};
    for (size_t k = 0; k < 2; k++) {
        char path[256], name[64];
        snprintf(name, sizeof(name), "%s.so", sides[k]);
        copy_file(slowed, path_of(path, name));
        snprintf(name, sizeof(name), "%s-real.so", sides[k]);
        copy_file(kernels, path_of(path, name));
    }
}

static void write_conf(const char *side, const char *kernel, double share) {
    char path[256], name[64];
    snprintf(name, sizeof(name), "%s.so.conf", side);
    FILE *file = fopen(path_of(path, name), "we");
    if (!file) {
        fail("%s: %s", path, strerror(errno));
    }
    fprintf(file, "library %s/%s-real.so\n", folder, side);
    if (kernel) {
        fprintf(file, "slow %s %.9g\n", kernel, share);
    }
    fclose(file);
}

// --- calibration
// ---------------------------------------------------------------------------------------

/// The library in this process, for calibration.
struct loaded {
    const struct mha_library *library;
    bool (*set)(const char *kernel, double share);
};

static struct loaded load_library(void) {
    char path[256];
    struct loaded loaded = {NULL, NULL};
    const struct mha_library *(*entry)(void) = NULL;
    write_conf("base", NULL, 0);
    void *handle = dlopen(path_of(path, "base.so"), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fail("%s", dlerror());
    }
    void *symbol = dlsym(handle, MHA_LIBRARY_SYMBOL);
    memcpy(&entry, &symbol, sizeof(entry));
    symbol = dlsym(handle, "slowed_set");
    memcpy(&loaded.set, &symbol, sizeof(loaded.set));
    if (!entry || !loaded.set) {
        fail("%s is not what slowed.c makes", path);
    }
    loaded.library = entry();
    return loaded;
}

/// A kernel bound to the problem's memory.
struct bench {
    const struct loaded *loaded;
    const struct mha_kernel *kernel;
    struct problem problem;
    struct buffer buffers[OP_TENSORS_MAX];
    struct tensor tensors[OP_TENSORS_MAX];
    const struct tensor *copies[1];
    size_t count;
    struct team_case team;
};

static void bench_make(struct bench *b, const struct loaded *loaded, size_t op) {
    const struct op_driver *driver = op_find(ops[op]);
    char why[300];
    memset(b, 0, sizeof(*b));
    b->loaded = loaded;
    b->kernel = loaded->library->entries[op * ALIASES].kernel;
    b->problem = (struct problem){.op = driver->name, .dtype = "f32", .shape = shape};
    driver->normalise(&b->problem);
    struct tensor_shape shapes[OP_TENSORS_MAX];
    b->count = driver->tensors(&b->problem, shapes);
    for (size_t i = 0; i < b->count; i++) {
        if (!buffer_make(&b->buffers[i], &shapes[i], &layout_dense)) {
            fail("no memory");
        }
        b->tensors[i] = b->buffers[i].tensor;
        for (size_t p = 0; p < shapes[i].planes && shapes[i].role == TENSOR_INPUT; p++) {
            op_fill_rows(driver, &b->problem, data_class_find(driver->classes[0]), 1, 0, i,
                         &b->tensors[i], p, 0, shapes[i].rows);
        }
    }
    b->copies[0] = b->tensors;
    if (!team_case_make(&b->team, driver, b->kernel, &b->problem, 1, 1, b->copies, 0, false, why,
                        sizeof(why))) {
        fail("%s: %s", b->kernel->name, why);
    }
}

static void bench_free(struct bench *b) {
    team_case_free(&b->team);
    for (size_t i = 0; i < b->count; i++) {
        buffer_free(&b->buffers[i]);
    }
}

static double time_calls(struct bench *b, double share, size_t calls) {
    b->loaded->set(b->kernel->name, share);
    const double start = team_now_ns();
    for (size_t i = 0; i < calls; i++) {
        team_case_call(&b->team, 0);
    }
    return team_now_ns() - start;
}

struct slowdown {
    double change;  ///< Median over the pairs.
    double error;  ///< Of that, at one standard error (Laplace's 1.25 sigma / sqrt(n), by the MAD).
};

/// Measures what a share of extra work costs, in pairs of blocks in random order.
static struct slowdown measure_share(struct bench *b, double share, double seconds) {
    const double end = team_now_ns() + seconds * 1e9;
    time_calls(b, share, 1000);
    const size_t calls = (size_t)(1e6 / (time_calls(b, 0, 1000) / 1000)) + 1;  // 1 ms
    size_t count = 0;
    double *ratios = NULL;
    while (team_now_ns() < end || count < 21) {
        const bool first = data_mix(3, count) & 1;
        const double a = time_calls(b, first ? share : 0, calls);
        const double c = time_calls(b, first ? 0 : share, calls);
        ratios = realloc(ratios, (count + 1) * sizeof(*ratios));
        if (!ratios) {
            fail("no memory");
        }
        ratios[count++] = log(first ? a / c : c / a);
    }
    const struct slowdown result = {
        expm1(stats_median(ratios, count)),
        1.25 * 1.4826 * stats_mad(ratios, count) / sqrt((double)count),
    };
    free(ratios);
    b->loaded->set(b->kernel->name, 0);
    return result;
}

/// Finds the share of extra work that slows an op by `effect`: by secants, then a last long look.
static double calibrate(const struct loaded *loaded, size_t op, double effect, double seconds) {
    if (effect == 0) {
        return 0;
    }
    struct bench b;
    bench_make(&b, loaded, op);
    double share = effect;
    for (int step = 0; step < 3; step++) {
        const struct slowdown s = measure_share(&b, share, seconds / 5);
        if (s.change > effect / 10) {
            share *= fmin(4, fmax(0.25, effect / s.change));
        } else {
            share *= 2;
        }
    }
    const struct slowdown s = measure_share(&b, share, seconds * 2 / 5);
    printf("calibrated %s for %.1f %%: %.4f of the work again is %.2f %% +- %.2f %%\n", ops[op],
           100 * effect, share, 100 * s.change, 200 * s.error);
    fflush(stdout);
    bench_free(&b);
    return share;
}

// --- one table
// -------------------------------------------------------------------------------------------

enum method { METHOD_AB, METHOD_COMPARE, METHOD_PEER, METHODS };

static const char *const method_names[METHODS] = {"ab", "compare", "compare.py"};

/// What a method made of the tables so far.
struct tally {
    size_t tables, found;
    size_t rows, false_rows;  ///< Rows that did not change.
    size_t open;              ///< INCONCLUSIVE.
    double seconds;
};

/// Takes the rows of a report of ours.
static void tally_report(struct tally *t, const char *slowed_name, double effect) {
    json_t *report = read_json("out");
    const json_t *rows = json_object_get(report, "rows");
    t->tables++;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *kernel = json_string_value(json_object_get(row, "kernel"));
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        if (!kernel || !verdict) {
            fail("a row of the report has no kernel or verdict");
        }
        const bool slower = strcmp(verdict, "SLOWER") == 0;
        t->open += strcmp(verdict, "INCONCLUSIVE") == 0;
        if (effect > 0 && strcmp(kernel, slowed_name) == 0) {
            t->found += slower;
        } else {
            t->rows++;
            t->false_rows += slower;
        }
    }
    if (json_array_size(rows) != ROWS) {
        fail("%zu rows in place of %d", json_array_size(rows), ROWS);
    }
    json_decref(report);
}

static void expect(int code, const char *what) {
    if (code != 0 && code != 1) {
        char path[256], text[1024] = "";
        FILE *file = fopen(path_of(path, "err"), "re");
        if (file) {
            text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
            fclose(file);
        }
        fail("%s ended with %d:\n%s", what, code, text);
    }
}

static void table_ab(const char *program, struct tally *t, const char *slowed_name, double effect,
                     double row_seconds, size_t seed) {
    char base[256], now[256], budget[32], seed_text[32];
    snprintf(budget, sizeof(budget), "%.3f", row_seconds * ROWS);
    snprintf(seed_text, sizeof(seed_text), "%zu", seed);
    const char *const words[] = {program,
                                 "ab",
                                 path_of(base, "base.so"),
                                 path_of(now, "new.so"),
                                 SELECTION("*_w[0-9][0-9]"),
                                 "--budget",
                                 budget,
                                 "--seed",
                                 seed_text,
                                 "--json",
                                 NULL};
    const double start = team_now_ns();
    expect(run(words, NULL), "ab");
    t->seconds += (team_now_ns() - start) / 1e9;
    tally_report(t, slowed_name, effect);
}

/// Two separate runs, each with half of the time, one after the other.
static void two_runs(const char *program, struct tally *t, double row_seconds, size_t seed) {
    static const char *const sides[] = {"base", "new"};
    char budget[32], seed_text[32], launches[32];
    snprintf(budget, sizeof(budget), "%.3f", row_seconds * ROWS / 2);
    // A launch of this table takes about half a second; from six launches on, compare takes the
    // spread between them at its word.
    snprintf(launches, sizeof(launches), "%.0f", fmin(1000, fmax(6, row_seconds * ROWS)));
    snprintf(seed_text, sizeof(seed_text), "%zu", seed);
    const double start = team_now_ns();
    for (size_t k = 0; k < 2; k++) {
        char out[256], library[256], name[64];
        snprintf(name, sizeof(name), "%s.json", sides[k]);
        path_of(out, name);
        snprintf(name, sizeof(name), "%s.so", sides[k]);
        const char *const words[] = {program,    "run",    SELECTION("*_w[0-9][0-9]"),
                                     "--budget", budget,   "--launches",
                                     launches,   "--seed", seed_text,
                                     "--out",    out,      "--benchmark_min_time",
                                     "0.0005",   NULL};
        expect(run(words, path_of(library, name)), "run");
    }
    t->seconds += (team_now_ns() - start) / 1e9;
}

static void table_compare(const char *program, struct tally *t, const char *slowed_name,
                          double effect) {
    char base[256], now[256];
    const char *const words[] = {
        program, "compare", path_of(base, "base.json"), path_of(now, "new.json"), "--json", NULL};
    expect(run(words, NULL), "compare");
    tally_report(t, slowed_name, effect);
}

/// Writes a result's samples as Google Benchmark would have written repetitions.
static void write_repetitions(const char *from, const char *to) {
    json_t *result = read_json(from), *list = json_array();
    const json_t *rows = json_object_get(result, "benchmarks");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *own = json_object_get(row, "mhabench");
        const json_t *launches = json_object_get(own, "samples_ns");
        json_int_t index = 0;
        for (size_t l = 0; l < json_array_size(launches); l++) {
            const json_t *samples = json_array_get(launches, l);
            for (size_t s = 0; s < json_array_size(samples); s++) {
                const double ns = json_number_value(json_array_get(samples, s));
                const char *kernel = json_string_value(json_object_get(own, "kernel"));
                json_array_append_new(
                    list,
                    json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:I, s:f, s:f, s:s}", "name", kernel,
                              "run_name", kernel, "run_type", "iteration", "repetition_index",
                              index++, "repetitions", (json_int_t)0, "threads", 1, "iterations",
                              (json_int_t)1, "real_time", ns, "cpu_time", ns, "time_unit", "ns"));
            }
        }
    }
    json_t *root =
        json_pack("{s:{s:s}, s:o}", "context", "executable", "mhabench", "benchmarks", list);
    char path[256];
    if (json_dump_file(root, path_of(path, to), 0) != 0) {
        fail("%s cannot be written", path);
    }
    json_decref(root);
    json_decref(result);
}

static const char peer_script[] = "/usr/share/benchmark/compare.py";

/// Google Benchmark's own comparison of the same samples: a U test of each row, alpha 0.05.
static void table_peer(struct tally *t, const char *slowed_name, double effect) {
    char base[256], now[256], out[256];
    write_repetitions("base.json", "base-gb.json");
    write_repetitions("new.json", "new-gb.json");
    const char *const words[] = {"/usr/bin/python3",
                                 peer_script,
                                 "--no-color",
                                 "--dump_to_json",
                                 path_of(out, "peer.json"),
                                 "benchmarks",
                                 path_of(base, "base-gb.json"),
                                 path_of(now, "new-gb.json"),
                                 NULL};
    if (run(words, NULL) != 0) {
        expect(2, "compare.py");
    }
    json_t *rows = read_json("peer.json");
    size_t seen = 0;
    t->tables++;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_t *test = json_object_get(row, "utest");
        const double p = json_number_value(json_object_get(test, "time_pvalue"));
        if (!name || json_object_size(test) == 0) {
            continue;  // the line of geometric means
        }
        const json_t *list = json_object_get(row, "measurements");
        double change[4096];
        size_t count = 0;
        for (; count < json_array_size(list) && count < 4096; count++) {
            change[count] = json_number_value(json_object_get(json_array_get(list, count), "time"));
        }
        const bool slower = p < 0.05 && stats_median(change, count) > 0;
        seen++;
        if (effect > 0 && strcmp(name, slowed_name) == 0) {
            t->found += slower;
        } else {
            t->rows++;
            t->false_rows += slower;
        }
    }
    json_decref(rows);
    if (seen != ROWS) {
        fail("compare.py tested %zu rows in place of %d", seen, ROWS);
    }
}

static bool peer_runs(void) {
    const char *const words[] = {"/usr/bin/python3", "-c", "import numpy, scipy.stats", NULL};
    return access(peer_script, R_OK) == 0 && run(words, NULL) == 0;
}

// --- the whole
// -------------------------------------------------------------------------------------------

/// Limit of a binomial proportion (Clopper and Pearson 1934) at one-sided 95 %, by bisection.
static double limit(size_t hits, size_t trials, bool upper) {
    if (trials == 0 || (upper && hits == trials) || (!upper && hits == 0)) {
        return upper ? 1 : 0;
    }
    double low = 0, high = 1;
    for (int step = 0; step < 60; step++) {
        const double p = (low + high) / 2;
        double tail = 0;  // P(at most hits), or P(at most hits - 1)
        for (size_t k = 0; k < hits + (upper ? 1 : 0); k++) {
            tail += exp(lgamma((double)trials + 1) - lgamma((double)k + 1) -
                        lgamma((double)(trials - k) + 1) + (double)k * log(p) +
                        (double)(trials - k) * log1p(-p));
        }
        if (tail > (upper ? 0.05 : 0.95)) {
            low = p;
        } else {
            high = p;
        }
    }
    return low;
}

static void tell(const struct tally *t, enum method method, double effect, bool load) {
    const double seconds = t->tables ? t->seconds / (double)t->tables / ROWS : 0;
    printf(
        "%-10s %-4s %4.0f %%  %5.2f s a row  false SLOWER %3zu of %5zu rows (95 %% limit %5.2f "
        "in 1000)",
        method_names[method], load ? "load" : "", 100 * effect, seconds, t->false_rows, t->rows,
        1000 * limit(t->false_rows, t->rows, true));
    if (effect > 0) {
        printf("  found in %zu of %zu tables (95 %% limit %.0f %%)", t->found, t->tables,
               100 * limit(t->found, t->tables, false));
    }
    printf("  open %zu\n", t->open);
    fflush(stdout);
}

/// Ticks of the CPUs that this process may not use: all of them, and those that were not idle.
struct ticks {
    double all, busy;
};

static struct ticks other_ticks(void) {
    struct ticks ticks = {0, 0};
    cpu_set_t own;
    char line[512];
    FILE *file = fopen("/proc/stat", "re");
    if (!file || sched_getaffinity(0, sizeof(own), &own) != 0) {
        fail("/proc/stat cannot be read");
    }
    while (fgets(line, sizeof(line), file)) {
        unsigned cpu;
        double t[8] = {0};  // user nice system idle iowait irq softirq steal
        if (sscanf(line, "cpu%u %lf %lf %lf %lf %lf %lf %lf %lf", &cpu, &t[0], &t[1], &t[2], &t[3],
                   &t[4], &t[5], &t[6], &t[7]) < 5 ||
            cpu >= CPU_SETSIZE || CPU_ISSET(cpu, &own)) {
            continue;
        }
        for (size_t i = 0; i < 8; i++) {
            ticks.all += t[i];
            ticks.busy += i == 3 || i == 4 ? 0 : t[i];
        }
    }
    fclose(file);
    return ticks;
}

/// One table's worth: the tally as it was before, and the ticks then.
struct mark {
    struct tally tally;
    struct ticks ticks;
};

static void record(FILE *out, const struct tally *now, const struct mark *before,
                   enum method method, double effect, double row_seconds, bool load,
                   const char *slowed_name) {
    if (!out) {
        return;
    }
    const struct ticks ticks = other_ticks();
    const double all = ticks.all - before->ticks.all;
    const struct tally *then = &before->tally;
    json_t *busy = all > 0 ? json_real((ticks.busy - before->ticks.busy) / all) : json_null();
    json_t *line = json_pack(
        "{s:s, s:b, s:f, s:f, s:f, s:s, s:I, s:I, s:I, s:I, s:o}", "method", method_names[method],
        "load", load, "effect", effect, "row_seconds_asked", row_seconds, "row_seconds",
        (now->seconds - then->seconds) / ROWS, "slowed", effect > 0 ? slowed_name : "", "found",
        (json_int_t)(now->found - then->found), "rows", (json_int_t)(now->rows - then->rows),
        "false_slower", (json_int_t)(now->false_rows - then->false_rows), "inconclusive",
        (json_int_t)(now->open - then->open), "others_busy", busy);
    json_dumpf(line, out, JSON_COMPACT);
    fputc('\n', out);
    fflush(out);
    json_decref(line);
}

struct settings {
    const char *program, *slowed, *kernels;
    size_t tables;
    size_t row_seconds_count, effects_count;
    double row_seconds[LIST_MAX], effects[LIST_MAX];
    bool load[2];
    bool methods[METHODS];
    double calibration_s;
    FILE *out;
};

/// All tables of one effect, time and load.
static void one_setting(const struct settings *s, const double shares[OPS],
                        const struct loaded *loaded, double effect, double row_seconds, bool load) {
    struct tally tallies[METHODS];
    memset(tallies, 0, sizeof(tallies));
    const pid_t other = load ? load_start() : 0;
    for (size_t t = 0; t < s->tables; t++) {
        const size_t op = t % OPS, alias = data_mix(5, t) % ALIASES;
        const char *name = loaded->library->entries[op * ALIASES + alias].kernel->name;
        write_conf("base", NULL, 0);
        write_conf("new", effect > 0 ? name : NULL, shares[op]);
        struct mark marks[METHODS];
        for (size_t m = 0; m < METHODS; m++) {
            marks[m] = (struct mark){tallies[m], other_ticks()};
        }
        if (s->methods[METHOD_AB]) {
            table_ab(s->program, &tallies[METHOD_AB], name, effect, row_seconds, t + 1);
            record(s->out, &tallies[METHOD_AB], &marks[METHOD_AB], METHOD_AB, effect, row_seconds,
                   load, name);
            marks[METHOD_COMPARE].ticks = marks[METHOD_PEER].ticks = other_ticks();
        }
        if (s->methods[METHOD_COMPARE] || s->methods[METHOD_PEER]) {
            two_runs(s->program, &tallies[METHOD_COMPARE], row_seconds, t + 1);
            tallies[METHOD_PEER].seconds = tallies[METHOD_COMPARE].seconds;
        }
        if (s->methods[METHOD_COMPARE]) {
            table_compare(s->program, &tallies[METHOD_COMPARE], name, effect);
            record(s->out, &tallies[METHOD_COMPARE], &marks[METHOD_COMPARE], METHOD_COMPARE, effect,
                   row_seconds, load, name);
        }
        if (s->methods[METHOD_PEER]) {
            table_peer(&tallies[METHOD_PEER], name, effect);
            record(s->out, &tallies[METHOD_PEER], &marks[METHOD_PEER], METHOD_PEER, effect,
                   row_seconds, load, name);
        }
    }
    load_stop(other);
    for (size_t m = 0; m < METHODS; m++) {
        if (s->methods[m]) {
            tell(&tallies[m], (enum method)m, effect, load);
        }
    }
}

static void all_settings(struct settings *s) {
    const struct loaded loaded = load_library();
    if (s->methods[METHOD_PEER] && !peer_runs()) {
        printf(
            "without compare.py: the packages libbenchmark-tools and python3-scipy are not "
            "installed\n");
        s->methods[METHOD_PEER] = false;
    }
    for (size_t e = 0; e < s->effects_count; e++) {
        double shares[OPS];
        for (size_t op = 0; op < OPS; op++) {
            shares[op] = calibrate(&loaded, op, s->effects[e], s->calibration_s);
        }
        for (size_t r = 0; r < s->row_seconds_count; r++) {
            for (size_t load = 0; load < 2; load++) {
                if (s->load[load]) {
                    one_setting(s, shares, &loaded, s->effects[e], s->row_seconds[r], load == 1);
                }
            }
        }
    }
}

/// What no machine can hide: half as much work again is found, and identical code is never slower.
static void short_form(const struct settings *s) {
    const struct loaded loaded = load_library();
    const char *name = loaded.library->entries[(size_t)2 * ALIASES].kernel->name;
    struct bench b;
    bench_make(&b, &loaded, 2);
    const struct slowdown half = measure_share(&b, 0.5, 0.5);
    bench_free(&b);
    printf("half of the work again: %.1f %% slower\n", 100 * half.change);
    char base[256], now[256];
    write_conf("base", NULL, 0);
    write_conf("new", name, 0.5);
    const char *const words[] = {s->program,
                                 "ab",
                                 path_of(base, "base.so"),
                                 path_of(now, "new.so"),
                                 SELECTION("*_w0[0-3]"),
                                 "--budget",
                                 "30",
                                 "--json",
                                 NULL};
    if (run(words, NULL) != 1) {
        expect(2, "ab, of a kernel that does half of its work again");
    }
    json_t *report = read_json("out");
    const json_t *rows = json_object_get(report, "rows");
    bool found = false;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *kernel = json_string_value(json_object_get(row, "kernel"));
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        found = found ||
                (kernel && verdict && strcmp(kernel, name) == 0 && strcmp(verdict, "SLOWER") == 0);
    }
    json_decref(report);
    if (!found) {
        fail("%s does half of its work again and is not SLOWER", name);
    }
    printf("%s is SLOWER\n", name);
    const char *const same[] = {s->program, "ab",       s->kernels, s->kernels, "--threads",
                                "1",        "--budget", "20",       "--json",   NULL};
    if (run(same, NULL) != 0) {
        expect(2, "ab, of a library with itself");
    }
    report = read_json("out");
    rows = json_object_get(report, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *verdict =
            json_string_value(json_object_get(json_array_get(rows, i), "verdict"));
        if (!verdict || strcmp(verdict, "SLOWER") == 0) {
            fail("identical code is called slower");
        }
    }
    printf("none of %zu rows of identical code is SLOWER\n", json_array_size(rows));
    json_decref(report);
}

// --- what a file of tables comes to
// -----------------------------------------------------------------------

/// Tables of one method that had the same slow-down and time, or the same company.
struct group {
    const char *method;
    double effect, row_seconds_asked, busy_from, busy_below;
    size_t tables, found, rows, false_rows, open;
    double seconds;
};

static void group_add(struct group *g, const json_t *line) {
    g->tables++;
    g->found += (size_t)json_integer_value(json_object_get(line, "found"));
    g->rows += (size_t)json_integer_value(json_object_get(line, "rows"));
    g->false_rows += (size_t)json_integer_value(json_object_get(line, "false_slower"));
    g->open += (size_t)json_integer_value(json_object_get(line, "inconclusive"));
    g->seconds += json_number_value(json_object_get(line, "row_seconds"));
}

static void print_false(const struct group *g) {
    printf(" %zu of %zu | %.2f |", g->false_rows, g->rows,
           1000 * limit(g->false_rows, g->rows, true));
}

static void print_found(const struct group *g) {
    if (g->effect > 0) {
        printf(" %zu of %zu | %.0f %% |", g->found, g->tables,
               100 * limit(g->found, g->tables, false));
    } else {
        printf(" - | - |");
    }
}

static int compare_groups(const void *a, const void *b) {
    const struct group *g = a, *h = b;
    const int method = strcmp(g->method, h->method);
    const double effect = g->effect - h->effect;
    const double seconds = g->row_seconds_asked - h->row_seconds_asked;
    return method ? method : effect < 0 ? -1 : effect > 0 ? 1 : seconds < 0 ? -1 : seconds > 0;
}

enum { GROUPS_MAX = 256, COMPANIES = 2 };

/// What --summary counts: by method, slow-down and time; by method alone; of ab by how busy the
/// other CPUs were.
struct summary {
    size_t count;
    struct group groups[GROUPS_MAX], methods[METHODS], companies[COMPANIES];
};

static void summary_add(struct summary *s, const json_t *line) {
    const char *method = json_string_value(json_object_get(line, "method"));
    const double effect = json_number_value(json_object_get(line, "effect"));
    const double seconds = json_number_value(json_object_get(line, "row_seconds_asked"));
    const json_t *busy = json_object_get(line, "others_busy");
    size_t m = 0, g = 0;
    while (m < METHODS && method && strcmp(method, method_names[m]) != 0) {
        m++;
    }
    if (!method || m == METHODS) {
        fail("a line is none of --out");
    }
    while (g < s->count &&
           (s->groups[g].method != method_names[m] || fabs(s->groups[g].effect - effect) > 1e-9 ||
            fabs(s->groups[g].row_seconds_asked - seconds) > 1e-9)) {
        g++;
    }
    if (g == GROUPS_MAX) {
        fail("more than %d settings", GROUPS_MAX);
    }
    if (g == s->count) {
        s->groups[s->count++] = (struct group){
            .method = method_names[m], .effect = effect, .row_seconds_asked = seconds};
    }
    s->methods[m].method = method_names[m];
    group_add(&s->groups[g], line);
    group_add(&s->methods[m], line);
    for (size_t c = 0; c < COMPANIES && m == METHOD_AB && json_is_number(busy); c++) {
        const double share = json_number_value(busy);
        if (share >= s->companies[c].busy_from && share < s->companies[c].busy_below) {
            group_add(&s->companies[c], line);
        }
    }
}

static void summary_print(const struct summary *s) {
    printf(
        "| method | slow-down | s a row, asked | spent | found in tables | at least | false SLOWER "
        "| per 1000, at most |\n|---|---|---|---|---|---|---|---|\n");
    for (size_t g = 0; g < s->count; g++) {
        const struct group *now = &s->groups[g];
        printf("| `%s` | %.0f %% | %.0f | %.2f |", now->method, 100 * now->effect,
               now->row_seconds_asked, now->seconds / (double)now->tables);
        print_found(now);
        print_false(now);
        printf("\n");
    }
    printf("\n| method | tables | false SLOWER | per 1000, at most |\n|---|---|---|---|\n");
    for (size_t m = 0; m < METHODS; m++) {
        if (s->methods[m].tables > 0) {
            printf("| `%s` | %zu |", s->methods[m].method, s->methods[m].tables);
            print_false(&s->methods[m]);
            printf("\n");
        }
    }
    printf(
        "\n| `ab`, the other CPUs | tables | false SLOWER | per 1000, at most |\n"
        "|---|---|---|---|\n");
    for (size_t c = 0; c < COMPANIES; c++) {
        printf("| %s | %zu |", c ? "at least half busy" : "less than a tenth busy",
               s->companies[c].tables);
        print_false(&s->companies[c]);
        printf("\n");
    }
}

/// Writes lines of "found" (method and time, slow-down, share found with its limits) and "false"
/// (method, per 1000 with its limit).
static void summary_write(const struct summary *s, const char *path) {
    FILE *data = fopen(path, "we");
    if (!data) {
        fail("%s: %s", path, strerror(errno));
    }
    for (size_t g = 0; g < s->count; g++) {
        const struct group *now = &s->groups[g];
        if (now->effect > 0) {
            fprintf(data, "found \"%s, %.0f s a row\" %.0f %.1f %.1f %.1f\n", now->method,
                    now->row_seconds_asked, 100 * now->effect,
                    100 * (double)now->found / (double)now->tables,
                    100 * limit(now->found, now->tables, false),
                    100 * limit(now->found, now->tables, true));
        }
    }
    for (size_t m = 0; m < METHODS; m++) {
        const struct group *now = &s->methods[m];
        if (now->tables > 0) {
            fprintf(data, "false \"%s\" %.3f %.3f\n", now->method,
                    1000 * (double)now->false_rows / (double)now->rows,
                    1000 * limit(now->false_rows, now->rows, true));
        }
    }
    if (fclose(data) != 0) {
        fail("%s cannot be written", path);
    }
}

static void summarise(const char *path, const char *data_path) {
    static struct summary s;
    char text[4096];
    FILE *file = fopen(path, "re");
    if (!file) {
        fail("%s: %s", path, strerror(errno));
    }
    s.companies[0] = (struct group){.busy_below = 0.1};
    s.companies[1] = (struct group){.busy_from = 0.5, .busy_below = 2};
    while (fgets(text, sizeof(text), file)) {
        json_error_t error;
        json_t *line = json_loads(text, 0, &error);
        summary_add(&s, line);
        json_decref(line);
    }
    fclose(file);
    qsort(s.groups, s.count, sizeof(*s.groups), compare_groups);
    summary_print(&s);
    if (data_path) {
        summary_write(&s, data_path);
    }
}

static size_t numbers(const char *text, double *list, double factor) {
    size_t count = 0;
    for (char *end = NULL; count < LIST_MAX; text = end + 1) {
        list[count++] = strtod(text, &end) * factor;
        if (end == text || (*end != ',' && *end != '\0')) {
            fail("'%s' is no list of numbers", text);
        }
        if (*end == '\0') {
            break;
        }
    }
    return count;
}

int main(int argc, char **argv) {
    struct settings s = {
        .tables = 20,
        .row_seconds_count = 2,
        .effects_count = 6,
        .row_seconds = {1, 3},
        .effects = {0, 0.01, 0.02, 0.03, 0.05, 0.1},
        .load = {true, true},
        .methods = {true, true, true},
        .calibration_s = 100,
    };
    bool brief = false;
    int i = 1;
    if (argc >= 3 && argc <= 4 && strcmp(argv[1], "--summary") == 0) {
        summarise(argv[2], argv[3]);
        return 0;
    }
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--short") == 0) {
            brief = true;
            continue;
        }
        if (i + 1 >= argc) {
            fail("%s: a value is missing", word);
        }
        const char *value = argv[++i];
        if (strcmp(word, "--tables") == 0) {
            s.tables = strtoul(value, NULL, 10);
        } else if (strcmp(word, "--row-seconds") == 0) {
            s.row_seconds_count = numbers(value, s.row_seconds, 1);
        } else if (strcmp(word, "--effects") == 0) {
            s.effects_count = numbers(value, s.effects, 0.01);
        } else if (strcmp(word, "--load") == 0) {
            s.load[0] = strcmp(value, "yes") != 0;
            s.load[1] = strcmp(value, "no") != 0;
        } else if (strcmp(word, "--methods") == 0) {
            s.methods[METHOD_AB] = strncmp(value, "ab", 2) == 0;
            s.methods[METHOD_PEER] = strstr(value, "compare.py") != NULL;
            s.methods[METHOD_COMPARE] = strcmp(value, "compare") == 0 ||
                                        strstr(value, "compare,") || strstr(value, ",compare");
        } else if (strcmp(word, "--calibration") == 0) {
            s.calibration_s = strtod(value, NULL);
        } else if (strcmp(word, "--out") == 0) {
            s.out = fopen(value, "ae");
            if (!s.out) {
                fail("%s: %s", value, strerror(errno));
            }
        } else {
            fail("unknown option %s", word);
        }
    }
    if (argc - i != 3 || s.tables == 0) {
        fail("usage: power [options] PROGRAM SLOWED.so KERNELS.so; see the head of power.c");
    }
    s.program = argv[i];
    s.slowed = argv[i + 1];
    s.kernels = argv[i + 2];
    if (!mkdtemp(folder)) {
        fail("%s: %s", folder, strerror(errno));
    }
    atexit(remove_folder);
    make_libraries(s.slowed, s.kernels);
    if (brief) {
        short_form(&s);
    } else {
        all_settings(&s);
    }
    if (s.out && fclose(s.out) != 0) {
        fail("--out cannot be written");
    }
    return 0;
}
