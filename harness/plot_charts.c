#include "plot_charts.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "op.h"

// --- what all charts share
// --------------------------------------------------------------------------

/// Colours of Okabe and Ito (Color Universal Design, 2008), which people with any of the common
/// deficiencies tell apart; autovec has a lighter tint of its ISA's.
struct look {
    const char *isa;
    const char *hand;
    const char *autovec;
    const char *peer;
};
static const struct look looks[] = {
    {"scalar", "#7f7f7f", "#7f7f7f", "#d55e00"}, {"avx2", "#0072b2", "#56b4e9", "#d55e00"},
    {"avx512", "#009e73", "#80ceb9", "#e69f00"}, {"neon", "#cc79a7", "#e5bcd3", "#d55e00"},
    {"", "#000000", "#606060", "#d55e00"},
};

static bool is_autovec(const struct row *row) {
    return strncmp(row->tag, "autovec", strlen("autovec")) == 0;
}

static const char *color_of(const struct row *row) {
    const struct look *look = looks;
    while (look->isa[0] != '\0' && strcmp(look->isa, row->isa) != 0) {
        look++;
    }
    return row->peer ? look->peer : is_autovec(row) ? look->autovec : look->hand;
}

/// The rate that the op is judged by, and its unit; NAN when there is none.
static double rate_of(const struct row *row, const char **unit) {
    const struct op_driver *driver = op_find(row->problem.op);
    const bool compute = driver != NULL ? driver->compute : isfinite(row->gflops);
    *unit = compute ? "GFLOP/s" : "GB/s";
    return compute ? row->gflops : row->gbytes_per_s;
}

/// A row and the name of the image that it belongs to, which is what rows are grouped by.
struct member {
    char image[CASE_NAME_BYTES];
    const struct row *row;
};

static int compare_members(const void *a, const void *b) {
    return strcmp(((const struct member *)a)->image, ((const struct member *)b)->image);
}

/// Appends what tells a problem from others of its op, in the order of case names.
static void append_problem(char *name, size_t bytes, const struct row *row, bool heads) {
    const struct mha_shape *shape = &row->problem.shape;
    char mask[32], position[32], tail[200], middle[96] = "";
    problem_mask_text(mask, &row->problem);
    problem_position_text(position, &row->problem);
    const bool placed = row->problem.position.kind != POSITION_NONE;
    if (heads) {
        (void)snprintf(middle, sizeof(middle), "-h%zu", shape->heads);
        if (shape->kv_heads != shape->heads) {
            (void)snprintf(middle, sizeof(middle), "-h%zu-kv%zu", shape->heads, shape->kv_heads);
        }
        const size_t length = strlen(middle);
        (void)snprintf(middle + length, sizeof(middle) - length, "-d%zu", shape->head_dim);
    } else if (shape->kv_heads != shape->heads) {
        (void)snprintf(middle, sizeof(middle), "-group%zu", shape->heads / shape->kv_heads);
    }
    const char *data = row->problem.data;
    (void)snprintf(tail, sizeof(tail), "-b%zu%s-q%zu-k%zu%s%s%s%s%s%s%s-t%d", shape->batch, middle,
                   shape->seq_q, shape->seq_kv, row->problem.mask != MHA_MASK_NONE ? "-" : "",
                   row->problem.mask != MHA_MASK_NONE ? mask : "", placed ? "-" : "",
                   placed ? position : "", row->problem.cache != CACHE_HOT ? "-cold" : "",
                   data != NULL ? "-" : "", data != NULL ? data : "", row->threads);
    for (char *c = tail; *c != '\0'; c++) {
        if (*c == ':') {
            *c = '_';
        }
    }
    const size_t length = strlen(name);
    (void)snprintf(name + length, bytes - length, "%s", tail);
}

/// Writes the problem for a title: "batch 1, seq_q 512, seq_kv 512, causal, 2 threads".
static void describe_problem(char *text, size_t bytes, const struct row *row, bool heads) {
    const struct mha_shape *shape = &row->problem.shape;
    char mask[32], position[32], middle[96] = "";
    problem_mask_text(mask, &row->problem);
    problem_position_text(position, &row->problem);
    const bool placed = row->problem.position.kind != POSITION_NONE;
    if (heads) {
        (void)snprintf(middle, sizeof(middle), ", heads %zu", shape->heads);
        size_t length = strlen(middle);
        if (shape->kv_heads != shape->heads) {
            (void)snprintf(middle + length, sizeof(middle) - length, ", kv_heads %zu",
                           shape->kv_heads);
        }
        length = strlen(middle);
        // Ops without that axis have it at 1.
        if (shape->head_dim != 1) {
            (void)snprintf(middle + length, sizeof(middle) - length, ", head_dim %zu",
                           shape->head_dim);
        }
    } else if (shape->kv_heads != shape->heads) {
        (void)snprintf(middle, sizeof(middle), ", %zu heads per kv_head",
                       shape->heads / shape->kv_heads);
    }
    const char *data = row->problem.data;
    (void)snprintf(
        text, bytes, "batch %zu%s, seq_q %zu, seq_kv %zu%s%s%s%s%s%s%s, %d thread%s", shape->batch,
        middle, shape->seq_q, shape->seq_kv, row->problem.mask != MHA_MASK_NONE ? ", " : "",
        row->problem.mask != MHA_MASK_NONE ? mask : "", placed ? ", " : "", placed ? position : "",
        row->problem.cache != CACHE_HOT ? ", cold cache" : "", data != NULL ? ", data " : "",
        data != NULL ? data : "", row->threads, row->threads == 1 ? "" : "s");
}

