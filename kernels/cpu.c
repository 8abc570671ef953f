#include "cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

/// Features that an ISA word may need. The first group is x86, the second ARM.
enum feature {
    F_AVX = 1u << 0,
    F_FMA = 1u << 1,
    F_F16C = 1u << 2,
    F_AVX2 = 1u << 3,
    F_AVX512F = 1u << 4,
    F_AVX512BW = 1u << 5,
    F_AVX512DQ = 1u << 6,
    F_AVX512VL = 1u << 7,
    F_AVX512BF16 = 1u << 8,
    F_AVX512VNNI = 1u << 9,
    F_ASIMD = 1u << 16,
    F_ASIMDHP = 1u << 17,
    F_SVE = 1u << 18,
};

static const struct {
    uint32_t bit;
    const char *name;
} feature_names[] = {
    {F_AVX, "avx"},
    {F_FMA, "fma"},
    {F_F16C, "f16c"},
    {F_AVX2, "avx2"},
    {F_AVX512F, "avx512f"},
    {F_AVX512BW, "avx512bw"},
    {F_AVX512DQ, "avx512dq"},
    {F_AVX512VL, "avx512vl"},
    {F_AVX512BF16, "avx512_bf16"},
    {F_AVX512VNNI, "avx512_vnni"},
    {F_ASIMD, "asimd"},
    {F_ASIMDHP, "asimdhp"},
    {F_SVE, "sve"},
};

/// Register state that the operating system must save, as bits of XCR0 (Intel SDM vol. 1, 13.3):
/// SSE and AVX halves; for AVX-512 also the opmasks and both parts of the zmm registers.
enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6 };

/// What an ISA word needs. MHA_COMPILED_<word> comes from isa.cmake.
struct isa_need {
    const char *isa;
    bool compiled;
    uint32_t features;
    uint32_t xcr0;
};

static const struct isa_need needs[] = {
    {"scalar", MHA_COMPILED_scalar, 0, 0},
    {"avx2", MHA_COMPILED_avx2, F_AVX | F_FMA | F_F16C | F_AVX2, XCR0_AVX},
    {"avx512", MHA_COMPILED_avx512,
     F_AVX | F_FMA | F_F16C | F_AVX2 | F_AVX512F | F_AVX512BW | F_AVX512DQ | F_AVX512VL,
     XCR0_AVX512},
    {"avx512bf16", MHA_COMPILED_avx512bf16,
     F_AVX | F_FMA | F_F16C | F_AVX2 | F_AVX512F | F_AVX512BW | F_AVX512DQ | F_AVX512VL |
         F_AVX512BF16,
     XCR0_AVX512},
    {"neon", MHA_COMPILED_neon, F_ASIMD, 0},
};

enum { ISA_COUNT = sizeof(needs) / sizeof(needs[0]) };
_Static_assert(ISA_COUNT == MHA_ISA_WORDS, "isa.cmake and cpu.c must list the same ISA words");

#if defined(__x86_64__)
static void native_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]) {
    memset(regs, 0, 4 * sizeof(regs[0]));
    __get_cpuid_count(leaf, subleaf, &regs[0], &regs[1], &regs[2], &regs[3]);
}

static uint64_t native_xgetbv(uint32_t index) {
    uint32_t eax, edx;
    // The instruction by its bytes: the mnemonic would need -mxsave, and this file has no ISA
    // flags.
    __asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(eax), "=d"(edx) : "c"(index));
    return ((uint64_t)edx << 32) | eax;
}

static uint64_t native_hwcap(void) {
    return 0;
}
#else
static void native_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]) {
    (void)leaf;
    (void)subleaf;
    memset(regs, 0, 4 * sizeof(regs[0]));
}

static uint64_t native_xgetbv(uint32_t index) {
    (void)index;
    return 0;
}

static uint64_t native_hwcap(void) {
#if defined(__aarch64__)
    return getauxval(AT_HWCAP);
#else
    return 0;
#endif
}
#endif

static const struct mha_cpu_probe native_probe = {native_cpuid, native_xgetbv, native_hwcap};

struct cpu_facts {
    uint32_t features;
    uint64_t xcr0;
    bool osxsave;
};

