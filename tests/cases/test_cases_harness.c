/// Faults that users of other benchmark harnesses met and reported in public. Each test names the
/// report, and has the value that is right.
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "calibrate.h"
#include "cpu.h"
#include "diag.h"
#include "gbench_shim.h"
#include "machine.h"
#include "options.h"
#include "protocol.h"
#include "results.h"
#include "stage.h"
#include "team.h"

static const struct layout at_end = {PLACE_BACK, 0, 0, 0};

static struct problem softmax_problem(size_t rows, size_t cols) {
    return (struct problem){.op = "softmax", .dtype = "f32", .shape = {1, 1, 1, rows, cols, 64}};
}

// pytorch pull request 191325: heads 0 divided by zero.
static void case_13_heads_0_are_refused(void **state) {
    (void)state;
    static const char *const axes[] = {"--heads", "--kv-heads", "--head-dim", "--batch"};
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        char axis[16], zero[] = "0";
        snprintf(axis, sizeof(axis), "%s", axes[i]);
        char *argv[] = {axis, zero, NULL};
        struct options options;
        bool help = false;
        assert_int_equal(options_parse(&options, COMMAND_CHECK, 2, argv, &help), EXIT_USAGE);
        options_free(&options);
    }
    // Nor does a worker take them.
    static const char *const members[] = {"heads", "kv_heads", "head_dim", "batch"};
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        struct problem problem = softmax_problem(2, 3), back;
        json_t *json = protocol_problem_to_json(&problem);
        assert_true(protocol_problem_from_json(json, &back));
        assert_int_equal(json_object_set_new(json, members[i], json_integer(0)), 0);
        assert_false(protocol_problem_from_json(json, &back));
        json_decref(json);
    }
}

/// Tells where a pointer lies in a tensor, in bytes.
static uint64_t bytes_into(const struct tensor *t, const void *at) {
    return (uint64_t)((const char *)at - (const char *)t->data);
}

// FasterTransformer pull request 524: 2.56e9 elements overflow a 32-bit index.
static void case_14_offsets_beyond_32_bits(void **state) {
    (void)state;
    const struct problem problem = {
        .op = "softmax", .dtype = "f32", .shape = {20, 32, 32, 2000, 2000, 64}};
    const struct op_driver *driver = op_find(problem.op);
    struct tensor_shape shapes[OP_TENSORS_MAX];
    assert_int_equal(driver->tensors(&problem, shapes), 2);
    const uint64_t elements = UINT64_C(2560000000);
    assert_true((uint64_t)shapes[0].planes * shapes[0].rows * shapes[0].cols == elements);
    assert_true(buffer_bytes(&shapes[0], &layout_dense) >= elements * sizeof(float));
    double read = 0, written = 0;
    driver->bytes(&problem, &read, &written);
    assert_true(read == 4.0 * (double)elements && written == 4.0 * (double)elements);

    // Addresses only: nothing lies behind them.
    struct tensor tensors[2];
    void *maps[2];
    for (size_t i = 0; i < 2; i++) {
        maps[i] = mmap(NULL, elements * sizeof(float), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (maps[i] == MAP_FAILED) {
            print_message("no room for 10 GB of addresses\n");
            skip();
        }
        tensors[i] = (struct tensor){shapes[i], maps[i], 2000, (size_t)2000 * 2000};
    }
    const struct item last = {.plane = 639, .first_row = 1999, .rows = 1};
    union mha_args args;
    driver->item_args(&problem, tensors, &last, &args);
    const uint64_t expected = (elements - 2000) * sizeof(float);
    assert_true(bytes_into(&tensors[0], args.softmax.x) == expected);
    assert_true(bytes_into(&tensors[1], args.softmax.y) == expected);

    // The scores of qk: the last kv head's group of 32 heads, with its own strides.
    const struct problem qk = {.op = "qk", .dtype = "f32", .shape = {20, 32, 1, 2000, 2000, 64}};
    const struct tensor q = {.shape = {.planes = 640, .rows = 2000, .cols = 64},
                             .data = maps[0],
                             .row_stride = 64,
                             .plane_stride = (size_t)2000 * 64};
    const struct tensor k = {.shape = {.planes = 20, .rows = 2000, .cols = 64},
                             .data = maps[0],
                             .row_stride = 64,
                             .plane_stride = (size_t)2000 * 64};
    const struct tensor all[] = {q, k, tensors[1]};
    const struct item group = {.plane = 19, .first_row = 1999, .rows = 1};
    op_find("qk")->item_args(&qk, all, &group, &args);
    assert_true(bytes_into(&tensors[1], args.qk.s) ==
                (UINT64_C(19) * 32 * 2000 + 1999) * 2000 * sizeof(float));
    assert_true(args.qk.s_head_stride == (size_t)2000 * 2000);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(munmap(maps[i], elements * sizeof(float)), 0);
    }
}

