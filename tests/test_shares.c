/// Which ceiling a row is held against: the highest that its ISA can reach, by the bytes that the
/// mix of the ceiling moves, and ACCOUNTING where a share lies above it in every launch.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag.h"
#include "op.h"
#include "ops/stream.h"
#include "schedule.h"

/// A row of one thread whose samples all take 10 ns, where a test does not say otherwise.
#define MEDIAN_NS 10.0

/// What a launch saw: the row's time, and beside it FMA peaks in operations per ns and a bandwidth
/// of the row's op's mix in bytes per ns.
struct launch {
    double ns, peak_avx512, peak_bf16, bandwidth;
};

struct share {
    enum verdict verdict;
    double of_ceiling;
    char kind[16];
};

static void add_ceiling(FILE *file, const char *kind, const char *isa, const char *mix,
                        double value) {
    fprintf(file,
            "{\"event\":\"ceiling\",\"problem\":0,\"kernel\":\"%s_%s\",\"kind\":\"%s\",\"isa\":"
            "\"%s\",\"mix\":\"%s\",\"level\":\"\",\"bytes\":0.0,\"threads\":1,\"values\":[%.9g]}\n",
            kind, isa, kind, isa, mix, value);
}

/// Gets the share of a row of `flops` operations that ran with `isa` in some launches.
static struct share share_of_launches(const struct problem *wanted, const char *isa, double flops,
                                      size_t launches, const struct launch *launch) {
    struct problem own = *wanted, *const problem = &own;
    size_t row_problem[1] = {0};
    struct row *row = diag_alloc(calloc(1, sizeof(*row)));
    row->problem = *problem;
    row->kernel = diag_alloc(strdup("some_kernel"));
    row->isa = diag_alloc(strdup(isa));
    row->tag = diag_alloc(strdup("tag"));
    row->code_hash = diag_alloc(strdup(""));
    row->threads = 1;
    row->flops = flops;
    double read, written;
    op_find(problem->op)->bytes(problem, &read, &written);
    row->bytes = read + written;

    const int descriptor = memfd_create("journal", MFD_CLOEXEC);
    assert_true(descriptor >= 0);
    FILE *file = diag_alloc(fdopen(dup(descriptor), "w"));
    char name[CASE_NAME_BYTES], path[64];
    problem_case_name(name, problem, isa, "tag", 1);
    fprintf(file, "{\"journal\":1,\"seed\":1,\"rows\":[[\"%s\",\"\"]]}\n", name);
    fputs("{\"event\":\"verdict\",\"case\":0,\"verdict\":\"PASSED\",\"hash\":\"00\"}\n", file);
    for (size_t i = 0; i < launches; i++) {
        fprintf(file, "{\"event\":\"samples\",\"case\":0,\"ns\":[%.9g],\"iterations\":1}\n",
                launch[i].ns);
        add_ceiling(file, "fma", "avx512", "", launch[i].peak_avx512);
        add_ceiling(file, "fma", "avx512bf16", "", launch[i].peak_bf16);
        add_ceiling(file, "bandwidth", "avx512", op_find(problem->op)->mix, launch[i].bandwidth);
        fprintf(file,
                "{\"event\":\"problem\",\"problem\":0}\n{\"event\":\"launch\",\"launch\":%zu}\n",
                i);
    }
    assert_int_equal(fclose(file), 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);

    const struct options options = {.seed = 1, .resume = true};
    struct schedule schedule = {.options = &options,
                                .problems = 1,
                                .problem = problem,
                                .rows = 1,
                                .row = row,
                                .row_problem = row_problem,
                                .journal = path,
                                .quiet = true};
    bool torn;
    schedule_prepare(&schedule);
    assert_int_equal(schedule_read_journal(&schedule, &torn), EXIT_DONE);
    close(descriptor);
    struct result result = {.count = 1, .rows = row};
    results_derive(&result);
    const size_t above = schedule_shares(&schedule, false);
    assert_int_equal(row->verdict, VERDICT_PASSED);
    assert_int_equal(schedule_shares(&schedule, true), above);
    assert_int_equal(row->verdict == VERDICT_ACCOUNTING, above == 1);
    struct share share = {row->verdict, row->ceiling_share, ""};
    snprintf(share.kind, sizeof(share.kind), "%s", row->ceiling_kind ? row->ceiling_kind : "");
    schedule_free(&schedule);
    results_free(&result);
    return share;
}

/// The same of one launch.
static struct share share_of(const struct problem *problem, const char *isa, double flops,
                             double peak_avx512, double peak_bf16, double bandwidth) {
    const struct launch launch = {MEDIAN_NS, peak_avx512, peak_bf16, bandwidth};
    return share_of_launches(problem, isa, flops, 1, &launch);
}

static const struct problem attention = {
    .op = "sdpa", .dtype = "bf16", .shape = {1, 2, 2, 8, 8, 16}};
