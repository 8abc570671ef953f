#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "diag.h"
#include "protocol.h"
#include "team.h"
#include "worker.h"

volatile sig_atomic_t supervisor_interrupted = 0;

static void on_signal(int number) {
    supervisor_interrupted = number;
}

void supervisor_catch_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};  // no SA_RESTART: poll() must return
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void supervisor_obey_interrupt(void) {
    if (supervisor_interrupted) {
        fflush(NULL);
        signal(supervisor_interrupted, SIG_DFL);
        raise(supervisor_interrupted);
    }
}

/// Environment of the worker: OpenMP reads it when it starts, so it is set before exec. With
/// OMP_PROC_BIND a process sees one CPU of its affinity mask; the parent has counted before.
static void set_environment(const struct machine *machine, bool timed) {
    char places[16 * 1024];
    size_t used = 0;
    for (size_t i = 0; i < machine->threads_allowed && used + 16 < sizeof(places); i++) {
        used += (size_t)snprintf(places + used, sizeof(places) - used, "%s{%zu}", i ? "," : "",
                                 machine->cpus[i]);
    }
    char count[32];
    snprintf(count, sizeof(count), "%zu", machine->threads_allowed);
    setenv("OMP_NUM_THREADS", count, 1);
    setenv("OMP_DYNAMIC", "false", 1);
    if (timed) {
        setenv("OMP_PLACES", places, 1);
        setenv("OMP_PROC_BIND", "true", 1);
    } else {
        unsetenv("OMP_PLACES");
        setenv("OMP_PROC_BIND", "false", 1);
    }
    // Threads of a team that has ended spin for a moment (a wake-up costs more than a small
    // kernel), but not into the next case: some 0.2 ms, and measure.c waits longer than that.
    setenv("GOMP_SPINCOUNT", timed ? "20000" : "0", 1);
    unsetenv("OMP_WAIT_POLICY");
}

/// Replaces this process by the worker. MHABENCH_EMULATOR holds words to put before the program
/// (qemu without binfmt would otherwise start the worker natively).
static void exec_worker(void) {
    char self[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0) {
        _exit(127);
    }
    self[n] = '\0';
    char words[1024];
    char *argv[20];
    int argc = 0;
    const char *emulator = getenv("MHABENCH_EMULATOR");
    snprintf(words, sizeof(words), "%s", emulator ? emulator : "");
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word && argc < 16;
         word = strtok_r(NULL, " ", &rest)) {
        argv[argc++] = word;
    }
    argv[argc++] = self;
    argv[argc++] = WORKER_ARGUMENT;
    argv[argc] = NULL;
    execvp(argv[0], argv);
    _exit(127);
}

struct child {
    pid_t pid;
    int to;    ///< Job goes down here.
    int from;  ///< Events come up here.
};

static bool spawn(struct child *child, const struct machine *machine, bool timed) {
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) != 0) {
        return false;
    }
    if (pipe2(up, O_CLOEXEC) != 0) {
        close(down[0]);
        close(down[1]);
        return false;
    }
    fflush(NULL);
    const pid_t parent = getpid();
    child->pid = fork();
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(127);
        }
        // Ctrl-C reaches the whole group; the parent decides what becomes of the worker.
        signal(SIGINT, SIG_IGN);
        signal(SIGPIPE, SIG_IGN);
        // Clear of the numbers that are about to be given to the pipes.
        const int job = fcntl(down[0], F_DUPFD, 10), events = fcntl(up[1], F_DUPFD, 10);
        dup2(job, WORKER_JOB_FD);
        dup2(events, WORKER_EVENT_FD);
        close(job);
        close(events);
        dup2(STDERR_FILENO, STDOUT_FILENO);  // stdout is for data, and a plug-in may print
        set_environment(machine, timed);
        exec_worker();
    }
    close(down[0]);
    close(up[1]);
    child->to = down[1];
    child->from = up[0];
    if (child->pid < 0) {
        close(down[1]);
        close(up[0]);
        return false;
    }
    return true;
}

static void send_job(int fd, const json_t *job) {
    char *text = diag_alloc(json_dumps(job, JSON_COMPACT));
    const size_t length = strlen(text);
    for (size_t done = 0; done < length;) {
        const ssize_t n = write(fd, text + done, length - done);
        if (n < 0 && errno != EINTR) {
            break;  // the worker is gone: its end tells why
        }
        done += n > 0 ? (size_t)n : 0;
    }
    free(text);
    close(fd);
}

