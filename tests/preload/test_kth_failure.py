# SPDX-License-Identifier: Apache-2.0
"""Every CUDA call fails once, at once and late, and from each call on all of them do: the results
stay right, nothing is printed, and the audit says why the CPU had to step in."""
from concurrent.futures import ThreadPoolExecutor

import pytest
from campaign import FALLBACKS, OUT_OF_MEMORY, STICKY, Campaign
from support import LONG, WORKERS, program, run_preloaded

COMMANDS = {"gemm": ["gemm_driver", "--few"], "level 3": ["level3_driver", "--few"],
            "own": ["level3_driver-own", "--few"]}


@pytest.fixture(scope="module", params=list(COMMANDS))
def campaign(request):
    """A program, and what it does when nothing fails."""
    return Campaign(*COMMANDS[request.param])


def share(places, first, step):
    """Returns the places to try: all of a long campaign, else every step-th."""
    return places if LONG else places[first % step::step]


def test_each_call_fails(campaign):
    """One call of one entry point returns an error at once."""
    campaign.check_all(campaign.single_failures())


def test_each_call_fails_late(campaign):
    """Its work fails half-done, and the next synchronisation reports it."""
    campaign.check_all(campaign.single_failures(":late"))


@pytest.mark.parametrize("suffix", ["", ":late"])
def test_all_calls_fail_from_one_on(campaign, suffix):
    """A device that is gone for good."""
    campaign.check_all(share(campaign.failures_from(suffix), 1, 11 if suffix else 3))


@pytest.mark.parametrize("status", [STICKY, OUT_OF_MEMORY])
@pytest.mark.parametrize("when", ["", ":late"])
def test_each_call_fails_with(campaign, status, when):
    """Errors that are treated apart: a lost context, a full device."""
    names = [name for name in campaign.entry_points
             if name.startswith("cu") and "cublas" not in name]
    campaign.check_all(share(campaign.single_failures(f"{when}:status={status}", names), status, 7))


def test_failures_that_meet_the_results(campaign):
    """The copy back fails late while the program goes on: C, which is also an input, survives."""
    places = campaign.single_failures(":late", ["cuMemcpyDtoHAsync_v2", "cuMemcpy2DAsync_v2"])
    assert len(places) >= 6
    for place in share(places, 0, 5):
        assert campaign.objections(place) is None


@pytest.mark.skipif(not LONG, reason="GPUSHIM_LONG=1: 64 failures in each part of the sweep")
@pytest.mark.parametrize("when", ["", ":late"])
@pytest.mark.parametrize("driver, every", [("gemm_driver", "97"), ("level3_driver", "997"),
                                           ("level3_driver-own", "997")])
def test_failures_in_the_sweep(driver, every, when):
    """Failures at places all over the sweep of arguments."""
    def sweep(k):
        result = run_preloaded([program(driver), "--every", every], timeout=120,
                               env={"FAKECUDA_FAIL_AT": f"{k}{when}", "GPUSHIM_ERROR_LIMIT": "0"})
        assert result.status == 0 and result.stderr == "", f"{k}{when}\n{result}"
        assert set(result.reasons("cpu")) <= FALLBACKS | {"S103", "U305", "U307"}, \
            f"{k}{when}\n{result}"
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(sweep, range(120, 120 + 64 * 83, 83)))
