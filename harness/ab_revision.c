/// Kernel libraries of git revisions: a worktree and a build folder for each, below build/ab in the
/// sources that this program was built from. Both are kept and used again.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ab.h"
#include "diag.h"
#include "supervisor.h"

/// Lines of a log that are shown when a step fails.
enum { LOG_LINES = 20 };

/// Most words of a command.
enum { WORDS_MAX = 24 };

/// A command without a shell.
struct command_words {
    size_t count;
    const char *items[WORDS_MAX + 1];
};

__attribute__((sentinel)) static struct command_words words_of(const char *first, ...) {
    struct command_words words = {1, {first}};
    va_list list;
    va_start(list, first);
    for (const char *word = va_arg(list, const char *); word && words.count < WORDS_MAX;
         word = va_arg(list, const char *)) {
        words.items[words.count++] = word;
    }
    va_end(list);
    return words;
}

/// Runs a command with stdout and stderr in a file. Returns its exit code; 128 and more after a
/// signal.
static int run(const struct command_words *words, const char *log) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        const int file = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (file < 0 || nothing < 0) {
            _exit(126);
        }
        dup2(nothing, STDIN_FILENO);
        dup2(file, STDOUT_FILENO);
        dup2(file, STDERR_FILENO);
        // Words are only read by exec.
        char *argv[WORDS_MAX + 1];
        memcpy(argv, words->items, sizeof(argv));
        argv[words->count] = NULL;
        if (argv[0]) {
            execvp(argv[0], argv);
        }
        dprintf(STDERR_FILENO, "%s cannot be started: %s\n", words->items[0], strerror(errno));
        _exit(127);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        if (supervisor_interrupted) {
            kill(pid, supervisor_interrupted);
        }
    }
    if (pid < 0) {
        return 126;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Prints the end of a log on stderr.
static void show_log(const char *log) {
    FILE *file = fopen(log, "re");
    char *lines[LOG_LINES] = {NULL};
    size_t size[LOG_LINES] = {0}, count = 0;
    while (file && getline(&lines[count % LOG_LINES], &size[count % LOG_LINES], file) > 0) {
        count++;
    }
    for (size_t i = count > LOG_LINES ? count - LOG_LINES : 0; i < count; i++) {
        fputs(lines[i % LOG_LINES], stderr);
    }
    for (size_t i = 0; i < LOG_LINES; i++) {
        free(lines[i]);
    }
    if (file) {
        fclose(file);
    }
}

/// Reads the first line of a file.
static void first_line(const char *path, char *line, size_t size) {
    FILE *file = fopen(path, "re");
    line[0] = '\0';
    if (file) {
        if (!fgets(line, (int)size, file)) {
            line[0] = '\0';
        }
        fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
}

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

/// A revision on its way to a library.
struct revision {
    const char *operand;
    char commit[80];
    char prefix[256];       ///< Of the sources within the repository: "" or "folder/".
    char folder[PATH_MAX];  ///< build/ab/<commit>
    char tree[PATH_MAX + 16], build[PATH_MAX + 16], log[PATH_MAX + 24];
};

/// Gets the folder of the sources; MHABENCH_SOURCE names another one, for tests.
static const char *source_folder(void) {
    const char *instead = getenv("MHABENCH_SOURCE");
    return instead ? instead : MHA_SOURCE_DIR;
}

static int fail(const struct revision *r, const char *what) {
    show_log(r->log);
    diag_error("'%s': %s; all of it is in %s", r->operand, what, r->log);
    return EXIT_USAGE;
}

/// Finds the commit. A scratch log serves, since there is no folder yet.
static int find_commit(struct revision *r) {
    char tip[320];
    char scratch[] = "/tmp/mhabench-ab-XXXXXX";
    const int file = mkstemp(scratch);
    if (file < 0) {
        diag_error("%s: %s", scratch, strerror(errno));
        return EXIT_USAGE;
    }
    close(file);
    snprintf(tip, sizeof(tip), "%.300s^{commit}", r->operand);
    struct command_words words =
        words_of("git", "-C", source_folder(), "rev-parse", "--show-prefix", NULL);
    int code = EXIT_DONE;
    if (run(&words, scratch) != 0) {
        show_log(scratch);
        diag_error(
            "'%s': there is no such file, and no git revision can be had: %s is no git repository",
            r->operand, source_folder());
        code = EXIT_USAGE;
    } else {
        first_line(scratch, r->prefix, sizeof(r->prefix));
        words = words_of("git", "-C", source_folder(), "rev-parse", "--verify", "--quiet",
                         "--end-of-options", tip, NULL);
        if (run(&words, scratch) != 0) {
            diag_error("'%s': neither a file nor a git revision of %s", r->operand,
                       source_folder());
            code = EXIT_USAGE;
        }
        first_line(scratch, r->commit, sizeof(r->commit));
    }
    remove(scratch);
    return code;
}

static int make_folder(const char *path) {
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        diag_error("%s cannot be made: %s", path, strerror(errno));
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int make_folders(struct revision *r) {
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/build", source_folder());
    int code = make_folder(path);
    snprintf(path, sizeof(path), "%s/build/ab", source_folder());
    if (code == EXIT_DONE) {
        code = make_folder(path);
    }
    snprintf(r->folder, sizeof(r->folder), "%s/build/ab/%s", source_folder(), r->commit);
    if (code == EXIT_DONE) {
        code = make_folder(r->folder);
    }
    snprintf(r->tree, sizeof(r->tree), "%s/source", r->folder);
    snprintf(r->build, sizeof(r->build), "%s/build", r->folder);
    return code;
}

static int check_out(struct revision *r) {
    char marker[PATH_MAX + 24];
    snprintf(r->log, sizeof(r->log), "%s/worktree.log", r->folder);
    snprintf(marker, sizeof(marker), "%s/.git", r->tree);
    if (exists(marker)) {
        // Whatever somebody did there since.
        const struct command_words words = words_of("git", "-C", r->tree, "checkout", "--quiet",
                                                    "--force", "--detach", r->commit, NULL);
        if (run(&words, r->log) == 0) {
            return EXIT_DONE;
        }
        return fail(r, "the worktree of an earlier comparison cannot be used again: remove it");
    }
    // --force: a worktree that was deleted by hand is still in git's list.
    const struct command_words words =
        words_of("git", "-C", source_folder(), "worktree", "add", "--quiet", "--force", "--detach",
                 r->tree, r->commit, NULL);
    return run(&words, r->log) == 0 ? EXIT_DONE : fail(r, "git cannot make a worktree");
}

/// Configures with this build's compiler and flags; once, unless these have changed.
static int configure(struct revision *r) {
    char source[PATH_MAX + 300], stamp[PATH_MAX + 24], before[4096], now[4096] = "";
    snprintf(source, sizeof(source), "%s/%s", r->tree, r->prefix);
    snprintf(stamp, sizeof(stamp), "%s/configured", r->folder);
    snprintf(r->log, sizeof(r->log), "%s/configure.log", r->folder);
    const bool again = exists(stamp);
    struct command_words words = words_of(
        MHA_CMAKE, "-S", source, "-B", r->build, "-G", MHA_GENERATOR,
        "-DCMAKE_C_COMPILER=" MHA_C_COMPILER, "-DCMAKE_CXX_COMPILER=" MHA_CXX_COMPILER,
        "-DCMAKE_BUILD_TYPE=" MHA_BUILD_TYPE, "-DCMAKE_C_FLAGS=" MHA_C_FLAGS, MHA_C_FLAGS_OF_TYPE,
        "-DMHA_SANITIZE=" MHA_SANITIZERS, "-DMHA_WERROR=OFF", "-DMHA_TESTS=OFF", NULL);
    for (size_t i = 0; i < words.count; i++) {
        const size_t used = strlen(now);
        snprintf(now + used, sizeof(now) - used, "%s%s", i ? " " : "", words.items[i]);
    }
    first_line(stamp, before, sizeof(before));
    if (again && strcmp(before, now) == 0) {
        return EXIT_DONE;
    }
    if (again) {
        words.items[words.count++] = "--fresh";
    }
    if (run(&words, r->log) != 0) {
        return fail(r, "this revision cannot be configured");
    }
    FILE *file = fopen(stamp, "we");
    if (!file || fprintf(file, "%s\n", now) < 0 || fclose(file) != 0) {
        diag_error("%s cannot be written: %s", stamp, strerror(errno));
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int build(struct revision *r, char *path, size_t size) {
    snprintf(r->log, sizeof(r->log), "%s/build.log", r->folder);
    const struct command_words words =
        words_of(MHA_CMAKE, "--build", r->build, "--target", "mha_kernels", NULL);
    fprintf(stderr, "building the kernels of %s (%.12s)\n", r->operand, r->commit);
    if (run(&words, r->log) != 0) {
        return fail(r, "the kernels of this revision cannot be built");
    }
    snprintf(path, size, "%s/bin/libmha_kernels.so", r->build);
    return exists(path) ? EXIT_DONE : fail(r, "its build made no libmha_kernels.so");
}

static int library_of_revision(const char *operand, char *path, size_t size) {
    struct revision r = {.operand = operand};
    char lock_path[PATH_MAX];
    if (!exists(source_folder())) {
        diag_error(
            "'%s': there is no such file, and a git revision is built from the program's sources, "
            "which are gone: %s",
            operand, source_folder());
        return EXIT_USAGE;
    }
    int code = find_commit(&r);
    if (code == EXIT_DONE) {
        code = make_folders(&r);
    }
    if (code != EXIT_DONE) {
        return code;
    }
    // Two comparisons at once must not build into one folder.
    snprintf(lock_path, sizeof(lock_path), "%s/build/ab/lock", source_folder());
    const int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (lock >= 0) {
        flock(lock, LOCK_EX);
    }
    code = check_out(&r);
    if (code == EXIT_DONE) {
        code = configure(&r);
    }
    if (code == EXIT_DONE) {
        code = build(&r, path, size);
    }
    if (lock >= 0) {
        close(lock);
    }
    return code;
}

int ab_library(const char *operand, char *path, size_t size) {
    struct stat info;
    if (stat(operand, &info) != 0) {
        return library_of_revision(operand, path, size);
    }
    char full[PATH_MAX];
    if (S_ISREG(info.st_mode) && realpath(operand, full)) {
        snprintf(path, size, "%s", full);
        return EXIT_DONE;
    }
    // A branch may be named like a folder of the current one.
    if (S_ISDIR(info.st_mode) && !strchr(operand, '.')) {
        return library_of_revision(operand, path, size);
    }
    diag_error("'%s': give a kernel library (a shared object) or a git revision", operand);
    return EXIT_USAGE;
}