/// Replaces what a file name should not hold.
static void make_file_name(char *name) {
    for (; *name != '\0'; name++) {
        if (!isalnum((unsigned char)*name) && strchr("._-", *name) == NULL) {
            *name = '_';
        }
    }
}

/// Opens the parameters and writes what every script takes.
static FILE *open_parameters(struct plot *plot, const char *title, const char *problem,
                             int height) {
    FILE *parameters = plot_open(plot, "parameters.gp");
    if (parameters == NULL) {
        return NULL;
    }
    plot_set_text(parameters, "work", plot->work);
    plot_set_text(parameters, "scripts", plot->scripts);
    plot_set_text(parameters, "chart_title", title);
    plot_set_text(parameters, "problem_text", problem);
    plot_set_text(parameters, "machine_text", plot->subtitle);
    (void)fprintf(parameters, "image_width = %d\nimage_height = %d\n", PLOT_WIDTH, height);
    return parameters;
}

/// Writes three significant digits without an exponent.
static void format_rate(char *text, size_t bytes, double rate) {
    const int decimals = rate < 9.995 ? 2 : rate < 99.95 ? 1 : 0;
    (void)snprintf(text, bytes, "%.*f", decimals, rate);
}

// --- roofline
// ---------------------------------------------------------------------------------------

/// Pixels of one character of the labels' font (DejaVu Sans at the size that style.gp sets), and of
/// a line of it. Only used to keep labels apart.
static const double character_width = 6.9;
static const double line_height = 14.0;

struct box {
    double left, top, right, bottom;
};

/// A chart with logarithmic axes, and the places in it that are taken.
struct area {
    double x_min, x_max, y_min, y_max;
    struct box pixels;
    struct box *taken;
    size_t taken_count, taken_room;
};

static double pixel_x(const struct area *area, double x) {
    return area->pixels.left + (area->pixels.right - area->pixels.left) * log(x / area->x_min) /
                                   log(area->x_max / area->x_min);
}

static double pixel_y(const struct area *area, double y) {
    return area->pixels.bottom - (area->pixels.bottom - area->pixels.top) * log(y / area->y_min) /
                                     log(area->y_max / area->y_min);
}

static double x_of_pixel(const struct area *area, double pixel) {
    const double share = (pixel - area->pixels.left) / (area->pixels.right - area->pixels.left);
    return area->x_min * pow(area->x_max / area->x_min, share);
}

static double y_of_pixel(const struct area *area, double pixel) {
    const double share = (area->pixels.bottom - pixel) / (area->pixels.bottom - area->pixels.top);
    return area->y_min * pow(area->y_max / area->y_min, share);
}

static bool is_free(const struct area *area, const struct box *box) {
    const struct box *frame = &area->pixels;
    if (box->left < frame->left || box->right > frame->right || box->top < frame->top ||
        box->bottom > frame->bottom) {
        return false;
    }
    for (size_t i = 0; i < area->taken_count; i++) {
        const struct box *other = &area->taken[i];
        if (box->left < other->right && other->left < box->right && box->top < other->bottom &&
            other->top < box->bottom) {
            return false;
        }
    }
    return true;
}

static void take(struct area *area, struct box box) {
    if (area->taken_count == area->taken_room) {
        area->taken_room = 2 * area->taken_room + 64;
        area->taken = diag_alloc(realloc(area->taken, area->taken_room * sizeof(*area->taken)));
    }
    area->taken[area->taken_count++] = box;
}

static void write_label(FILE *labels, const struct area *area, double x, double y, double degrees,
                        const char *text) {
    (void)fprintf(labels, "%.9g %.9g", x_of_pixel(area, x), y_of_pixel(area, y));
    plot_column_text(labels, text);
    (void)fprintf(labels, " %.3f\n", degrees);
}

/// A straight piece of a roof, in pixels, and how the text along it leans.
struct slope {
    double x, y, x_end;
    double radians;
    bool from_end;  ///< Places near the end are tried first.
};

/// Puts text along a slope, its middle `above` pixels over it. Taking places only is free when
/// every place is; `forced` takes them in any case.
static bool place_along(FILE *labels, struct area *area, const struct slope *slope, double start,
                        double above, bool forced, const char *text) {
    const double lean_x = sin(slope->radians);
    const double lean_y = cos(slope->radians);
    // Text that leans is covered by a square for each character, which reaches no further across
    // the line than the text does.
    const double half = 0.5 * line_height / (fabs(lean_x) + fabs(lean_y));
    const size_t pieces = strlen(text);
    const double x = start - above * lean_x;
    const double y = slope->y - (start - slope->x) * tan(slope->radians) - above * lean_y;
    for (int taking = forced ? 1 : 0; taking < 2; taking++) {
        for (size_t i = 0; i < pieces; i++) {
            const double along = character_width * ((double)i + 0.5);
            const double cx = x + along * lean_y;
            const double cy = y - along * lean_x;
            const struct box box = {cx - half, cy - half, cx + half, cy + half};
            if (taking == 1) {
                take(area, box);
            } else if (!is_free(area, &box)) {
                return false;
            }
        }
    }
    write_label(labels, area, x, y, slope->radians * 180.0 / M_PI, text);
    return true;
}

