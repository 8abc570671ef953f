/// oneDNN behind product.h and onednn.h: matmul, softmax and reorder primitives.
///
/// The library chooses its code by the CPU, up to a level that it is told once, before anything
/// else is asked of it; each module has a copy of the library for that reason. A primitive has
/// fixed sizes and strides. A state keeps those that were made, and adds what it meets on the way:
/// lists that only grow, so that threads may read them while another one adds to them. What a call
/// needs besides (memory objects, scratch) is kept with the primitive, one set for each call at a
/// time.
///
/// Error: as the library documents none, the usual one of a product, |error| <= gamma_(depth + 1)
/// sum |a_i b_i|, the factor included; softmax as harness/ops/softmax.c allows. A copy is exact.
#include "onednn.h"

#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "private_library.h"

/// Level that the library is held to, by the ISA word of the module.
#define LEVEL_avx2 dnnl_cpu_isa_avx2
#define LEVEL_avx512 dnnl_cpu_isa_avx512_core
#define LEVEL_avx512bf16 dnnl_cpu_isa_avx512_core_bf16
#define LEVEL_(isa) LEVEL_##isa
#define LEVEL(isa) LEVEL_(isa)

#define FUNCTIONS(F)                      \
    F(engine_create)                      \
    F(get_effective_cpu_isa)              \
    F(matmul_desc_init)                   \
    F(memory_create)                      \
    F(memory_desc_get_size)               \
    F(memory_desc_init_by_strides)        \
    F(memory_desc_init_by_tag)            \
    F(memory_destroy)                     \
    F(memory_set_data_handle)             \
    F(post_ops_append_sum)                \
    F(post_ops_create)                    \
    F(post_ops_destroy)                   \
    F(primitive_attr_create)              \
    F(primitive_attr_destroy)             \
    F(primitive_attr_set_output_scales)   \
    F(primitive_attr_set_post_ops)        \
    F(primitive_attr_set_scratchpad_mode) \
    F(primitive_create)                   \
    F(primitive_desc_create)              \
    F(primitive_desc_destroy)             \
    F(primitive_desc_query)               \
    F(primitive_desc_query_md)            \
    F(primitive_destroy)                  \
    F(primitive_execute)                  \
    F(reorder_primitive_desc_create)      \
    F(set_max_cpu_isa)                    \
    F(softmax_v2_forward_desc_init)       \
    F(stream_create)                      \
    F(version)

static struct {
#define F(name) __typeof__(&dnnl_##name) name;
    FUNCTIONS(F)
#undef F
} dnnl;

static struct {
    struct private_threads threads;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    bool ready;
    char why[300];
} onednn;

static bool find_functions(void *library) {
    bool found = private_threads_find(&onednn.threads, library);
#define F(name) found = found && private_library_get(library, "dnnl_" #name, (void *)&dnnl.name);
    FUNCTIONS(F)
#undef F
    return found;
}

static void hold(void) {
    char *const why = onednn.why;
    const size_t size = sizeof(onednn.why);
    const dnnl_cpu_isa_t level = LEVEL(PEER_ISA);
    void *library = private_library_open(PEER_FILE);
    if (!library) {
        snprintf(why, size, "%s", dlerror());
        return;
    }
    if (!find_functions(library)) {
        snprintf(why, size, "%s is no oneDNN for OpenMP", PEER_FILE);
        return;
    }
    char version[40];
    const dnnl_version_t *v = dnnl.version();
    snprintf(version, sizeof(version), "%d.%d.%d", v->major, v->minor, v->patch);
    dnnl.set_max_cpu_isa(level);
    if (strcmp(version, PEER_VERSION) != 0) {
        snprintf(why, size, "the library is oneDNN %s, not %s", version, PEER_VERSION);
    } else if (dnnl.get_effective_cpu_isa() != level) {
        snprintf(why, size, "oneDNN runs at its level 0x%x, not at 0x%x (%s)",
                 (unsigned)dnnl.get_effective_cpu_isa(), (unsigned)level, PEER_HOLD);
    } else if (dnnl.engine_create(&onednn.engine, dnnl_cpu, 0) != dnnl_success ||
               dnnl.stream_create(&onednn.stream, onednn.engine, dnnl_stream_default_flags) !=
                   dnnl_success) {
        snprintf(why, size, "oneDNN has no CPU engine");
    } else {
        onednn.ready = true;
    }
}

static bool ready(const char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, hold);
    if (!onednn.ready && why) {
        *why = onednn.why;
    }
    return onednn.ready;
}

