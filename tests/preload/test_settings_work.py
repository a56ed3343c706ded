# SPDX-License-Identifier: Apache-2.0
"""Settings from end to end: what a variable says shows in where calls run and what is said."""
import re
import signal

import pytest
from support import check_good, program, run_preloaded

FEW = ["level3_driver", "--few"]
CALLS = 12 # of the driver
FALLBACK = re.compile(r"gpushim: (\w+) stayed on the CPU: (\w\d+) \w+ \(.+\); caller \S*\n")


def few(**settings):
    """Runs the driver's few calls with these GPUSHIM_ and FAKECUDA_ variables; returns a Result."""
    return run_preloaded([program(FEW[0]), *FEW[1:]], fakecuda=settings.pop("fakecuda", True),
                         mode=settings.pop("mode", "force"), env=settings)


def told(result):
    """Returns [(routine, code)] of the lines about fallbacks; anything else on stderr is wrong."""
    assert FALLBACK.sub("", result.stderr) == "", result
    return FALLBACK.findall(result.stderr)


# ---- GPUSHIM_ON_FALLBACK ----

def test_fallbacks_are_only_recorded():
    """Nothing is said unless it was asked for."""
    for value in (None, "record"):
        result = few(fakecuda=False, GPUSHIM_ON_FALLBACK=value)
        assert check_good(result).reasons() == {"L801": CALLS}, result


def test_fallbacks_warn_once_a_reason_and_site():
    """As often as the program has places that call, however often they do."""
    many = [program("many"), "5"] # one place
    result = run_preloaded(many, fakecuda=False, env={"GPUSHIM_ON_FALLBACK": "warn"})
    assert result.status == 0 and told(result) == [("dgemm", "L801")], result
    result = few(fakecuda=False, GPUSHIM_ON_FALLBACK="warn")
    assert result.status == 0 and result.stdout == f"ok {CALLS} cases\n", result
    lines = told(result)
    assert 6 <= len(lines) <= CALLS and {code for _, code in lines} == {"L801"}, result
    assert result.reasons() == {"L801": CALLS}, result


def test_expected_reasons_and_the_users_own_are_no_fallbacks():
    """S103, P702, P705, P707 are not worth a line, unless they are asked for by name."""
    command = [program("level3_driver"), "--families", "symm", "--types", "d", "--every", "5"]
    for mode, code in (("force", "S103"), ("observe", "P705"), ("verify", "P707")):
        environment = {"GPUSHIM_ON_FALLBACK": "warn:U307,E*", "GPUSHIM_MIN_TIME": "1ns"}
        result = run_preloaded(command, mode=mode, env=environment)
        assert told(result) == [], result
        if mode == "observe": # its first calls are below the first floor
            continue
        environment["GPUSHIM_ON_FALLBACK"] = f"warn:{code}"
        result = run_preloaded(command, mode=mode, env=environment)
        assert {line[1] for line in told(result)} == {code}, result


@pytest.mark.parametrize("codes, expected", [
    ("L*", {"L801"}), ("L801", {"L801"}), ("U*,E*", set()), ("*,-L801", set()), ("l8??", {"L801"})])
def test_fallbacks_by_code(codes, expected):
    """Only those that the patterns name."""
    result = few(fakecuda=False, GPUSHIM_ON_FALLBACK=f"warn:{codes}")
    assert result.status == 0 and {code for _, code in told(result)} == expected, result


@pytest.mark.parametrize("value, aborts", [
    ("abort", True), ("abort:L801", True), ("abort:E*,U*", False), ("abort:*", True)])
def test_fallbacks_that_abort(value, aborts):
    """The program ends at the first one, with a line that says why; the audit has it."""
    result = few(fakecuda=False, GPUSHIM_ON_FALLBACK=value)
    if not aborts:
        assert check_good(result).reasons() == {"L801": CALLS}, result
        return
    assert result.status == -signal.SIGABRT and len(told(result)) == 1, result
    assert result.reasons() == {"L801": 1}, result


def test_no_abort_while_all_goes_well():
    """A run without a fallback is left alone."""
    assert check_good(few(GPUSHIM_ON_FALLBACK="abort")).gpu_calls() == CALLS


def test_failures_warn():
    """A device that fails is a fallback, too."""
    result = few(GPUSHIM_ON_FALLBACK="warn", FAKECUDA_FAIL_AT="cublasDsymm_v2:1")
    assert result.status == 0 and told(result) == [("dsymm", "E901")], result


