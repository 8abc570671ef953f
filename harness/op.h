/// The driver of an op: how its problem is laid out in memory, filled, cut into work items,
/// computed by the oracle, and accounted for. One driver per op, in harness/ops/<op>.c; the table
/// of all drivers is generated from that folder at configure time. Everything else in the harness
/// is the same for every op.
#ifndef MHA_OP_H
#define MHA_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "element.h"
#include "mha_kernel.h"
#include "problem.h"

struct data_class;

enum tensor_role { TENSOR_INPUT, TENSOR_OUTPUT };

/// Most tensors that one op has.
enum { OP_TENSORS_MAX = 8 };

/// Most steps of a composed op, buffers between them, and ops that they are of.
enum { OP_STEPS_MAX = 16, OP_BUFFERS_MAX = 12, OP_PARTS_MAX = 12 };

/// A tensor's logical shape: `planes` matrices of `rows` x `cols` elements: of the type `element`,
/// or int32 where it holds indices.
struct tensor_shape {
    const char *name;  ///< "q", "k", "s", ...
    enum tensor_role role;
    enum element element;  ///< Float unless said otherwise.
    size_t planes;
    size_t rows;
    size_t cols;
    size_t indices;  ///< Input of int32 below this number; 0: no indices.
    float scale;     ///< Factor of what a data class gives; 0 counts as 1.
    bool given;  ///< Input that follows from the problem, whatever the data: the driver's fill().
};

/// A tensor in memory. Strides are in elements; row_stride >= cols, plane_stride >= rows *
/// row_stride.
struct tensor {
    struct tensor_shape shape;
    void *data;
    size_t row_stride;
    size_t plane_stride;
};

/// Gets the address of element (plane, row, 0) of a tensor of any type.
static inline void *tensor_at(const struct tensor *t, size_t plane, size_t row) {
    const size_t index = plane * t->plane_stride + row * t->row_stride;
    return (char *)t->data + index * element_bytes(t->shape.element);
}

/// Gets the address of element (plane, row, 0) of a tensor of floats (or int32).
static inline float *tensor_row(const struct tensor *t, size_t plane, size_t row) {
    return (float *)t->data + plane * t->plane_stride + row * t->row_stride;
}

/// Bytes of a tensor's elements, without gaps.
double tensor_bytes(const struct tensor_shape *shape);

/// Gets a row as floats: where it is, or widened into scratch[cols].
const float *tensor_floats(const struct tensor *t, size_t plane, size_t row, float *scratch);

/// Rounds `value` to the tensor's type, once (element_narrow()), and stores it at row[col], `row`
/// being what tensor_at() gives.
void tensor_store(const struct tensor *t, void *row, size_t col, double value);

/// Where a work item stands.
struct item {
    size_t plane;  ///< Index of the item's group: batch x kv head, batch x head or batch, as the op
                   ///< has it.
    size_t first_row;  ///< First row (query, token) of the block.
    size_t rows;       ///< Rows of the block, >= 1.
};

/// Axes whose size decides a kernel's tails; check walks them through 1 ... 2 * step + 1.
enum op_axis { OP_AXIS_SEQ_Q = 1, OP_AXIS_SEQ_KV = 2, OP_AXIS_HEAD_DIM = 4 };

/// Which values of a result are compared in which way.
enum compare_how {
    COMPARE_BOUND,  ///< |got - want| <= bound; NaN matches NaN; an infinity its own sign.
    COMPARE_BITS,   ///< Equal bits: copies.
};

/// A way to compose an op of others: what stands for a kernel of it.
struct op_pipeline {
    const char *tag;
    const char *summary;
    const char *const *parts;  ///< Ops whose kernels it may run, NULL-terminated.
    bool autovec;              ///< Of the compiler's vectorised kernels, not the hand-written ones.
};

/// One step of a pipeline: another op's problem, over views of the tensors and the buffers.
struct op_step {
    const struct op_driver *driver;
    struct problem problem;
    struct tensor tensors[OP_TENSORS_MAX];
};

struct op_driver {
    const char *name;
    int rank;            ///< Order in lists: the order of the steps in the layer.
    bool ceiling;        ///< Not a step of attention; only run when asked for by name.
    bool has_mask;       ///< The mask axis matters; otherwise it is always none.
    unsigned positions;  ///< 1 << enum position_kind of each that the op takes; 0: no such axis.
    const char *default_positions;  ///< Of an op with that axis, as --position spells them.
    bool compute;                   ///< Throughput is told in GFLOP/s; otherwise in GB/s.
    unsigned axes;                  ///< Of enum op_axis.
    bool head_dim_labels;  ///< head_dim changes no work: it only says which model a shape is of.
    unsigned elements;     ///< 1 << enum element of each dtype that the op takes; 0: f32 only.
    /// Access mix of the bandwidth ceiling: "read", against which only reads count, "write" or
    /// "copy".
    const char *mix;
    enum compare_how compare;
    /// Data classes, NULL-terminated: check walks them, run times the first unless told otherwise.
    const char *const *classes;

