/// Every kernel that runs on this CPU against the oracle under its bound: shape, mask, strides,
/// placement, item cuts and values all come from the input.
#include <math.h>
#include <string.h>

#include "buffers.h"
#include "catalogue.h"
#include "data.h"
#include "diag.h"
#include "fuzz.h"
#include "library.h"
#include "op.h"
#include "oracle.h"
#include "pipeline.h"
#include "team.h"

/// Largest sizes of one axis: past two steps of any kernel, and still thousands of runs a second.
enum { SEQ_MAX = 140, DIM_MAX = 140, HEADS_MAX = 4, BATCH_MAX = 2 };

/// Elements that the input places itself, beside those of the data class.
enum { PLACED_MAX = 64 };

struct scene {
    struct problem problem;
    const struct op_driver *driver;
    const struct data_class *data;
    size_t shift;
    uint64_t seed;
    size_t tensor_count;
    struct buffer buffers[OP_TENSORS_MAX];
    struct tensor tensors[OP_TENSORS_MAX];
};

static const struct kernel_table *kernels(void) {
    static struct kernel_table table;
    if (table.count == 0) {
        char error[1024];
        FUZZ_REQUIRE(library_load(&table, 0, NULL, error, sizeof(error)) &&
                         pipeline_add(&table, 0, NULL, error, sizeof(error)),
                     "%s", error);
    }
    return &table;
}

/// Picks one of the steps of attention, or the whole layer.
static const struct op_driver *pick_driver(uint8_t choice) {
    size_t steps = 0;
    for (size_t i = 0; i < op_count(); i++) {
        steps += !op_get(i)->ceiling;
    }
    size_t index = choice % steps;
    for (size_t i = 0; i < op_count(); i++) {
        if (!op_get(i)->ceiling && index-- == 0) {
            return op_get(i);
        }
    }
    return NULL;
}

/// Picks one of the position encodings that the op takes.
static void pick_position(struct problem *problem, const struct op_driver *driver, uint8_t choice) {
    static const char *const words[] = {"none",  "sinusoid",  "learned",
                                        "rope",  "rope:half", "rope:500000",
                                        "alibi", "t5",        "t5:causal"};
    const size_t count = sizeof(words) / sizeof(words[0]);
    for (size_t i = 0; i < count; i++) {
        struct problem placed = *problem;
        FUZZ_REQUIRE(problem_position_parse(&placed, words[(choice + i) % count]), "no encoding");
        if (driver->positions >> placed.position.kind & 1u) {
            *problem = placed;
            return;
        }
    }
}

static void pick_problem(struct scene *scene, struct fuzz_bytes *bytes) {
    struct problem *p = &scene->problem;
    scene->driver = pick_driver(fuzz_byte(bytes));
    const size_t kv_heads = 1 + fuzz_byte(bytes) % HEADS_MAX;
    *p = (struct problem){
        .op = scene->driver->name,
        .dtype = "f32",
        .shape =
            {
                .batch = 1 + fuzz_byte(bytes) % BATCH_MAX,
                .heads = kv_heads * (1 + fuzz_byte(bytes) % 3),
                .kv_heads = kv_heads,
                .seq_q = fuzz_byte(bytes) % (SEQ_MAX + 1),
                .seq_kv = fuzz_byte(bytes) % (SEQ_MAX + 1),
                .head_dim = 1 + fuzz_byte(bytes) % DIM_MAX,
            },
    };
    const uint8_t mask = fuzz_byte(bytes), window = fuzz_byte(bytes);
    if (scene->driver->has_mask) {
        p->mask = (enum mha_mask_kind)(mask % (MHA_MASK_WINDOW + 1));
        p->window = p->mask == MHA_MASK_WINDOW ? 1 + (size_t)window : 0;
    }
    if (scene->driver->positions) {
        pick_position(p, scene->driver, fuzz_byte(bytes));
    }
    scene->driver->normalise(p);
    size_t classes = 0;
    while (scene->driver->classes[classes] != NULL) {
        classes++;
    }
    scene->data = data_class_find(scene->driver->classes[fuzz_byte(bytes) % classes]);
    scene->shift = fuzz_byte(bytes);
    scene->seed = fuzz_byte(bytes);
    const enum element element = (enum element)(scene->seed % ELEMENT_COUNT);
    if (op_takes(scene->driver, element)) {
        p->dtype = element_word(element);
    }
}

static struct layout pick_layout(struct fuzz_bytes *bytes) {
    struct layout layout = {0};
    layout.placement = fuzz_byte(bytes) % 2 == 0 ? PLACE_BACK : PLACE_FRONT;
    const size_t offset = 4 * (size_t)(fuzz_byte(bytes) % 16);
    layout.offset_bytes = layout.placement == PLACE_FRONT ? offset : 0;
    layout.row_pad = fuzz_byte(bytes) % 9;
    layout.plane_pad = fuzz_byte(bytes) % 5;
    return layout;
}

/// Makes a value of any bits into one that the op's bound covers. A product of two values, and a
/// sum of such, stays finite below 2^55; NaNs are quiet and none is the poison.
static float tame(const struct op_driver *driver, uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    if (isnan(value)) {
        bits = (bits & 0xff000000u) | 0x00c00001u;
        memcpy(&value, &bits, sizeof(value));
    } else if (driver->compute && isfinite(value) && fabsf(value) > 0x1p55f) {
        value = copysignf(0x1p55f, value);
    }
    return value;
}