/// Labels a roof at the first free place over it, else under it. A roof without a name says
/// nothing, so where all is taken the name goes to the beginning anyway.
static void label_roof(FILE *labels, struct area *area, const struct slope *slope,
                       const char *text) {
    const double length = character_width * (double)strlen(text) * cos(slope->radians);
    const double sides[] = {9.0, -9.0};  // Pixels from the line to the middle of the text.
    const double step = 8.0;
    const double room = slope->x_end - slope->x - length;
    const size_t places = room > 0.0 ? (size_t)(room / step) + 1 : 0;
    for (size_t side = 0; side < sizeof(sides) / sizeof(sides[0]); side++) {
        for (size_t i = 0; i < places; i++) {
            const double offset = step * (double)i;
            const double start =
                slope->from_end ? slope->x_end - length - offset : slope->x + offset;
            if (place_along(labels, area, slope, start, sides[side], false, text)) {
                return;
            }
        }
    }
    (void)place_along(labels, area, slope, slope->x, sides[0], true, text);
}

/// Cases that share a symbol.
struct series {
    char title[64];
    const char *color;
    int symbol;
    size_t shown;
};

/// Points of one roofline.
struct roofline {
    struct plot *plot;
    int threads;
    const struct row **rows;
    size_t count;
    struct ceiling_list roofs;  ///< The best of each ISA and of each level, at these threads.
    struct area area;
};

static bool fits_roofline(const struct row *row, int threads) {
    const struct op_driver *driver = op_find(row->problem.op);
    return row->threads == threads && row_has_time(row) && isfinite(row->gflops) &&
           row->bytes > 0.0 && (driver == NULL || !driver->ceiling);
}

static double intensity(const struct row *row) {
    return row->flops / row->bytes;
}

static bool is_fma(const struct ceiling *ceiling) {
    return strcmp(ceiling->kind, "fma") == 0;
}

/// Keeps, of the ceilings at these threads, the highest for each ISA and each level: a roof is what
/// cannot be passed, whatever the access mix.
static void pick_roofs(struct roofline *line, const struct ceiling_list *all) {
    struct ceiling_list *roofs = &line->roofs;
    roofs->items = diag_alloc(calloc(all->count + 1, sizeof(*roofs->items)));
    for (size_t i = 0; i < all->count; i++) {
        const struct ceiling *ceiling = &all->items[i];
        if (ceiling->threads != line->threads) {
            continue;
        }
        size_t j = 0;
        while (j < roofs->count &&
               (is_fma(ceiling) != is_fma(&roofs->items[j]) ||
                (is_fma(ceiling) ? strcmp(ceiling->isa, roofs->items[j].isa) != 0
                                 : strcmp(ceiling->level, roofs->items[j].level) != 0))) {
            j++;
        }
        if (j == roofs->count) {
            roofs->items[roofs->count++] = *ceiling;
        } else if (ceiling->value > roofs->items[j].value) {
            roofs->items[j] = *ceiling;
        }
    }
}

/// Gets the highest and the lowest roof of a kind; 0 when there is none.
static double roof_extreme(const struct ceiling_list *roofs, bool fma, bool highest) {
    double found = 0.0;
    for (size_t i = 0; i < roofs->count; i++) {
        const double value = roofs->items[i].value;
        if (is_fma(&roofs->items[i]) == fma &&
            (!(found > 0.0) || (highest ? value > found : value < found))) {
            found = value;
        }
    }
    return found;
}

/// Sets the axes so that every point and every ridge (where a slope meets a flat roof) is seen.
static void set_axes(struct roofline *line) {
    struct area *area = &line->area;
    const double peak = roof_extreme(&line->roofs, true, true);
    area->x_min = peak / roof_extreme(&line->roofs, false, true);
    area->x_max = peak / roof_extreme(&line->roofs, false, false);
    area->y_min = roof_extreme(&line->roofs, true, false);
    area->y_max = peak;
    for (size_t i = 0; i < line->count; i++) {
        area->x_min = fmin(area->x_min, intensity(line->rows[i]));
        area->x_max = fmax(area->x_max, intensity(line->rows[i]));
        area->y_min = fmin(area->y_min, line->rows[i]->gflops);
        area->y_max = fmax(area->y_max, line->rows[i]->gflops);
    }
    // Room for labels at the edges.
    area->x_min /= 4.0;
    area->x_max *= 4.0;
    area->y_min /= 2.0;
    area->y_max *= 2.0;
}

/// Keeps labels off a line between two points of the chart.
static void take_line(struct area *area, double x0, double y0, double x1, double y1) {
    const double left = pixel_x(area, x0), right = pixel_x(area, x1);
    const double from = pixel_y(area, y0), to = pixel_y(area, y1);
    const double piece = 3.0;
    const size_t pieces = right > left ? (size_t)((right - left) / piece) + 1 : 0;
    for (size_t i = 0; i < pieces; i++) {
        const double x = left + piece * (double)i;
        const double y = from + (to - from) * (x - left) / (right - left);
        take(area, (struct box){x - piece / 2, y - piece / 2, x + piece / 2, y + piece / 2});
    }
}