static const struct problem embedding = {
    .op = "embed", .dtype = "f32", .shape = {1, 2, 2, 8, 8, 16}};

/// Where vdpbf16ps is slower than the FMAs beside it, a kernel that uses both may exceed its peak.
static void highest_peak_of_the_isa(void **state) {
    (void)state;
    const struct share share = share_of(&attention, "avx512bf16", 1000, 175, 82, 1e12);
    assert_int_equal(share.verdict, VERDICT_PASSED);
    assert_string_equal(share.kind, "fma");
    assert_float_equal((float)share.of_ceiling, (float)(1000 / 175.0 / MEDIAN_NS), 1e-6F);
    const struct share other = share_of(&attention, "avx512bf16", 1000, 175, 350, 1e12);
    assert_float_equal((float)other.of_ceiling, (float)(1000 / 350.0 / MEDIAN_NS), 1e-6F);
}

/// What an ISA lacks does not count, however fast it would be.
static void no_peak_of_a_larger_isa(void **state) {
    (void)state;
    const struct share share = share_of(&attention, "avx512", 1000, 175, 350, 1e12);
    assert_float_equal((float)share.of_ceiling, (float)(1000 / 175.0 / MEDIAN_NS), 1e-6F);
}

/// Above the highest peak nothing can be right.
static void above_is_accounting(void **state) {
    (void)state;
    assert_int_equal(share_of(&attention, "avx512bf16", 1900, 175, 82, 1e12).verdict,
                     VERDICT_ACCOUNTING);
    assert_int_equal(share_of(&attention, "avx512", 1900, 175, 350, 1e12).verdict,
                     VERDICT_ACCOUNTING);
}

/// Beside a rate of reading only what is read counts: stores go on at the same time.
static void reads_against_reading(void **state) {
    (void)state;
    double read, written;
    op_find("embed")->bytes(&embedding, &read, &written);
    assert_true(written > read / 4);
    const double bandwidth = read / (0.9 * MEDIAN_NS);
    const struct share share = share_of(&embedding, "avx512", 0, 175, 82, bandwidth);
    assert_int_equal(share.verdict, VERDICT_PASSED);
    assert_string_equal(share.kind, "bandwidth");
    assert_float_equal((float)share.of_ceiling, 0.9F, 1e-6F);
}

/// A launch that is slower as a whole explains nothing: row and ceiling are a pair.
static void launches_are_pairs(void **state) {
    (void)state;
    const struct launch slower_and_faster[] = {{20, 50, 50, 1e12}, {10, 100, 100, 1e12}};
    assert_int_equal(share_of_launches(&attention, "avx512", 1100, 2, slower_and_faster).verdict,
                     VERDICT_ACCOUNTING);
    assert_int_equal(share_of_launches(&attention, "avx512", 1040, 2, slower_and_faster).verdict,
                     VERDICT_PASSED);
}

/// Neighbours had the ceiling's few samples in one launch, and not in the next.
static void one_launch_acquits(void **state) {
    (void)state;
    const struct launch launches[] = {{10, 50, 50, 1e12}, {10, 100, 100, 1e12}, {10, 60, 60, 1e12}};
    for (size_t count = 1; count <= 3; count++) {
        assert_int_equal(share_of_launches(&attention, "avx512", 900, count, launches).verdict,
                         count == 1 ? VERDICT_ACCOUNTING : VERDICT_PASSED);
    }
    assert_int_equal(share_of_launches(&attention, "avx512", 900, 1, &launches[2]).verdict,
                     VERDICT_ACCOUNTING);
}

/// A ceiling's planes are as many for each thread, of whole cache lines, not more than sums stay
/// exact in, and take all but a few lines of what was asked.
static void planes_of_whole_lines(void **state) {
    (void)state;
    // Half of the bytes of bias at 96 heads and 512 keys: eight planes of it, halved from one that
    // was whole lines, began amid lines.
    const double sizes[] = {1, 15, 16, 4096, 25165872, 25167360, 16994648, (double)(64u << 20)};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t threads = 1; threads <= 7; threads++) {
            const struct stream_planes cut = stream_planes_of(sizes[i], threads);
            assert_int_equal(cut.planes % threads, 0);
            assert_int_equal(cut.count % STREAM_LINE, 0);
            assert_in_range(cut.count, STREAM_LINE, STREAM_PLANE_ELEMENTS);
            const double all = (double)cut.planes * (double)cut.count;
            const double line = STREAM_LINE * (double)cut.planes;
            assert_true(all <= fmax(sizes[i], line) && all > sizes[i] - line);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(highest_peak_of_the_isa), cmocka_unit_test(no_peak_of_a_larger_isa),
        cmocka_unit_test(above_is_accounting),     cmocka_unit_test(reads_against_reading),
        cmocka_unit_test(launches_are_pairs),      cmocka_unit_test(one_launch_acquits),
        cmocka_unit_test(planes_of_whole_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