static struct cpu_facts gather(const struct mha_cpu_probe *probe) {
    struct cpu_facts facts = {0, 0, false};
    uint32_t leaf0[4], leaf1[4], leaf7[4] = {0}, leaf7_1[4] = {0};
    probe->cpuid(0, 0, leaf0);
    probe->cpuid(1, 0, leaf1);
    if (leaf0[0] >= 7) {
        probe->cpuid(7, 0, leaf7);
        if (leaf7[0] >= 1) {
            probe->cpuid(7, 1, leaf7_1);
        }
    }
    // Bit positions: Intel SDM vol. 2A, CPUID; the index is eax, ebx, ecx, edx.
    const struct {
        uint32_t reg;
        uint32_t bit;
        uint32_t feature;
    } x86[] = {
        {leaf1[2], 28, F_AVX},        {leaf1[2], 12, F_FMA},      {leaf1[2], 29, F_F16C},
        {leaf7[1], 5, F_AVX2},        {leaf7[1], 16, F_AVX512F},  {leaf7[1], 30, F_AVX512BW},
        {leaf7[1], 17, F_AVX512DQ},   {leaf7[1], 31, F_AVX512VL}, {leaf7_1[0], 5, F_AVX512BF16},
        {leaf7[2], 11, F_AVX512VNNI},
    };
    for (size_t i = 0; i < sizeof(x86) / sizeof(x86[0]); i++) {
        if ((x86[i].reg >> x86[i].bit) & 1u) {
            facts.features |= x86[i].feature;
        }
    }
    facts.osxsave = ((leaf1[2] >> 27) & 1u) != 0;
    if (facts.osxsave) {
        facts.xcr0 = probe->xgetbv(0);
    }
    // Bit positions: Linux arch/arm64/include/uapi/asm/hwcap.h.
    const uint64_t hwcap = probe->hwcap();
    facts.features |= (hwcap >> 1) & 1u ? F_ASIMD : 0;
    facts.features |= (hwcap >> 10) & 1u ? F_ASIMDHP : 0;
    facts.features |= (hwcap >> 22) & 1u ? F_SVE : 0;
    return facts;
}

static struct cpu_facts native_facts;

static void gather_native(void) {
    native_facts = gather(&native_probe);
}

/// Gets the facts of a probe, of this machine's where it is NULL: asked once, since a virtual
/// machine traps each CPUID, which takes it 5 microseconds and more, and every kernel of a list has
/// a status.
static struct cpu_facts facts_of(const struct mha_cpu_probe *probe) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (probe) {
        return gather(probe);
    }
    pthread_once(&once, gather_native);
    return native_facts;
}

size_t mha_isa_count(void) {
    return ISA_COUNT;
}

struct mha_isa_status mha_isa_status(size_t index, const struct mha_cpu_probe *probe) {
    const struct isa_need *need = &needs[index];
    const struct cpu_facts facts = facts_of(probe);
    struct mha_isa_status status = {need->isa, need->compiled, false, false, false, ""};
    status.cpu_has = (facts.features & need->features) == need->features;
    status.os_enables = (facts.xcr0 & need->xcr0) == need->xcr0;
    status.runs = status.compiled && status.cpu_has && status.os_enables;
    if (!status.compiled) {
        status.why_not = "not compiled for this processor or by this compiler";
    } else if (!status.cpu_has) {
        status.why_not = "the CPU lacks it";
    } else if (!status.os_enables) {
        status.why_not = facts.osxsave ? "the operating system does not save its registers (XCR0)"
                                       : "the operating system does not use XSAVE (OSXSAVE is 0)";
    }
    return status;
}

int mha_isa_find(const char *isa) {
    for (int i = 0; i < (int)ISA_COUNT; i++) {
        if (strcmp(needs[i].isa, isa) == 0) {
            return i;
        }
    }
    return -1;
}

bool mha_isa_within(int isa, int max) {
    return (needs[isa].features & ~needs[max].features) == 0 &&
           (needs[isa].xcr0 & ~needs[max].xcr0) == 0;
}

static void write_names(char *text, size_t size, uint32_t features) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(feature_names) / sizeof(feature_names[0]); i++) {
        if (features & feature_names[i].bit) {
            const int n =
                snprintf(text + used, size - used, "%s%s", used ? " " : "", feature_names[i].name);
            if (n < 0 || (size_t)n >= size - used) {
                text[used] = '\0';  // no half names
                return;
            }
            used += (size_t)n;
        }
    }
}

void mha_isa_lacking(char *text, size_t size, size_t index, const struct mha_cpu_probe *probe) {
    const struct cpu_facts facts = facts_of(probe);
    write_names(text, size, needs[index].features & ~facts.features);
}

void mha_cpu_features(char *text, size_t size, const struct mha_cpu_probe *probe) {
    write_names(text, size, facts_of(probe).features);
}

void mha_cpu_brand(char *text, size_t size, const struct mha_cpu_probe *probe) {
    const struct mha_cpu_probe *source = probe ? probe : &native_probe;
    uint32_t brand[13] = {0}, leaf[4];
    source->cpuid(0x80000000u, 0, leaf);
    if (leaf[0] >= 0x80000004u) {
        for (uint32_t i = 0; i < 3; i++) {
            source->cpuid(0x80000002u + i, 0, &brand[(size_t)4 * i]);
        }
    }
    const char *start = (const char *)brand;
    while (*start == ' ') {
        start++;
    }
    snprintf(text, size, "%s", start);
}
