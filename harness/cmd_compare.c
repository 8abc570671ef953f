/// `mhabench compare`: two result files, and what became slower.
#include "commands.h"
#include "compare.h"
#include "diag.h"
#include "report.h"

int cmd_compare(const struct options *options) {
    const struct compare_settings how = {
        .floor = options->floor,
        .launch_floor = options->launch_floor,
        .relative = options->relative,
    };
    struct comparison_report report;
    int code = options->out != NULL ? results_check_writable(options->out) : EXIT_DONE;
    if (code != EXIT_DONE) {
        return code;
    }
    code = compare_files(options->operands.items[0], options->operands.items[1], &how, &report);
    if (code == EXIT_DONE) {
        code = report_print(&report, options);
        code = diag_worst(code, comparison_exit(&report, options->gate));
    }
    comparison_free(&report);
    return code;
}
