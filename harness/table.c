/// The terminal table: one block per problem and thread count, what went wrong first, then the
/// fastest. Plain ASCII, so that it reads the same in every terminal, log and mail.
#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "diag.h"
#include "op.h"
#include "results.h"

enum column {
    COLUMN_KERNEL,
    COLUMN_VERDICT,
    COLUMN_MEDIAN,
    COLUMN_SPREAD,
    COLUMN_RATE,
    COLUMN_SHARE,
    COLUMN_SCALAR,
    COLUMN_AUTOVEC,
    COLUMN_PEER,
    COLUMNS,
};

static const char *const titles[COLUMNS] = {"kernel", "verdict", "median",   "+-",   "rate",
                                            "roof",   "xscalar", "xautovec", "xpeer"};

/// What goes first where the terminal is narrow: the columns that say least without the others.
static const enum column sacrifices[] = {COLUMN_SPREAD,  COLUMN_SCALAR, COLUMN_PEER,
                                         COLUMN_AUTOVEC, COLUMN_SHARE,  COLUMN_RATE};
/// Where lines of steps are broken that no terminal limits.
enum { STEPS_COLUMNS = 100 };
enum { SACRIFICES = sizeof(sacrifices) / sizeof(sacrifices[0]), CELL_BYTES = 128, GAP = 2 };

struct line {
    const struct row *row;
    size_t footnote;  ///< 0: none.
    char cells[COLUMNS][CELL_BYTES];
};

/// Something to be said below the table.
struct footnote {
    const struct row *row;  ///< The first that it is about.
};

struct table {
    FILE *out;
    bool color;
    bool shown[COLUMNS];
    bool short_names;  ///< Without "<op>_<dtype>_", which the block's heading says.
    int widths[COLUMNS];
    struct line *lines;  ///< One per row, in the order in which they are shown.
    size_t count;
    struct footnote *footnotes;
    size_t footnote_count;
};

/// Copies text that may come from a file: control characters could rewrite the terminal.
static void copy_printable(char *to, size_t bytes, const char *from) {
    size_t i = 0;
    for (; from[i] != '\0' && i + 1 < bytes; i++) {
        to[i] = iscntrl((unsigned char)from[i]) ? '?' : from[i];
    }
    to[i] = '\0';
}

static void print_printable(FILE *out, const char *text) {
    for (; *text != '\0'; text++) {
        (void)fputc(iscntrl((unsigned char)*text) ? '?' : *text, out);
    }
}

/// Writes four significant digits, as many as the spread ever warrants.
static void format_digits(char *text, size_t bytes, double value, const char *unit) {
    const int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
    (void)snprintf(text, bytes, "%.*f%s", decimals, value, unit);
}

static void format_time(char *text, size_t bytes, double ns) {
    static const char *const units[] = {" ns", " us", " ms", " s "};
    size_t unit = 0;
    while (unit < 3 && ns >= 999.95) {
        ns /= 1000.0;
        unit++;
    }
    format_digits(text, bytes, ns, units[unit]);
}

static void format_share(char *text, size_t bytes, double share, const char *suffix) {
    (void)snprintf(text, bytes, "%.1f%%%s", 100.0 * share, suffix);
}

static void format_speedup(char *text, size_t bytes, double speedup) {
    if (isfinite(speedup)) {
        const int decimals = speedup < 99.995 ? 2 : speedup < 999.95 ? 1 : 0;
        (void)snprintf(text, bytes, "%.*f", decimals, speedup);
    }
}

static bool same_block(const struct row *a, const struct row *b) {
    return a->threads == b->threads && problem_equal(&a->problem, &b->problem);
}

/// Orders the rows of a block: failures, then times from the fastest, then what has no time.
static int compare_lines(const void *a, const void *b) {
    const struct row *x = ((const struct line *)a)->row;
    const struct row *y = ((const struct line *)b)->row;
    const int x_failed = verdict_exit(x->verdict) != EXIT_DONE;
    const int y_failed = verdict_exit(y->verdict) != EXIT_DONE;
    if (x_failed != y_failed) {
        return y_failed - x_failed;
    }
    const double x_ns = row_has_time(x) ? x->median_ns : DBL_MAX;
    const double y_ns = row_has_time(y) ? y->median_ns : DBL_MAX;
    if (x_ns < y_ns || x_ns > y_ns) {
        return x_ns < y_ns ? -1 : 1;
    }
    return strcmp(x->kernel, y->kernel);
}