static void write_roofs(struct roofline *line, FILE *data, FILE *labels) {
    struct area *area = &line->area;
    const double peak = roof_extreme(&line->roofs, true, true);
    const double steepest = roof_extreme(&line->roofs, false, true);
    // One decade up is one decade to the right, in pixels.
    const double rise = (pixel_y(area, area->y_min) - pixel_y(area, area->y_min * 10.0)) /
                        (pixel_x(area, area->x_min * 10.0) - pixel_x(area, area->x_min));
    for (size_t i = 0; i < line->roofs.count; i++) {
        const struct ceiling *roof = &line->roofs.items[i];
        if (is_fma(roof)) {
            take_line(area, roof->value / steepest, roof->value, area->x_max, roof->value);
        } else {
            const double begin = fmax(area->x_min, area->y_min / roof->value);
            take_line(area, begin, begin * roof->value, peak / roof->value, peak);
        }
    }
    for (size_t i = 0; i < line->roofs.count; i++) {
        const struct ceiling *roof = &line->roofs.items[i];
        char value[32], text[96];
        format_rate(value, sizeof(value), roof->value);
        if (is_fma(roof)) {
            const double begin = roof->value / steepest;
            (void)fprintf(data, "%.9g %.9g\n%.9g %.9g\n\n", begin, roof->value, area->x_max,
                          roof->value);
            (void)snprintf(text, sizeof(text), "%s FMA peak, %s GFLOP/s", roof->isa, value);
            const struct slope slope = {pixel_x(area, begin), pixel_y(area, roof->value),
                                        area->pixels.right - 10.0, 0.0, true};
            label_roof(labels, area, &slope, text);
        } else {
            const double begin = fmax(area->x_min, area->y_min / roof->value);
            const double end = peak / roof->value;
            (void)fprintf(data, "%.9g %.9g\n%.9g %.9g\n\n", begin, begin * roof->value, end, peak);
            (void)snprintf(text, sizeof(text), "%s %s, %s GB/s", roof->level, roof->mix, value);
            const double indent = 12.0;
            const struct slope slope = {pixel_x(area, begin) + indent,
                                        pixel_y(area, begin * roof->value) - indent * rise,
                                        pixel_x(area, end), atan(rise), false};
            label_roof(labels, area, &slope, text);
        }
    }
}

/// Writes what the cases at one intensity have in common: "qk d64 q512 k512", with the axes in
/// which they differ left out.
static void describe_column(char *text, size_t bytes, const struct row *const *rows, size_t count) {
    const struct mha_shape *shape = &rows[0]->problem.shape;
    bool batch = true, heads = true, head_dim = true, seq_q = true, seq_kv = true, mask = true;
    bool position = true, data = true;
    char places[32];
    problem_position_text(places, &rows[0]->problem);
    for (size_t i = 1; i < count; i++) {
        const struct problem *other = &rows[i]->problem;
        batch = batch && other->shape.batch == shape->batch;
        heads = heads && other->shape.heads == shape->heads;
        head_dim = head_dim && other->shape.head_dim == shape->head_dim;
        seq_q = seq_q && other->shape.seq_q == shape->seq_q;
        seq_kv = seq_kv && other->shape.seq_kv == shape->seq_kv;
        mask = mask && other->mask == rows[0]->problem.mask;
        char others[32];
        problem_position_text(others, other);
        position = position && strcmp(others, places) == 0;
        data = data && problem_compare_data(other, &rows[0]->problem) == 0;
    }
    char words[32];
    problem_mask_text(words, &rows[0]->problem);
    const struct {
        bool shown;
        char letter;
        size_t value;
    } axes[] = {{batch && shape->batch > 1, 'b', shape->batch},
                {heads && shape->heads > 1, 'h', shape->heads},
                {head_dim && shape->head_dim > 1, 'd', shape->head_dim},
                {seq_q, 'q', shape->seq_q},
                {seq_kv && shape->seq_kv != shape->seq_q, 'k', shape->seq_kv}};
    (void)snprintf(text, bytes, "%s", rows[0]->problem.op);
    for (size_t i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
        const size_t length = strlen(text);
        if (axes[i].shown) {
            (void)snprintf(text + length, bytes - length, " %c%zu", axes[i].letter, axes[i].value);
        }
    }
    if (mask && rows[0]->problem.mask != MHA_MASK_NONE) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, bytes - length, " %s", words);
    }
    if (position && rows[0]->problem.position.kind != POSITION_NONE) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, bytes - length, " %s", places);
    }
    if (data && rows[0]->problem.data != NULL) {
        const size_t length = strlen(text);
        (void)snprintf(text + length, bytes - length, " %s", rows[0]->problem.data);
    }
}

