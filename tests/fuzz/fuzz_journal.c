/// The reader of journals: whatever a killed run, a full disk or an editor left behind must be
/// taken or passed over, and what comes of it must be a result that can be written and read.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag.h"
#include "fuzz.h"
#include "schedule.h"
#include "stats.h"

enum { PROBLEMS = 2, ROWS = 3 };

static const struct problem problems[PROBLEMS] = {
    {.op = "qk", .dtype = "f32", .shape = {1, 2, 1, 8, 8, 16}},
    {.op = "softmax", .dtype = "f32", .shape = {1, 2, 2, 8, 8, 16}, .mask = MHA_MASK_CAUSAL},
};

static const struct {
    const char *kernel, *isa, *tag;
    size_t problem;
    int threads;
} kernels[ROWS] = {
    {"qk_f32_scalar_dot", "scalar", "dot", 0, 1},
    {"qk_f32_avx2_tile", "avx2", "tile", 0, 2},
    {"softmax_f32_scalar_libm", "scalar", "libm", 1, 1},
};

static void make_rows(struct row rows[ROWS], size_t row_problem[ROWS]) {
    memset(rows, 0, ROWS * sizeof(*rows));
    for (size_t i = 0; i < ROWS; i++) {
        rows[i].problem = problems[kernels[i].problem];
        rows[i].kernel = diag_alloc(strdup(kernels[i].kernel));
        rows[i].isa = diag_alloc(strdup(kernels[i].isa));
        rows[i].tag = diag_alloc(strdup(kernels[i].tag));
        rows[i].code_hash = diag_alloc(strdup(""));
        rows[i].threads = kernels[i].threads;
        rows[i].flops = 1000;
        rows[i].bytes = 4000;
        row_problem[i] = kernels[i].problem;
    }
}

/// Writes the header that belongs to these rows, then the input.
static int make_journal(const struct row rows[ROWS], const uint8_t *data, size_t size,
                        char path[64]) {
    const int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(descriptor >= 0, "no memory file");
    FILE *file = diag_alloc(fdopen(dup(descriptor), "w"));
    fputs("{\"journal\":1,\"seed\":1,\"rows\":[", file);
    for (size_t i = 0; i < ROWS; i++) {
        char name[CASE_NAME_BYTES];
        problem_case_name(name, &rows[i].problem, rows[i].isa, rows[i].tag, rows[i].threads);
        fprintf(file, "%s[\"%s\",\"\"]", i > 0 ? "," : "", name);
    }
    fputs("]}\n", file);
    fwrite(data, 1, size, file);
    FUZZ_REQUIRE(fclose(file) == 0, "a memory file cannot be written");
    snprintf(path, 64, "/proc/self/fd/%d", descriptor);
    return descriptor;
}

static void check_result(struct result *result) {
    char path[64];
    const int out = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_REQUIRE(out >= 0, "no memory file");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", out);
    json_t *json = results_to_json(result);
    FUZZ_REQUIRE(results_write(json, path) == EXIT_DONE, "a result cannot be written");
    json_decref(json);
    struct result back;
    FUZZ_REQUIRE(results_read(path, &back) == EXIT_DONE, "what was written cannot be read");
    FUZZ_REQUIRE(back.count == result->count, "%zu rows in place of %zu", back.count,
                 result->count);
    results_free(&back);
    close(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct row *rows = diag_alloc(calloc(ROWS, sizeof(*rows)));
    size_t row_problem[ROWS];
    make_rows(rows, row_problem);
    char path[64];
    const int journal = make_journal(rows, data, size, path);
    const struct options options = {.seed = 1, .resume = true};
    struct schedule schedule = {
        .options = &options,
        .problems = PROBLEMS,
        .problem = problems,
        .rows = ROWS,
        .row = rows,
        .row_problem = row_problem,
        .journal = path,
        .quiet = true,
    };
    schedule_prepare(&schedule);
    bool torn = false;
    FUZZ_REQUIRE(schedule_read_journal(&schedule, &torn) == EXIT_DONE, "our own header is refused");
    FUZZ_REQUIRE(torn == (size > 0 && data[size - 1] != '\n'), "torn is %d", torn);
    close(journal);

    struct result result = {.count = ROWS, .rows = rows};
    results_derive(&result);
    schedule_shares(&schedule, true);
    results_derive(&result);
    for (size_t i = 0; i < ROWS; i++) {
        FUZZ_REQUIRE(!row_has_time(&rows[i]) || rows[i].verdict == VERDICT_PASSED,
                     "a time without PASSED");
    }
    struct ceiling_list ceilings;
    schedule_ceilings(&schedule, &ceilings);
    result.context = diag_alloc(json_object());
    json_object_set_new(result.context, "mhabench",
                        json_pack("{s:i, s:o}", "schema_version", RESULTS_SCHEMA_VERSION,
                                  "ceilings", ceilings_to_json(&ceilings)));
    ceilings_free(&ceilings);
    check_result(&result);
    schedule_free(&schedule);
    results_free(&result);
    return 0;
}