bool product_supports(const struct mha_shape *shape, const char **why) {
    // What it generates takes 32-bit offsets.
    return product_within(shape, INT_MAX / 2, why) && ready(why);
}

enum kind { KIND_PRODUCT, KIND_PACK, KIND_SOFTMAX, KIND_COPY };

/// What a primitive is made for: its kind, then sizes, strides and flags in an order of the kind's.
/// Every word is set, so that two keys can be compared as memory.
struct key {
    size_t word[11];
};

enum { ARGUMENTS_MAX = 3, SCRATCH = ARGUMENTS_MAX, BUCKETS = 256 };

/// What one call at a time needs.
struct slot {
    atomic_flag busy;
    dnnl_memory_t memory[ARGUMENTS_MAX + 1];
    void *scratch;
    struct slot *next;
};

struct primitive {
    struct key key;
    dnnl_primitive_t primitive;
    size_t arguments;
    int name[ARGUMENTS_MAX];  ///< DNNL_ARG_...
    dnnl_memory_desc_t layout[ARGUMENTS_MAX + 1];
    size_t scratch_bytes;
    bool generated;  ///< By code for this CPU, not by the library's plain loops.
    _Atomic(struct slot *) slots;
    struct primitive *next;
};

struct state {
    _Atomic(struct primitive *) bucket[BUCKETS];
};

static void slot_free(struct slot *slot) {
    for (size_t i = 0; i <= ARGUMENTS_MAX; i++) {
        if (slot->memory[i]) {
            dnnl.memory_destroy(slot->memory[i]);
        }
    }
    free(slot->scratch);
    free(slot);
}

static void primitive_free(struct primitive *p) {
    for (struct slot *slot = p->slots, *next; slot; slot = next) {
        next = slot->next;
        slot_free(slot);
    }
    if (p->primitive) {
        dnnl.primitive_destroy(p->primitive);
    }
    free(p);
}

void product_free(void *state) {
    struct state *s = state;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct primitive *p = s->bucket[i], *next; p; p = next) {
            next = p->next;
            primitive_free(p);
        }
    }
    free(s);
}

static size_t bucket_of(const struct key *key) {
    size_t hash = 0;
    for (size_t i = 0; i < sizeof(key->word) / sizeof(key->word[0]); i++) {
        hash = (hash ^ key->word[i]) * 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio (Knuth)
    }
    return hash >> 56;
}

static dnnl_memory_desc_t matrix_of(dnnl_data_type_t type, size_t rows, size_t cols,
                                    size_t row_stride, size_t col_stride) {
    dnnl_memory_desc_t layout = {0};
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
    const dnnl_dims_t strides = {(dnnl_dim_t)row_stride, (dnnl_dim_t)col_stride};
    dnnl.memory_desc_init_by_strides(&layout, 2, dims, type, strides);
    return layout;
}

static dnnl_memory_desc_t matrix(size_t rows, size_t cols, size_t row_stride, size_t col_stride) {
    return matrix_of(dnnl_f32, rows, cols, row_stride, col_stride);
}

/// Gets the layout that the library prefers for a right factor. It follows from the factor's own
/// sizes and from the number of threads, one as in execute(); some number of rows has to be given.
static dnnl_memory_desc_t packed_layout(size_t depth, size_t cols) {
    const size_t rows = 128;
    const dnnl_memory_desc_t a = matrix(rows, depth, depth, 1), c = matrix(rows, cols, cols, 1);
    const dnnl_dims_t dims = {(dnnl_dim_t)depth, (dnnl_dim_t)cols};
    dnnl_memory_desc_t b = {0};
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t description = NULL;
    dnnl_memory_desc_t layout = matrix(depth, cols, cols, 1);
    dnnl.memory_desc_init_by_tag(&b, 2, dims, dnnl_f32, dnnl_format_tag_any);
    const int before = private_threads_hold(&onednn.threads);
    if (dnnl.matmul_desc_init(&product, &a, &b, NULL, &c) == dnnl_success &&
        dnnl.primitive_desc_create(&description, &product, NULL, onednn.engine, NULL) ==
            dnnl_success) {
        layout = *dnnl.primitive_desc_query_md(description, dnnl_query_weights_md, 0);
        dnnl.primitive_desc_destroy(description);
    }
    private_threads_release(&onednn.threads, before);
    return layout;
}