/// Puts the rows in order: blocks as they first appear, and within a block by compare_lines().
static void collect(struct table *table, const struct result *result) {
    bool *taken = diag_alloc(calloc(result->count + 1, sizeof(*taken)));
    for (size_t i = 0; i < result->count; i++) {
        const size_t begin = table->count;
        for (size_t j = i; j < result->count && !taken[i]; j++) {
            if (!taken[j] && j != i && same_block(&result->rows[i], &result->rows[j])) {
                taken[j] = true;
                table->lines[table->count++].row = &result->rows[j];
            }
        }
        if (!taken[i]) {
            taken[i] = true;
            table->lines[table->count++].row = &result->rows[i];
        }
        qsort(table->lines + begin, table->count - begin, sizeof(*table->lines), compare_lines);
    }
    free(taken);
}

/// Numbers what is to be said of a row below the table: a failure has its own note, since its repro
/// line is; others that say the same share one.
static size_t note(struct table *table, const struct row *row) {
    const bool failed = verdict_exit(row->verdict) != EXIT_DONE;
    if (row->reason == NULL && !failed) {
        return 0;
    }
    for (size_t i = 0; i < table->footnote_count && !failed; i++) {
        const struct row *other = table->footnotes[i].row;
        if (other->verdict == row->verdict && strcmp(other->reason, row->reason) == 0) {
            return i + 1;
        }
    }
    table->footnotes[table->footnote_count++].row = row;
    return table->footnote_count;
}

static void fill_numbers(struct line *line) {
    const struct row *row = line->row;
    const struct op_driver *driver = op_find(row->problem.op);
    const double spread = isfinite(row->spread_between) ? row->spread_between : row->spread_within;
    format_time(line->cells[COLUMN_MEDIAN], CELL_BYTES, row->median_ns);
    if (isfinite(spread)) {
        format_share(line->cells[COLUMN_SPREAD], CELL_BYTES, spread, row->disturbed > 0 ? "~" : "");
    } else if (row->disturbed > 0) {
        (void)snprintf(line->cells[COLUMN_SPREAD], CELL_BYTES, "~");
    }
    const bool compute = driver != NULL ? driver->compute : isfinite(row->gflops);
    const double rate = compute ? row->gflops : row->gbytes_per_s;
    if (isfinite(rate)) {
        format_digits(line->cells[COLUMN_RATE], CELL_BYTES, rate,
                      compute ? " GFLOP/s" : " GB/s   ");
    }
    if (isfinite(row->ceiling_share) && row->ceiling_kind != NULL) {
        format_share(line->cells[COLUMN_SHARE], CELL_BYTES, row->ceiling_share,
                     strcmp(row->ceiling_kind, "fma") == 0 ? " fma" : " mem");
    }
    format_speedup(line->cells[COLUMN_SCALAR], CELL_BYTES, row->speedup_scalar);
    format_speedup(line->cells[COLUMN_AUTOVEC], CELL_BYTES, row->speedup_autovec);
    format_speedup(line->cells[COLUMN_PEER], CELL_BYTES, row->speedup_best_peer);
}

static void fill_kernel(const struct table *table, struct line *line) {
    const struct row *row = line->row;
    char *cell = line->cells[COLUMN_KERNEL];
    copy_printable(cell, CELL_BYTES, row->kernel);
    if (table->short_names) {
        char name[CELL_BYTES];
        (void)snprintf(name, sizeof(name), "%.50s_%.70s", row->isa, row->tag);
        copy_printable(cell, CELL_BYTES, name);
    }
}

static void fill(const struct table *table, struct line *line) {
    const struct row *row = line->row;
    for (enum column column = 0; column < COLUMNS; column++) {
        (void)snprintf(line->cells[column], CELL_BYTES, "-");
    }
    fill_kernel(table, line);
    if (line->footnote != 0) {
        (void)snprintf(line->cells[COLUMN_VERDICT], CELL_BYTES, "%s [%zu]",
                       verdict_text(row->verdict), line->footnote);
    } else {
        (void)snprintf(line->cells[COLUMN_VERDICT], CELL_BYTES, "%s", verdict_text(row->verdict));
    }
    // ACCOUNTING has a number that nobody should quote; it stands in the result file.
    if (row_has_time(row)) {
        fill_numbers(line);
    }
}

static int total_width(struct table *table) {
    int total = 0;
    for (enum column column = 0; column < COLUMNS; column++) {
        table->widths[column] = (int)strlen(titles[column]);
        for (size_t i = 0; i < table->count; i++) {
            const int width = (int)strlen(table->lines[i].cells[column]);
            table->widths[column] = width > table->widths[column] ? width : table->widths[column];
        }
        total += table->shown[column] ? GAP + table->widths[column] : 0;
    }
    return total;
}

