/// Result files: the context that Google Benchmark would write, the text of a JSON value, and a
/// write that leaves either the old file or the whole new one.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "diag.h"
#include "results.h"

// --- context
// ----------------------------------------------------------------------------------------

static void put(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0) {
        diag_alloc(NULL);
    }
}

/// Reads the first line of a small file of the kernel's; false when there is none.
static bool read_line(const char *path, char *line, size_t bytes) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    const bool got = fgets(line, (int)bytes, file) != NULL;
    (void)fclose(file);  // Read only.
    line[got ? strcspn(line, "\n") : 0] = '\0';
    return got;
}

/// Gets the processor's clock as Google Benchmark does: the most that cpufreq allows, else what
/// /proc/cpuinfo says of the first processor; 0 when neither does.
static json_int_t mhz_per_cpu(void) {
    char line[512];
    if (read_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", line, sizeof(line))) {
        return (json_int_t)(strtoull(line, NULL, 10) / 1000);  // The file has kHz.
    }
    FILE *file = fopen("/proc/cpuinfo", "re");
    json_int_t mhz = 0;
    while (file != NULL && mhz == 0 && fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "cpu MHz", strlen("cpu MHz")) == 0 && colon != NULL) {
            // Whole MHz are enough; strtod would want the locale's decimal point.
            mhz = (json_int_t)strtoull(colon + 1, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);  // Read only.
    }
    return mhz;
}

/// Counts the CPUs of a map such as "0000,00000003".
static json_int_t count_cpus(const char *map) {
    json_int_t count = 0;
    for (; *map != '\0'; map++) {
        const char digit[2] = {*map, '\0'};
        for (unsigned long bits = strtoul(digit, NULL, 16); bits != 0; bits >>= 1) {
            count += (json_int_t)(bits & 1U);
        }
    }
    return count;
}

static json_t *caches(void) {
    json_t *array = diag_alloc(json_array());
    for (int index = 0;; index++) {
        static const char folder[] = "/sys/devices/system/cpu/cpu0/cache";
        char path[128], type[32], level[32], size[32], map[512];
        (void)snprintf(path, sizeof(path), "%s/index%d/type", folder, index);
        if (!read_line(path, type, sizeof(type))) {
            return array;
        }
        (void)snprintf(path, sizeof(path), "%s/index%d/level", folder, index);
        const bool has_level = read_line(path, level, sizeof(level));
        (void)snprintf(path, sizeof(path), "%s/index%d/size", folder, index);
        const bool has_size = read_line(path, size, sizeof(size));
        (void)snprintf(path, sizeof(path), "%s/index%d/shared_cpu_map", folder, index);
        const bool has_map = read_line(path, map, sizeof(map));
        if (!has_level || !has_size || !has_map) {
            continue;
        }
        char *unit = NULL;
        json_int_t bytes = (json_int_t)strtoull(size, &unit, 10);
        bytes *= *unit == 'K' ? 1024 : *unit == 'M' ? 1024 * 1024 : 1;
        json_t *cache = diag_alloc(json_object());
        put(cache, "type", json_string(type));
        put(cache, "level", json_integer((json_int_t)strtoull(level, NULL, 10)));
        put(cache, "size", json_integer(bytes));
        put(cache, "num_sharing", json_integer(count_cpus(map)));
        if (json_array_append_new(array, cache) != 0) {
            diag_alloc(NULL);
        }
    }
}

/// Gets the local time as ISO 8601 has it, with the offset: "2026-11-27T22:37:54+01:00".
static json_t *date_now(void) {
    const time_t now = time(NULL);
    struct tm local;
    char date[32] = "", zone[8] = "", text[64];
    if (localtime_r(&now, &local) == NULL ||
        strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &local) == 0 ||
        strftime(zone, sizeof(zone), "%z", &local) != strlen("+hhmm")) {
        return json_string("1970-01-01T00:00:00+00:00");
    }
    (void)snprintf(text, sizeof(text), "%s%.3s:%s", date, zone, zone + 3);
    return json_string(text);
}

