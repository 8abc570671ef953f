/// What this CPU can run: the ISA words of isa.cmake held against CPUID, XCR0 and HWCAP.
///
/// Built without ISA flags, so that it runs on any processor of the family.
#ifndef MHA_CPU_H
#define MHA_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Where the facts come from; a seam that tests drive. Every member is set.
struct mha_cpu_probe {
    /// Gets eax, ebx, ecx, edx of a CPUID leaf; zeros for a leaf that does not exist.
    void (*cpuid)(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]);
    /// Gets an extended control register; only called when CPUID reports OSXSAVE.
    uint64_t (*xgetbv)(uint32_t index);
    /// Gets the kernel's hardware capability bits (AT_HWCAP); 0 where there are none.
    uint64_t (*hwcap)(void);
};

/// What is known of one ISA word.
struct mha_isa_status {
    const char *isa;      ///< The word.
    bool compiled;        ///< The build has kernels of it.
    bool cpu_has;         ///< The processor reports every feature of the set.
    bool os_enables;      ///< The operating system saves the registers that it uses.
    bool runs;            ///< All three.
    const char *why_not;  ///< One phrase when !runs, else "".
};

/// Number of ISA words that the project knows (compiled or not).
size_t mha_isa_count(void);

/// Gets the status of the ISA word `index` < mha_isa_count(), as `probe` sees it; NULL probes this
/// machine.
struct mha_isa_status mha_isa_status(size_t index, const struct mha_cpu_probe *probe);

/// Writes the names of the features that the ISA word `index` needs and the CPU does not report,
/// separated by blanks; "" when it has them all. Names that do not fit are left out.
void mha_isa_lacking(char *text, size_t size, size_t index, const struct mha_cpu_probe *probe);

/// Gets the index of an ISA word, or -1 when the project does not know it.
int mha_isa_find(const char *isa);

/// Tells whether everything that `isa` needs is among what `max` needs: what a lesser CPU would
/// have.
bool mha_isa_within(int isa, int max);

/// Writes the names of the features that the CPU reports, separated by blanks; truncates to `size`.
void mha_cpu_features(char *text, size_t size, const struct mha_cpu_probe *probe);

/// Gets the processor's brand string (CPUID 0x80000002), or "" where there is none.
void mha_cpu_brand(char *text, size_t size, const struct mha_cpu_probe *probe);

#endif
