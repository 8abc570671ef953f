#include "data.h"

#include <math.h>
#include <string.h>

uint64_t data_mix(uint64_t seed, uint64_t index) {
    // Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014), fig. 17.
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/// Where a value stands and the random bits that belong to the place.
struct place {
    uint64_t bits;
    size_t tensor, plane, row, col, rows, cols, shift;
    float smallest;  ///< Normal value of the element type.
};

/// Uniform in [-1, 1), a multiple of 2^-23.
static float uniform(uint64_t bits) {
    return (float)(int32_t)((bits >> 40) & 0xffffffu) * 0x1p-23f - 1.0f;
}

/// Nearly normal, mean 0 and variance 1: the sum of four 16-bit uniforms (Irwin-Hall), scaled by
/// sqrt(12 / 4). No transcendental function, so that every libm gives the same data.
static float normal(uint64_t bits) {
    const int32_t sum = (int32_t)(bits & 0xffff) + (int32_t)((bits >> 16) & 0xffff) +
                        (int32_t)((bits >> 32) & 0xffff) + (int32_t)(bits >> 48) - 2 * 65535;
    return (float)sum * (0x1.bb67aep+0f / 65536.0f);
}

static bool lane(const struct place *at) {
    return at->col == (at->row + at->shift) % at->cols;
}

static float make_uniform(const struct place *at) {
    return uniform(at->bits);
}

static float make_normal(const struct place *at) {
    return normal(at->bits);
}

static float make_equal(const struct place *at) {
    return at->tensor == 0 ? 0.375f : uniform(at->bits);
}

static float make_one_huge(const struct place *at) {
    return lane(at) && at->tensor == 0 ? 1e4f : uniform(at->bits);
}

static float make_ramp(const struct place *at) {
    return at->tensor == 0 ? (float)at->col * 0.25f - 20.0f : uniform(at->bits);
}

/// Products that cancel: large terms of alternating sign whose sum is small.
static float make_cancel(const struct place *at) {
    const float magnitude = at->tensor == 0 ? 1000.0f : 1.0f;
    const float sign = (at->col & 1) && at->tensor == 0 ? -1.0f : 1.0f;
    return sign * (magnitude + uniform(at->bits) * 0x1p-10f);
}

static float make_denormal(const struct place *at) {
    return uniform(at->bits) * (at->tensor == 0 ? at->smallest * 0.5f : 1.0f);
}

static float make_e30(const struct place *at) {
    return uniform(at->bits) * (at->tensor == 0 ? 1e30f : 1.0f);
}

static float make_negative(const struct place *at) {
    return at->tensor == 0 ? -900.0f + 10.0f * uniform(at->bits) : -1.0f - uniform(at->bits);
}

/// exp() of these overflows unless the maximum is subtracted.
static float make_overflow(const struct place *at) {
    return at->tensor == 0 ? 10000.0f + 4.0f * uniform(at->bits) : uniform(at->bits);
}

/// Every third row holds -inf only; in the others every fifth element is -inf.
static float make_masked(const struct place *at) {
    if (at->tensor == 0 && (at->row % 3 == at->shift % 3 || at->bits % 5 == 0)) {
        return -INFINITY;
    }
    return normal(at->bits);
}

/// Even rows of the first input hold one special value; of a second input, one row does.
static bool special_here(const struct place *at) {
    return lane(at) &&
           (at->tensor == 0 ? at->row % 2 == 0 : at->row == (at->shift * 7 + 3) % at->rows);
}

static float make_nan(const struct place *at) {
    return special_here(at) ? NAN : normal(at->bits);
}

static float make_inf(const struct place *at) {
    return special_here(at) ? INFINITY : normal(at->bits);
}

static float make_minus_inf(const struct place *at) {
    return special_here(at) ? -INFINITY : normal(at->bits);
}

/// One maximum, all else 87 to 104 below it: exp() ends among the denormals.
static float make_deep(const struct place *at) {
    if (at->tensor != 0 || lane(at)) {
        return at->tensor == 0 ? 3.0f : uniform(at->bits);
    }
    return 3.0f - 95.5f + 8.5f * uniform(at->bits);
}

/// Row maxima that climb from row to row: a maximum taken over from an earlier row is too small.
/// In odd planes they fall, and it is too large.
static float make_drift(const struct place *at) {
    const float step = at->plane % 2 == 0 ? 3.0f : -3.0f;
    return normal(at->bits) + (at->tensor == 0 ? step * (float)at->row : 0.0f);
}

/// Row maxima that jump from row to row.
static float make_jump(const struct place *at) {
    const uint64_t bits = data_mix(at->plane, at->row);
    return normal(at->bits) + (at->tensor == 0 ? 200.0f * uniform(bits) : 0.0f);
}

/// Queries of 30 and 100 times the size: scores likewise, and rows of weights that few keys decide.
static float make_x30(const struct place *at) {
    return normal(at->bits) * (at->tensor == 0 ? 30.0f : 1.0f);
}

static float make_x100(const struct place *at) {
    return normal(at->bits) * (at->tensor == 0 ? 100.0f : 1.0f);
}

/// -1 or 1: sums are whole numbers, exact in any order.
static float make_signs(const struct place *at) {
    return at->bits >> 63 ? -1.0f : 1.0f;
}

/// Bit patterns of every kind, NaNs with payloads among them: for copies.
static float make_bits(const struct place *at) {
    const uint32_t word = (uint32_t)(at->bits >> 32);
    // Signalling NaNs are made quiet: moving one through a floating-point register may quiet it,
    // which is no fault of a copy.
    const bool nan = (word & 0x7f800000u) == 0x7f800000u && (word & 0x007fffffu) != 0;
    const uint32_t quiet = nan ? word | 0x00400000u : word;
    float value;
    memcpy(&value, &quiet, sizeof(value));
    return value;
}

static const struct {
    struct data_class data;
    float (*make)(const struct place *at);
} classes[] = {
    {{"normal", "the ordinary case", false, false}, make_normal},
    {{"uniform", "errors of the last bits", false, false}, make_uniform},
    {{"equal", "ties in the maximum, rounding that adds up", false, false}, make_equal},
    {{"one_huge", "one element that decides the row", false, true}, make_one_huge},
    {{"ramp", "results that depend on the column", false, false}, make_ramp},
    {{"cancel", "large terms with a small sum", false, false}, make_cancel},
    {{"denormal", "inputs below the smallest normal", false, false}, make_denormal},
    {{"e30", "overflow of intermediate values", false, false}, make_e30},
    {{"negative", "a maximum that starts at 0", false, false}, make_negative},
    {{"overflow", "exp() without the maximum subtracted", false, false}, make_overflow},
    {{"masked", "rows of -inf only", true, false}, make_masked},
    {{"nan", "a NaN in every lane position", true, true}, make_nan},
    {{"inf", "+inf in every lane position", true, true}, make_inf},
    {{"minus_inf", "-inf in every lane position", true, true}, make_minus_inf},
    {{"deep", "exp() that ends among the denormals", false, true}, make_deep},
    {{"signs", "sums that must be exact", false, false}, make_signs},
    {{"bits", "every bit pattern, NaN payloads included", true, false}, make_bits},
    {{"drift", "a maximum kept from the row before", false, false}, make_drift},
    {{"jump", "a shift that fits other rows only", false, false}, make_jump},
    {{"x30", "scores with a wide range", false, false}, make_x30},
    {{"x100", "scores with a range far beyond that of exp()", false, false}, make_x100},
    // Last: no class to ask for, since it is what --tensors makes of the input. What the files have
    // no values for is as in the ordinary case.
    {{"tensors", "what a model really computes with", false, false}, make_normal},
};

const struct data_class *data_class_find(const char *name) {
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strcmp(classes[i].data.name, name) == 0) {
            return &classes[i].data;
        }
    }
    return NULL;
}