static dnnl_primitive_desc_t describe_product(struct primitive *p,
                                              const_dnnl_primitive_attr_t attr) {
    dnnl_matmul_desc_t product;
    dnnl_primitive_desc_t description = NULL;
    p->name[0] = DNNL_ARG_SRC;
    p->name[1] = DNNL_ARG_WEIGHTS;
    p->name[2] = DNNL_ARG_DST;
    p->arguments = 3;
    return dnnl.matmul_desc_init(&product, &p->layout[0], &p->layout[1], NULL, &p->layout[2]) ==
                       dnnl_success &&
                   dnnl.primitive_desc_create(&description, &product, attr, onednn.engine, NULL) ==
                       dnnl_success
               ? description
               : NULL;
}

static dnnl_primitive_desc_t describe_softmax(struct primitive *p,
                                              const_dnnl_primitive_attr_t attr) {
    dnnl_softmax_v2_desc_t softmax;
    dnnl_primitive_desc_t description = NULL;
    p->name[0] = DNNL_ARG_SRC;
    p->name[1] = DNNL_ARG_DST;
    p->arguments = 2;
    return dnnl.softmax_v2_forward_desc_init(&softmax, dnnl_forward_inference,
                                             dnnl_softmax_accurate, &p->layout[0], &p->layout[1],
                                             1) == dnnl_success &&
                   dnnl.primitive_desc_create(&description, &softmax, attr, onednn.engine, NULL) ==
                       dnnl_success
               ? description
               : NULL;
}

static dnnl_primitive_desc_t describe_reorder(struct primitive *p,
                                              const_dnnl_primitive_attr_t attr) {
    dnnl_primitive_desc_t description = NULL;
    p->name[0] = DNNL_ARG_FROM;
    p->name[1] = DNNL_ARG_TO;
    p->arguments = 2;
    return dnnl.reorder_primitive_desc_create(&description, &p->layout[0], onednn.engine,
                                              &p->layout[1], onednn.engine, attr) == dnnl_success
               ? description
               : NULL;
}

static dnnl_primitive_desc_t describe(struct primitive *p, const_dnnl_primitive_attr_t attr) {
    switch ((enum kind)p->key.word[0]) {
        case KIND_PRODUCT:
            return describe_product(p, attr);
        case KIND_SOFTMAX:
            return describe_softmax(p, attr);
        default:
            return describe_reorder(p, attr);
    }
}

/// Makes the primitive of p->key and p->layout[]. `factor` and `add` are a product's.
static bool make(struct primitive *p, float factor, bool add) {
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t after = NULL;
    dnnl_primitive_desc_t description = NULL;
    // Scratch of the library's own belongs to the thread that makes the primitive.
    bool good =
        dnnl.primitive_attr_create(&attr) == dnnl_success &&
        dnnl.primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
        (factor == 1 ||
         dnnl.primitive_attr_set_output_scales(attr, 1, 0, &factor) == dnnl_success) &&
        (!add || (dnnl.post_ops_create(&after) == dnnl_success &&
                  dnnl.post_ops_append_sum(after, 1) == dnnl_success &&
                  dnnl.primitive_attr_set_post_ops(attr, after) == dnnl_success));
    description = good ? describe(p, attr) : NULL;
    good = description && dnnl.primitive_create(&p->primitive, description) == dnnl_success;
    if (good) {
        const char *name = "";
        dnnl.primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name);
        p->generated = strncmp(name, "ref", 3) != 0;
        p->layout[SCRATCH] =
            *dnnl.primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
        p->scratch_bytes = dnnl.memory_desc_get_size(&p->layout[SCRATCH]);
    }
    if (description) {
        dnnl.primitive_desc_destroy(description);
    }
    if (after) {
        dnnl.post_ops_destroy(after);
    }
    if (attr) {
        dnnl.primitive_attr_destroy(attr);
    }
    return good;
}

/// Makes one more set of what a call needs.
static struct slot *slot_new(struct primitive *p) {
    enum { PAGE = 4096 };
    struct slot *slot = calloc(1, sizeof(*slot));
    bool good = slot != NULL;
    for (size_t i = 0; i < p->arguments && good; i++) {
        good = dnnl.memory_create(&slot->memory[i], &p->layout[i], onednn.engine,
                                  DNNL_MEMORY_NONE) == dnnl_success;
    }
    if (good && p->scratch_bytes > 0) {
        slot->scratch = aligned_alloc(PAGE, (p->scratch_bytes + PAGE - 1) / PAGE * PAGE);
        good = slot->scratch && dnnl.memory_create(&slot->memory[SCRATCH], &p->layout[SCRATCH],
                                                   onednn.engine, slot->scratch) == dnnl_success;
    }
    if (!good) {
        if (slot) {
            slot_free(slot);
        }
        return NULL;
    }
    atomic_flag_test_and_set(&slot->busy);
    slot->next = p->slots;
    while (!atomic_compare_exchange_weak(&p->slots, &slot->next, slot)) {
    }
    return slot;
}