/// A kernel whose body is empty.
static void do_nothing(const struct mha_softmax_args *args, void *workspace) {
    (void)args;
    (void)workspace;
}

/// A kernel that returns zeros.
static void write_zeros(const struct mha_softmax_args *args, void *workspace) {
    (void)workspace;
    for (size_t r = 0; r < args->rows; r++) {
        memset(args->y + r * args->y_stride, 0, args->cols * sizeof(float));
    }
}

static struct mha_kernel wrong_kernel(mha_softmax_fn *run) {
    return (struct mha_kernel){
        .name = "softmax_f32_scalar_wrong",
        .op = "softmax",
        .dtype = "f32",
        .isa = "scalar",
        .tag = "wrong",
        .run = {.softmax = run},
    };
}

// BitNet pull request 580: a kernel with an empty body went unnoticed.
static void case_16_empty_kernel_is_caught(void **state) {
    (void)state;
    const struct mha_kernel kernel = wrong_kernel(do_nothing);
    static const char *const data[] = {"normal", "nan", "masked"};
    for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
        struct stage stage;
        const struct problem problem = softmax_problem(3, 20);
        stage_make(&stage, &problem, &at_end);
        stage_fill(&stage, data[i]);
        assert_true(stage_run(&stage, &kernel));
        assert_int_equal(stage_judge(&stage), VERDICT_FAILED);
        assert_non_null(strstr(stage.why, "nothing written"));
        stage_free(&stage);
    }
}

// blis issue 279, Liger-Kernel issue 259: a NaN in the residual counted as a pass.
static void case_19_nan_residual_fails(void **state) {
    (void)state;
    struct stage stage;
    const struct problem problem = softmax_problem(2, 33);
    stage_make(&stage, &problem, &at_end);
    stage_fill(&stage, "normal");
    assert_true(stage_run(&stage, stage_kernel("softmax", 0)));
    assert_int_equal(stage_judge(&stage), VERDICT_PASSED);
    float *row = tensor_row(stage_output(&stage), 0, 1);
    for (size_t c = 0; c < 33; c++) {
        const float kept = row[c];
        row[c] = NAN;
        assert_int_equal(stage_judge(&stage), VERDICT_FAILED);
        row[c] = kept;
    }
    stage_free(&stage);
}

// KernelBench issue 165: zeros pass a softmax of a long row at an absolute tolerance of 1e-2.
static void case_20_zeros_do_not_pass_on_a_long_row(void **state) {
    (void)state;
    const struct mha_kernel kernel = wrong_kernel(write_zeros);
    static const char *const data[] = {"normal", "uniform", "equal"};
    for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
        struct stage stage;
        const struct problem problem = softmax_problem(2, 100000);
        stage_make(&stage, &problem, &at_end);
        stage_fill(&stage, data[i]);
        assert_true(stage_run(&stage, &kernel));
        assert_int_equal(stage_judge(&stage), VERDICT_FAILED);
        stage_free(&stage);
    }
    // Where zeros are right, as in rows of -inf only, they are no proof of anything.
    struct stage stage;
    const struct problem problem = softmax_problem(1, 50);
    stage_make(&stage, &problem, &at_end);
    for (size_t c = 0; c < 50; c++) {
        stage_row(&stage, 0, 0, 0)[c] = -INFINITY;
    }
    assert_true(stage_run(&stage, &kernel));
    assert_int_equal(stage_judge(&stage), VERDICT_MISTRUSTED);
    stage_free(&stage);
}

