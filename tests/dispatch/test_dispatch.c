/// What CPUs may run which instruction sets, told by probes that stand in for CPUs: those that one
/// does not have at hand, and those that lie.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <string.h>

#include "cpu.h"

/// A made-up CPU. The bits are those of Intel's SDM vol. 2A, CPUID, and Linux's asm/hwcap.h.
struct made_up {
    uint32_t max_leaf;
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint64_t xcr0;
    uint64_t hwcap;
    bool xgetbv_called;
};
static struct made_up cpu;

#define BIT(n) (UINT32_C(1) << (n))
enum {
    L1_FMA = BIT(12),
    L1_OSXSAVE = BIT(27),
    L1_AVX = BIT(28),
    L1_F16C = BIT(29),
    L7_AVX2 = BIT(5),
    L7_AVX512F = BIT(16),
    L7_AVX512DQ = BIT(17),
    L7_AVX512BW = BIT(30),
};
#define L7_AVX512VL BIT(31)
#define L1_ALL ((uint32_t)(L1_FMA | L1_OSXSAVE | L1_AVX | L1_F16C))
#define L7_ALL ((uint32_t)(L7_AVX2 | L7_AVX512F | L7_AVX512DQ | L7_AVX512BW) | L7_AVX512VL)
/// x87, SSE, AVX; for AVX-512 also opmasks, upper halves of zmm0-15, zmm16-31.
enum { XCR0_UP_TO_AVX = 0x7, XCR0_ALL = 0xe7 };

static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]) {
    memset(regs, 0, 4 * sizeof(regs[0]));
    if (leaf == 0) {
        regs[0] = cpu.max_leaf;
    } else if (leaf == 1) {
        regs[2] = cpu.leaf1_ecx;
    } else if (leaf == 7 && subleaf == 0) {
        // Whatever max_leaf says: a CPU answers a leaf beyond it with another leaf's bits.
        regs[1] = cpu.leaf7_ebx;
    }
}

static uint64_t xgetbv(uint32_t index) {
    assert_int_equal(index, 0);
    cpu.xgetbv_called = true;
    return cpu.xcr0;
}

static uint64_t hwcap(void) {
    return cpu.hwcap;
}

static const struct mha_cpu_probe probe = {cpuid, xgetbv, hwcap};

static struct mha_isa_status status_of(const char *isa) {
    const int index = mha_isa_find(isa);
    assert_true(index >= 0);
    const struct mha_isa_status s = mha_isa_status((size_t)index, &probe);
    assert_string_equal(s.isa, isa);
    // What follows from the rest, whatever the CPU.
    assert_int_equal(s.runs, s.compiled && s.cpu_has && s.os_enables);
    assert_int_equal(s.why_not[0] == '\0', s.runs);
    return s;
}

/// Asserts what the CPU has and the system enables; that it runs follows where it is compiled.
static void expect(const char *isa, bool cpu_has, bool os_enables) {
    const struct mha_isa_status s = status_of(isa);
    assert_int_equal(s.cpu_has, cpu_has);
    assert_int_equal(s.os_enables, os_enables);
    if (s.compiled) {
        assert_int_equal(s.runs, cpu_has && os_enables);
    }
}

static int full(void **state) {
    (void)state;
    cpu = (struct made_up){7, L1_ALL, L7_ALL, XCR0_ALL, 0, false};
    return 0;
}

static void full_machine_runs_everything_of_x86(void **state) {
    (void)state;
    expect("scalar", true, true);
    expect("avx2", true, true);
    expect("avx512", true, true);
    expect("neon", false, true);
    char features[200];
    mha_cpu_features(features, sizeof(features), &probe);
    assert_string_equal(features, "avx fma f16c avx2 avx512f avx512bw avx512dq avx512vl");
}

static void without_osxsave_xcr0_is_not_read(void **state) {
    (void)state;
    cpu.leaf1_ecx &= ~(uint32_t)L1_OSXSAVE;
    expect("scalar", true, true);
    expect("avx2", true, false);
    expect("avx512", true, false);
    assert_false(cpu.xgetbv_called);  // the instruction would fault
    const struct mha_isa_status s = status_of("avx2");
    if (s.compiled) {
        assert_non_null(strstr(s.why_not, "OSXSAVE"));
    }
}

static void avx512_needs_every_bit_of_its_state(void **state) {
    (void)state;
    // SSE, AVX, opmask, ZMM_Hi256, Hi16_ZMM: each alone left out.
    const unsigned bits[] = {1, 2, 5, 6, 7};
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        cpu.xcr0 = XCR0_ALL & ~(UINT64_C(1) << bits[i]);
        expect("scalar", true, true);
        expect("avx512", true, false);
        expect("avx2", true, bits[i] >= 5);
    }
    cpu.xcr0 = XCR0_UP_TO_AVX;
    expect("avx2", true, true);
    expect("avx512", true, false);
    const struct mha_isa_status s = status_of("avx512");
    if (s.compiled) {
        assert_non_null(strstr(s.why_not, "XCR0"));
    }
}