static int compare_columns(const void *a, const void *b) {
    const struct row *x = *(const struct row *const *)a;
    const struct row *y = *(const struct row *const *)b;
    const int op = strcmp(x->problem.op, y->problem.op);
    if (op != 0) {
        return op;
    }
    const double difference = intensity(x) - intensity(y);
    if (difference < 0.0 || difference > 0.0) {
        return difference < 0.0 ? -1 : 1;
    }
    return (x->gflops < y->gflops) - (x->gflops > y->gflops);
}

/// Puts a label beside a point, where there is room; false when there is none.
static bool label_point(FILE *labels, struct area *area, double x, double y, const char *text) {
    const double width = character_width * (double)strlen(text);
    const double gap = 9.0;
    const struct {
        double x, y;
    } places[] = {{gap, 0.0},
                  {-gap - width, 0.0},
                  {-width / 2, -line_height},
                  {gap, -line_height},
                  {-gap - width, -line_height},
                  {gap, line_height},
                  {-gap - width, line_height},
                  {-width / 2, -2 * line_height}};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const double left = x + places[i].x;
        const double middle = y + places[i].y;
        const struct box box = {left, middle - line_height / 2, left + width,
                                middle + line_height / 2};
        if (is_free(area, &box)) {
            take(area, box);
            write_label(labels, area, left, middle, 0.0, text);
            return true;
        }
    }
    return false;
}

/// Keeps labels off the points.
static void take_points(struct roofline *line) {
    struct area *area = &line->area;
    const double half = 4.0;
    for (size_t i = 0; i < line->count; i++) {
        const double x = pixel_x(area, intensity(line->rows[i]));
        const double y = pixel_y(area, line->rows[i]->gflops);
        take(area, (struct box){x - half, y - half, x + half, y + half});
    }
}

/// Labels each op and intensity: beside its fastest case, or where there is no room its slowest.
static void label_columns(struct roofline *line, FILE *labels) {
    struct area *area = &line->area;
    for (size_t begin = 0; begin < line->count;) {
        size_t end = begin + 1;
        // Equal but for rounding.
        while (end < line->count &&
               strcmp(line->rows[begin]->problem.op, line->rows[end]->problem.op) == 0 &&
               intensity(line->rows[end]) < intensity(line->rows[begin]) * 1.001) {
            end++;
        }
        const struct row *top = line->rows[begin];
        const struct row *bottom = line->rows[begin];
        for (size_t i = begin; i < end; i++) {
            top = line->rows[i]->gflops > top->gflops ? line->rows[i] : top;
            bottom = line->rows[i]->gflops < bottom->gflops ? line->rows[i] : bottom;
        }
        char text[128];
        describe_column(text, sizeof(text), line->rows + begin, end - begin);
        const double x = pixel_x(area, intensity(top));
        if (!label_point(labels, area, x, pixel_y(area, top->gflops), text)) {
            (void)label_point(labels, area, x, pixel_y(area, bottom->gflops), text);
        }
        begin = end;
    }
}

/// Makes the symbol of a row: the shape tells the op, the colour the ISA, open symbols are
/// autovec. The numbers are gnuplot's: 4 is an open square, 5 a filled one, and so on to 15.
static struct series series_of(const struct row *row) {
    const size_t shapes = 6;
    size_t place = 0;
    while (place < op_count() && strcmp(op_get(place)->name, row->problem.op) != 0) {
        place++;
    }
    const int shape = (int)(place % shapes);
    struct series series = {"", color_of(row), 4 + 2 * shape + (is_autovec(row) ? 0 : 1), 0};
    (void)snprintf(series.title, sizeof(series.title), "%.24s %.16s%s", row->problem.op, row->isa,
                   row->peer         ? " peers"
                   : is_autovec(row) ? " autovec"
                                     : "");
    return series;
}

/// Writes the points, one block per symbol, and the symbols' arrays. Returns how many there are.
static size_t write_series(struct roofline *line, FILE *data, struct series **all) {
    struct series *list = diag_alloc(calloc(line->count + 1, sizeof(*list)));
    size_t *member = diag_alloc(calloc(line->count + 1, sizeof(*member)));
    size_t count = 0;
    for (size_t i = 0; i < line->count; i++) {
        const struct series series = series_of(line->rows[i]);
        size_t j = 0;
        while (j < count && strcmp(list[j].title, series.title) != 0) {
            j++;
        }
        if (j == count) {
            list[count++] = series;
        }
        member[i] = j;
    }
    for (size_t j = 0; j < count; j++) {
        for (size_t i = 0; i < line->count; i++) {
            if (member[i] == j) {
                (void)fprintf(data, "%.9g %.9g\n", intensity(line->rows[i]), line->rows[i]->gflops);
            }
        }
        (void)fputs("\n\n", data);
    }
    free(member);
    *all = list;
    return count;
}