/// Takes a set that no other call has.
static struct slot *slot_take(struct primitive *p) {
    for (struct slot *slot = p->slots; slot; slot = slot->next) {
        if (!atomic_flag_test_and_set_explicit(&slot->busy, memory_order_acquire)) {
            return slot;
        }
    }
    return slot_new(p);
}

static void slot_give_back(struct slot *slot) {
    atomic_flag_clear_explicit(&slot->busy, memory_order_release);
}

static struct primitive *find(struct state *s, const struct key *key) {
    struct primitive *p = s->bucket[bucket_of(key)];
    while (p && memcmp(&p->key, key, sizeof(*key)) != 0) {
        p = p->next;
    }
    return p;
}

/// Adds a primitive, with what one call needs. Two threads may add the same: both are right.
static struct primitive *add_primitive(struct state *s, const struct primitive *wanted,
                                       float factor, bool add) {
    struct primitive *p = calloc(1, sizeof(*p));
    struct slot *slot = NULL;
    const int before = private_threads_hold(&onednn.threads);
    if (p) {
        *p = *wanted;
        slot = make(p, factor, add) ? slot_new(p) : NULL;
    }
    private_threads_release(&onednn.threads, before);
    if (!slot) {
        if (p) {
            primitive_free(p);
        }
        return NULL;
    }
    slot_give_back(slot);
    _Atomic(struct primitive *) *const bucket = &s->bucket[bucket_of(&p->key)];
    p->next = *bucket;
    while (!atomic_compare_exchange_weak(bucket, &p->next, p)) {
    }
    return p;
}

static void execute(struct primitive *p, const void *const *pointers) {
    struct slot *slot = slot_take(p);
    if (!slot) {
        return;  // the output stays as it was, and the check finds it
    }
    dnnl_exec_arg_t arguments[ARGUMENTS_MAX + 1];
    for (size_t i = 0; i < p->arguments; i++) {
        arguments[i] = (dnnl_exec_arg_t){p->name[i], slot->memory[i]};
    }
    arguments[p->arguments] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, slot->memory[SCRATCH]};
    const int count = (int)p->arguments + (p->scratch_bytes > 0);
    const int before = private_threads_hold(&onednn.threads);
    for (size_t i = 0; i < p->arguments; i++) {
        // Inputs too: the interface has no pointer to const.
        dnnl.memory_set_data_handle(slot->memory[i], (void *)(uintptr_t)pointers[i]);
    }
    dnnl.primitive_execute(p->primitive, onednn.stream, count, arguments);
    private_threads_release(&onednn.threads, before);
    slot_give_back(slot);
}

/// Finds or makes the primitive of a product.
static struct primitive *product_primitive(void *state, const struct product *product) {
    uint32_t factor;
    memcpy(&factor, &product->factor, sizeof(factor));
    struct primitive wanted = {.key = {{KIND_PRODUCT, product->rows, product->cols, product->depth,
                                        product->a_stride, product->b_stride, product->c_stride,
                                        product->b_is, product->add, factor, product->bf16}}};
    struct primitive *p = find(state, &wanted.key);
    if (p) {
        return p;
    }
    const dnnl_data_type_t type = product->bf16 ? dnnl_bf16 : dnnl_f32;
    wanted.layout[0] = matrix_of(type, product->rows, product->depth, product->a_stride, 1);
    wanted.layout[1] = product->b_is == B_PACKED ? packed_layout(product->depth, product->cols)
                       : product->b_is == B_TRANSPOSED
                           ? matrix_of(type, product->depth, product->cols, 1, product->b_stride)
                           : matrix_of(type, product->depth, product->cols, product->b_stride, 1);
    wanted.layout[2] = matrix(product->rows, product->cols, product->c_stride, 1);
    return add_primitive(state, &wanted, product->factor, product->add);
}

/// Has the library generate what it generates once, at its first product: that is no part of run().
static void generate(void) {
    enum { SIZE = 16 };
    static float a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];
    const struct product product = {
        .rows = SIZE,
        .cols = SIZE,
        .depth = SIZE,
        .a = a,
        .a_stride = SIZE,
        .b = b,
        .b_stride = SIZE,
        .c = c,
        .c_stride = SIZE,
        .factor = 1,
    };
    void *state = calloc(1, sizeof(struct state));
    if (state) {
        product_run(state, &product);
        product_free(state);
    }
}