    /// Brings axes that do not matter to the op to their canonical values (kv_heads = heads, seq_kv
    /// = seq_q, ...).
    void (*normalise)(struct problem *problem);
    /// Fills in the tensors' shapes, inputs first, the output last. Returns their number.
    size_t (*tensors)(const struct problem *problem, struct tensor_shape shapes[OP_TENSORS_MAX]);
    /// Fills rows [first, first + rows) of one plane of a `given` tensor, number `index` of
    /// tensors(). NULL: no tensor is given.
    void (*fill)(const struct problem *problem, size_t index, const struct tensor *tensor,
                 size_t plane, size_t first, size_t rows);
    /// Number of planes that items are cut from, and rows of each.
    void (*grid)(const struct problem *problem, size_t *planes, size_t *rows);
    /// Sets the arguments of one item over `tensors` (in the order of tensors()). packed and state
    /// are set by the caller.
    void (*item_args)(const struct problem *problem, const struct tensor *tensors,
                      const struct item *item, union mha_args *args);
    /// Calls the kernel's function of this op.
    void (*run)(const struct mha_kernel *kernel, const union mha_args *args, void *workspace);
    /// Packs the operand of one plane of the grid, named by the arguments of an item of that plane;
    /// NULL when the op has nothing to pack. With constant_pack it is a weight, the second
    /// tensor: it is packed once, and that is no part of a call's time.
    void (*pack)(const struct mha_kernel *kernel, const union mha_args *args, void *packed);
    bool constant_pack;
    /// Hands packed data and state to the arguments.
    void (*attach)(union mha_args *args, const void *packed, const void *state);

    /// Computes one row of the output in double precision: want[cols] and, for COMPARE_BOUND, the
    /// largest permitted error of each element, bound[cols] (>= 2^-126). The derivation of the
    /// bound stands in the driver. `row` may be any row of the output tensor.
    void (*oracle_row)(const struct problem *problem, const struct tensor *tensors, size_t plane,
                       size_t row, double *want, double *bound);
    /// The same for all the rows of an oracle at once, where they share most of the work:
    /// planes[count], rows[count], want[count][cols], bound[count][cols]. Returns false when memory
    /// cannot be had. NULL: by oracle_row().
    bool (*oracle_rows)(const struct problem *problem, const struct tensor *tensors, size_t count,
                        const size_t *planes, const size_t *rows, double *want, double *bound,
                        int threads);
    /// Tells whether every right result of this problem is constant whatever the input (softmax
    /// over one key): a constant output is then no ground for mistrust. NULL: never.
    bool (*trivial)(const struct problem *problem);

    /// Useful floating-point operations of the whole problem (causal: the visible half).
    double (*flops)(const struct problem *problem);
    /// Compulsory bytes read and written.
    void (*bytes)(const struct problem *problem, double *read, double *written);

    // A composed op has no kernels of its own: instead of grid() to attach() it has these.

    /// The ways to compose it; behind the last one's is a NULL tag. NULL: the op is not composed.
    const struct op_pipeline *pipelines;
    /// Describes the buffers that a pipeline's steps hand results on in; those it does not use have
    /// no planes. Inputs are filled by prime(), the others by the steps. Returns their number.
    size_t (*buffers)(const struct problem *problem, const struct op_pipeline *pipeline,
                      struct tensor_shape shapes[OP_BUFFERS_MAX]);
    /// Fills the buffers that are inputs; no part of a call's time.
    void (*prime)(const struct problem *problem, const struct tensor *tensors,
                  const struct tensor *buffers);
    /// Lists the steps in the order in which they run. Without `tensors` only their drivers and
    /// problems. Returns their number.
    size_t (*compose)(const struct problem *problem, const struct op_pipeline *pipeline,
                      const struct tensor *tensors, const struct tensor *buffers,
                      struct op_step steps[OP_STEPS_MAX]);
};

/// Fills rows [first, first + rows) of one plane of input `index` (its place among the op's
/// tensors): from the data class, or as the problem gives
/// it, or from tensors of the user (tensors.h).
void op_fill_rows(const struct op_driver *driver, const struct problem *problem,
                  const struct data_class *data, uint64_t seed, size_t shift, size_t index,
                  const struct tensor *tensor, size_t plane, size_t first, size_t rows);

/// Tells whether an op takes a dtype.
bool op_takes(const struct op_driver *driver, enum element element);

/// Writes the words of the dtypes that an op takes: "f32, bf16, f16".
void op_dtypes(char text[32], const struct op_driver *driver);

/// Gets the number of drivers, and one of them in order of rank.
size_t op_count(void);
const struct op_driver *op_get(size_t index);

/// Finds a driver by name; NULL when there is none.
const struct op_driver *op_find(const char *name);

#endif
