#include "machine_facts.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "numbers.h"

enum { PATH_BYTES = 4096 };

char *facts_read(const char *root, const char *path) {
    char full[PATH_BYTES];
    if ((size_t)snprintf(full, sizeof(full), "%s%s", root, path) >= sizeof(full)) {
        return NULL;
    }
    FILE *file = fopen(full, "re");
    if (file == NULL) {
        return NULL;
    }
    // Files under /proc tell no size; they are read until they end.
    size_t length = 0, room = 4096;
    char *text = diag_alloc(malloc(room));
    for (;;) {
        length += fread(text + length, 1, room - 1 - length, file);
        if (length < room - 1) {
            break;
        }
        room *= 2;
        text = diag_alloc(realloc(text, room));
    }
    const bool failed = ferror(file) != 0;
    fclose(file);
    if (failed) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

bool facts_cpuinfo(const char *cpuinfo, const char *field, char *value, size_t size) {
    const size_t length = strlen(field);
    for (const char *line = cpuinfo; *line != '\0'; line = next_line(line)) {
        if (strncmp(line, field, length) != 0) {
            continue;
        }
        const char *at = line + length + strspn(line + length, " \t");
        if (*at != ':') {
            continue;
        }
        at += 1 + strspn(at + 1, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(at, "\n"), at);
        return value[0] != '\0';
    }
    return false;
}

bool facts_foreign_cpuinfo(const char *cpuinfo) {
    char value[8];
#if defined(__x86_64__)
    return facts_cpuinfo(cpuinfo, "CPU implementer", value, sizeof(value));
#elif defined(__aarch64__)
    return facts_cpuinfo(cpuinfo, "vendor_id", value, sizeof(value)) ||
           facts_cpuinfo(cpuinfo, "flags", value, sizeof(value));
#else
    (void)cpuinfo;
    (void)value;
    return false;
#endif
}

bool facts_bracketed(const char *text, char *word, size_t size) {
    const char *open = strchr(text, '[');
    const char *close = open != NULL ? strchr(open, ']') : NULL;
    if (close == NULL || close == open + 1) {
        return false;
    }
    snprintf(word, size, "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

/// Reads a number at *at and moves behind it.
static bool read_number(const char **at, size_t *number) {
    const size_t length = strspn(*at, "0123456789");
    uint64_t value = 0;
    if (number_parse(*at, length, &value) != NUMBER_FINE) {
        return false;
    }
    *number = (size_t)value;
    *at += length;
    return true;
}

size_t facts_cpu_list(const char *text, size_t *cpus, size_t max) {
    size_t count = 0, first = 0;
    while (read_number(&text, &first)) {
        size_t last = first;
        if (*text == '-') {
            text++;
            if (!read_number(&text, &last)) {
                break;
            }
        }
        for (size_t cpu = first; cpu <= last; cpu++) {
            if (count < max) {
                cpus[count] = cpu;
            }
            count++;
        }
        if (*text != ',') {
            break;
        }
        text++;
    }
    return count;
}

size_t facts_size(const char *text) {
    size_t size = 0;
    if (!read_number(&text, &size)) {
        return 0;
    }
    switch (*text) {
        case 'K':
            return size << 10;
        case 'M':
            return size << 20;
        case 'G':
            return size << 30;
        default:
            return size;
    }
}

double facts_cpu_max(const char *text) {
    size_t quota = 0, period = 0;
    if (!read_number(&text, &quota)) {
        return (double)NAN;  // "max"
    }
    text += strspn(text, " ");
    if (!read_number(&text, &period) || period == 0) {
        return (double)NAN;
    }
    return (double)quota / (double)period;
}

/// Version 1 keeps quota and period in two files; -1 means no limit.
static double quota_of_v1(const char *root, const char *folder) {
    char path[PATH_BYTES];
    double cpus = (double)NAN;
    snprintf(path, sizeof(path), "%.4000s/cpu.cfs_quota_us", folder);
    char *quota = facts_read(root, path);
    snprintf(path, sizeof(path), "%.4000s/cpu.cfs_period_us", folder);
    char *period = facts_read(root, path);
    if (quota != NULL && period != NULL) {
        char both[64];
        snprintf(both, sizeof(both), "%.*s %.20s", (int)strcspn(quota, "\n"), quota, period);
        cpus = facts_cpu_max(both);
    }
    free(quota);
    free(period);
    return cpus;
}

static double quota_of_v2(const char *root, const char *folder) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "%.4000s/cpu.max", folder);
    char *text = facts_read(root, path);
    const double cpus = text != NULL ? facts_cpu_max(text) : (double)NAN;
    free(text);
    return cpus;
}

/// Tells whether the comma list of `length` bytes holds the word.
static bool list_has(const char *list, size_t length, const char *word) {
    const char *end = list + length;
    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        const size_t part = (size_t)((comma != NULL ? comma : end) - list);
        if (part == strlen(word) && memcmp(list, word, part) == 0) {
            return true;
        }
        list += part + 1;
    }
    return false;
}

