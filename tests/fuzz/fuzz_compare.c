/// `compare` over two files of any bytes, Google Benchmark's own among them: taken or refused. What
/// is taken gives a report in which every row has a verdict that its numbers allow, in every form.
#include <math.h>
#include <string.h>

#include "compare.h"
#include "diag.h"
#include "fuzz.h"
#include "report.h"

static void check_row(const struct comparison *row) {
    const bool judged = row->verdict == COMPARISON_SLOWER || row->verdict == COMPARISON_FASTER;
    FUZZ_REQUIRE(comparison_text(row->verdict)[0] != '\0', "a row without a verdict");
    FUZZ_REQUIRE(!judged || (row->base_ns > 0 && row->new_ns > 0), "a verdict without times");
    FUZZ_REQUIRE(!judged || isfinite(row->change), "a verdict without a change");
    FUZZ_REQUIRE(row->verdict != COMPARISON_SLOWER || row->change > 0, "SLOWER by %g", row->change);
    FUZZ_REQUIRE(row->verdict != COMPARISON_FASTER || row->change < 0, "FASTER by %g", row->change);
    FUZZ_REQUIRE(!judged || !row->same_code, "the same machine code is judged");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    // A zero byte, which no JSON holds, stands between the two; without one the file meets itself.
    const uint8_t *middle = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t first = middle ? (size_t)(middle - data) : size;
    const struct compare_settings how = {.floor = 0.01, .launch_floor = 0.05};
    struct comparison_report report;
    char base[64], now[64];
    const int a = fuzz_file(data, first, base);
    const int b =
        middle ? fuzz_file(middle + 1, size - first - 1, now) : fuzz_file(data, first, now);
    const int code = compare_files(base, now, &how, &report);
    close(a);
    close(b);
    FUZZ_REQUIRE(code == EXIT_DONE || code == EXIT_USAGE, "exit code %d", code);
    for (size_t i = 0; code == EXIT_DONE && i < report.count; i++) {
        check_row(&report.rows[i]);
    }
    if (code == EXIT_DONE) {
        static const char *const forms[] = {"", "json", "markdown", "junit", "gab"};
        for (size_t form = 0; form < sizeof(forms) / sizeof(forms[0]); form++) {
            struct options options = {.out = "/dev/null"};
            options.json = strcmp(forms[form], "json") == 0;
            options.markdown = strcmp(forms[form], "markdown") == 0;
            options.junit = strcmp(forms[form], "junit") == 0;
            options.gab = strcmp(forms[form], "gab") == 0;
            FUZZ_REQUIRE(report_print(&report, &options) == EXIT_DONE, "no report as %s",
                         forms[form]);
        }
    }
    comparison_free(&report);
    return 0;
}
