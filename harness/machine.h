/// What this machine is: the fingerprint that goes into every result file, and what the harness may
/// use.
#ifndef MHA_MACHINE_H
#define MHA_MACHINE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/// Cache sizes in bytes as one core sees them, and CPUs that this process may use.
struct machine {
    size_t l1_bytes, l2_bytes;  ///< Per core.
    size_t l3_bytes;  ///< Shared; capped (virtual machines report fantasy sizes), see machine.c.
    size_t threads_allowed;  ///< CPUs of the affinity mask, cut by the cgroup quota; >= 1.
    size_t cpus[1024];  ///< The CPU numbers, one per physical core first; [threads_allowed] used.
    bool emulated;      ///< Under qemu user emulation: no time may be recorded.
};

/// Gathers the facts. Read before libgomp starts, in the parent.
void machine_gather(struct machine *machine);

/// Makes context.mhabench.machine {cpu, microcode, features, cores, threads_allowed, quota,
/// governor, smt, thp, ftz, kernel, emulated, l1_bytes, l2_bytes, l3_bytes}. Unknown facts are
/// null, never guessed.
json_t *machine_to_json(const struct machine *machine);

#endif
