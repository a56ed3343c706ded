/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA doubles do what tests/fakecuda/fake.h promises. Each case runs in a process of its own,
 * because the FAKECUDA_ variables are read once per process; EXPECT ends that process with a
 * message. The cases are in tests/fakecuda/cases_*.inc.
 */
#include "../fakecuda/check.h"

#include "../fakecuda/cases_failures.inc"
#include "../fakecuda/cases_gemm.inc"
#include "../fakecuda/cases_level3.inc"
#include "../fakecuda/cases_memory.inc"
#include "../fakecuda/cases_process.inc"
#include "../fakecuda/cases_streams.inc"

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_entry_point_is_there),
        cmocka_unit_test(test_device_memory_faults_on_the_host),
        cmocka_unit_test(test_memory_is_poisoned),
        cmocka_unit_test(test_freed_addresses_rest),
        cmocka_unit_test(test_bounds_are_checked),
        cmocka_unit_test(test_use_after_free_breaks_the_context),
        cmocka_unit_test(test_use_after_queued_free_is_found),
        cmocka_unit_test(test_gemm_out_of_bounds_is_found_late),
        cmocka_unit_test(test_use_before_allocation_is_found),
        cmocka_unit_test(test_memory_has_a_limit),
        cmocka_unit_test(test_copies_are_late_and_sources_are_staged),
        cmocka_unit_test(test_rows_are_copied_without_their_gaps),
        cmocka_unit_test(test_events_are_not_ready_at_first),
        cmocka_unit_test(test_default_stream_waits_for_blocking_ones),
        cmocka_unit_test(test_destroyed_stream_finishes_later),
        cmocka_unit_test(test_speed_is_simulated),
        cmocka_unit_test(test_calls_need_init_and_context),
        cmocka_unit_test(test_child_is_refused),
        cmocka_unit_test(test_child_before_init_may_start),
        cmocka_unit_test(test_driver_ends_before_older_exit_handlers),
        cmocka_unit_test(test_start_takes_time),
        cmocka_unit_test(test_devices_that_are_visible),
        cmocka_unit_test(test_device_is_described),
        cmocka_unit_test(test_init_fails_as_told),
        cmocka_unit_test(test_second_call_fails_once),
        cmocka_unit_test(test_calls_fail_from_then_on),
        cmocka_unit_test(test_allocation_fails_for_want_of_memory),
        cmocka_unit_test(test_gemm_fails_at_once),
        cmocka_unit_test(test_gemm_fails_late),
        cmocka_unit_test(test_copy_back_spoils_half_at_once),
        cmocka_unit_test(test_copy_back_writes_half_late),
        cmocka_unit_test(test_synchronisation_fails_late_with_effect),
        cmocka_unit_test(test_counts_are_written),
        cmocka_unit_test(test_threads_work_side_by_side),
        cmocka_unit_test(test_inner_blas_is_private),
        cmocka_unit_test(test_products_are_right),
        cmocka_unit_test(test_zeros_hide_nan),
        cmocka_unit_test(test_arguments_are_checked),
        cmocka_unit_test(test_tf32_is_visible),
        cmocka_unit_test(test_tf32_can_be_forced),
        cmocka_unit_test(test_tf32_can_be_forbidden),
        cmocka_unit_test(test_cuda_12_names_load),
        cmocka_unit_test(test_level3_is_right),
        cmocka_unit_test(test_level3_fails),
        cmocka_unit_test(test_level3_finds_bounds),
        cmocka_unit_test(test_level3_checks_arguments),
        cmocka_unit_test(test_level3_has_tf32),
    };
    return cmocka_run_group_tests_name("fakecuda", tests, NULL, NULL);
}
