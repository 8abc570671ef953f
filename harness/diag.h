/// Messages and exit codes, the same for every command.
#ifndef MHA_DIAG_H
#define MHA_DIAG_H

/// Exit codes. Where several apply, diag_worst() decides.
enum exit_code {
    EXIT_DONE = 0,          ///< Done, nothing wrong.
    EXIT_FOUND = 1,         ///< A check failed or a regression was found.
    EXIT_USAGE = 2,         ///< Bad usage, unreadable data, unwritable output.
    EXIT_INCONCLUSIVE = 3,  ///< Asked for with --gate inconclusive.
    EXIT_CANNOT_RUN = 77,   ///< Nothing that was asked for can run on this machine.
};

/// Gets the code that counts of two: precedence 2, 1, 3, 77, 0.
int diag_worst(int a, int b);

/// Prints "mhabench: <text>\n" on stderr, in one write. For what makes a command fail.
__attribute__((format(printf, 1, 2))) void diag_error(const char *format, ...);

/// Prints "mhabench: note: <text>\n" on stderr. For what a user should know while things go on.
__attribute__((format(printf, 1, 2))) void diag_note(const char *format, ...);

/// Prints a message and ends with EXIT_USAGE when `pointer` is NULL: memory that cannot be had ends
/// the process, in parent and worker alike. Returns `pointer`.
void *diag_alloc(void *pointer);

#endif