/// Tells whether every float is a value for this op; others take numbers that mean something.
static bool takes_any_value(const struct op_driver *driver) {
    static const char *const names[] = {"qk",    "softmax",  "split", "concat",
                                        "embed", "sinusoid", "rope",  "bias"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(driver->name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void place_values(struct scene *scene, struct fuzz_bytes *bytes) {
    for (int i = 0; i < PLACED_MAX && bytes->left > 0; i++) {
        const size_t index = fuzz_byte(bytes) % (scene->tensor_count - 1);
        const struct tensor *t = &scene->tensors[index];
        const size_t row = fuzz_byte(bytes), col = fuzz_byte(bytes);
        const uint32_t bits = fuzz_word(bytes);
        const size_t rows = t->shape.planes * t->shape.rows;
        // An index must stay within its table; what is given follows from the problem alone.
        if (rows > 0 && t->shape.cols > 0 && t->shape.indices == 0 && !t->shape.given) {
            void *at = tensor_at(t, row % rows / t->shape.rows, row % t->shape.rows);
            tensor_store(t, at, col % t->shape.cols, (double)tame(scene->driver, bits));
        }
    }
}

static void make_scene(struct scene *scene, struct fuzz_bytes *bytes) {
    struct tensor_shape shapes[OP_TENSORS_MAX];
    pick_problem(scene, bytes);
    scene->tensor_count = scene->driver->tensors(&scene->problem, shapes);
    for (size_t i = 0; i < scene->tensor_count; i++) {
        const struct layout layout = pick_layout(bytes);
        struct buffer *b = &scene->buffers[i];
        FUZZ_REQUIRE(buffer_make(b, &shapes[i], &layout), "no memory");
        scene->tensors[i] = b->tensor;
        buffer_poison(b);
        for (size_t p = 0; i + 1 < scene->tensor_count && p < shapes[i].planes; p++) {
            op_fill_rows(scene->driver, &scene->problem, scene->data, scene->seed, scene->shift, i,
                         &b->tensor, p, 0, shapes[i].rows);
        }
    }
    if (takes_any_value(scene->driver)) {
        place_values(scene, bytes);
    }
    for (size_t i = 0; i + 1 < scene->tensor_count; i++) {
        buffer_protect(&scene->buffers[i], true);
    }
}

static void run_kernel(struct scene *scene, const struct mha_kernel *kernel,
                       const struct oracle *oracle, size_t block, bool in_place) {
    struct buffer *out = &scene->buffers[scene->tensor_count - 1];
    struct tensor tensors[OP_TENSORS_MAX];
    memcpy(tensors, scene->tensors, sizeof(tensors));
    buffer_poison(out);
    if (in_place) {
        const struct tensor *in = &scene->tensors[0];
        for (size_t i = 0; i < in->shape.planes * in->shape.rows; i++) {
            const size_t plane = i / in->shape.rows, row = i % in->shape.rows;
            memcpy(tensor_row(&out->tensor, plane, row), tensor_row(in, plane, row),
                   in->shape.cols * sizeof(float));
        }
        tensors[0] = out->tensor;
    }
    const struct tensor *copies[1] = {tensors};
    struct team_case c;
    char text[512], name[CASE_NAME_BYTES];
    problem_case_name(name, &scene->problem, kernel->isa, kernel->tag, 1);
    FUZZ_REQUIRE(team_case_make(&c, scene->driver, kernel, &scene->problem, 1, 1, copies, block,
                                true, text, sizeof(text)),
                 "%s: %s", name, text);
    team_case_call(&c, 0);
    team_case_free(&c);
    FUZZ_REQUIRE(buffer_intact(out, text, sizeof(text)), "%s: %s", name, text);
    struct judgement j;
    oracle_judge(oracle, &out->tensor, 1, &j);
    FUZZ_REQUIRE(j.verdict != VERDICT_FAILED, "%s, data %s, block %zu, in place %d: %s", name,
                 scene->data->name, block, in_place, j.reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct fuzz_bytes bytes = {data, size};
    struct scene scene = {0};
    const size_t cut = fuzz_byte(&bytes) % 20;
    make_scene(&scene, &bytes);
    // Placed values may be anything, whatever the class says.
    const struct data_class *any = data_class_find("bits");
    struct oracle oracle;
    FUZZ_REQUIRE(
        oracle_make(&oracle, scene.driver, &scene.problem, scene.tensors, any, scene.seed, 1),
        "no memory");
    const struct mha_mask mask = problem_mask(&scene.problem, 0);
    const struct kernel_table *table = kernels();
    for (size_t i = 0; i < table->count; i++) {
        const struct mha_kernel *kernel = table->kernels[i].kernel;
        const char *why_not = NULL;
        if (strcmp(kernel->op, scene.driver->name) != 0 ||
            strcmp(kernel->dtype, scene.problem.dtype) != 0 ||
            !catalogue_isa_runs(kernel->isa, NULL, &why_not) ||
            (kernel->supports != NULL &&
             !kernel->supports(&scene.problem.shape, &mask, &why_not))) {
            continue;
        }
        run_kernel(&scene, kernel, &oracle, cut, false);
        if (kernel->flags & MHA_FLAG_IN_PLACE) {
            run_kernel(&scene, kernel, &oracle, cut, true);
        }
    }
    oracle_free(&oracle);
    for (size_t i = 0; i < scene.tensor_count; i++) {
        buffer_free(&scene.buffers[i]);
    }
    return 0;
}
