/// Facts about machines: the texts of other machines, and the soundness of what is told of this
/// one.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "machine.h"
#include "machine_facts.h"

// --- a tree of files that stands for another machine's / -----------------------------------------

static char tree[] = "/tmp/mhabench-machine-XXXXXX";

static int grow(void **state) {
    (void)state;
    strcpy(tree + strlen(tree) - 6, "XXXXXX");
    return mkdtemp(tree) == NULL;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at) {
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

static int fell(void **state) {
    (void)state;
    return nftw(tree, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/// Writes tree/path, and the folders above it.
static void put(const char *path, const char *text) {
    char full[512];
    assert_true(snprintf(full, sizeof(full), "%s%s", tree, path) < (int)sizeof(full));
    for (char *slash = full + strlen(tree) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char v1_mounts[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:8 - cgroup cgroup rw,cpu,cpuacct\n";
static const char v2_mounts[] =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

static bool is(double got, double want) {
    return isnan(want) ? isnan(got) : fabs(got - want) < 1e-12;
}

static void quota_of_version_2(void **state) {
    (void)state;
    const double none = (double)NAN;
    assert_true(is(facts_quota(tree), none));  // nothing there at all
    put("/proc/self/mountinfo", v2_mounts);
    assert_true(is(facts_quota(tree), none));
    put("/proc/self/cgroup", "0::/user.slice/job.scope/inner\n");
    assert_true(is(facts_quota(tree), none));
    put("/sys/fs/cgroup/user.slice/job.scope/inner/cpu.max", "max 100000\n");
    assert_true(is(facts_quota(tree), none));
    // The least of all levels counts, whichever it is.
    put("/sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n");
    assert_true(is(facts_quota(tree), 4));
    put("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "150000 100000\n");
    assert_true(is(facts_quota(tree), 1.5));
    put("/sys/fs/cgroup/user.slice/job.scope/inner/cpu.max", "300000 100000\n");
    assert_true(is(facts_quota(tree), 1.5));
    put("/sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n");
    assert_true(is(facts_quota(tree), 0.5));
    put("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/cpu.max", "25000 50000\n");
    assert_true(is(facts_quota(tree), 0.5));
    // A cgroup of a like name beside ours is not ours.
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    put("/proc/self/cgroup", "0::/user.slice/job\n");
    assert_true(is(facts_quota(tree), none));
}

/// In a container the path is the host's, and only a part of the hierarchy is mounted.
static void quota_in_a_container(void **state) {
    (void)state;
    put("/proc/self/mountinfo", "31 23 0:28 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put("/proc/self/cgroup", "0::/docker/abc\n");
    put("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_true(is(facts_quota(tree), 2));
    put("/proc/self/cgroup", "0::/docker/abc/child\n");
    put("/sys/fs/cgroup/child/cpu.max", "100000 100000\n");
    assert_true(is(facts_quota(tree), 1));
    put("/proc/self/cgroup", "0::/docker/abcdef\n");
    assert_true(is(facts_quota(tree), 2));
    put("/proc/self/cgroup", "0::/../other\n");
    assert_true(is(facts_quota(tree), 2));
    // With a namespace of its own, and the whole of it mounted.
    put("/proc/self/mountinfo", v2_mounts);
    put("/proc/self/cgroup", "0::/\n");
    assert_true(is(facts_quota(tree), 2));
    put("/proc/self/cgroup", "0::/../../elsewhere\n");
    assert_true(is(facts_quota(tree), 2));
}

static void quota_of_version_1(void **state) {
    (void)state;
    const double none = (double)NAN;
    put("/proc/self/mountinfo", v1_mounts);
    put("/proc/self/cgroup", "5:cpuset:/set\n4:cpu,cpuacct:/a/b\n1:name=systemd:/\n0::/\n");
    assert_true(is(facts_quota(tree), none));
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
    assert_true(is(facts_quota(tree), none));
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    assert_true(is(facts_quota(tree), 2.5));
    put("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "0\n");
    assert_true(is(facts_quota(tree), none));
    put("/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "50000\n");
    assert_true(is(facts_quota(tree), 0.5));
    // Both versions at once: the lesser counts.
    char both[1024];
    snprintf(both, sizeof(both), "%s%s", v1_mounts,
             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/proc/self/mountinfo", both);
    put("/sys/fs/cgroup/unified/cpu.max", "20000 100000\n");
    assert_true(is(facts_quota(tree), 0.2));
    put("/proc/self/cgroup", "garbage\n\n:::\n4:cpu\n");
    assert_true(is(facts_quota(tree), none));
}

static void cpu_max_texts(void **state) {
    (void)state;
    const double none = (double)NAN;
    assert_true(is(facts_cpu_max("150000 100000\n"), 1.5));
    assert_true(is(facts_cpu_max("max 100000\n"), none));
    assert_true(is(facts_cpu_max("max"), none));
    assert_true(is(facts_cpu_max(""), none));
    assert_true(is(facts_cpu_max("100000"), none));
    assert_true(is(facts_cpu_max("100000 0"), none));
    assert_true(is(facts_cpu_max("-1 100000"), none));
    assert_true(is(facts_cpu_max("99999999999999999999 100000"), none));
}

static void threads_from_quota(void **state) {
    (void)state;
    assert_int_equal(facts_threads(8, (double)NAN), 8);
    assert_int_equal(facts_threads(8, 2.99), 2);
    assert_int_equal(facts_threads(8, 8), 8);
    assert_int_equal(facts_threads(8, 7.5), 7);
    assert_int_equal(facts_threads(8, 64), 8);
    assert_int_equal(facts_threads(8, 0.5), 1);
    assert_int_equal(facts_threads(8, 0), 1);
    assert_int_equal(facts_threads(1, 1e30), 1);
}

static void cpu_lists(void **state) {
    (void)state;
    size_t cpus[4] = {99, 99, 99, 99};
    assert_int_equal(facts_cpu_list("0-1,8,10-11\n", cpus, 4), 5);
    assert_int_equal(cpus[0], 0);
    assert_int_equal(cpus[1], 1);
    assert_int_equal(cpus[2], 8);
    assert_int_equal(cpus[3], 10);
    assert_int_equal(facts_cpu_list("5", cpus, 4), 1);
    assert_int_equal(cpus[0], 5);
    assert_int_equal(facts_cpu_list("", cpus, 4), 0);
    assert_int_equal(facts_cpu_list("\n", cpus, 4), 0);
    assert_int_equal(facts_cpu_list("x", cpus, 4), 0);
    assert_int_equal(facts_cpu_list("3-\n", cpus, 4), 0);
}

static void sizes(void **state) {
    (void)state;
    assert_int_equal(facts_size("48K\n"), 48 * 1024);
    assert_int_equal(facts_size("1024K"), 1024 * 1024);
    assert_int_equal(facts_size("32M"), 32 * 1024 * 1024);
    assert_int_equal(facts_size("512"), 512);
    assert_int_equal(facts_size(""), 0);
    assert_int_equal(facts_size("K"), 0);
}

static void fantasy_caches(void **state) {
    (void)state;
    const size_t mib = (size_t)1 << 20;
    assert_int_equal(facts_last_level(532 * mib, true), 64 * mib);
    assert_int_equal(facts_last_level(64 * mib, true), 64 * mib);
    assert_int_equal(facts_last_level(32 * mib, true), 32 * mib);
    // Processors with that much exist.
    assert_int_equal(facts_last_level(532 * mib, false), 532 * mib);
}

static void one_cpu_per_core_first(void **state) {
    (void)state;
    // Hyper-threads side by side (0-1, 2-3), and far apart (0,4 1,5); masks with holes.
    static const struct {
        size_t count, cpus[8], core_of[8], want[8];
    } cases[] = {
        {4, {0, 1, 2, 3}, {0, 0, 2, 2}, {0, 2, 1, 3}},
        {8, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 0, 1, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7}},
        {5, {7, 3, 2, 1, 0}, {6, 2, 2, 0, 0}, {0, 2, 7, 1, 3}},
        {4, {0, 1, 2, 3}, {0, 0, 0, 3}, {0, 3, 1, 2}},
        {1, {9}, {4}, {9}},
        {0, {0}, {0}, {0}},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        size_t cpus[8], core_of[8];
        memcpy(cpus, cases[c].cpus, sizeof(cpus));
        memcpy(core_of, cases[c].core_of, sizeof(core_of));
        facts_order_cpus(cpus, core_of, cases[c].count);
        for (size_t i = 0; i < cases[c].count; i++) {
            assert_int_equal(cpus[i], cases[c].want[i]);
            bool together = false;  // a CPU keeps its core
            for (size_t j = 0; j < cases[c].count; j++) {
                together =
                    together || (cases[c].cpus[j] == cpus[i] && cases[c].core_of[j] == core_of[i]);
            }
            assert_true(together);
        }
    }
}

static void topology_of_sysfs(void **state) {
    (void)state;
    assert_int_equal(facts_cores(tree), 0);
    assert_int_equal(facts_core_of(tree, 3), 3);
    put("/sys/devices/system/cpu/online", "0-3\n");
    assert_int_equal(facts_cores(tree), 0);  // told of no CPU where it is
    put("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n");
    put("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n");
    put("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n");
    put("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n");
    assert_int_equal(facts_cores(tree), 2);
    assert_int_equal(facts_core_of(tree, 3), 1);
    assert_int_equal(facts_core_of(tree, 0), 0);
    static const char *const caches[][3] = {{"1", "Data", "48K"},
                                            {"1", "Instruction", "32K"},
                                            {"2", "Unified", "2048K"},
                                            {"3", "Unified", "96M"}};
    for (int index = 3; index >= 0; index--) {
        static const char *const files[] = {"level", "type", "size"};
        for (int file = 0; file < 3; file++) {
            char path[128], text[32];
            // The instruction cache first, which must not be taken.
            snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/%s",
                     index == 0 ? 1 : (index == 1 ? 0 : index), files[file]);
            snprintf(text, sizeof(text), "%s\n", caches[index][file]);
            put(path, text);
        }
    }
    assert_int_equal(facts_cache(tree, 0, 1), 48 * 1024);
    assert_int_equal(facts_cache(tree, 0, 2), 2048 * 1024);
    assert_int_equal(facts_cache(tree, 0, 3), 96 * 1024 * 1024);
    assert_int_equal(facts_cache(tree, 0, 4), 0);
    assert_int_equal(facts_cache(tree, 1, 1), 0);
}

static const char x86_cpuinfo[] =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n"
    "microcode\t: 0x1000065\nempty\t:\nflags\t\t: fpu vme\n\nprocessor\t: 1\nmicrocode\t: 0x2\n";
static const char arm_cpuinfo[] =
    "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
    "CPU architecture: 8\nCPU part\t: 0xd0c\n";

static void cpuinfo_fields(void **state) {
    (void)state;
    char value[32];
    assert_true(facts_cpuinfo(x86_cpuinfo, "microcode", value, sizeof(value)));
    assert_string_equal(value, "0x1000065");  // the first one
    assert_true(facts_cpuinfo(x86_cpuinfo, "model name", value, sizeof(value)));
    assert_string_equal(value, "AMD EPYC");
    assert_true(facts_cpuinfo(x86_cpuinfo, "model", value, sizeof(value)));
    assert_string_equal(value, "1");
    assert_true(facts_cpuinfo(arm_cpuinfo, "CPU part", value, sizeof(value)));
    assert_string_equal(value, "0xd0c");
    assert_false(facts_cpuinfo(x86_cpuinfo, "empty", value, sizeof(value)));
    assert_false(facts_cpuinfo(x86_cpuinfo, "code", value, sizeof(value)));
    assert_false(facts_cpuinfo(arm_cpuinfo, "CPU", value, sizeof(value)));
    assert_false(facts_cpuinfo("", "microcode", value, sizeof(value)));
    assert_false(facts_cpuinfo("microcode", "microcode", value, sizeof(value)));
    char small[4];
    assert_true(facts_cpuinfo(x86_cpuinfo, "microcode", small, sizeof(small)));
    assert_string_equal(small, "0x1");
#if defined(__x86_64__)
    assert_false(facts_foreign_cpuinfo(x86_cpuinfo));
    assert_true(facts_foreign_cpuinfo(arm_cpuinfo));
#elif defined(__aarch64__)
    assert_true(facts_foreign_cpuinfo(x86_cpuinfo));
    assert_false(facts_foreign_cpuinfo(arm_cpuinfo));
#endif
}

static void bracketed_words(void **state) {
    (void)state;
    char word[16];
    assert_true(facts_bracketed("always [madvise] never\n", word, sizeof(word)));
    assert_string_equal(word, "madvise");
    assert_true(facts_bracketed("[always] madvise never\n", word, sizeof(word)));
    assert_string_equal(word, "always");
    assert_false(facts_bracketed("always madvise never", word, sizeof(word)));
    assert_false(facts_bracketed("always [madvise", word, sizeof(word)));
    assert_false(facts_bracketed("[]", word, sizeof(word)));
    assert_false(facts_bracketed("", word, sizeof(word)));
}

static void files_of_any_length(void **state) {
    (void)state;
    assert_null(facts_read(tree, "/none"));
    static const size_t lengths[] = {0, 1, 4094, 4095, 4096, 4097, 100000};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char *text = malloc(lengths[i] + 1);
        assert_non_null(text);
        memset(text, 'z', lengths[i]);
        text[lengths[i]] = '\0';
        put("/file", text);
        char *got = facts_read(tree, "/file");
        assert_non_null(got);
        assert_string_equal(got, text);
        free(got);
        free(text);
    }
    assert_null(facts_read(tree, "/"));  // a folder
}

// --- this machine --------------------------------------------------------------------------------

static void this_machine_is_sound(void **state) {
    (void)state;
    struct machine machine;
    machine_gather(&machine);
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        assert_true(machine.threads_allowed <= (size_t)CPU_COUNT(&set));
        for (size_t i = 0; i < machine.threads_allowed; i++) {
            assert_true(CPU_ISSET(machine.cpus[i], &set));
        }
    }
    assert_true(machine.threads_allowed >= 1 && machine.threads_allowed <= MACHINE_CPUS_MAX);
    assert_int_equal(machine.threads_allowed, machine_threads_allowed());
    for (size_t i = 0; i < machine.threads_allowed; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_true(machine.cpus[i] != machine.cpus[j]);
        }
    }
    // Sizes serve as working sets, known or not.
    assert_true(machine.l1_bytes >= 1024);
    assert_true(machine.l2_bytes >= machine.l1_bytes);
    assert_true(machine.l3_bytes > 0);
    assert_true(!machine.l3_capped || (machine.l3_known && machine.l3_bytes == (size_t)64 << 20));
}

/// Every key of the schema, of its type or null.
static void json_is_complete(void **state) {
    (void)state;
    struct machine machine;
    machine_gather(&machine);
    json_t *json = machine_to_json(&machine);
    static const struct {
        const char *key, *types;  // s string, i integer, r real, b boolean, a array, n null
    } keys[] = {
        {"cpu", "sn"},      {"microcode", "sn"}, {"features", "a"},
        {"cores", "in"},    {"quota", "rn"},     {"threads_allowed", "i"},
        {"smt", "bn"},      {"governor", "sn"},  {"thp", "sn"},
        {"ftz", "bn"},      {"kernel", "sn"},    {"emulated", "b"},
        {"l1_bytes", "in"}, {"l2_bytes", "in"},  {"l3_capped", "b"},
        {"l3_bytes", "in"},
    };
    const size_t count = sizeof(keys) / sizeof(keys[0]);
    assert_int_equal(json_object_size(json), count);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(json, keys[i].key);
        assert_non_null(value);
        char type = '?';
        switch (json_typeof(value)) {
            case JSON_STRING:
                type = 's';
                assert_true(json_string_length(value) > 0);
                assert_null(strchr(json_string_value(value), '\n'));
                break;
            case JSON_INTEGER:
                type = 'i';
                assert_true(json_integer_value(value) > 0);
                break;
            case JSON_REAL:
                type = 'r';
                break;
            case JSON_TRUE:
            case JSON_FALSE:
                type = 'b';
                break;
            case JSON_ARRAY:
                type = 'a';
                break;
            case JSON_NULL:
                type = 'n';
                break;
            case JSON_OBJECT:
                break;
        }
        if (strchr(keys[i].types, type) == NULL) {
            fail_msg("%s is of type %c", keys[i].key, type);
        }
    }
    struct utsname names;
    assert_int_equal(uname(&names), 0);
    assert_non_null(strstr(json_string_value(json_object_get(json, "kernel")), names.release));
    const json_t *features = json_object_get(json, "features");
    for (size_t i = 0; i < json_array_size(features); i++) {
        assert_true(json_string_length(json_array_get(features, i)) > 0);
    }
    json_decref(json);
    // What is not known is null.
    struct machine unknown = {.threads_allowed = 1,
                              .quota_cpus = (double)NAN,
                              .emulated = true,
                              .l1_bytes = 1,
                              .l2_bytes = 1,
                              .l3_bytes = 1};
    json = machine_to_json(&unknown);
    static const char *const nulls[] = {"cpu",      "microcode", "cores",   "quota",
                                        "l1_bytes", "l2_bytes",  "l3_bytes"};
    for (size_t i = 0; i < sizeof(nulls) / sizeof(nulls[0]); i++) {
        assert_true(json_is_null(json_object_get(json, nulls[i])));
    }
    assert_true(json_is_true(json_object_get(json, "emulated")));
    json_decref(json);
    unknown.quota_cpus = 1.5;
    unknown.l3_known = unknown.l3_capped = true;
    json = machine_to_json(&unknown);
    assert_true(is(json_real_value(json_object_get(json, "quota")), 1.5));
    assert_int_equal(json_integer_value(json_object_get(json, "l3_bytes")), 1);
    assert_true(json_is_true(json_object_get(json, "l3_capped")));
    json_decref(json);
}

static void affinity_is_kept(void **state) {
    (void)state;
    cpu_set_t all, one;
    CPU_ZERO(&all);
    if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2) {
        skip();
    }
    size_t last = 0;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        last = CPU_ISSET(cpu, &all) ? cpu : last;
    }
    CPU_ZERO(&one);
    CPU_SET(last, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    struct machine machine;
    machine_gather(&machine);
    const size_t allowed = machine_threads_allowed();
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
    assert_int_equal(machine.threads_allowed, 1);
    assert_int_equal(machine.cpus[0], last);
    assert_int_equal(allowed, 1);
}

static void emulation_can_be_said(void **state) {
    (void)state;
    struct machine machine;
    const char *before = getenv("MHABENCH_EMULATED");
    char *kept = before != NULL ? strdup(before) : NULL;
    assert_int_equal(setenv("MHABENCH_EMULATED", "1", 1), 0);
    machine_gather(&machine);
    assert_true(machine.emulated);
    // "0" claims nothing: the answer is the one without a word.
    assert_int_equal(unsetenv("MHABENCH_EMULATED"), 0);
    machine_gather(&machine);
    const bool found = machine.emulated;
    assert_int_equal(setenv("MHABENCH_EMULATED", "0", 1), 0);
    machine_gather(&machine);
    assert_true(machine.emulated == found);
    if (kept != NULL) {
        setenv("MHABENCH_EMULATED", kept, 1);
    } else {
        unsetenv("MHABENCH_EMULATED");
    }
    free(kept);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, grow, fell)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_TREE(quota_of_version_2),
        IN_TREE(quota_in_a_container),
        IN_TREE(quota_of_version_1),
        cmocka_unit_test(cpu_max_texts),
        cmocka_unit_test(threads_from_quota),
        cmocka_unit_test(cpu_lists),
        cmocka_unit_test(sizes),
        cmocka_unit_test(fantasy_caches),
        cmocka_unit_test(one_cpu_per_core_first),
        IN_TREE(topology_of_sysfs),
        cmocka_unit_test(cpuinfo_fields),
        cmocka_unit_test(bracketed_words),
        IN_TREE(files_of_any_length),
        cmocka_unit_test(this_machine_is_sound),
        cmocka_unit_test(json_is_complete),
        cmocka_unit_test(affinity_is_kept),
        cmocka_unit_test(emulation_can_be_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
