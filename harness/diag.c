#include "diag.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int diag_worst(int a, int b) {
    static const int precedence[] = {EXIT_USAGE, EXIT_FOUND, EXIT_INCONCLUSIVE, EXIT_CANNOT_RUN};
    for (size_t i = 0; i < sizeof(precedence) / sizeof(precedence[0]); i++) {
        if (a == precedence[i] || b == precedence[i]) {
            return precedence[i];
        }
    }
    return EXIT_DONE;
}

/// Writes one line in one write(), so that lines of parent and workers do not mix.
__attribute__((format(printf, 2, 0))) static void say(const char *prefix, const char *format,
                                                      va_list arguments) {
    char line[4096];  // PIPE_BUF: what a pipe takes in one piece
    const size_t room = sizeof(line) - 1;
    size_t length = (size_t)snprintf(line, room, "%s", prefix);
    const int wanted = vsnprintf(line + length, room - length, format, arguments);
    if (wanted > 0) {
        length += (size_t)wanted;
    }
    if (length >= room) {
        length = room - 1;
        for (size_t i = length - 3; i < length; i++) {
            line[i] = '.';  // cut off here
        }
    }
    // One message is one line, whatever a user's word or a file's name holds.
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) {
            line[i] = '?';
        }
    }
    line[length++] = '\n';
    for (size_t done = 0; done < length;) {
        const ssize_t written = write(STDERR_FILENO, line + done, length - done);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return;  // stderr is gone: there is nowhere left to say so
        }
        done += (size_t)written;
    }
}

void diag_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say("mhabench: ", format, arguments);
    va_end(arguments);
}

void diag_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say("mhabench: note: ", format, arguments);
    va_end(arguments);
}

void *diag_alloc(void *pointer) {
    if (pointer == NULL) {
        diag_error("out of memory");
        exit(EXIT_USAGE);
    }
    return pointer;
}
