#include "cmd_plot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag.h"
#include "plot_charts.h"
#include "results.h"

/// Set by a signal that asks for the end, so that the private folder goes before the process does.
static volatile sig_atomic_t interrupted;

static void remember_signal(int number) {
    interrupted = number;
}

static void fail(struct plot *plot, const char *path, const char *what) {
    if (plot->code == EXIT_DONE) {
        diag_error("%s: %s", path, what);
        plot->code = EXIT_USAGE;
    }
}

/// Joins a folder and a name; false after a message when that is too long.
static bool join(struct plot *plot, char path[PATH_MAX], const char *folder, const char *name) {
    const int needed = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    if (needed < 0 || needed >= PATH_MAX) {
        fail(plot, folder, strerror(ENAMETOOLONG));
        return false;
    }
    return true;
}

FILE *plot_open(struct plot *plot, const char *name) {
    char path[PATH_MAX];
    if (plot->code != EXIT_DONE || !join(plot, path, plot->work, name)) {
        return NULL;
    }
    FILE *file = fopen(path, "we");
    if (file == NULL) {
        fail(plot, path, strerror(errno));
    }
    return file;
}

void plot_close(struct plot *plot, FILE *file) {
    const bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed) {
        fail(plot, plot->work, failed ? "a data file could not be written" : strerror(errno));
    }
}

/// Writes text between single quotes, in which gnuplot knows no escape but a doubled quote.
void plot_set_text(FILE *parameters, const char *name, const char *text) {
    (void)fprintf(parameters, "%s = '", name);
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20) {
            (void)fputc(' ', parameters);
        } else {
            (void)fprintf(parameters, *text == '\'' ? "''" : "%c", *text);
        }
    }
    (void)fputs("'\n", parameters);
}

void plot_column_text(FILE *data, const char *text) {
    (void)fputs(" \"", data);
    for (; *text != '\0'; text++) {
        // Within a data file a quote, a backslash or a line end cannot be written.
        const bool plain = (unsigned char)*text >= 0x20 && *text != '"' && *text != '\\';
        (void)fputc(plain ? *text : ' ', data);
    }
    (void)fputc('"', data);
}

static const char not_found[] =
    "not found; on Debian: apt-get install gnuplot-nox fonts-dejavu-core";

/// Runs gnuplot over the parameters and one script, its messages in a file. Returns what waitpid()
/// says, or -1 after a message.
static int run_gnuplot(struct plot *plot, const char *script_path) {
    char parameters[PATH_MAX], messages[PATH_MAX];
    if (!join(plot, parameters, plot->work, "parameters.gp") ||
        !join(plot, messages, plot->work, "messages.txt")) {
        return -1;
    }
    // -d: the user's own start-up file must not change the images.
    char *arguments[] = {(char[]){"gnuplot"}, (char[]){"-d"}, parameters,
                         diag_alloc(strdup(script_path)), NULL};
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (error == 0) {
            error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages,
                                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
        }
        if (error == 0) {
            // What a script prints is a message too: stdout belongs to the list of images.
            error = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
        }
        if (error == 0) {
            error = posix_spawnp(&child, "gnuplot", &actions, NULL, arguments, environ);
        }
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    free(arguments[3]);
    if (error != 0) {
        fail(plot, "gnuplot", error == ENOENT ? not_found : strerror(error));
        return -1;
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) {
            fail(plot, "gnuplot", strerror(errno));
            return -1;
        }
    }
    return status;
}

/// Gets the first line of gnuplot's messages that says what is wrong; it also shows the source.
static void first_message(const struct plot *plot, char *text, size_t bytes) {
    char path[PATH_MAX + 16];
    (void)snprintf(path, sizeof(path), "%s/messages.txt", plot->work);
    (void)snprintf(text, bytes, "it failed without a message");
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    char line[512];
    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strstr(line, "line ") != NULL && strchr(line, ':') != NULL) {
            (void)snprintf(text, bytes, "%s", line);
            break;
        }
    }
    (void)fclose(file);  // Read only.
}

/// Moves one finished image into place; false when it is not there.
static bool move_into_place(struct plot *plot, const char *from_name, const char *to_name) {
    char from[PATH_MAX], to[PATH_MAX];
    struct stat status;
    if (!join(plot, from, plot->work, from_name) || !join(plot, to, plot->out, to_name)) {
        return false;
    }
    if (stat(from, &status) != 0 || status.st_size == 0) {
        fail(plot, "gnuplot", "it wrote no image");
        return false;
    }
    if (rename(from, to) != 0) {
        fail(plot, to, strerror(errno));
        return false;
    }
    (void)printf("%s\n", to);
    return true;
}

void plot_render(struct plot *plot, const char *script, const char *name) {
    char path[PATH_MAX];
    if (plot->code != EXIT_DONE || interrupted != 0 || !join(plot, path, plot->scripts, script)) {
        return;
    }
    const int status = run_gnuplot(plot, path);
    if (plot->code != EXIT_DONE || interrupted != 0) {
        return;
    }
    // Where a spawn cannot tell that the program is lacking, POSIX has the child end with 127.
    const int lacking = 127;
    if (WIFEXITED(status) && WEXITSTATUS(status) == lacking) {
        fail(plot, "gnuplot", not_found);
        return;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        char message[512];
        first_message(plot, message, sizeof(message));
        fail(plot, "gnuplot", message);
        return;
    }
    static const char *const formats[] = {"svg", "png"};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        char from[16], to[NAME_MAX + 1];
        (void)snprintf(from, sizeof(from), "image.%s", formats[i]);
        const int needed = snprintf(to, sizeof(to), "%s.%s", name, formats[i]);
        if (needed < 0 || (size_t)needed >= sizeof(to)) {
            fail(plot, name, strerror(ENAMETOOLONG));
            return;
        }
        if (!move_into_place(plot, from, to)) {
            return;
        }
    }
    plot->drawn++;
}