static void write_roofline_parameters(FILE *parameters, const struct area *area, double height,
                                      const struct series *series, size_t count) {
    (void)fprintf(parameters,
                  "x_min = %.9g\nx_max = %.9g\ny_min = %.9g\ny_max = %.9g\n"
                  "left = %.6f\nright = %.6f\ntop = %.6f\nbottom = %.6f\nseries = %zu\n"
                  "array series_title[%zu]\narray series_color[%zu]\narray series_symbol[%zu]\n",
                  area->x_min, area->x_max, area->y_min, area->y_max,
                  area->pixels.left / PLOT_WIDTH, area->pixels.right / PLOT_WIDTH,
                  1.0 - area->pixels.top / height, 1.0 - area->pixels.bottom / height, count, count,
                  count, count);
    for (size_t i = 0; i < count; i++) {
        char name[48];
        (void)snprintf(name, sizeof(name), "series_title[%zu]", i + 1);
        plot_set_text(parameters, name, series[i].title);
        (void)fprintf(parameters, "series_color[%zu] = '%s'\nseries_symbol[%zu] = %d\n", i + 1,
                      series[i].color, i + 1, series[i].symbol);
    }
}

static void draw_roofline(struct roofline *line) {
    struct plot *plot = line->plot;
    qsort(line->rows, line->count, sizeof(const struct row *), compare_columns);
    set_axes(line);
    FILE *points = plot_open(plot, "points.dat");
    if (points == NULL) {
        return;
    }
    struct series *series = NULL;
    const size_t count = write_series(line, points, &series);
    plot_close(plot, points);
    // Three entries of the legend stand beside each other.
    const size_t lines = (count + 2) / 3;
    const double legend = 20.0 * (double)lines;
    const double height = 560.0 + legend;
    line->area.pixels = (struct box){72.0, 62.0, PLOT_WIDTH - 20.0, height - 60.0 - legend};
    FILE *roofs = plot_open(plot, "roofs.dat");
    FILE *labels = roofs != NULL ? plot_open(plot, "labels.dat") : NULL;
    if (labels != NULL) {
        take_points(line);
        write_roofs(line, roofs, labels);
        label_columns(line, labels);
        plot_close(plot, labels);
    }
    if (roofs != NULL) {
        plot_close(plot, roofs);
    }
    char title[64], name[64];
    (void)snprintf(title, sizeof(title), "Roofline, %d thread%s", line->threads,
                   line->threads == 1 ? "" : "s");
    FILE *parameters = open_parameters(plot, title, "", (int)height);
    if (parameters != NULL) {
        write_roofline_parameters(parameters, &line->area, height, series, count);
        plot_close(plot, parameters);
        (void)snprintf(name, sizeof(name), "roofline-t%d", line->threads);
        plot_render(plot, "roofline.gp", name);
    }
    free(series);
    free(line->area.taken);
}

static void try_roofline(struct plot *plot, const struct ceiling_list *ceilings, int threads) {
    const struct result *result = plot->result;
    struct roofline line = {.plot = plot, .threads = threads};
    line.rows = diag_alloc(calloc(result->count + 1, sizeof(const struct row *)));
    for (size_t i = 0; i < result->count; i++) {
        if (fits_roofline(&result->rows[i], threads)) {
            line.rows[line.count++] = &result->rows[i];
        }
    }
    pick_roofs(&line, ceilings);
    const bool fma = roof_extreme(&line.roofs, true, true) > 0.0;
    const bool bandwidth = roof_extreme(&line.roofs, false, true) > 0.0;
    const char *what = threads == 1 ? "thread" : "threads";
    if (line.count == 0) {
        diag_note("no roofline at %d %s: no case with a time has both flops and bytes", threads,
                  what);
    } else if (!fma || !bandwidth) {
        diag_note("no roofline at %d %s: no ceiling of %s was measured", threads, what,
                  fma ? "bandwidth" : "arithmetic");
    } else {
        draw_roofline(&line);
    }
    ceilings_free(&line.roofs);
    free(line.rows);
}

static int compare_ints(const void *a, const void *b) {
    const int x = *(const int *)a;
    const int y = *(const int *)b;
    return (x > y) - (x < y);
}

void plot_rooflines(struct plot *plot) {
    const struct result *result = plot->result;
    struct ceiling_list ceilings;
    ceilings_from_json(result->context, &ceilings);
    int *threads = diag_alloc(calloc(result->count + 1, sizeof(*threads)));
    for (size_t i = 0; i < result->count; i++) {
        threads[i] = result->rows[i].threads;
    }
    qsort(threads, result->count, sizeof(*threads), compare_ints);
    for (size_t i = 0; i < result->count; i++) {
        if (i == 0 || threads[i] != threads[i - 1]) {
            try_roofline(plot, &ceilings, threads[i]);
        }
    }
    free(threads);
    ceilings_free(&ceilings);
}

// --- heat maps
// --------------------------------------------------------------------------------------

/// The values of one axis, in ascending order.
struct axis {
    size_t count;
    size_t *values;
};

static int compare_sizes(const void *a, const void *b) {
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

static struct axis make_axis(const struct member *members, size_t count, bool heads) {
    struct axis axis = {0, diag_alloc(calloc(count, sizeof(*axis.values)))};
    for (size_t i = 0; i < count; i++) {
        const struct mha_shape *shape = &members[i].row->problem.shape;
        axis.values[i] = heads ? shape->heads : shape->head_dim;
    }
    qsort(axis.values, count, sizeof(*axis.values), compare_sizes);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || axis.values[i] != axis.values[axis.count - 1]) {
            axis.values[axis.count++] = axis.values[i];
        }
    }
    return axis;
}

static size_t axis_place(const struct axis *axis, size_t value) {
    size_t i = 0;
    while (axis->values[i] != value) {
        i++;
    }
    return i;
}