void *product_new(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!ready(NULL)) {
        return NULL;
    }
    pthread_once(&once, generate);
    return calloc(1, sizeof(struct state));
}

bool product_prepare(void *state, const struct product *product) {
    return product_primitive(state, product) != NULL;
}

void product_run(const void *state, const struct product *product) {
    // What a state holds grows while it is shared.
    struct primitive *p = product_primitive((void *)(uintptr_t)state, product);
    if (p && !p->generated && product->b_is == B_PACKED && product->plain) {
        // Whether the layout suits a number of rows depends on the CPU; where it does not, the
        // library has nothing for it but plain loops, which take hundreds of times as long.
        struct product plain = *product;
        plain.b_is = B_PLAIN;
        plain.b = product->plain;
        plain.b_stride = product->plain_stride;
        product_run(state, &plain);
        return;
    }
    if (p) {
        const void *const pointers[ARGUMENTS_MAX] = {product->a, product->b, product->c};
        execute(p, pointers);
    }
}

size_t product_packed_bytes(size_t depth, size_t cols) {
    const dnnl_memory_desc_t layout = packed_layout(depth, cols);
    return dnnl.memory_desc_get_size(&layout);
}

void product_pack(const void *state, const struct product *product, void *packed) {
    struct state *const s = (void *)(uintptr_t)state;
    struct primitive wanted = {
        .key = {{KIND_PACK, product->depth, product->cols, product->b_stride}}};
    struct primitive *p = find(s, &wanted.key);
    if (!p) {
        wanted.layout[0] = matrix(product->depth, product->cols, product->b_stride, 1);
        wanted.layout[1] = packed_layout(product->depth, product->cols);
        p = add_primitive(s, &wanted, 1, false);
    }
    if (p) {
        const void *const pointers[ARGUMENTS_MAX] = {product->b, packed};
        execute(p, pointers);
    }
}

static struct primitive *softmax_primitive(void *state, const struct onednn_softmax *softmax) {
    struct primitive wanted = {.key = {{KIND_SOFTMAX, softmax->rows, softmax->cols,
                                        softmax->x_stride, softmax->y_stride}}};
    struct primitive *p = find(state, &wanted.key);
    if (p) {
        return p;
    }
    wanted.layout[0] = matrix(softmax->rows, softmax->cols, softmax->x_stride, 1);
    wanted.layout[1] = matrix(softmax->rows, softmax->cols, softmax->y_stride, 1);
    return add_primitive(state, &wanted, 1, false);
}

bool onednn_softmax_prepare(void *state, const struct onednn_softmax *softmax) {
    return softmax_primitive(state, softmax) != NULL;
}

void onednn_softmax_run(const void *state, const struct onednn_softmax *softmax) {
    struct primitive *p = softmax_primitive((void *)(uintptr_t)state, softmax);
    if (p) {
        const void *const pointers[ARGUMENTS_MAX] = {softmax->x, softmax->y};
        execute(p, pointers);
    }
}

static struct primitive *copy_primitive(void *state, const struct onednn_copy *copy) {
    struct primitive wanted = {
        .key = {{KIND_COPY, copy->planes, copy->rows, copy->cols, copy->x_plane_stride,
                 copy->x_stride, copy->y_plane_stride, copy->y_stride}}};
    struct primitive *p = find(state, &wanted.key);
    if (p) {
        return p;
    }
    const dnnl_dims_t dims = {(dnnl_dim_t)copy->planes, (dnnl_dim_t)copy->rows,
                              (dnnl_dim_t)copy->cols};
    const dnnl_dims_t from = {(dnnl_dim_t)copy->x_plane_stride, (dnnl_dim_t)copy->x_stride, 1};
    const dnnl_dims_t to = {(dnnl_dim_t)copy->y_plane_stride, (dnnl_dim_t)copy->y_stride, 1};
    dnnl.memory_desc_init_by_strides(&wanted.layout[0], 3, dims, dnnl_f32, from);
    dnnl.memory_desc_init_by_strides(&wanted.layout[1], 3, dims, dnnl_f32, to);
    return add_primitive(state, &wanted, 1, false);
}

bool onednn_copy_prepare(void *state, const struct onednn_copy *copy) {
    return copy_primitive(state, copy) != NULL;
}

void onednn_copy_run(const void *state, const struct onednn_copy *copy) {
    struct primitive *p = copy_primitive((void *)(uintptr_t)state, copy);
    if (p) {
        const void *const pointers[ARGUMENTS_MAX] = {copy->x, copy->y};
        execute(p, pointers);
    }
}