/// Copies this process's cgroup path from the text of /proc/self/cgroup, whose lines are
/// "id:controllers:path"; version 2 is the line without controllers.
static bool cgroup_path(const char *text, bool v2, char path[PATH_BYTES]) {
    for (const char *line = text; *line != '\0'; line = next_line(line)) {
        const size_t length = strcspn(line, "\n");
        const char *controllers = memchr(line, ':', length);
        if (controllers == NULL) {
            continue;
        }
        controllers++;
        const char *colon = memchr(controllers, ':', length - (size_t)(controllers - line));
        if (colon == NULL) {
            continue;
        }
        const size_t listed = (size_t)(colon - controllers);
        if (v2 ? listed == 0 : list_has(controllers, listed, "cpu")) {
            snprintf(path, PATH_BYTES, "%.*s", (int)(line + length - colon - 1), colon + 1);
            return true;
        }
    }
    return false;
}

/// One line of /proc/self/mountinfo, as far as it matters.
struct mount {
    char root[PATH_BYTES];   ///< Folder of the file system that is mounted.
    char point[PATH_BYTES];  ///< Where.
};

/// Finds where the cgroup hierarchy of the CPU controller is mounted.
static bool find_mount(const char *text, bool v2, struct mount *mount) {
    for (const char *line = text; *line != '\0'; line = next_line(line)) {
        char *copy = diag_alloc(strndup(line, strcspn(line, "\n")));
        // "id parent major:minor root point options [optional...] - type source super-options"
        char *behind = strstr(copy, " - ");
        char type[32], super[1024];
        bool found = false;
        if (behind != NULL && sscanf(behind, " - %31s %*s %1023s", type, super) == 2 &&
            sscanf(copy, "%*s %*s %*s %4095s %4095s", mount->root, mount->point) == 2) {
            found = v2 ? strcmp(type, "cgroup2") == 0
                       : strcmp(type, "cgroup") == 0 && list_has(super, strlen(super), "cpu");
        }
        free(copy);
        if (found) {
            return true;
        }
    }
    return false;
}

/// Gets the lesser limit; NAN is none.
static double least(double a, double b) {
    return isnan(b) || a <= b ? a : b;
}

/// Walks from this process's cgroup up to the root of the mount; every level may limit.
static double quota_of(const char *root, const char *cgroups, const char *mounts, bool v2) {
    char path[PATH_BYTES];
    struct mount mount;
    double cpus = (double)NAN;
    if (!cgroup_path(cgroups, v2, path) || !find_mount(mounts, v2, &mount)) {
        return cpus;
    }
    // In a container the path may be the host's, while only a part of the hierarchy is mounted.
    const size_t above = strcmp(mount.root, "/") == 0 ? 0 : strlen(mount.root);
    const char *inside = path;
    if (above > 0 && strncmp(path, mount.root, above) == 0 &&
        (path[above] == '/' || path[above] == '\0')) {
        inside = path + above;
    } else if (above > 0 || strncmp(path, "/..", 3) == 0) {
        inside = "";
    }
    char folder[PATH_BYTES];
    const size_t top = strlen(mount.point);
    const int length = snprintf(folder, sizeof(folder), "%s%s", mount.point, inside);
    if (length < 0 || (size_t)length >= sizeof(folder)) {
        return cpus;
    }
    for (;;) {
        cpus = least(cpus, v2 ? quota_of_v2(root, folder) : quota_of_v1(root, folder));
        char *slash = strrchr(folder, '/');
        if (slash == NULL || (size_t)(slash - folder) < top) {
            return cpus;
        }
        *slash = '\0';
    }
}