json_t *results_context_base(const char *executable) {
    json_t *context = diag_alloc(json_object());
    char host[HOST_NAME_MAX + 1] = "";
    if (gethostname(host, sizeof(host) - 1) != 0) {
        host[0] = '\0';
    }
    json_t *name = json_string(host);
    json_t *program = json_string(executable);
    const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    put(context, "date", date_now());
    // A name that is no UTF-8 cannot stand in JSON.
    put(context, "host_name", name != NULL ? name : json_string(""));
    put(context, "executable", program != NULL ? program : json_string(""));
    put(context, "num_cpus", json_integer(cpus > 0 ? cpus : 0));
    put(context, "mhz_per_cpu", json_integer(mhz_per_cpu()));
    char governor[64];
    // Left out where the kernel does not tell, as Google Benchmark does.
    if (read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", governor,
                  sizeof(governor))) {
        put(context, "cpu_scaling_enabled", json_boolean(strcmp(governor, "performance") != 0));
    }
    put(context, "caches", caches());
    double load[3];
    const int loads = getloadavg(load, 3);
    json_t *load_avg = diag_alloc(json_array());
    for (int i = 0; i < loads; i++) {
        if (json_array_append_new(load_avg, json_real(load[i])) != 0) {
            diag_alloc(NULL);
        }
    }
    put(context, "load_avg", load_avg);
#ifdef NDEBUG
    put(context, "library_build_type", json_string("release"));
#else
    put(context, "library_build_type", json_string("debug"));
#endif
    return context;
}

// --- text
// -------------------------------------------------------------------------------------------

/// Writes a number in the fewest digits that read back as the same double. The caller has set the C
/// locale: others write 1,5.
static void print_real(FILE *out, double value) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {  // DBL_DIG to DBL_DECIMAL_DIG
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        const double back = strtod(text, NULL);
        if (!(back < value || back > value)) {
            break;
        }
    }
    (void)fputs(text, out);
    // Keeps a real number one when it is read again.
    if (strpbrk(text, ".e") == NULL) {
        (void)fputs(".0", out);
    }
}

static void print_scalar(FILE *out, const json_t *value) {
    if (json_is_real(value)) {
        print_real(out, json_real_value(value));
        return;
    }
    char *text = diag_alloc(json_dumps(value, JSON_ENCODE_ANY));
    (void)fputs(text, out);
    free(text);
}

static bool holds_containers(const json_t *array) {
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        if (json_is_object(item) || json_is_array(item)) {
            return true;
        }
    }
    return false;
}

/// Writes a value as Google Benchmark lays its files out, with the samples of a launch in one line:
/// a line per sample would bury what people look for.
static void print_value(FILE *out, json_t *value, int indent) {
    const int step = 2;
    if (json_is_object(value) && json_object_size(value) > 0) {
        const char *key = NULL;
        json_t *item = NULL;
        const char *separator = "{\n";
        json_object_foreach(value, key, item) {
            json_t *name = diag_alloc(json_string(key));
            (void)fprintf(out, "%s%*s", separator, indent + step, "");
            print_scalar(out, name);
            json_decref(name);
            (void)fputs(": ", out);
            print_value(out, item, indent + step);
            separator = ",\n";
        }
        (void)fprintf(out, "\n%*s}", indent, "");
    } else if (json_is_array(value) && holds_containers(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            (void)fprintf(out, "%s%*s", i == 0 ? "[\n" : ",\n", indent + step, "");
            print_value(out, json_array_get(value, i), indent + step);
        }
        (void)fprintf(out, "\n%*s]", indent, "");
    } else if (json_is_array(value)) {
        (void)fputc('[', out);
        for (size_t i = 0; i < json_array_size(value); i++) {
            (void)fputs(i == 0 ? "" : ", ", out);
            print_scalar(out, json_array_get(value, i));
        }
        (void)fputc(']', out);
    } else {
        print_scalar(out, value);
    }
}

char *results_text(const json_t *json, size_t *bytes) {
    char *text = NULL;
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0) {
        diag_alloc(NULL);
    }
    const locale_t before = uselocale(c_locale);
    FILE *out = diag_alloc(open_memstream(&text, bytes));
    json_t *value = json_deep_copy(json);  // Walking an object takes a pointer that is not const.
    print_value(out, diag_alloc(value), 0);
    json_decref(value);
    (void)fputc('\n', out);
    const bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        diag_alloc(NULL);
    }
    (void)uselocale(before);
    freelocale(c_locale);
    return text;
}

// --- writing
// ----------------------------------------------------------------------------------------

/// What a path leads to, and so how it is written.
enum target_kind {
    TARGET_REPLACED,  ///< A regular file, or nothing yet: a temporary file takes its place.
    TARGET_DIRECT,    ///< A pipe, a device, a descriptor: written as it is.
};