/// Makes the table fit `columns` characters: first by shorter names, then by fewer columns, at last
/// by cutting names off.
static void fit(struct table *table, int columns) {
    if (columns <= 0 || total_width(table) <= columns) {
        return;
    }
    table->short_names = true;
    for (size_t i = 0; i < table->count; i++) {
        fill_kernel(table, &table->lines[i]);
    }
    for (size_t i = 0; i < SACRIFICES && total_width(table) > columns; i++) {
        table->shown[sacrifices[i]] = false;
    }
    const int excess = total_width(table) - columns;
    const int least = 8;  // Below this a name says nothing; the terminal then wraps the line.
    if (excess > 0 && table->widths[COLUMN_KERNEL] > least) {
        int width = table->widths[COLUMN_KERNEL] - excess;
        width = width < least ? least : width;
        for (size_t i = 0; i < table->count; i++) {
            char *cell = table->lines[i].cells[COLUMN_KERNEL];
            if (strlen(cell) > (size_t)width) {
                memcpy(cell + width - 2, "..", 3);
            }
        }
        table->widths[COLUMN_KERNEL] = width;
    }
}

/// SGR codes of ECMA-48.
static const char *verdict_color(enum verdict verdict) {
    if (verdict == VERDICT_PASSED) {
        return "\033[32m";
    }
    return verdict_exit(verdict) != EXIT_DONE ? "\033[1;31m" : "\033[2m";
}

static void print_line(const struct table *table, const struct line *line) {
    for (enum column column = 0; column < COLUMNS; column++) {
        if (!table->shown[column]) {
            continue;
        }
        const char *cell = line->cells[column];
        const bool left = column == COLUMN_KERNEL || column == COLUMN_VERDICT;
        const int width = table->widths[column];
        const char *color = "";
        if (table->color && column == COLUMN_VERDICT) {
            color = verdict_color(line->row->verdict);
        } else if (table->color && !left && strcmp(cell, "-") == 0) {
            color = "\033[2m";
        }
        (void)fprintf(table->out, "%*s%s%*s%s", GAP, "", color, left ? -width : width, cell,
                      color[0] != '\0' ? "\033[0m" : "");
    }
    (void)fputc('\n', table->out);
}

static void print_titles(const struct table *table) {
    for (enum column column = 0; column < COLUMNS; column++) {
        if (table->shown[column]) {
            const bool left = column == COLUMN_KERNEL || column == COLUMN_VERDICT;
            const int width = table->widths[column];
            (void)fprintf(table->out, "%*s%*s", GAP, "", left ? -width : width, titles[column]);
        }
    }
    (void)fputc('\n', table->out);
}

static void print_heading(const struct table *table, const struct row *row) {
    const struct problem *problem = &row->problem;
    const struct mha_shape *shape = &problem->shape;
    char mask[32];
    problem_mask_text(mask, problem);
    (void)fprintf(table->out, "%s%s %s, batch %zu, heads %zu", table->color ? "\033[1m" : "",
                  problem->op, problem->dtype, shape->batch, shape->heads);
    if (shape->kv_heads != shape->heads) {
        (void)fprintf(table->out, ", kv_heads %zu", shape->kv_heads);
    }
    (void)fprintf(table->out, ", head_dim %zu, seq_q %zu, seq_kv %zu", shape->head_dim,
                  shape->seq_q, shape->seq_kv);
    if (problem->mask != MHA_MASK_NONE) {
        (void)fprintf(table->out, ", mask %s", mask);
    }
    if (problem->position.kind != POSITION_NONE) {
        char position[32];
        problem_position_text(position, problem);
        (void)fprintf(table->out, ", position %s", position);
    }
    if (problem->cache != CACHE_HOT) {
        (void)fprintf(table->out, ", %s cache", problem_cache_text(problem->cache));
    }
    if (problem->data != NULL) {
        (void)fprintf(table->out, ", data %s", problem->data);
    }
    (void)fprintf(table->out, ", threads %d%s\n", row->threads, table->color ? "\033[0m" : "");
}

/// Prints the share of each step under the row of a pipeline, in lines of at most `columns`.
static void print_steps(const struct table *table, const struct row *row, int columns) {
    if (row->steps == 0) {
        return;
    }
    int column = 0;
    (void)fputs(table->color ? "\033[2m" : "", table->out);
    for (size_t i = 0; i < row->steps; i++) {
        char text[CELL_BYTES], op[64];
        copy_printable(op, sizeof(op), row->step[i].op);
        (void)snprintf(text, sizeof(text), "%s %.1f%%", op, 100.0 * row->step[i].share);
        const int width = GAP + (int)strlen(text);
        const bool broken = i > 0 && column + width > columns;
        if (i == 0 || broken) {
            (void)fprintf(table->out, "%s%*s", broken ? "\n" : "", GAP, "");
            column = GAP;
        }
        (void)fprintf(table->out, "%*s%s", GAP, "", text);
        column += width;
    }
    (void)fprintf(table->out, "%s\n", table->color ? "\033[0m" : "");
}

