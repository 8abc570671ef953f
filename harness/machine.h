/// What this machine is: the fingerprint that goes into every result file, and what the harness may
/// use.
#ifndef MHA_MACHINE_H
#define MHA_MACHINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/// Most CPUs that one process is given; those beyond are left idle.
enum { MACHINE_CPUS_MAX = 1024 };

/// Cache sizes in bytes as one core sees them, and CPUs that this process may use.
struct machine {
    size_t l1_bytes, l2_bytes;  ///< Per core.
    size_t l3_bytes;            ///< Shared; capped (virtual machines report fantasy sizes), see
                                ///< facts_last_level().
    bool l1_known, l2_known, l3_known;  ///< False: the size is a usual one, not this machine's.
    bool l3_capped;                     ///< The machine reports more than l3_bytes.
    size_t cores;                       ///< Physical cores of the whole machine; 0: not known.
    double quota_cpus;              ///< CPUs' worth of time that the cgroup may use; NAN: no limit.
    size_t threads_allowed;         ///< CPUs of the affinity mask, cut by the cgroup quota; >= 1.
    size_t cpus[MACHINE_CPUS_MAX];  ///< The CPU numbers, one per physical core first;
                                    ///< [threads_allowed] used.
    bool emulated;                  ///< Under qemu user emulation: no time may be recorded.
    char cpu[128];                  ///< Name of the processor; "" when not known.
};

/// Gathers the facts. Read before libgomp starts, in the parent.
void machine_gather(struct machine *machine);

/// Gets the CPUs of the affinity mask, cut by the cgroup quota; >= 1.
size_t machine_threads_allowed(void);

/// Makes context.mhabench.machine {cpu, microcode, features, cores, threads_allowed, quota,
/// governor, smt, thp, ftz, kernel, emulated, l1_bytes, l2_bytes, l3_bytes, l3_capped}. features is
/// an array of words. Unknown facts are null, never guessed.
json_t *machine_to_json(const struct machine *machine);

#endif