struct target {
    enum target_kind kind;
    char path[PATH_MAX];  ///< What is written; no symbolic link.
    int descriptor;       ///< A descriptor of this process that the path stands for, or -1.
    bool exists;          ///< There is a file to be replaced,
    mode_t mode;          ///< and these are its permissions.
};

static int complain(const char *path, const char *what) {
    diag_error("cannot write '%s': %s", path, what);
    return EXIT_USAGE;
}

/// Gets the folder that `path` lies in.
static void folder_of(const char *path, char folder[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        (void)snprintf(folder, PATH_MAX, ".");
    } else {
        // The root keeps its slash.
        (void)snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
}

/// Gets the descriptor that a path such as /proc/self/fd/1 or /dev/fd/1 stands for; -1 for other
/// paths. These are links, but what they name is the open file, not a name to be replaced.
static int descriptor_of(const char *path) {
    char folder[PATH_MAX], resolved[PATH_MAX], own[64];
    folder_of(path, folder);
    struct statfs system;
    if (statfs(folder, &system) != 0 || system.f_type != PROC_SUPER_MAGIC ||
        realpath(folder, resolved) == NULL) {
        return -1;
    }
    (void)snprintf(own, sizeof(own), "/proc/%ld/fd", (long)getpid());
    const char *base = strrchr(path, '/') + 1;
    char *end = NULL;
    errno = 0;
    const long number = strtol(base, &end, 10);
    if (strcmp(resolved, own) != 0 || *base == '\0' || *end != '\0' || errno != 0 || number < 0 ||
        number > INT_MAX) {
        return -1;
    }
    return (int)number;
}

/// Follows symbolic links by hand, since a link to a descriptor must not be followed further.
/// Returns 0, or prints a line.
static int find_target(const char *path, struct target *target) {
    enum { LINKS_MAX = 40 };  // As Linux has it (path_resolution(7)).
    memset(target, 0, sizeof(*target));
    target->descriptor = -1;
    const size_t length = strlen(path);
    if (length == 0 || length >= sizeof(target->path)) {
        return complain(path, length == 0 ? "the name is empty" : strerror(ENAMETOOLONG));
    }
    memcpy(target->path, path, length + 1);
    struct stat status;
    for (int links = 0; links <= LINKS_MAX; links++) {
        if (lstat(target->path, &status) != 0) {
            if (errno != ENOENT || target->path[strlen(target->path) - 1] == '/') {
                return complain(path, strerror(errno == ENOENT ? EISDIR : errno));
            }
            if (links > 0) {
                return complain(path, "it is a symbolic link to a file that does not exist");
            }
            return 0;
        }
        if (!S_ISLNK(status.st_mode)) {
            break;
        }
        target->descriptor = descriptor_of(target->path);
        if (target->descriptor >= 0) {
            target->kind = TARGET_DIRECT;
            return 0;
        }
        char link[PATH_MAX], folder[PATH_MAX], next[PATH_MAX];
        const ssize_t got = readlink(target->path, link, sizeof(link) - 1);
        if (got < 0) {
            return complain(path, strerror(errno));
        }
        link[got] = '\0';
        folder_of(target->path, folder);
        const int needed = link[0] == '/' ? snprintf(next, sizeof(next), "%s", link)
                                          : snprintf(next, sizeof(next), "%s/%s", folder, link);
        if (needed < 0 || (size_t)needed >= sizeof(next)) {
            return complain(path, strerror(ENAMETOOLONG));
        }
        memcpy(target->path, next, (size_t)needed + 1);
    }
    if (S_ISLNK(status.st_mode)) {
        return complain(path, strerror(ELOOP));
    }
    if (S_ISDIR(status.st_mode)) {
        return complain(path, strerror(EISDIR));
    }
    target->kind = S_ISREG(status.st_mode) ? TARGET_REPLACED : TARGET_DIRECT;
    target->exists = true;
    target->mode = status.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    return 0;
}

/// Writes all of `text`; false with errno set when it cannot.
static bool write_all(int descriptor, const char *text, size_t bytes) {
    while (bytes > 0) {
        const ssize_t written = write(descriptor, text, bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            return false;
        }
        text += written;
        bytes -= (size_t)written;
    }
    return true;
}

static int write_direct(const char *path, const struct target *target, const char *text,
                        size_t bytes) {
    int descriptor = -1;
    if (target->descriptor >= 0) {
        // Shares the offset and O_APPEND with the descriptor; what stdio still holds comes first.
        (void)fflush(NULL);
        descriptor = fcntl(target->descriptor, F_DUPFD_CLOEXEC, 0);
    } else {
        descriptor = open(target->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    }
    if (descriptor < 0) {
        return complain(path, strerror(errno));
    }
    // A reader that has gone is an error to be told, not the end of the process.
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;
    (void)sigaction(SIGPIPE, &ignore, &before);
    const bool written = write_all(descriptor, text, bytes);
    const int cause = errno;
    (void)sigaction(SIGPIPE, &before, NULL);
    if (close(descriptor) != 0 && written) {
        return complain(path, strerror(errno));
    }
    return written ? EXIT_DONE : complain(path, strerror(cause));
}

/// Opens a new file beside `path`, hidden and named after this process; -1 with errno set.
static int open_temporary(const char *path, char temporary[PATH_MAX]) {
    char folder[PATH_MAX];
    folder_of(path, folder);
    const char *slash = strrchr(path, '/');
    const char *base = slash != NULL ? slash + 1 : path;
    for (int attempt = 0; attempt < 100; attempt++) {
        // The name may be as long as names can be, so only its beginning is used.
        const int needed = snprintf(temporary, PATH_MAX, "%s/.%.100s.%ld-%d.tmp", folder, base,
                                    (long)getpid(), attempt);
        if (needed < 0 || needed >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) {
            return descriptor;
        }
    }
    return -1;
}

/// Makes the rename itself durable. Some file systems cannot sync a folder, and by now the file is
/// in place: a failure is nothing that a user could act on.
static void sync_folder(const char *path) {
    char folder[PATH_MAX];
    folder_of(path, folder);
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        (void)fsync(descriptor);
        (void)close(descriptor);
    }
}

static int write_replacing(const char *path, const struct target *target, const char *text,
                           size_t bytes) {
    // rename() would replace a file that its owner has protected.
    if (target->exists && access(target->path, W_OK) != 0) {
        return complain(path, strerror(errno));
    }
    sigset_t block, before;
    (void)sigemptyset(&block);
    (void)sigaddset(&block, SIGINT);
    (void)sigaddset(&block, SIGTERM);
    (void)sigaddset(&block, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &block, &before);
    char temporary[PATH_MAX];
    const int descriptor = open_temporary(target->path, temporary);
    int cause = descriptor < 0 ? errno : 0;
    if (descriptor >= 0) {
        if (!write_all(descriptor, text, bytes) ||
            (target->exists && fchmod(descriptor, target->mode) != 0) || fsync(descriptor) != 0) {
            cause = errno;
        }
        if (close(descriptor) != 0 && cause == 0) {
            cause = errno;
        }
        if (cause == 0 && rename(temporary, target->path) != 0) {
            cause = errno;
        }
        if (cause != 0) {
            (void)unlink(temporary);
        } else {
            sync_folder(target->path);
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return cause == 0 ? EXIT_DONE : complain(path, strerror(cause));
}

int results_write_text(const char *text, size_t bytes, const char *path) {
    struct target target;
    if (find_target(path, &target) != 0) {
        return EXIT_USAGE;
    }
    return target.kind == TARGET_DIRECT ? write_direct(path, &target, text, bytes)
                                        : write_replacing(path, &target, text, bytes);
}

int results_write(const json_t *json, const char *path) {
    size_t bytes = 0;
    char *text = results_text(json, &bytes);
    const int code = results_write_text(text, bytes, path);
    free(text);
    return code;
}

int results_check_writable(const char *path) {
    struct target target;
    if (find_target(path, &target) != 0) {
        return EXIT_USAGE;
    }
    if (target.kind == TARGET_DIRECT) {
        const int flags = target.descriptor >= 0 ? fcntl(target.descriptor, F_GETFL) : O_WRONLY;
        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
            return complain(path, strerror(EBADF));
        }
        if (target.descriptor < 0 && access(target.path, W_OK) != 0) {
            return complain(path, strerror(errno));
        }
        return EXIT_DONE;
    }
    if (target.exists && access(target.path, W_OK) != 0) {
        return complain(path, strerror(errno));
    }
    // Only trying tells: permissions say nothing of a file system that is read-only or full.
    char temporary[PATH_MAX];
    const int descriptor = open_temporary(target.path, temporary);
    if (descriptor < 0) {
        return complain(path, strerror(errno));
    }
    (void)unlink(temporary);
    (void)close(descriptor);
    return EXIT_DONE;
}
