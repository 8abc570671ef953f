/// A build without SQLite says what it lacks. cmd_history.c is compiled into this test once more,
/// without the definition that the harness has.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "diag.h"

static void test_says_what_it_lacks(void **state) {
    (void)state;
    int ends[2];
    char text[512] = "";
    const struct options options = {.command = COMMAND_HISTORY};
    const int kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(kept >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    const int code = cmd_history(&options);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    const ssize_t length = read(ends[0], text, sizeof(text) - 1);
    assert_true(length > 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)close(kept);
    assert_int_equal(code, EXIT_USAGE);
    assert_non_null(strstr(text, "built without SQLite"));
    assert_non_null(strstr(text, "libsqlite3-dev"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_says_what_it_lacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
