#include "machine.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifdef MHA_HAVE_HWLOC
#include <hwloc.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

#include "cpu.h"
#include "diag.h"
#include "machine_facts.h"

/// What a core usually has, for sizing working sets where the machine tells nothing.
static const size_t usual_bytes[] = {(size_t)32 << 10, (size_t)512 << 10, (size_t)8 << 20};

/// Gets the CPUs that this process may run on, allocated; at least one.
static size_t *affinity_cpus(size_t *count) {
    // The kernel refuses a mask that is smaller than its own, whose size it does not tell.
    for (size_t room = 1024; room <= ((size_t)1 << 20); room *= 2) {
        cpu_set_t *set = diag_alloc(CPU_ALLOC(room));
        const size_t bytes = CPU_ALLOC_SIZE(room);
        CPU_ZERO_S(bytes, set);
        if (sched_getaffinity(0, bytes, set) == 0) {
            const size_t found = (size_t)CPU_COUNT_S(bytes, set);
            size_t *cpus = diag_alloc(calloc(found + 1, sizeof(*cpus)));
            *count = 0;
            for (size_t cpu = 0; cpu < room && *count < found; cpu++) {
                if (CPU_ISSET_S(cpu, bytes, set)) {
                    cpus[(*count)++] = cpu;
                }
            }
            CPU_FREE(set);
            if (*count > 0) {
                return cpus;
            }
            free(cpus);
            break;
        }
        CPU_FREE(set);
    }
    *count = 1;
    return diag_alloc(calloc(1, sizeof(size_t)));
}

size_t machine_threads_allowed(void) {
    size_t count = 0;
    free(affinity_cpus(&count));
    const size_t threads = facts_threads(count, facts_quota(""));
    return threads < MACHINE_CPUS_MAX ? threads : MACHINE_CPUS_MAX;
}

#if defined(__x86_64__)
/// Copies the signature of the hypervisor. A processor without one answers with anything, which is
/// no signature that anybody looks for.
static void hypervisor_signature(char signature[13]) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __cpuid(0x40000000, eax, ebx, ecx, edx);
    memcpy(signature, &ebx, 4);
    memcpy(signature + 4, &ecx, 4);
    memcpy(signature + 8, &edx, 4);
    signature[12] = '\0';
}
#endif

/// Tells whether the machine is a virtual one.
static bool is_virtual(void) {
#if defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __cpuid(1, eax, ebx, ecx, edx);
    return ((ecx >> 31) & 1u) != 0;  // kept for hypervisors to announce themselves
#else
    return access("/proc/device-tree/hypervisor", F_OK) == 0 ||
           access("/sys/hypervisor/type", F_OK) == 0;
#endif
}

/// Tells whether an emulator runs this program. qemu's user mode names itself in CPUID; on other
/// processors it gives itself away by files of /proc that it passes through from the host. A test
/// environment may say so, for the case that host and program are of one architecture.
static bool is_emulated(void) {
    const char *said = getenv("MHABENCH_EMULATED");
    if (said != NULL && strcmp(said, "1") == 0) {
        return true;
    }
#if defined(__x86_64__)
    char signature[13];
    hypervisor_signature(signature);
    if (strcmp(signature, "TCGTCGTCGTCG") == 0) {
        return true;
    }
#endif
    bool emulated = false;
    char *cpuinfo = facts_read("", "/proc/cpuinfo");
    if (cpuinfo != NULL) {
        emulated = facts_foreign_cpuinfo(cpuinfo);
    }
    free(cpuinfo);
    // The kernel's own architecture (Linux 6.1 and later), which uname() hides under emulation.
    char *arch = facts_read("", "/proc/sys/kernel/arch");
    if (arch != NULL) {
#if defined(__x86_64__)
        emulated = emulated || strncmp(arch, "x86_64", 6) != 0;
#elif defined(__aarch64__)
        emulated = emulated || strncmp(arch, "aarch64", 7) != 0;
#endif
    }
    free(arch);
    return emulated;
}

/// Where the CPUs are, and the caches of the first one; zeros where that is not known.
struct topology {
    size_t *core_of;  ///< [count]
    size_t cores;     ///< Of the whole machine.
    size_t cache_bytes[3];
};