// whisper.cpp pull request 3699, Halide pull request 9017, ispc issue 1026: the processor has it,
// the system does not save its registers, and the first instruction faults.
static bool os_saves;

static void mock_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]) {
    (void)subleaf;
    // A processor that reports every feature; OSXSAVE is bit 27 of leaf 1's ecx.
    regs[0] = leaf == 0 ? 0x16 : UINT32_MAX;
    regs[1] = regs[2] = regs[3] = UINT32_MAX;
    if (leaf == 1 && !os_saves) {
        regs[2] &= ~(UINT32_C(1) << 27);
    }
}

static uint64_t mock_xgetbv(uint32_t index) {
    (void)index;
    return 3;  // x87 and SSE state; neither AVX nor AVX-512
}

static uint64_t mock_hwcap(void) {
    return UINT64_MAX;
}

static void case_17_isa_that_the_system_does_not_enable(void **state) {
    (void)state;
    const struct mha_cpu_probe probe = {mock_cpuid, mock_xgetbv, mock_hwcap};
    static const char *const words[] = {"avx2", "avx512"};
    for (size_t i = 0; i < 4; i++) {
        os_saves = i >= 2;
        const int isa = mha_isa_find(words[i % 2]);
        assert_true(isa >= 0);
        const struct mha_isa_status status = mha_isa_status((size_t)isa, &probe);
        assert_false(status.os_enables);
        assert_false(status.runs);
        assert_true(status.why_not[0] != '\0');
    }
}

// llama.cpp pull request 7154: whether denormals are flushed decides what such data costs.
static void case_18_ftz_state_is_recorded(void **state) {
    (void)state;
    static struct machine machine;
    machine_gather(&machine);
    json_t *json = machine_to_json(&machine);
    assert_non_null(json_object_get(json, "ftz"));
    json_decref(json);
}

/// A result file with rows of the given thread counts, in a file of its own.
static void write_result(const char *path, const int *threads, size_t rows, size_t cut) {
    struct result result = {.count = rows};
    result.rows = calloc(rows, sizeof(*result.rows));
    assert_non_null(result.rows);
    for (size_t i = 0; i < rows; i++) {
        struct row *row = &result.rows[i];
        row->problem = softmax_problem(2, 3);
        row->kernel = strdup("softmax_f32_scalar_libm");
        row->isa = strdup("scalar");
        row->tag = strdup("libm");
        row->code_hash = strdup("");
        row->repro = strdup("");
        row->threads = threads[i];
        row->verdict = VERDICT_PASSED;
        row->iterations = 1234567;
        row->flops = 1234567.5;
        row->bytes = 1e9;
        row->launches = 1;
        row->samples = calloc(1, sizeof(*row->samples));
        assert_non_null(row->samples);
        row->samples[0].count = 1;
        row->samples[0].ns = calloc(1, sizeof(double));
        assert_non_null(row->samples[0].ns);
        row->samples[0].ns[0] = 1234.5;
        // A counter that is no number.
        row->max_ulp = NAN;
        row->bound_share = INFINITY;
    }
    results_derive(&result);
    result.context = json_pack("{s:{s:i}}", "mhabench", "schema_version", RESULTS_SCHEMA_VERSION);
    json_t *json = results_to_json(&result);
    assert_int_equal(results_write(json, path), EXIT_DONE);
    if (cut > 0) {
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(fseek(file, 0, SEEK_END), 0);
        const long size = ftell(file);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(truncate(path, size - (long)cut), 0);
    }
    json_decref(json);
    results_free(&result);
}

static char folder[] = "/tmp/mhabench-cases-XXXXXX";

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