/// Explains the columns that are shown.
static void print_legend(const struct table *table) {
    static const char *const meanings[COLUMNS] = {
        [COLUMN_MEDIAN] = "median: time per call",
        [COLUMN_SPREAD] = "+-: MAD/median between launches (within, if there was one); ~ disturbed",
        [COLUMN_SHARE] = "roof: share of the measured ceiling (fma, mem)",
        [COLUMN_SCALAR] = "xscalar, xautovec, xpeer: times as fast; the last two of the same ISA",
    };
    (void)fputc('\n', table->out);
    for (enum column column = 0; column < COLUMNS; column++) {
        if (table->shown[column] && meanings[column] != NULL) {
            (void)fprintf(table->out, "%s%s%s\n", table->color ? "\033[2m" : "", meanings[column],
                          table->color ? "\033[0m" : "");
        }
    }
}

static void print_footnotes(const struct table *table) {
    for (size_t i = 0; i < table->footnote_count; i++) {
        const struct row *row = table->footnotes[i].row;
        const bool failed = verdict_exit(row->verdict) != EXIT_DONE;
        (void)fprintf(table->out, "%s[%zu] %s: ", i == 0 ? "\n" : "", i + 1,
                      verdict_text(row->verdict));
        if (failed) {
            print_printable(table->out, row->kernel);
            (void)fputs(": ", table->out);
        }
        print_printable(table->out, row->reason != NULL ? row->reason : "no reason was given");
        (void)fputc('\n', table->out);
        // On a line of its own and never wrapped, to be copied.
        if (failed && row->repro != NULL) {
            (void)fputs("    ", table->out);
            print_printable(table->out, row->repro);
            (void)fputc('\n', table->out);
        }
    }
}

static void print_counts(const struct table *table) {
    // The worst last, next to the prompt.
    static const enum verdict order[] = {VERDICT_PASSED,   VERDICT_SKIPPED,    VERDICT_UNSUPPORTED,
                                         VERDICT_UNTESTED, VERDICT_ACCOUNTING, VERDICT_TIMEOUT,
                                         VERDICT_CRASHED,  VERDICT_MISTRUSTED, VERDICT_FAILED};
    (void)fprintf(table->out, "\n%zu %s:", table->count, table->count == 1 ? "case" : "cases");
    const char *separator = " ";
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        size_t count = 0;
        for (size_t j = 0; j < table->count; j++) {
            count += table->lines[j].row->verdict == order[i];
        }
        if (count > 0) {
            (void)fprintf(table->out, "%s%s%zu %s%s", separator,
                          table->color ? verdict_color(order[i]) : "", count,
                          verdict_text(order[i]), table->color ? "\033[0m" : "");
            separator = ", ";
        }
    }
    (void)fputc('\n', table->out);
}

void results_table(const struct result *result, FILE *out, bool color) {
    if (result->count == 0) {
        (void)fputs("no cases\n", out);
        return;
    }
    struct table table = {.out = out, .color = color};
    table.lines = diag_alloc(calloc(result->count, sizeof(*table.lines)));
    table.footnotes = diag_alloc(calloc(result->count, sizeof(*table.footnotes)));
    collect(&table, result);
    for (size_t i = 0; i < table.count; i++) {
        table.lines[i].footnote = note(&table, table.lines[i].row);
        fill(&table, &table.lines[i]);
    }
    for (enum column column = 0; column < COLUMNS; column++) {
        table.shown[column] = true;
    }
    struct winsize size;
    const int descriptor = fileno(out);
    const bool terminal =
        descriptor >= 0 && isatty(descriptor) == 1 && ioctl(descriptor, TIOCGWINSZ, &size) == 0;
    (void)total_width(&table);
    fit(&table, terminal ? (int)size.ws_col : 0);
    print_titles(&table);
    for (size_t i = 0; i < table.count; i++) {
        if (i == 0 || !same_block(table.lines[i - 1].row, table.lines[i].row)) {
            print_heading(&table, table.lines[i].row);
        }
        print_line(&table, &table.lines[i]);
        if (row_has_time(table.lines[i].row)) {
            print_steps(&table, table.lines[i].row, terminal ? (int)size.ws_col : STEPS_COLUMNS);
        }
    }
    print_legend(&table);
    print_footnotes(&table);
    print_counts(&table);
    free(table.lines);
    free(table.footnotes);
}