#ifdef MHA_HAVE_HWLOC
static bool hwloc_facts(const size_t *cpus, size_t count, struct topology *topology, char *name,
                        size_t size) {
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE,
                                              HWLOC_OBJ_L3CACHE};
    hwloc_topology_t all = NULL;
    if (hwloc_topology_init(&all) != 0) {
        return false;
    }
    // The whole machine: cores are counted, and an affinity mask must not hide siblings.
    if (hwloc_topology_set_flags(all, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
        hwloc_topology_load(all) != 0) {
        hwloc_topology_destroy(all);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        hwloc_obj_t cpu = hwloc_get_pu_obj_by_os_index(all, (unsigned)cpus[i]);
        hwloc_obj_t core =
            cpu != NULL ? hwloc_get_ancestor_obj_by_type(all, HWLOC_OBJ_CORE, cpu) : NULL;
        hwloc_obj_t first = core != NULL ? core : cpu;
        topology->core_of[i] = first != NULL && first->complete_cpuset != NULL
                                   ? (size_t)hwloc_bitmap_first(first->complete_cpuset)
                                   : cpus[i];
        for (size_t level = 0; i == 0 && cpu != NULL && level < 3; level++) {
            hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(all, levels[level], cpu);
            topology->cache_bytes[level] = cache != NULL ? (size_t)cache->attr->cache.size : 0;
        }
    }
    const int cores = hwloc_get_nbobjs_by_type(all, HWLOC_OBJ_CORE);
    topology->cores = cores > 0 ? (size_t)cores : 0;
    hwloc_obj_t package = hwloc_get_obj_by_type(all, HWLOC_OBJ_PACKAGE, 0);
    const char *model = package != NULL ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    if (name[0] == '\0' && model != NULL) {
        snprintf(name, size, "%s", model);
    }
    hwloc_topology_destroy(all);
    return true;
}
#endif

static void gather_topology(const size_t *cpus, size_t count, struct topology *topology, char *name,
                            size_t size) {
#ifdef MHA_HAVE_HWLOC
    const bool found = hwloc_facts(cpus, count, topology, name, size);
#else
    const bool found = false;
    (void)name;
    (void)size;
#endif
    if (!found) {
        for (size_t i = 0; i < count; i++) {
            topology->core_of[i] = facts_core_of("", cpus[i]);
        }
        topology->cores = facts_cores("");
    }
    static const int sysconf_names[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                        _SC_LEVEL3_CACHE_SIZE};
    for (int level = 0; level < 3; level++) {
        size_t *bytes = &topology->cache_bytes[level];
        if (*bytes == 0) {
            *bytes = facts_cache("", cpus[0], level + 1);
        }
        const long told = *bytes == 0 ? sysconf(sysconf_names[level]) : 0;
        if (told > 0) {
            *bytes = (size_t)told;
        }
    }
}

/// Names the processor from CPUID or /proc/cpuinfo; "" when it is not known.
static void name_cpu(char *name, size_t size, bool emulated) {
    mha_cpu_brand(name, size, NULL);
#if !defined(__x86_64__)
    // An emulator shows the host's file, which is not the processor that the program sees.
    char *cpuinfo = name[0] == '\0' && !emulated ? facts_read("", "/proc/cpuinfo") : NULL;
    char implementer[16], part[16];
    if (cpuinfo != NULL && !facts_cpuinfo(cpuinfo, "model name", name, size) &&
        facts_cpuinfo(cpuinfo, "CPU implementer", implementer, sizeof(implementer)) &&
        facts_cpuinfo(cpuinfo, "CPU part", part, sizeof(part))) {
        snprintf(name, size, "implementer %s part %s", implementer, part);
    }
    free(cpuinfo);
#else
    (void)emulated;
#endif
}

void machine_gather(struct machine *machine) {
    *machine = (struct machine){.emulated = is_emulated(), .quota_cpus = facts_quota("")};
    size_t count = 0;
    size_t *cpus = affinity_cpus(&count);
    struct topology topology = {.core_of = diag_alloc(calloc(count, sizeof(size_t)))};
    name_cpu(machine->cpu, sizeof(machine->cpu), machine->emulated);
    gather_topology(cpus, count, &topology, machine->cpu, sizeof(machine->cpu));
    facts_order_cpus(cpus, topology.core_of, count);

    machine->threads_allowed = facts_threads(count, machine->quota_cpus);
    if (machine->threads_allowed > MACHINE_CPUS_MAX) {
        diag_note("only %d of %zu CPUs are used", MACHINE_CPUS_MAX, machine->threads_allowed);
        machine->threads_allowed = MACHINE_CPUS_MAX;
    }
    memcpy(machine->cpus, cpus, machine->threads_allowed * sizeof(cpus[0]));
    machine->cores = topology.cores;
    free(topology.core_of);
    free(cpus);

    const size_t *told = topology.cache_bytes;
    machine->l1_known = told[0] > 0;
    machine->l2_known = told[1] > 0;
    machine->l3_known = told[2] > 0;
    machine->l1_bytes = machine->l1_known ? told[0] : usual_bytes[0];
    machine->l2_bytes = machine->l2_known ? told[1] : usual_bytes[1];
    machine->l3_bytes = machine->l3_known ? told[2] : usual_bytes[2];
    const size_t last_level = facts_last_level(machine->l3_bytes, is_virtual());
    machine->l3_capped = last_level < machine->l3_bytes;
    machine->l3_bytes = last_level;
}