/// Finds the scripts: beside an installed program, else where this one was built.
static bool find_scripts(struct plot *plot) {
    static const char installed[] = "/../share/mhabench/plots";
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length > 0) {
        path[length] = '\0';
        char *slash = strrchr(path, '/');
        const size_t folder = slash != NULL ? (size_t)(slash - path) : 0;
        if (folder + sizeof(installed) <= sizeof(path)) {
            memcpy(path + folder, installed, sizeof(installed));
            if (access(path, R_OK | X_OK) == 0) {
                memcpy(plot->scripts, path, folder + sizeof(installed));
                return true;
            }
        }
    }
    (void)snprintf(plot->scripts, sizeof(plot->scripts), "%s", MHA_PLOTS_DIR);
    if (access(plot->scripts, R_OK | X_OK) != 0) {
        fail(plot, plot->scripts, "the gnuplot scripts are not there");
        return false;
    }
    return true;
}

/// Writes machine and date, as every image shows them.
static void describe(struct plot *plot) {
    const json_t *own = json_object_get(plot->result->context, "mhabench");
    const json_t *machine = json_object_get(own, "machine");
    const char *cpu = json_string_value(json_object_get(machine, "cpu"));
    const char *date = json_string_value(json_object_get(own, "started"));
    if (date == NULL) {
        date = json_string_value(json_object_get(plot->result->context, "date"));
    }
    // The day is enough; brand strings come with runs of blanks at their end.
    int length = cpu != NULL ? (int)strlen(cpu) : 0;
    while (length > 0 && cpu[length - 1] == ' ') {
        length--;
    }
    (void)snprintf(plot->subtitle, sizeof(plot->subtitle), "%.*s, %.10s", length > 0 ? length : 15,
                   length > 0 ? cpu : "unknown machine", date != NULL ? date : "unknown date");
}

static bool emulated(const struct result *result) {
    const json_t *own = json_object_get(result->context, "mhabench");
    return json_is_true(json_object_get(json_object_get(own, "machine"), "emulated"));
}

/// Makes the private folder, and the folder of the images when it is not there.
static bool make_folders(struct plot *plot) {
    if (mkdir(plot->out, 0777) != 0 && errno != EEXIST) {
        fail(plot, plot->out, strerror(errno));
        return false;
    }
    // Inside the folder of the images, so that a rename puts them into place at once.
    if (!join(plot, plot->work, plot->out, ".mhabench-plot-XXXXXX")) {
        return false;
    }
    if (mkdtemp(plot->work) == NULL) {
        fail(plot, plot->out, strerror(errno));
        return false;
    }
    return true;
}

static void remove_work(const struct plot *plot) {
    DIR *folder = opendir(plot->work);
    if (folder != NULL) {
        const struct dirent *entry = NULL;
        while ((entry = readdir(folder)) != NULL) {
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
                (void)unlinkat(dirfd(folder), entry->d_name, 0);
            }
        }
        (void)closedir(folder);
    }
    if (rmdir(plot->work) != 0) {
        diag_note("%s: %s", plot->work, strerror(errno));
    }
}

/// Draws everything, with the signals that end a program held off until the folder is gone.
static void draw(struct plot *plot) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    enum { ENDS = sizeof(ends) / sizeof(ends[0]) };
    struct sigaction before[ENDS];
    const struct sigaction remember = {.sa_handler = remember_signal};
    for (size_t i = 0; i < ENDS; i++) {
        (void)sigaction(ends[i], &remember, &before[i]);
        if (before[i].sa_handler == SIG_IGN) {
            (void)sigaction(ends[i], &before[i], NULL);  // As nohup has it.
        }
    }
    if (make_folders(plot)) {
        plot_rooflines(plot);
        plot_heat_maps(plot);
        plot_bars(plot);
        remove_work(plot);
    }
    for (size_t i = 0; i < ENDS; i++) {
        (void)sigaction(ends[i], &before[i], NULL);
    }
    if (interrupted != 0) {
        (void)raise(interrupted);
    }
}

int cmd_plot(const struct options *options) {
    const char *path = options->operands.items[0];
    struct result result;
    const int code = results_read(path, &result);
    if (code != EXIT_DONE) {
        return code;
    }
    struct plot plot = {.result = &result, .out = options->out != NULL ? options->out : "."};
    if (emulated(&result)) {
        fail(&plot, path, "the machine was emulated, so there is no time to draw");
    } else if (find_scripts(&plot)) {
        describe(&plot);
        // gnuplot wants decimal points, whatever the user's language.
        const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (c_locale == (locale_t)0) {
            diag_alloc(NULL);
        }
        const locale_t before = uselocale(c_locale);
        draw(&plot);
        (void)uselocale(before);
        freelocale(c_locale);
        if (plot.code == EXIT_DONE && plot.drawn == 0) {
            fail(&plot, path, "nothing to draw");
        }
    }
    results_free(&result);
    if (fflush(stdout) != 0) {
        fail(&plot, "stdout", strerror(errno));
    }
    return plot.code;
}
