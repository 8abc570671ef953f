/// Element types: every bf16 and f16 there is, and how numbers between them are rounded.
// clang-format off
#include <setjmp.h>  // cmocka.h needs these before it
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <math.h>
#include <string.h>

#include "data.h"
#include "element.h"
#include "op.h"
#include "widen.h"

enum { NARROW_COUNT = 65536 };

static const enum element narrow[] = {ELEMENT_BF16, ELEMENT_F16};

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static uint16_t infinity_of(enum element element) {
    return element == ELEMENT_BF16 ? 0x7f80 : 0x7c00;
}

static bool is_nan(enum element element, uint16_t bits) {
    return (bits & 0x7fffu) > infinity_of(element);
}

static void every_value_comes_back(void **state) {
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        for (uint32_t i = 0; i < NARROW_COUNT; i++) {
            const uint16_t bits = (uint16_t)i;
            const float wide = element_widen(narrow[n], bits);
            const uint16_t back = element_narrow(narrow[n], (double)wide);
            assert_int_equal(isnan(wide) != 0, is_nan(narrow[n], bits));
            if (is_nan(narrow[n], bits)) {
                assert_true(is_nan(narrow[n], back));
            } else {
                assert_int_equal(back, bits);
            }
        }
    }
}

/// The kernels' conversions share no code with the harness's.
static void kernels_widen_alike(void **state) {
    (void)state;
    for (uint32_t i = 0; i < NARROW_COUNT; i++) {
        const uint16_t bits = (uint16_t)i;
        const float bf16 = widen_bf16(bits), f16 = widen_f16(bits);
        if (is_nan(ELEMENT_BF16, bits)) {
            assert_true(isnan(bf16));
        } else {
            assert_int_equal(bits_of(bf16), bits_of(element_widen(ELEMENT_BF16, bits)));
        }
        if (is_nan(ELEMENT_F16, bits)) {
            assert_true(isnan(f16));
        } else {
            assert_int_equal(bits_of(f16), bits_of(element_widen(ELEMENT_F16, bits)));
        }
    }
}

/// Between two neighbours: what is nearer to one becomes it, the middle the even one.
static void ties_go_to_even(void **state) {
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        const enum element e = narrow[n];
        for (uint16_t bits = 0; bits + 1 < infinity_of(e); bits++) {
            const double low = (double)element_widen(e, bits);
            const double high = (double)element_widen(e, (uint16_t)(bits + 1));
            const double middle = (low + high) / 2;
            const uint16_t even = bits % 2 == 0 ? bits : (uint16_t)(bits + 1);
            assert_int_equal(element_narrow(e, middle), even);
            assert_int_equal(element_narrow(e, -middle), 0x8000u | even);
            assert_int_equal(element_narrow(e, nextafter(middle, 0)), bits);
            assert_int_equal(element_narrow(e, nextafter(middle, HUGE_VAL)), bits + 1);
        }
    }
}

static void large_numbers_stay_finite(void **state) {
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        const enum element e = narrow[n];
        const uint16_t largest = (uint16_t)(infinity_of(e) - 1);
        assert_true((double)element_widen(e, largest) >= element_max(e));
        assert_true((double)element_widen(e, largest) <= element_max(e));
        assert_int_equal(element_narrow(e, 1e300), largest);
        assert_int_equal(element_narrow(e, -1e300), 0x8000u | largest);
        assert_int_equal(element_narrow(e, HUGE_VAL), infinity_of(e));
        assert_int_equal(element_narrow(e, -HUGE_VAL), 0x8000u | infinity_of(e));
        assert_int_equal(element_narrow(e, 1e-300), 0);
        assert_int_equal(element_narrow(e, -1e-300), 0x8000u);
        assert_true(is_nan(e, element_narrow(e, (double)NAN)));
    }
    // IEEE 754: 65504 is the largest f16, and what rounds beyond it would be infinite.
    assert_int_equal(element_narrow(ELEMENT_F16, 65504), 0x7bff);
    assert_int_equal(element_narrow(ELEMENT_F16, 1e5), 0x7bff);
    assert_int_equal(element_narrow(ELEMENT_F16, 1), 0x3c00);
    assert_int_equal(element_narrow(ELEMENT_F16, 0x1p-24), 0x0001);
    assert_int_equal(element_narrow(ELEMENT_BF16, 1), 0x3f80);
    assert_int_equal(element_narrow(ELEMENT_BF16, 3.140625), 0x4049);
}

static void words_name_types(void **state) {
    (void)state;
    for (size_t e = 0; e < ELEMENT_COUNT; e++) {
        assert_int_equal(element_find(element_word(e)), e);
    }
    assert_null(element_word(ELEMENT_COUNT));
    assert_int_equal(element_find("f64"), ELEMENT_COUNT);
    assert_int_equal(element_bytes(ELEMENT_F32), 4);
    assert_int_equal(element_bytes(ELEMENT_BF16), 2);
    assert_int_equal(element_bytes(ELEMENT_F16), 2);
}

/// Data of a narrow tensor is that of the float one, rounded; where f16 has denormals, the class
/// that provokes them holds some.
static void data_is_rounded(void **state) {
    (void)state;
    enum { COLS = 64 };
    float wide[COLS], widened[COLS];
    uint16_t halves[COLS];
    for (size_t n = 0; n < 2; n++) {
        const struct data_class *normal = data_class_find("normal");
        const struct data_class *denormal = data_class_find("denormal");
        struct tensor t = {{.name = "q", .planes = 1, .rows = 1, .cols = COLS}, wide, COLS, COLS};
        data_fill_rows(normal, 1, 0, 0, &t, 0, 0, 1);
        t.shape.element = narrow[n];
        t.data = halves;
        data_fill_rows(normal, 1, 0, 0, &t, 0, 0, 1);
        assert_ptr_equal(tensor_floats(&t, 0, 0, widened), widened);
        for (size_t c = 0; c < COLS; c++) {
            assert_int_equal(halves[c], element_narrow(narrow[n], (double)wide[c]));
            assert_int_equal(bits_of(widened[c]), bits_of(element_widen(narrow[n], halves[c])));
        }
        data_fill_rows(denormal, 1, 0, 0, &t, 0, 0, 1);
        size_t denormals = 0;
        for (size_t c = 0; c < COLS; c++) {
            const float value = fabsf(element_widen(narrow[n], halves[c]));
            denormals += value > 0 && value < element_smallest(narrow[n]);
        }
        assert_true(denormals > COLS / 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_comes_back), cmocka_unit_test(kernels_widen_alike),
        cmocka_unit_test(ties_go_to_even),        cmocka_unit_test(large_numbers_stay_finite),
        cmocka_unit_test(words_name_types),       cmocka_unit_test(data_is_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