/// Tells whether results below the smallest normal are flushed to zero, or inputs are.
static bool flushes_denormals(bool *known) {
    *known = true;
#if defined(__x86_64__)
    return (_mm_getcsr() & 0x8040u) != 0;  // MXCSR: bit 15 FTZ, bit 6 DAZ
#elif defined(__aarch64__)
    unsigned long fpcr = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return ((fpcr >> 24) & 1u) != 0;  // FPCR.FZ
#else
    *known = false;
    return false;
#endif
}

/// Takes text up to the end of its first line; null for NULL, "" and what is no UTF-8.
static json_t *text_or_null(const char *text) {
    const size_t length = text != NULL ? strcspn(text, "\n") : 0;
    json_t *string = length > 0 ? json_stringn(text, length) : NULL;
    return string != NULL ? string : json_null();
}

/// Reads a file's first line.
static json_t *file_or_null(const char *path) {
    char *text = facts_read("", path);
    json_t *line = text_or_null(text);
    free(text);
    return line;
}

static json_t *size_or_null(size_t value, bool known) {
    return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *features_array(void) {
    char text[4096];
    json_t *array = diag_alloc(json_array());
    mha_cpu_features(text, sizeof(text), NULL);
    for (const char *word = text + strspn(text, " "); *word != '\0'; word += strspn(word, " ")) {
        const size_t length = strcspn(word, " ");
        json_array_append_new(array, json_stringn(word, length));
        word += length;
    }
    return array;
}

/// Microcode is a fact of the host where an emulator runs.
static json_t *microcode_or_null(const struct machine *machine) {
    char value[64] = "";
    char *cpuinfo = machine->emulated ? NULL : facts_read("", "/proc/cpuinfo");
    if (cpuinfo != NULL) {
        facts_cpuinfo(cpuinfo, "microcode", value, sizeof(value));
    }
    free(cpuinfo);
    return text_or_null(value);
}

static json_t *smt_or_null(void) {
    char *text = facts_read("", "/sys/devices/system/cpu/smt/active");
    json_t *smt = json_null();
    if (text != NULL && (text[0] == '0' || text[0] == '1')) {
        smt = json_boolean(text[0] == '1');
    }
    free(text);
    return smt;
}

static json_t *thp_or_null(void) {
    char word[32] = "";
    char *text = facts_read("", "/sys/kernel/mm/transparent_hugepage/enabled");
    if (text != NULL) {
        facts_bracketed(text, word, sizeof(word));
    }
    free(text);
    return text_or_null(word);
}

static json_t *kernel_or_null(void) {
    struct utsname names;
    char text[2 * sizeof(names.sysname) + 1];
    if (uname(&names) != 0) {
        return json_null();
    }
    snprintf(text, sizeof(text), "%s %s", names.sysname, names.release);
    return text_or_null(text);
}

json_t *machine_to_json(const struct machine *machine) {
    char governor[128];
    snprintf(governor, sizeof(governor), "/sys/devices/system/cpu/cpu%zu/cpufreq/scaling_governor",
             machine->cpus[0]);
    bool ftz_known = false;
    const bool ftz = flushes_denormals(&ftz_known);
    json_t *json = diag_alloc(json_object());
    const struct {
        const char *key;
        json_t *value;
    } facts[] = {
        {"cpu", text_or_null(machine->cpu)},
        {"microcode", microcode_or_null(machine)},
        {"features", features_array()},
        {"cores", size_or_null(machine->cores, machine->cores > 0)},
        {"threads_allowed", size_or_null(machine->threads_allowed, true)},
        {"quota", isnan(machine->quota_cpus) ? json_null() : json_real(machine->quota_cpus)},
        {"governor", file_or_null(governor)},
        {"smt", smt_or_null()},
        {"thp", thp_or_null()},
        {"ftz", ftz_known ? json_boolean(ftz) : json_null()},
        {"kernel", kernel_or_null()},
        {"emulated", json_boolean(machine->emulated)},
        {"l1_bytes", size_or_null(machine->l1_bytes, machine->l1_known)},
        {"l2_bytes", size_or_null(machine->l2_bytes, machine->l2_known)},
        {"l3_bytes", size_or_null(machine->l3_bytes, machine->l3_known)},
        {"l3_capped", json_boolean(machine->l3_capped)},
    };
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        // Jansson refuses NULL, which is what it makes when memory runs out.
        if (json_object_set_new(json, facts[i].key, facts[i].value) != 0) {
            diag_alloc(NULL);
        }
    }
    return json;
}
