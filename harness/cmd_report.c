/// `mhabench report`: a result or a saved comparison in another form.
#include "commands.h"
#include "diag.h"
#include "report.h"

static int print_comparison(const char *path, const json_t *root, const struct options *options) {
    struct comparison_report report;
    char why[256];
    if (!report_from_json(root, &report, why, sizeof(why))) {
        diag_error("%s: %s", path, why);
        return EXIT_USAGE;
    }
    const int code = report_print(&report, options);
    comparison_free(&report);
    return code;
}

int cmd_report(const struct options *options) {
    const char *path = options->operands.items[0];
    json_t *root = results_load(path);
    if (root == NULL) {
        return EXIT_USAGE;
    }
    int code = EXIT_DONE;
    if (report_is_json(root)) {
        code = print_comparison(path, root, options);
    } else {
        struct result result;
        code = results_from_json(path, root, &result);
        if (code == EXIT_DONE) {
            code = report_print_result(&result, options);
            results_free(&result);
        }
    }
    json_decref(root);
    return code;
}