const char *data_class_word(size_t index) {
    const size_t last = sizeof(classes) / sizeof(classes[0]) - 1;
    return index < last ? classes[index].data.name : NULL;
}

bool data_class_taken(const struct op_driver *driver, const char *name) {
    for (size_t i = 0; driver->classes[i] != NULL; i++) {
        if (strcmp(driver->classes[i], name) == 0) {
            return true;
        }
    }
    return false;
}

const struct data_class *data_class_of(const struct op_driver *driver,
                                       const struct problem *problem) {
    return data_class_find(problem->data != NULL ? problem->data : driver->classes[0]);
}

void data_fill_rows(const struct data_class *data, uint64_t seed, size_t shift, size_t index,
                    const struct tensor *tensor, size_t plane, size_t first, size_t rows) {
    float (*make)(const struct place *) = make_uniform;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (&classes[i].data == data) {
            make = classes[i].make;
        }
    }
    const uint64_t stream = data_mix(seed, index);
    const size_t cols = tensor->shape.cols;
    const float scale = tensor->shape.scale > 0 ? tensor->shape.scale : 1.0f;
    struct place at = {.tensor = index,
                       .plane = plane,
                       .rows = tensor->shape.rows,
                       .cols = cols,
                       .shift = shift,
                       .smallest = element_smallest(tensor->shape.element)};
    for (size_t r = first; r < first + rows; r++) {
        void *row = tensor_at(tensor, plane, r);
        const uint64_t base = (plane * tensor->shape.rows + r) * cols;
        at.row = r;
        for (size_t c = 0; c < cols; c++) {
            at.col = c;
            at.bits = data_mix(stream, base + c);
            if (tensor->shape.indices > 0) {
                const int32_t drawn = (int32_t)(at.bits % tensor->shape.indices);
                memcpy((int32_t *)row + c, &drawn, sizeof(drawn));
            } else {
                tensor_store(tensor, row, c, (double)(make(&at) * scale));
            }
        }
    }
}
