/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/reasons.h"

static const struct {
    const char *letter;
    unsigned number;
    const char *name;
} rows[] = {
#define GS_REASON(letter, number, name, class, severity, when, remedy) {#letter, number, #name},
#include "policy/reasons.def"
#undef GS_REASON
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void test_every_row_has_its_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        char code[8];
        const struct gs_reason_text *text = gs_reason_text((gs_reason)rows[i].number);
        snprintf(code, sizeof(code), "%s%03u", rows[i].letter, rows[i].number);
        assert_string_equal(text->code, code);
        assert_string_equal(text->name, rows[i].name);
        assert_int_equal(text->reason, rows[i].number);
        assert_true(strlen(text->when) > 0 && strlen(text->remedy) > 0);
    }
}

static void test_numbers_are_unique_and_fit_the_file(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(rows[i].number > 0 && rows[i].number < UINT16_MAX);
        for (size_t j = 0; j < i; j++) {
            assert_int_not_equal(rows[i].number, rows[j].number);
            assert_string_not_equal(rows[i].name, rows[j].name);
        }
    }
}

static void test_known_codes(void **state)
{
    (void)state;
    assert_string_equal(gs_reason_text(GS_PREDICTED_FASTER)->code, "R001");
    assert_int_equal(gs_reason_text(GS_PREDICTED_FASTER)->class, GS_CLASS_gpu);
    assert_string_equal(gs_reason_text(GS_SIZE_BELOW_CROSSOVER)->code, "S102");
    assert_int_equal(gs_reason_text(GS_SIZE_BELOW_CROSSOVER)->class, GS_CLASS_should_not);
    assert_int_equal(gs_reason_text(GS_MEM_ALLOC_FAILED)->class, GS_CLASS_recovered);
    assert_int_equal(gs_reason_text(GS_OFF)->class, GS_CLASS_policy);
}

static void test_unknown_numbers(void **state)
{
    static const unsigned numbers[] = {0, 3, 999, UINT16_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_string_equal(gs_reason_text((gs_reason)numbers[i])->code, "?000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row_has_its_text),
        cmocka_unit_test(test_numbers_are_unique_and_fit_the_file),
        cmocka_unit_test(test_known_codes),
        cmocka_unit_test(test_unknown_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
