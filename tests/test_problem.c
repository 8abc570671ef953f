/// How a problem is written: its case name, its options, its equality.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <string.h>

#include "problem.h"

static struct problem sample(void) {
    return (struct problem){
        .op = "qk",
        .dtype = "f32",
        .shape =
            {.batch = 1, .heads = 96, .kv_heads = 96, .seq_q = 512, .seq_kv = 512, .head_dim = 128},
    };
}

static void case_names(void **state) {
    (void)state;
    char name[CASE_NAME_BYTES];
    struct problem problem = sample();
    problem_case_name(name, &problem, "avx512", "14x32", 2);
    assert_string_equal(
        name, "qk/f32/avx512_14x32/batch:1/heads:96/head_dim:128/seq_q:512/seq_kv:512/threads:2");
    problem.shape.kv_heads = 8;
    problem.mask = MHA_MASK_CAUSAL;
    problem.cache = CACHE_COLD;
    problem_case_name(name, &problem, "avx2", "x", 1);
    assert_string_equal(name,
                        "qk/f32/avx2_x/batch:1/heads:96/kv_heads:8/head_dim:128/seq_q:512/"
                        "seq_kv:512/mask:causal/cache:cold/threads:1");
    problem.data = "jump";
    problem_case_name(name, &problem, "avx2", "x", 1);
    assert_non_null(strstr(name, "/mask:causal/cache:cold/data:jump/threads:1"));
    problem.mask = MHA_MASK_WINDOW;
    problem.window = 16;
    problem_case_name(name, &problem, "avx2", "x", 1);
    assert_non_null(strstr(name, "/mask:window:16/"));
    // The largest numbers fit; a tag without end is cut, not overrun.
    problem.shape = (struct mha_shape){SIZE_MAX, SIZE_MAX, 1, SIZE_MAX, SIZE_MAX, SIZE_MAX};
    problem.window = SIZE_MAX;
    problem_case_name(name, &problem, "avx512bf16", "p5_u32a4", 1024);
    assert_string_equal(name + strlen(name) - strlen("/threads:1024"), "/threads:1024");
    char tag[2 * CASE_NAME_BYTES];
    memset(tag, 't', sizeof(tag));
    tag[sizeof(tag) - 1] = '\0';
    problem_case_name(name, &problem, "avx2", tag, 1);
    assert_int_equal(strlen(name), CASE_NAME_BYTES - 1);
}

static void option_lines(void **state) {
    (void)state;
    char text[512];
    struct problem problem = sample();
    problem_options(text, sizeof(text), &problem);
    assert_string_equal(text,
                        "--op qk --dtype f32 --batch 1 --heads 96 --kv-heads 96 --head-dim 128 "
                        "--seq-q 512 --seq-kv 512 --mask none");
    problem.shape.seq_kv = 0;
    problem.mask = MHA_MASK_WINDOW;
    problem.window = 3;
    problem.cache = CACHE_COLD;
    problem_options(text, sizeof(text), &problem);
    assert_non_null(strstr(text, "--seq-kv 0 --mask window:3 --cache cold"));
    assert_null(strstr(text, "--data"));
    problem.data = "x30";
    problem_options(text, sizeof(text), &problem);
    assert_non_null(strstr(text, "--cache cold --data x30"));
    problem_options_unshaped(text, sizeof(text), &problem);
    assert_non_null(strstr(text, "--cache cold --data x30"));
    char small[8] = "1234567";
    problem_options(small, sizeof(small), &problem);
    assert_string_equal(small, "--op qk");
    small[0] = 'x';
    problem_options(small, 0, &problem);
    assert_int_equal(small[0], 'x');
}

static void masks_round_trip(void **state) {
    (void)state;
    static const char *const texts[] = {"none", "causal", "lengths", "window:1", "window:16777216"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char text[32];
        struct problem problem = sample();
        problem.window = 99;
        assert_true(problem_mask_parse(&problem, texts[i]));
        problem_mask_text(text, &problem);
        assert_string_equal(text, texts[i]);
        assert_true(problem.mask == MHA_MASK_WINDOW || problem.window == 0);
    }
    static const char *const wrong[] = {"",
                                        "None",
                                        " causal",
                                        "causal ",
                                        "window",
                                        "window:0",
                                        "window:",
                                        "window:1x",
                                        "Window:4",
                                        "window:16777217",
                                        "window:18446744073709551617"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct problem problem = sample();
        assert_false(problem_mask_parse(&problem, wrong[i]));
        assert_true(problem.mask == MHA_MASK_NONE && problem.window == 0);
    }
}

static void caches_round_trip(void **state) {
    (void)state;
    struct problem problem = sample();
    assert_true(problem_cache_parse(&problem, "cold"));
    assert_int_equal(problem.cache, CACHE_COLD);
    assert_string_equal(problem_cache_text(problem.cache), "cold");
    assert_true(problem_cache_parse(&problem, "hot"));
    assert_int_equal(problem.cache, CACHE_HOT);
    assert_string_equal(problem_cache_text(problem.cache), "hot");
    assert_false(problem_cache_parse(&problem, "warm"));
    assert_false(problem_cache_parse(&problem, ""));
}

static void equality_sees_every_member(void **state) {
    (void)state;
    const struct problem problem = sample();
    char op[] = "qk", dtype[] = "f32";
    struct problem other = sample();
    other.op = op;  // equal words at other addresses
    other.dtype = dtype;
    assert_true(problem_equal(&problem, &other));
    size_t *const members[] = {
        &other.shape.batch,  &other.shape.heads,    &other.shape.kv_heads, &other.shape.seq_q,
        &other.shape.seq_kv, &other.shape.head_dim, &other.window,
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        (*members[i])++;
        assert_false(problem_equal(&problem, &other));
        (*members[i])--;
        assert_true(problem_equal(&problem, &other));
    }
    other.mask = MHA_MASK_CAUSAL;
    assert_false(problem_equal(&problem, &other));
    other = sample();
    other.cache = CACHE_COLD;
    assert_false(problem_equal(&problem, &other));
    other = sample();
    char data[] = "jump";
    other.data = data;
    assert_false(problem_equal(&problem, &other));
    assert_false(problem_equal(&other, &problem));
    struct problem third = sample();
    third.data = "jump";  // equal words at other addresses
    assert_true(problem_equal(&other, &third));
    third.data = "drift";
    assert_false(problem_equal(&other, &third));
    assert_true(problem_compare_data(&problem, &third) < 0);
    assert_true(problem_compare_data(&other, &third) > 0);
    other = sample();
    other.op = "pv";
    assert_false(problem_equal(&problem, &other));
    other = sample();
    other.dtype = "bf16";
    assert_false(problem_equal(&problem, &other));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(case_names),
        cmocka_unit_test(option_lines),
        cmocka_unit_test(masks_round_trip),
        cmocka_unit_test(caches_round_trip),
        cmocka_unit_test(equality_sees_every_member),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
