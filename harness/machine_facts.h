/// Where the facts about the machine come from: what the kernel's text files say, and what follows
/// from it. Apart from machine.c so that tests can hand in the texts of other machines.
#ifndef MHA_MACHINE_FACTS_H
#define MHA_MACHINE_FACTS_H

#include <stdbool.h>
#include <stddef.h>

/// Reads the whole text file root/path; NULL when it cannot be read. Freed by the caller.
char *facts_read(const char *root, const char *path);

/// Finds "field : value" in the text of /proc/cpuinfo and copies the first value; false when the
/// field is absent.
bool facts_cpuinfo(const char *cpuinfo, const char *field, char *value, size_t size);

/// Tells whether the text of /proc/cpuinfo describes a processor of another architecture than the
/// program is built for, as an emulator shows it.
bool facts_foreign_cpuinfo(const char *cpuinfo);

/// Copies the word that stands in brackets: "always [madvise] never".
bool facts_bracketed(const char *text, char *word, size_t size);

/// Counts the CPUs of a list as the kernel writes it ("0-3,8,10-11") and stores the first `max`.
size_t facts_cpu_list(const char *text, size_t *cpus, size_t max);

/// Reads a size as sysfs writes it ("48K", "1024K", "32M"); 0 when it is none.
size_t facts_size(const char *text);

/// Reads the text of cpu.max ("150000 100000", "max 100000") to CPUs; NAN when there is no limit.
double facts_cpu_max(const char *text);

/// Gets the CPUs' worth of time that the cgroups of this process grant, the least of all levels;
/// NAN when none sets a limit. `root` stands before /proc and every mount point; "" for this
/// machine.
double facts_quota(const char *root);

/// Gets the number of threads that `affinity` CPUs and a quota (NAN: none) allow, at least 1.
size_t facts_threads(size_t affinity, double quota_cpus);

/// Sorts CPUs so that the first of every physical core come before the second ones; core_of[i] is
/// the core of cpus[i]. Each round is in ascending order.
void facts_order_cpus(size_t *cpus, size_t *core_of, size_t count);

/// Gets the first CPU of the core that `cpu` is on, which names the core; `cpu` itself when the
/// topology cannot be read.
size_t facts_core_of(const char *root, size_t cpu);

/// Counts the physical cores of all CPUs that are online; 0 when that cannot be read.
size_t facts_cores(const char *root);

/// Gets the size of the data or unified cache of `level` that `cpu` sees; 0 when not known.
size_t facts_cache(const char *root, size_t cpu, int level);

/// Gets the size of the last-level cache to reckon with where the machine tells `told` bytes: all
/// of them, or, on a virtual machine, at most 64 MiB.
size_t facts_last_level(size_t told, bool is_virtual);

#endif
