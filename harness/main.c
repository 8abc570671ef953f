/// The program: picks the command, gathers the machine's facts before any thread exists, and hands
/// over.
#include <stdio.h>
#include <string.h>

#include "cmd_plot.h"
#include "commands.h"
#include "diag.h"
#include "machine.h"
#include "options.h"
#include "run_context.h"
#include "worker.h"

static int dispatch(enum command command, int argc, char **argv) {
    struct machine machine;
    struct options options;
    bool help = false;
    machine_gather(&machine);
    int code = options_parse(&options, command, argc, argv, &help);
    if (code != EXIT_DONE || help) {
        options_free(&options);
        return code;
    }
    switch (command) {
        case COMMAND_LIST:
            code = cmd_list(&options, &machine);
            break;
        case COMMAND_CHECK:
            code = cmd_check(&options, &machine);
            break;
        case COMMAND_RUN:
            code = cmd_run(&options, &machine);
            break;
        case COMMAND_MACHINE:
            code = cmd_machine(&options, &machine);
            break;
        case COMMAND_PLOT:
            code = cmd_plot(&options);
            break;
        case COMMAND_AB:
            code = cmd_ab(&options, &machine);
            break;
        case COMMAND_COMPARE:
            code = cmd_compare(&options);
            break;
        case COMMAND_REPORT:
            code = cmd_report(&options);
            break;
        case COMMAND_HISTORY:
            code = cmd_history(&options);
            break;
        case COMMAND_ATTEND:
            code = cmd_attend(&options, &machine);
            break;
        case COMMAND_STUDY:
            code = cmd_study(&options, &machine);
            break;
    }
    options_free(&options);
    return code;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], WORKER_ARGUMENT) == 0) {
        return worker_main();
    }
    run_context_command(argc, argv);
    if (argc < 2) {
        diag_error("a command is missing; mhabench --help lists them");
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        options_usage();
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("mhabench %s\n", MHA_VERSION);
        return EXIT_DONE;
    }
    enum command command;
    const int code = options_command(argv[1], &command);
    return code == EXIT_DONE ? dispatch(command, argc - 2, argv + 2) : code;
}
