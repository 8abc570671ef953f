/// Writes small files of tensors for commands.sh, byte by byte as the formats have them.
/// usage: make_tensors safetensors FILE BATCH HEADS KV_HEADS SEQ_Q SEQ_KV HEAD_DIM [SEED]
///        make_tensors npy FILE EXTENT... (values count up from 0 in steps of 1/64)
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void write_number(FILE *file, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        fputc((int)(value >> (8 * i) & 0xff), file);
    }
}

/// Values in [-2, 2), from a linear congruential generator (Knuth, TAOCP vol. 2, section 3.3.4).
static void write_values(FILE *file, size_t count, uint64_t seed) {
    uint64_t state = seed;
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const float value = (float)(state >> 40) * 0x1p-22f - 2.0f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof(bits));
        write_number(file, bits, 4);
    }
}

static void write_safetensors(FILE *file, const size_t axes[6], uint64_t seed) {
    const size_t batch = axes[0], heads = axes[1], kv_heads = axes[2], dim = axes[5];
    const size_t q = batch * heads * axes[3] * dim, k = batch * kv_heads * axes[4] * dim;
    char header[1000];
    const int length = snprintf(
        header, sizeof(header),
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"layer.q\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu,%zu,%zu],\"data_offsets\":[0,%zu]},"
        "\"layer.k\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu,%zu,%zu],\"data_offsets\":[%zu,%zu]},"
        "\"layer.v\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu,%zu,%zu],\"data_offsets\":[%zu,%zu]}}",
        batch, heads, axes[3], dim, 4 * q, batch, kv_heads, axes[4], dim, 4 * q, 4 * (q + k), batch,
        kv_heads, axes[4], dim, 4 * (q + k), 4 * (q + 2 * k));
    write_number(file, (uint64_t)length, 8);
    fputs(header, file);
    write_values(file, q + 2 * k, seed);
}

static void write_npy(FILE *file, size_t rank, const size_t *extents) {
    char shape[200] = "", header[300];
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) {
        const size_t used = strlen(shape);
        snprintf(shape + used, sizeof(shape) - used, "%zu, ", extents[i]);
        count *= extents[i];
    }
    const int length =
        snprintf(header, sizeof(header),
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }\n", shape);
    fputs("\x93NUMPY", file);
    write_number(file, 1, 2);
    write_number(file, (uint64_t)length, 2);
    fputs(header, file);
    for (size_t i = 0; i < count; i++) {
        const float value = (float)i / 64.0f;
        uint32_t bits;
        memcpy(&bits, &value, sizeof(bits));
        write_number(file, bits, 4);
    }
}

int main(int argc, char **argv) {
    size_t numbers[7] = {0};
    if (argc < 4 || argc > 10) {
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        numbers[i - 3] = strtoul(argv[i], NULL, 10);
    }
    FILE *file = fopen(argv[2], "wb");
    if (file == NULL) {
        return 2;
    }
    if (strcmp(argv[1], "npy") == 0) {
        write_npy(file, (size_t)argc - 3, numbers);
    } else {
        write_safetensors(file, numbers, 1 + numbers[6]);
    }
    return fclose(file) == 0 ? 0 : 2;
}