static void write_tics(FILE *parameters, const char *name, const struct axis *axis) {
    (void)fprintf(parameters, "set %stics (", name);
    for (size_t i = 0; i < axis->count; i++) {
        (void)fprintf(parameters, "%s\"%zu\" %zu", i == 0 ? "" : ", ", axis->values[i], i);
    }
    (void)fprintf(parameters, ")\n%s_count = %zu\n", name, axis->count);
}

/// Gets the highest rate of an op at a thread count: the maps of its kernels share one scale, so
/// that they can be laid side by side.
static double highest_rate(const struct result *result, const struct row *row) {
    double highest = 0.0;
    for (size_t i = 0; i < result->count; i++) {
        const struct row *other = &result->rows[i];
        const char *unit = NULL;
        if (row_has_time(other) && other->threads == row->threads &&
            strcmp(other->problem.op, row->problem.op) == 0 && rate_of(other, &unit) > highest) {
            highest = rate_of(other, &unit);
        }
    }
    return highest;
}

static void draw_heat_map(struct plot *plot, const struct member *members, size_t count,
                          const struct axis *heads, const struct axis *head_dims) {
    const struct row *first = members[0].row;
    const double highest = highest_rate(plot->result, first);
    const char *unit = NULL;
    FILE *cells = plot_open(plot, "cells.dat");
    if (cells == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct mha_shape *shape = &members[i].row->problem.shape;
        const double rate = rate_of(members[i].row, &unit);
        char text[32];
        format_rate(text, sizeof(text), rate);
        (void)fprintf(cells, "%zu %zu %.9g", axis_place(heads, shape->heads),
                      axis_place(head_dims, shape->head_dim), rate);
        plot_column_text(cells, text);
        // The palette of heat.gp is dark up to some six tenths of its range.
        (void)fprintf(cells, " %s\n", rate < 0.6 * highest ? "0xffffff" : "0x000000");
    }
    plot_close(plot, cells);
    char title[160], problem[160];
    describe_problem(problem, sizeof(problem), first, false);
    (void)snprintf(title, sizeof(title), "%.140s", first->kernel);
    const int height = 190 + 46 * (int)(head_dims->count < 20 ? head_dims->count : 20);
    FILE *parameters = open_parameters(plot, title, problem, height);
    if (parameters == NULL) {
        return;
    }
    plot_set_text(parameters, "unit", unit);
    (void)fprintf(parameters, "highest = %.9g\n", highest);
    write_tics(parameters, "x", heads);
    write_tics(parameters, "y", head_dims);
    plot_close(plot, parameters);
    plot_render(plot, "heat.gp", members[0].image);
}

/// Collects the rows that have a rate, each with the image that it goes to; returns their number.
static size_t collect(const struct result *result, struct member *members, bool heat) {
    size_t count = 0;
    for (size_t i = 0; i < result->count; i++) {
        const struct row *row = &result->rows[i];
        const char *unit = NULL;
        if (!row_has_time(row) || !isfinite(rate_of(row, &unit))) {
            continue;
        }
        struct member *member = &members[count++];
        member->row = row;
        if (heat) {
            (void)snprintf(member->image, sizeof(member->image), "heat-%.140s", row->kernel);
        } else {
            (void)snprintf(member->image, sizeof(member->image), "bars-%s-%s", row->problem.op,
                           row->problem.dtype);
        }
        append_problem(member->image, sizeof(member->image), row, !heat);
        make_file_name(member->image);
    }
    qsort(members, count, sizeof(*members), compare_members);
    return count;
}

static size_t group_end(const struct member *members, size_t count, size_t begin) {
    size_t end = begin + 1;
    while (end < count && strcmp(members[begin].image, members[end].image) == 0) {
        end++;
    }
    return end;
}

/// Tells whether head_dim changes the work: some ops carry it only as part of the model's shape,
/// and a map over it would show noise.
static bool head_dim_matters(const struct member *members, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct row *a = members[i].row;
        for (size_t j = 0; j < i; j++) {
            const struct row *b = members[j].row;
            if (a->problem.shape.heads == b->problem.shape.heads &&
                a->problem.shape.head_dim != b->problem.shape.head_dim) {
                return a->bytes < b->bytes || a->bytes > b->bytes;
            }
        }
    }
    return true;
}

void plot_heat_maps(struct plot *plot) {
    struct member *members = diag_alloc(calloc(plot->result->count + 1, sizeof(*members)));
    const size_t count = collect(plot->result, members, true);
    bool any = false;
    for (size_t begin = 0; begin < count;) {
        const size_t end = group_end(members, count, begin);
        struct axis heads = make_axis(members + begin, end - begin, true);
        struct axis head_dims = make_axis(members + begin, end - begin, false);
        if (heads.count >= 2 && head_dims.count >= 2 &&
            head_dim_matters(members + begin, end - begin)) {
            any = true;
            draw_heat_map(plot, members + begin, end - begin, &heads, &head_dims);
        }
        free(heads.values);
        free(head_dims.values);
        begin = end;
    }
    free(members);
    if (!any) {
        diag_note("no heat map: no kernel has times for two values of heads and two of head_dim");
    }
}