static void avx2_needs_fma_and_f16c(void **state) {
    (void)state;
    const uint32_t bits[] = {L1_FMA, L1_F16C, L1_AVX};
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        cpu.leaf1_ecx = L1_ALL & ~bits[i];
        expect("avx2", false, true);
        expect("avx512", false, true);  // its files use FMA of 256 bits, too
    }
}

static void avx2_bit_without_avx_state(void **state) {
    (void)state;
    cpu.xcr0 = 0x3;  // x87 and SSE: an old kernel, or noxsave
    expect("avx2", true, false);
    expect("avx512", true, false);
    expect("scalar", true, true);
}

static void leaf_7_beyond_the_last_leaf_is_not_believed(void **state) {
    (void)state;
    for (uint32_t leaf = 1; leaf < 7; leaf++) {
        cpu.max_leaf = leaf;
        expect("avx2", false, true);
        expect("avx512", false, true);
    }
}

static void avx512_needs_each_of_its_extensions(void **state) {
    (void)state;
    const uint32_t bits[] = {L7_AVX512F, L7_AVX512BW, L7_AVX512DQ, L7_AVX512VL, L7_AVX2};
    for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
        cpu.leaf7_ebx = L7_ALL & ~bits[i];
        expect("avx512", false, true);
        expect("avx2", bits[i] != L7_AVX2, true);
    }
}

static void what_is_lacking_has_names(void **state) {
    (void)state;
    char text[200];
    const size_t avx512 = (size_t)mha_isa_find("avx512");
    mha_isa_lacking(text, sizeof(text), avx512, &probe);
    assert_string_equal(text, "");
    // Knights Landing: F and CD without the others.
    cpu.leaf7_ebx = (uint32_t)(L7_AVX2 | L7_AVX512F);
    mha_isa_lacking(text, sizeof(text), avx512, &probe);
    assert_string_equal(text, "avx512bw avx512dq avx512vl");
    mha_isa_lacking(text, 12, avx512, &probe);  // cut at a whole name
    assert_string_equal(text, "avx512bw");
}

static void neon_is_told_by_hwcap(void **state) {
    (void)state;
    cpu = (struct made_up){.hwcap = UINT64_C(1) << 1};
    expect("neon", true, true);
    expect("avx2", false, false);
    cpu.hwcap = ~(UINT64_C(1) << 1);
    expect("neon", false, true);
    expect("scalar", true, true);
}

/// Pairs (isa, max) that are within each other, all others are not: --max-isa.
static void within_is_the_order_of_the_sets(void **state) {
    (void)state;
    static const char *const words[] = {"scalar", "avx2", "avx512", "neon"};
    static const bool within[4][4] = {
        // max: scalar avx2   avx512 neon
        {true, true, true, true},     // scalar
        {false, true, true, false},   // avx2
        {false, false, true, false},  // avx512
        {false, false, false, true},  // neon
    };
    for (size_t i = 0; i < 4; i++) {
        for (size_t m = 0; m < 4; m++) {
            assert_int_equal(mha_isa_within(mha_isa_find(words[i]), mha_isa_find(words[m])),
                             within[i][m]);
        }
    }
    // The words that are not in the table above obey the laws of an order all the same.
    const int count = (int)mha_isa_count();
    for (int i = 0; i < count; i++) {
        assert_true(mha_isa_within(i, i));
        assert_true(mha_isa_within(mha_isa_find("scalar"), i));
        for (int j = 0; j < count; j++) {
            assert_false(i != j && mha_isa_within(i, j) && mha_isa_within(j, i));
            for (int k = 0; k < count; k++) {
                assert_true(!(mha_isa_within(i, j) && mha_isa_within(j, k)) ||
                            mha_isa_within(i, k));
            }
        }
    }
}

static void words_are_found_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < mha_isa_count(); i++) {
        assert_int_equal(mha_isa_find(mha_isa_status(i, &probe).isa), (int)i);
    }
    assert_int_equal(mha_isa_find("avx"), -1);
    assert_int_equal(mha_isa_find("avx5121"), -1);
    assert_int_equal(mha_isa_find(""), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(full_machine_runs_everything_of_x86, full),
        cmocka_unit_test_setup(without_osxsave_xcr0_is_not_read, full),
        cmocka_unit_test_setup(avx512_needs_every_bit_of_its_state, full),
        cmocka_unit_test_setup(avx2_needs_fma_and_f16c, full),
        cmocka_unit_test_setup(avx2_bit_without_avx_state, full),
        cmocka_unit_test_setup(leaf_7_beyond_the_last_leaf_is_not_believed, full),
        cmocka_unit_test_setup(avx512_needs_each_of_its_extensions, full),
        cmocka_unit_test_setup(what_is_lacking_has_names, full),
        cmocka_unit_test_setup(neon_is_told_by_hwcap, full),
        cmocka_unit_test_setup(within_is_the_order_of_the_sets, full),
        cmocka_unit_test_setup(words_are_found_whole, full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