double facts_quota(const char *root) {
    char *cgroups = facts_read(root, "/proc/self/cgroup");
    char *mounts = facts_read(root, "/proc/self/mountinfo");
    double cpus = (double)NAN;
    if (cgroups != NULL && mounts != NULL) {
        cpus = least(quota_of(root, cgroups, mounts, true), quota_of(root, cgroups, mounts, false));
    }
    free(cgroups);
    free(mounts);
    return cpus;
}

size_t facts_threads(size_t affinity, double quota_cpus) {
    size_t threads = affinity;
    if (!isnan(quota_cpus) && quota_cpus < (double)affinity) {
        threads = (size_t)quota_cpus;  // half a CPU's worth keeps no thread running
    }
    return threads > 0 ? threads : 1;
}

/// A CPU, its core, and the number of CPUs of that core before it.
struct place {
    size_t cpu, core, turn;
};

static int compare_cpus(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    return (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

static int compare_turns(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->turn != y->turn) {
        return x->turn > y->turn ? 1 : -1;
    }
    return compare_cpus(a, b);
}

void facts_order_cpus(size_t *cpus, size_t *core_of, size_t count) {
    if (count == 0) {
        return;
    }
    struct place *places = diag_alloc(calloc(count, sizeof(*places)));
    for (size_t i = 0; i < count; i++) {
        places[i] = (struct place){cpus[i], core_of[i], 0};
    }
    qsort(places, count, sizeof(*places), compare_cpus);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            places[i].turn += places[j].core == places[i].core;
        }
    }
    qsort(places, count, sizeof(*places), compare_turns);
    for (size_t i = 0; i < count; i++) {
        cpus[i] = places[i].cpu;
        core_of[i] = places[i].core;
    }
    free(places);
}

size_t facts_core_of(const char *root, size_t cpu) {
    char path[PATH_BYTES];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
             cpu);
    char *text = facts_read(root, path);
    size_t first = cpu;
    if (text != NULL) {
        size_t sibling = 0;
        if (facts_cpu_list(text, &sibling, 1) > 0) {
            first = sibling;
        }
    }
    free(text);
    return first;
}

size_t facts_cores(const char *root) {
    char *text = facts_read(root, "/sys/devices/system/cpu/online");
    if (text == NULL) {
        return 0;
    }
    const size_t count = facts_cpu_list(text, NULL, 0);
    size_t *cpus = diag_alloc(calloc(count + 1, sizeof(*cpus)));
    facts_cpu_list(text, cpus, count);
    free(text);
    char path[PATH_BYTES];
    size_t cores = 0;
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
                 cpus[i]);
        char *siblings = facts_read(root, path);
        size_t first = 0;
        if (siblings == NULL || facts_cpu_list(siblings, &first, 1) == 0) {
            free(siblings);
            free(cpus);
            return 0;
        }
        // A core is counted at its first CPU.
        cores += first == cpus[i];
        free(siblings);
    }
    free(cpus);
    return cores;
}

size_t facts_cache(const char *root, size_t cpu, int level) {
    for (int index = 0;; index++) {
        char path[3][PATH_BYTES];
        static const char *const files[] = {"level", "type", "size"};
        char *texts[3];
        for (int i = 0; i < 3; i++) {
            snprintf(path[i], sizeof(path[i]), "/sys/devices/system/cpu/cpu%zu/cache/index%d/%s",
                     cpu, index, files[i]);
            texts[i] = facts_read(root, path[i]);
        }
        const bool there = texts[0] != NULL && texts[1] != NULL && texts[2] != NULL;
        const bool wanted = there && facts_size(texts[0]) == (size_t)level &&
                            strncmp(texts[1], "Instruction", strlen("Instruction")) != 0;
        const size_t size = wanted ? facts_size(texts[2]) : 0;
        for (int i = 0; i < 3; i++) {
            free(texts[i]);
        }
        if (!there || wanted) {
            return size;
        }
    }
}

size_t facts_last_level(size_t told, bool is_virtual) {
    // A virtual machine reports the L3 of the whole host, or of all its CPUs together: 532 MB were
    // seen on 2 CPUs. What its CPUs really share is at most one such piece of a large server
    // processor.
    const size_t most = (size_t)64 << 20;
    return is_virtual && told > most ? most : told;
}