// --- bars
// -------------------------------------------------------------------------------------------

/// Orders the bars of a problem: by ISA, scalar first; within one, what the compiler made, our
/// kernels and the peers, each from the fastest.
static int compare_bars(const void *a, const void *b) {
    const struct row *x = ((const struct member *)a)->row;
    const struct row *y = ((const struct member *)b)->row;
    const int x_scalar = strcmp(x->isa, "scalar") == 0;
    const int y_scalar = strcmp(y->isa, "scalar") == 0;
    if (x_scalar != y_scalar) {
        return y_scalar - x_scalar;
    }
    const int isa = strcmp(x->isa, y->isa);
    if (isa != 0) {
        return isa;
    }
    const int x_class = x->peer ? 2 : is_autovec(x) ? 0 : 1;
    const int y_class = y->peer ? 2 : is_autovec(y) ? 0 : 1;
    if (x_class != y_class) {
        return x_class - y_class;
    }
    return (x->median_ns > y->median_ns) - (x->median_ns < y->median_ns);
}

static void write_bar(FILE *bars, const struct row *row, double place) {
    const char *unit = NULL;
    const double rate = rate_of(row, &unit);
    const double spread = isfinite(row->spread_between)  ? row->spread_between
                          : isfinite(row->spread_within) ? row->spread_within
                                                         : 0.0;
    char value[32], text[96];
    format_rate(value, sizeof(value), rate);
    if (isfinite(row->ceiling_share) && row->ceiling_kind != NULL) {
        const bool fma = strcmp(row->ceiling_kind, "fma") == 0;
        (void)snprintf(text, sizeof(text), "%s  (%.0f %% of %s)", value, 100.0 * row->ceiling_share,
                       fma ? "FMA peak" : "bandwidth");
    } else {
        (void)snprintf(text, sizeof(text), "%s", value);
    }
    // A time that is longer by the spread is a rate lower by about as much.
    (void)fprintf(bars, "%.3f %.9g %.9g %.9g 0x%s", place, rate, rate / (1.0 + spread),
                  spread < 1.0 ? rate / (1.0 - spread) : rate, color_of(row) + 1);
    plot_column_text(bars, text);
    char name[80];
    (void)snprintf(name, sizeof(name), "%.16s %.40s%s", row->isa, row->tag,
                   row->peer ? " (peer)" : "");
    plot_column_text(bars, name);
    (void)fputc('\n', bars);
}

static void draw_bars(struct plot *plot, struct member *members, size_t count) {
    qsort(members, count, sizeof(*members), compare_bars);
    const struct row *first = members[0].row;
    FILE *bars = plot_open(plot, "bars.dat");
    if (bars == NULL) {
        return;
    }
    double place = 0.0;
    const double gap = 0.6;  // Between the bars of two ISAs.
    double highest = 0.0;
    size_t longest = 0;
    const char *unit = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct row *row = members[i].row;
        place += i == 0 ? 0.0 : strcmp(row->isa, members[i - 1].row->isa) != 0 ? 1.0 + gap : 1.0;
        write_bar(bars, row, place);
        highest = fmax(highest, rate_of(row, &unit));
        const size_t length =
            strlen(row->isa) + 1 + strlen(row->tag) + (row->peer ? strlen(" (peer)") : 0);
        longest = length > longest ? length : longest;
    }
    plot_close(plot, bars);
    char title[64], problem[160];
    describe_problem(problem, sizeof(problem), first, true);
    (void)snprintf(title, sizeof(title), "%.24s %.24s", first->problem.op, first->problem.dtype);
    const double bar_pixels = 24.0;
    const double height = 130.0 + bar_pixels * (place + 1.0);
    FILE *parameters = open_parameters(plot, title, problem, (int)height);
    if (parameters == NULL) {
        return;
    }
    plot_set_text(parameters, "unit", unit);
    const double left = 20.0 + 7.0 * (double)(longest < 45 ? longest : 45);
    (void)fprintf(parameters, "highest = %.9g\nlast_place = %.3f\nleft = %.6f\n", highest, place,
                  left / PLOT_WIDTH);
    plot_close(plot, parameters);
    plot_render(plot, "bars.gp", members[0].image);
}

/// Most problems that bars are drawn of: a grid has its heat maps, and nobody looks at a hundred
/// images.
enum { BARS_MAX = 48 };

void plot_bars(struct plot *plot) {
    struct member *members = diag_alloc(calloc(plot->result->count + 1, sizeof(*members)));
    const size_t count = collect(plot->result, members, false);
    bool any = false;
    size_t groups = 0;
    for (size_t begin = 0; begin < count; begin = group_end(members, count, begin)) {
        groups++;
    }
    if (groups > BARS_MAX) {
        diag_note("no bars: %zu problems would be as many images; select fewer than %d", groups,
                  BARS_MAX + 1);
        free(members);
        return;
    }
    for (size_t begin = 0; begin < count;) {
        const size_t end = group_end(members, count, begin);
        if (end - begin >= 2) {
            any = true;
            draw_bars(plot, members + begin, end - begin);
        }
        begin = end;
    }
    free(members);
    if (!any) {
        diag_note("no bars: no problem has times of two kernels");
    }
}