/// Lines that have arrived so far.
struct inbox {
    char *bytes;
    size_t used, size;
    bool done;               ///< "done" has come.
    bool refused;            ///< "error" has come.
    char loading[PATH_MAX];  ///< Library whose code runs while it is loaded; "" otherwise.
    double
        patience_s;  ///< A start event may ask for more than the time-out: it expects a long call.
};

static void receive(const struct supervisor *s, struct inbox *inbox, const char *line,
                    size_t length) {
    json_t *event = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    const char *what = protocol_get_string(event, "event");
    if (strcmp(what, "done") == 0) {
        inbox->done = true;
    } else if (strcmp(what, "error") == 0) {
        diag_error("%s", protocol_get_string(event, "text"));
        inbox->refused = true;
    } else if (strcmp(what, "loading") == 0) {
        snprintf(inbox->loading, sizeof(inbox->loading), "%s", protocol_get_string(event, "path"));
    } else if (event) {
        // Ten times what the worker expects: estimates come from one item on a busy machine.
        const double expected = protocol_get_real(event, "expected_s");
        inbox->patience_s = fmax(s->timeout_s, isfinite(expected) ? 10 * expected : 0);
        s->on_event(s->context, event);
    }
    json_decref(event);
}

static void take_lines(const struct supervisor *s, struct inbox *inbox) {
    size_t start = 0;
    for (size_t i = 0; i < inbox->used; i++) {
        if (inbox->bytes[i] == '\n') {
            receive(s, inbox, inbox->bytes + start, i - start);
            start = i + 1;
        }
    }
    memmove(inbox->bytes, inbox->bytes + start, inbox->used - start);
    inbox->used -= start;
}

enum worker_end supervisor_run(const struct supervisor *s, const json_t *job, char *text,
                               size_t text_size) {
    struct child child;
    text[0] = '\0';
    // A worker that dies early must not take us along when we write its job.
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigaction(SIGPIPE, &ignore, &old);
    if (!spawn(&child, s->machine, s->timed)) {
        snprintf(text, text_size, "the worker could not be started: %s", strerror(errno));
        sigaction(SIGPIPE, &old, NULL);
        return WORKER_CRASHED;
    }
    send_job(child.to, job);
    sigaction(SIGPIPE, &old, NULL);
    struct inbox inbox = {.patience_s = s->timeout_s};
    enum worker_end end = WORKER_DONE;
    double deadline = team_now_ns() + inbox.patience_s * 1e9;
    for (;;) {
        if (supervisor_interrupted) {
            end = WORKER_INTERRUPTED;
            break;
        }
        const double left_ms = (deadline - team_now_ns()) / 1e6;
        if (left_ms <= 0) {
            end = WORKER_TIMEOUT;
            break;
        }
        struct pollfd fd = {child.from, POLLIN, 0};
        const int ready = poll(&fd, 1, (int)fmin(left_ms + 1, 1000));
        if (ready <= 0) {
            continue;
        }
        if (inbox.size - inbox.used < 65536) {
            inbox.size += 65536;
            inbox.bytes = diag_alloc(realloc(inbox.bytes, inbox.size));
        }
        const ssize_t n = read(child.from, inbox.bytes + inbox.used, inbox.size - inbox.used);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            break;
        }
        inbox.used += n > 0 ? (size_t)n : 0;
        take_lines(s, &inbox);
        deadline = team_now_ns() + inbox.patience_s * 1e9;
    }
    if (end != WORKER_DONE) {
        kill(child.pid, SIGKILL);
    }
    close(child.from);
    free(inbox.bytes);
    int status = 0;
    while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (end == WORKER_TIMEOUT) {
        snprintf(text, text_size, "no sign of life for %.0f s", inbox.patience_s);
    } else if (end == WORKER_DONE && inbox.refused) {
        end = WORKER_REFUSED;
    } else if (end == WORKER_DONE && WIFSIGNALED(status)) {
        end = WORKER_CRASHED;
        snprintf(text, text_size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (end == WORKER_DONE && (!inbox.done || WEXITSTATUS(status) != 0)) {
        end = WORKER_CRASHED;
        snprintf(text, text_size, "ended by itself with exit code %d", WEXITSTATUS(status));
    }
    if (inbox.loading[0] && (end == WORKER_CRASHED || end == WORKER_TIMEOUT)) {
        char why[160];
        snprintf(why, sizeof(why), "%s", text);
        snprintf(text, text_size, "%s: its own code failed while it was loaded: %s", inbox.loading,
                 why);
    }
    return end;
}