// Google Benchmark issues 784 and 2039: a bare NaN, and "1,000" under a locale.
static void case_21_strict_json(void **state) {
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", ""};
    for (size_t i = 0; i < sizeof(locales) / sizeof(locales[0]); i++) {
        setlocale(LC_ALL, locales[i]);  // where it is lacking, the one before stays
        const int threads[] = {1};
        write_result(path_of("strict.json"), threads, 1, 0);
        setlocale(LC_ALL, "C");
        json_error_t error;
        json_t *json = json_load_file(path_of("strict.json"), JSON_REJECT_DUPLICATES, &error);
        if (json == NULL) {
            fail_msg("%s: line %d: %s", locales[i], error.line, error.text);
        }
        const json_t *entry = json_array_get(json_object_get(json, "benchmarks"), 0);
        const json_t *row = json_object_get(entry, "mhabench");
        assert_int_equal(json_integer_value(json_object_get(row, "iterations")), 1234567);
        assert_true(json_real_value(json_object_get(row, "median_ns")) == 1234.5);
        assert_true(json_is_null(json_object_get(row, "max_ulp")));
        assert_true(json_is_null(json_object_get(row, "bound_share")));
        json_decref(json);
    }
}

// tasty-bench issue 9: two rows of one name were compared with each other.
static void case_23_duplicate_names_are_refused(void **state) {
    (void)state;
    struct result result;
    const int differ[] = {1, 2}, same[] = {2, 2};
    write_result(path_of("two.json"), differ, 2, 0);
    assert_int_equal(results_read(path_of("two.json"), &result), EXIT_DONE);
    assert_int_equal(result.count, 2);
    results_free(&result);
    write_result(path_of("two.json"), same, 2, 0);
    assert_int_equal(results_read(path_of("two.json"), &result), EXIT_USAGE);
}

// embench-iot pull request 201, arnio issue 1908: a missing key or half a file ended in a crash.
static void case_24_truncated_file_is_refused(void **state) {
    (void)state;
    const int threads[] = {1};
    for (size_t cut = 2; cut < 600; cut += 7) {
        struct result result;
        write_result(path_of("cut.json"), threads, 1, cut);
        assert_int_equal(results_read(path_of("cut.json"), &result), EXIT_USAGE);
    }
}

static void case_24_missing_key_is_refused(void **state) {
    (void)state;
    const int threads[] = {1};
    write_result(path_of("whole.json"), threads, 1, 0);
    json_t *whole = json_load_file(path_of("whole.json"), 0, NULL);
    assert_non_null(whole);
    json_t *row =
        json_object_get(json_array_get(json_object_get(whole, "benchmarks"), 0), "mhabench");
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(row, key, value) {
        json_t *less = json_deep_copy(row);
        struct row read;
        char why[256] = "";
        assert_int_equal(json_object_del(less, key), 0);
        if (strcmp(key, "data") == 0) {
            // Files from before there were classes to choose from lack it: the default.
            assert_true(row_from_json(less, &read, why, sizeof(why)));
            assert_null(read.problem.data);
            row_free(&read);
        } else {
            assert_false(row_from_json(less, &read, why, sizeof(why)));
            assert_non_null(strstr(why, key));
        }
        json_decref(less);
    }
    json_decref(whole);
}

enum { SLEEP_US = 2000 };

static void sleep_on_the_second_thread(void *context, int thread) {
    (void)context;
    if (thread == 1) {
        usleep(SLEEP_US);
    }
}

static void team_that_sleeps(void *context, uint64_t iterations) {
    for (uint64_t i = 0; i < iterations; i++) {
        *(int *)context = team_each(2, sleep_on_the_second_thread, NULL);
    }
}

static double sleeping_stopwatch(void *context, uint64_t iterations) {
    return gbench_sample("sleep", team_that_sleeps, context, iterations);
}

// Google Benchmark issues 170 and 763: CPU time counts the main thread alone. Here it takes next to
// none, while the second thread sleeps.
static void case_27_wall_time_drives_the_iterations(void **state) {
    (void)state;
    int ran = 0;
    char name[] = "test";
    char *argv[] = {name, NULL};
    assert_true(gbench_init(1, argv));
    struct calibration found;
    const double wanted_ns = 4.0 * SLEEP_US * 1000;
    assert_true(calibrate(&found, sleeping_stopwatch, &ran, wanted_ns));
    if (ran != 2) {
        print_message("%d threads ran in place of 2\n", ran);
        skip();
    }
    // Sleeping takes at least as long as it is told to.
    assert_true(found.call_ns >= SLEEP_US * 1000);
    assert_in_range(found.iterations, 1, 4);
}

#define CALIBRATED_NS 1e7

