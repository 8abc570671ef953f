/// A report in the form and to the place that the options name.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "diag.h"
#include "report.h"

int report_write_text(char *text, const struct options *options) {
    const size_t bytes = strlen(text);
    int code = EXIT_DONE;
    if (options->out != NULL) {
        code = results_write_text(text, bytes, options->out);
    } else if (fwrite(text, 1, bytes, stdout) != bytes || fflush(stdout) != 0) {
        diag_error("cannot write to stdout: %s", strerror(errno));
        code = EXIT_USAGE;
    }
    free(text);
    return code;
}

int report_write_json(json_t *json, const struct options *options) {
    size_t bytes = 0;
    char *text = results_text(json, &bytes);
    json_decref(json);
    return report_write_text(text, options);
}

/// Ends a table that was printed to `text` or, as there is none, to stdout.
static int end_table(FILE *out, char **text, const struct options *options) {
    if (options->out == NULL) {
        if (fflush(stdout) != 0 || ferror(stdout) != 0) {
            diag_error("cannot write to stdout: %s", strerror(errno));
            return EXIT_USAGE;
        }
        return EXIT_DONE;
    }
    if (fclose(out) != 0) {
        diag_alloc(NULL);
    }
    return report_write_text(*text, options);
}

int report_print(const struct comparison_report *report, const struct options *options) {
    if (options->json) {
        return report_write_json(report_json(report), options);
    }
    if (options->gab) {
        return report_write_json(report_gab(report), options);
    }
    if (options->markdown) {
        return report_write_text(report_markdown(report, options->max_chars), options);
    }
    if (options->junit) {
        return report_write_text(report_junit(report, options->gate), options);
    }
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = options->out == NULL ? stdout : diag_alloc(open_memstream(&text, &bytes));
    const bool color = options->out == NULL ? commands_color(options, STDOUT_FILENO)
                                            : options->color == COLOR_ALWAYS;
    report_table(report, out, color);
    return end_table(out, &text, options);
}

int report_print_result(const struct result *result, const struct options *options) {
    if (options->json) {
        return report_write_json(results_to_json(result), options);
    }
    if (options->gab) {
        return report_write_json(report_result_gab(result), options);
    }
    if (options->markdown) {
        return report_write_text(report_result_markdown(result, options->max_chars), options);
    }
    if (options->junit) {
        return report_write_text(report_result_junit(result), options);
    }
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = options->out == NULL ? stdout : diag_alloc(open_memstream(&text, &bytes));
    const bool color = options->out == NULL ? commands_color(options, STDOUT_FILENO)
                                            : options->color == COLOR_ALWAYS;
    results_table(result, out, color);
    return end_table(out, &text, options);
}