# ---- GPUSHIM_ROUTINES ----

@pytest.mark.parametrize("patterns, on_gpu", [
    ("symm", {"dsymm", "csymm"}), ("dsymm", {"dsymm"}), ("symm,-c*", {"dsymm"}),
    ("z*", {"zgemm3m", "zhemm", "zher2k", "ztrsm"}), ("tr?m", {"dtrmm", "dtrsm", "ztrsm"}),
    ("-symm,-z*", {"dsyrk", "ssyrk", "cherk", "ssyr2k", "dtrmm", "dtrsm"}),
    ("nothing", set()), ("all,-all", set())])
def test_routines(patterns, on_gpu):
    """Those that are left out say P702; nothing else is asked of the device."""
    result = check_good(few(GPUSHIM_ROUTINES=patterns))
    used = {row["routine"] for row in result.report["routines"] if row["gpu_calls"] > 0}
    assert used == on_gpu, result
    assert set(result.reasons("cpu")) == {"P702"}, result
    assert (result.counts == {}) == (on_gpu == set()), result.counts


# ---- GPUSHIM_DEVICE ----

def device_of(result):
    """Returns the name of the device that the process had."""
    process, = result.report["processes"]
    return process["device"]


@pytest.mark.parametrize("index", ["0", "2"])
def test_device_by_index(index):
    """The device of that number, of those that are visible."""
    result = check_good(few(GPUSHIM_DEVICE=index, FAKECUDA_DEVICES="3"))
    assert result.gpu_calls() == CALLS and device_of(result) == f"Fake CUDA device {index}", result


@pytest.mark.parametrize("index", ["none", "None", "3", "-1", "999999"])
def test_no_device(index):
    """None, or one that is not there: L802."""
    result = check_good(few(GPUSHIM_DEVICE=index, FAKECUDA_DEVICES="3"))
    assert result.reasons() == {"L802": CALLS} and device_of(result) == "", result


@pytest.mark.parametrize("value", ["banana", "0x1", "1,2", "GPU-1234", "12345678", "1 ", "-"])
def test_device_that_is_none(value):
    """A refused value is noted, and the default used (P709)."""
    result = check_good(few(GPUSHIM_DEVICE=value, FAKECUDA_DEVICES="3", LOCAL_RANK="1"))
    assert result.gpu_calls() == CALLS, result
    noted = [event for event in result.report["events"] if event["event"] == "setting"]
    if value.strip() == "1": # blanks around a value do not count
        assert noted == [] or noted[0]["setting"] == "GPUSHIM_DEVICE", noted
        return
    assert device_of(result) == "Fake CUDA device 1", result
    assert [(event["code"], event["setting"], event["value"]) for event in noted] == [
        ("P709", "GPUSHIM_DEVICE", value)], noted


# ---- GPUSHIM_MEM_LIMIT ----

def large_and_small(routine, limit, **environment):
    """Runs one family with few and many bytes; returns a Result."""
    command = [program("level3_driver"), "--families", routine, "--types", "d", "--every", "3"]
    return check_good(run_preloaded(command, env=dict(environment, GPUSHIM_MEM_LIMIT=limit)))


@pytest.mark.parametrize("routine", ["symm", "syrk", "trmm", "trsm"])
def test_memory_limit(routine):
    """What needs more goes to the CPU with M403, the rest to the device; a triangle needs there
    what the whole matrix does."""
    result = large_and_small(routine, "20K")
    assert set(result.reasons("cpu")) == {"M403", "S103", "U305"}, result
    assert result.gpu_calls() > 20 and result.reasons()["M403"] > 20, result
    records = few(GPUSHIM_MEM_LIMIT=str(9 * 9 * 8 + 9 * 5 * 8), GPUSHIM_ROUTINES="dtrmm")
    assert records.gpu_calls("dtrmm") == 1, records
    records = few(GPUSHIM_MEM_LIMIT=str(9 * 9 * 8 + 9 * 5 * 8 - 8), GPUSHIM_ROUTINES="dtrmm")
    assert records.gpu_calls("dtrmm") == 0 and records.reasons()["M403"] == 1, records


def test_memory_share():
    """A share of what is free: M401, for it is the device's size."""
    # The link is measured with 16 MiB at start-up.
    result = large_and_small("symm", "0.1%", FAKECUDA_MEM="20M")
    assert set(result.reasons("cpu")) == {"M401", "S103", "U305"}, result
    assert result.gpu_calls() > 20 and result.reasons()["M401"] > 20, result
