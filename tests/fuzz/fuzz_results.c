/// The reader of result files: any bytes must be taken or refused. What is taken is derived from,
/// printed as a table and written, and what was written must read back as the same.
#include <unistd.h>

#include "diag.h"
#include "fuzz.h"
#include "results.h"

/// Checks that a row reads back from its own JSON as what it was.
static void check_row(const struct row *row) {
    json_t *object = row_to_json(row);
    struct row back;
    char why[256] = "";
    FUZZ_REQUIRE(row_from_json(object, &back, why, sizeof(why)), "%s", why);
    json_t *again = row_to_json(&back);
    FUZZ_REQUIRE(json_equal(object, again), "a row changes when it is written and read");
    json_decref(again);
    json_decref(object);
    row_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    struct result result;
    const int in = fuzz_file(data, size, path);
    const int code = results_read(path, &result);
    close(in);
    FUZZ_REQUIRE(code == EXIT_DONE || code == EXIT_USAGE, "exit code %d", code);
    if (code != EXIT_DONE) {
        FUZZ_REQUIRE(result.count == 0 && result.rows == NULL, "rows of a file that was refused");
        return 0;
    }
    for (size_t i = 0; i < result.count; i++) {
        check_row(&result.rows[i]);
    }
    results_derive(&result);
    for (size_t i = 0; i < result.count; i++) {
        check_row(&result.rows[i]);
        FUZZ_REQUIRE(!row_has_time(&result.rows[i]) || result.rows[i].verdict == VERDICT_PASSED,
                     "a time without PASSED");
    }
    struct ceiling_list ceilings;
    ceilings_from_json(result.context, &ceilings);
    json_decref(ceilings_to_json(&ceilings));
    ceilings_free(&ceilings);
    FILE *sink = diag_alloc(fopen("/dev/null", "w"));
    results_table(&result, sink, true);
    fclose(sink);

    const int out = fuzz_file(NULL, 0, path);
    json_t *json = results_to_json(&result);
    FUZZ_REQUIRE(results_write(json, path) == EXIT_DONE, "a result cannot be written");
    json_decref(json);
    struct result back;
    FUZZ_REQUIRE(results_read(path, &back) == EXIT_DONE, "what was written cannot be read");
    FUZZ_REQUIRE(back.count == result.count, "%zu rows in place of %zu", back.count, result.count);
    for (size_t i = 0; i < result.count; i++) {
        json_t *before = row_to_json(&result.rows[i]), *after = row_to_json(&back.rows[i]);
        FUZZ_REQUIRE(json_equal(before, after), "row %zu changes in the file", i);
        json_decref(before);
        json_decref(after);
    }
    results_free(&back);
    close(out);
    results_free(&result);
    return 0;
}
