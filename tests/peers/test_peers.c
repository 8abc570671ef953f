/// Every peer of this build: it is loaded, says what it is, computes what it should at the level of
/// its name whatever the environment asks for, and does so on the calling threads alone.
#include <dirent.h>
#include <string.h>

#include "catalogue.h"
#include "data.h"
#include "stage.h"
#include "team.h"

static const struct {
    const char *library, *isa;
} expected[] = {
#include "expected_peers.inc"
};

static void case_all_are_there(void **state) {
    (void)state;
    const struct kernel_table *table = stage_kernels();
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        size_t found = 0;
        for (size_t k = 0; k < table->count; k++) {
            const struct loaded_kernel *l = &table->kernels[k];
            if (strcmp(l->library, expected[i].library) == 0 &&
                strcmp(l->kernel->isa, expected[i].isa) == 0) {
                found++;
                assert_true(l->kernel->flags & MHA_FLAG_PEER);
                assert_string_equal(l->kernel->tag, l->library);
                assert_true(l->version[0] >= '0' && l->version[0] <= '9');
            }
        }
        if (found == 0) {
            fail_msg("no kernel of %s at %s", expected[i].library, expected[i].isa);
        }
    }
}

static size_t threads_now(void) {
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

static bool is_peer_here(const struct mha_kernel *kernel) {
    const char *why_not = NULL;
    return (kernel->flags & MHA_FLAG_PEER) && catalogue_isa_runs(kernel->isa, NULL, &why_not);
}

/// Runs a peer over a problem with `threads` threads and judges what came out.
static void expect_right(const struct mha_kernel *kernel, const struct problem *problem,
                         int threads) {
    static const struct layout layouts[] = {{PLACE_BACK, 0, 0, 0}, {PLACE_FRONT, 12, 3, 1}};
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        struct stage stage;
        struct team_case c;
        stage_make(&stage, problem, &layouts[i]);
        stage_fill(&stage, "normal");
        const struct mha_mask mask = problem_mask(&stage.problem, 0);
        const char *why_not = "no reason";
        if (kernel->supports && !kernel->supports(&stage.problem.shape, &mask, &why_not)) {
            fail_msg("%s does not run here: %s", kernel->name, why_not);
        }
        const struct tensor *copies[1] = {stage.tensors};
        assert_true(team_case_make(&c, stage.driver, kernel, &stage.problem, threads, 1, copies, 0,
                                   true, stage.why, sizeof(stage.why)));
        team_case_call(&c, 0);
        team_case_free(&c);
        if (stage_judge(&stage) != VERDICT_PASSED) {
            fail_msg("%s, %d threads: %s", kernel->name, threads, stage.why);
        }
        stage_free(&stage);
    }
}

/// Tells whether a peer must refuse a shape: bf16 in an odd number, see peer_element.h.
static bool must_refuse(const struct mha_kernel *kernel, const struct mha_shape *shape) {
    const size_t depth = strcmp(kernel->op, "pv") == 0 ? shape->seq_kv : shape->head_dim;
    return strcmp(kernel->dtype, "bf16") == 0 && depth % 2 != 0;
}

/// Goes through the peers over shapes with whole blocks, edges, and groups of heads.
static void all_right(int threads) {
    static const struct mha_shape shapes[] = {{1, 2, 2, 128, 128, 64},
                                              {2, 4, 2, 150, 200, 40},
                                              {1, 2, 1, 3, 37, 20},
                                              {1, 2, 1, 5, 38, 21},
                                              {1, 2, 2, 1, 65, 8}};
    static const enum mha_mask_kind masks[] = {MHA_MASK_NONE, MHA_MASK_CAUSAL, MHA_MASK_LENGTHS,
                                               MHA_MASK_WINDOW};
    const struct kernel_table *table = stage_kernels();
    for (size_t k = 0; k < table->count; k++) {
        const struct mha_kernel *kernel = table->kernels[k].kernel;
        for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]) && is_peer_here(kernel); s++) {
            if (must_refuse(kernel, &shapes[s])) {
                const char *why_not = NULL;
                assert_false(kernel->supports(&shapes[s], &(struct mha_mask){0}, &why_not));
                assert_non_null(why_not);
                continue;
            }
            for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
                if (m == 0 || op_find(kernel->op)->has_mask) {
                    const struct problem problem = {.op = kernel->op,
                                                    .dtype = kernel->dtype,
                                                    .shape = shapes[s],
                                                    .mask = masks[m],
                                                    .window = masks[m] == MHA_MASK_WINDOW ? 50 : 0};
                    expect_right(kernel, &problem, threads);
                }
            }
        }
    }
}

static void case_one_thread_stays_one(void **state) {
    (void)state;
    const size_t before = threads_now();
    all_right(1);
    assert_int_equal(threads_now(), before);
}

// Items of one problem at the same time: state, scratch and the libraries' own buffers are shared.
static void case_several_threads_agree(void **state) {
    (void)state;
    enum { THREADS = 4 };
    all_right(THREADS);
    // Those of the harness's own team, and none that a library started inside an item.
    assert_true(threads_now() <= THREADS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_all_are_there),
        cmocka_unit_test(case_one_thread_stays_one),
        cmocka_unit_test(case_several_threads_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