/// A clock that ticks every `tick_ns`, and work that takes `call_ns`; the first look is longer by
/// `interrupted_ns`.
struct coarse {
    double call_ns, tick_ns, interrupted_ns;
    uint64_t most;
    bool enough;
};

static double coarse_stopwatch(void *context, uint64_t iterations) {
    struct coarse *coarse = context;
    // The batch grows with every try, but for a second look at one that took long enough.
    assert_true(coarse->enough ? iterations == coarse->most : iterations > coarse->most);
    const double took = coarse->call_ns * (double)iterations + coarse->interrupted_ns;
    const double seen = floor(took / coarse->tick_ns) * coarse->tick_ns;
    coarse->interrupted_ns = 0;
    coarse->most = iterations;
    coarse->enough = !coarse->enough && seen >= CALIBRATED_NS / 2;
    return seen / (double)iterations;
}

static double broken_stopwatch(void *context, uint64_t iterations) {
    (void)iterations;
    return *(const double *)context;
}

/// One sample of what is found fills the time, to within the clock's own error: it was seen for
/// half of it at least, in ticks of a fifth of that at most.
static void expect_filled(struct coarse coarse) {
    struct calibration found = {0};
    assert_true(calibrate(&found, coarse_stopwatch, &coarse, CALIBRATED_NS));
    assert_true(found.iterations >= 1);
    assert_true(found.call_ns > 0);
    const double sample_ns = (double)found.iterations * coarse.call_ns;
    assert_true(sample_ns >= (1 - 1e-9) * CALIBRATED_NS);
    assert_true(sample_ns <= fmax(coarse.call_ns, 1.25 * CALIBRATED_NS + coarse.call_ns));
}

// A first call of 6 us that is interrupted for 8 ms seemed to fill a sample of 10 ms alone: the
// launch then had one call a sample.
static void an_interrupted_call_is_no_long_one(void **state) {
    (void)state;
    expect_filled((struct coarse){.call_ns = 6e3, .tick_ns = 1, .interrupted_ns = 8e6});
    expect_filled((struct coarse){.call_ns = 6e3, .tick_ns = 42, .interrupted_ns = 1e9});
    expect_filled((struct coarse){.call_ns = 9e6, .tick_ns = 42, .interrupted_ns = 1e9});
}

// swift-collections-benchmark pull request 3: a clock of 42 ns made samples of 0 s.
static void case_28_coarse_clock(void **state) {
    (void)state;
    static const double calls[] = {0.3, 1, 7, 41, 42, 43, 1000, 1e6, 1e9};
    static const double ticks[] = {1, 42, 1000, 1e6};
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        for (size_t k = 0; k < sizeof(ticks) / sizeof(ticks[0]); k++) {
            expect_filled((struct coarse){.call_ns = calls[i], .tick_ns = ticks[k]});
        }
    }
    double never = 0, failed = -1, unknown = NAN;
    struct calibration found = {0};
    assert_false(calibrate(&found, broken_stopwatch, &never, CALIBRATED_NS));
    assert_false(calibrate(&found, broken_stopwatch, &failed, CALIBRATED_NS));
    assert_false(calibrate(&found, broken_stopwatch, &unknown, CALIBRATED_NS));
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    static const char *const names[] = {"strict.json", "two.json", "cut.json", "whole.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)unlink(path_of(names[i]));
    }
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_13_heads_0_are_refused),
        cmocka_unit_test(case_14_offsets_beyond_32_bits),
        cmocka_unit_test(case_16_empty_kernel_is_caught),
        cmocka_unit_test(case_17_isa_that_the_system_does_not_enable),
        cmocka_unit_test(case_18_ftz_state_is_recorded),
        cmocka_unit_test(case_19_nan_residual_fails),
        cmocka_unit_test(case_20_zeros_do_not_pass_on_a_long_row),
        cmocka_unit_test(case_21_strict_json),
        cmocka_unit_test(case_23_duplicate_names_are_refused),
        cmocka_unit_test(case_24_truncated_file_is_refused),
        cmocka_unit_test(case_24_missing_key_is_refused),
        cmocka_unit_test(case_27_wall_time_drives_the_iterations),
        cmocka_unit_test(case_28_coarse_clock),
        cmocka_unit_test(an_interrupted_call_is_no_long_one),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
