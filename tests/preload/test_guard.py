# SPDX-License-Identifier: Apache-2.0
"""Ways out of a call that are not a return, calls inside calls, illegal calls."""
import itertools

import pytest
from support import check_good, program, run_plain, run_preloaded, sanitizer

BOTH = ["guard", "guard-netlib"]


def guard(name, what, **options):
    """Runs guard.c; returns the Result, which is good."""
    return check_good(run_preloaded([program(name), what], timeout=30, **options), "")


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("mode", ["auto", "force", "verify", "off"])
def test_the_programs_own_xerbla(name, mode):
    """It is called once per illegal call, with the routine and the argument (C05)."""
    result = guard(name, "counts", mode=mode)
    if mode == "force":
        # m = -1 makes the work negative: counted with the small calls.
        assert result.reasons() == {"U307": 1, "S101": 1, "R002": 1}, result


@pytest.mark.parametrize("name", BOTH)
def test_longjmp_out_of_xerbla(name):
    """No guard stays behind: later calls are decided as usual, from anywhere on the stack."""
    result = guard(name, "longjmp")
    assert result.reasons("gpu") == {"R002": 60} and result.nested_calls() == 0, result


@pytest.mark.parametrize("name", BOTH)
def test_longjmp_on_the_cpu(name):
    """The same where the calls after it stay on the CPU."""
    result = guard(name, "longjmp", fakecuda=False)
    reasons = result.reasons()
    reasons.pop("U307", None)  # left before they could be recorded
    assert reasons == {"L801": 60}, result


@pytest.mark.skipif(sanitizer() == "tsan", reason="TSan's run time does not survive pthread_exit "
                    "out of a foreign library")
def test_thread_that_ends_inside_a_call():
    """pthread_exit in xerbla unwinds through the library; the next threads find no trace."""
    result = guard("guard-netlib", "exit thread")
    assert result.reasons("gpu") == {"R002": 20} and result.nested_calls() == 0, result


@pytest.mark.parametrize("mode, fakecuda", [("force", True), ("auto", False), ("verify", True)])
def test_errno(mode, fakecuda):
    """No call changes errno, wherever it runs."""
    guard("guard", "errno", mode=mode, fakecuda=fakecuda)


def test_exceptions():
    """A C++ exception of the CPU library reaches the caller's catch."""
    result = check_good(run_preloaded([program("exceptions")]), "")
    assert result.reasons("gpu") == {"R002": 25} and result.nested_calls() == 0, result


def test_nested_calls():
    """What a CPU library calls inside a call is counted, and never offloaded."""
    result = check_good(run_preloaded([program("nested")]), "")
    assert result.reasons() == {"R002": 2, "U305": 1, "A602": 3}, result
    assert result.nested_calls("sgemm") == 3 and result.gpu_calls("sgemm") == 0, result
    result = check_good(run_preloaded([program("nested")], fakecuda=False), "")
    assert result.reasons() == {"L801": 2, "U305": 1, "A602": 9}, result


def test_nested_calls_of_verified_ones():
    """In verify mode too: only the outer call is compared."""
    result = check_good(run_preloaded([program("nested")], mode="verify"), "")
    assert result.reasons() == {"P707": 2, "U305": 1, "A602": 9}, result


# Fortran: m n k, three leading dimensions, flags, several at once. CBLAS: those and the layout.
ILLEGAL = [("F77", number) for number in range(12)]
ILLEGAL += [("CBLAS", number) for number in [*range(11), 100, 101]]


@pytest.mark.parametrize("name", ["illegal", "illegal-netlib"])
@pytest.mark.parametrize("mode, fakecuda", [("force", True), ("auto", False)])
def test_illegal_calls(name, mode, fakecuda):
    """Messages, status and C are those of the CPU library alone (C19)."""
    for interface, number in ILLEGAL:
        command = [program(name), interface, str(number)]
        plain = run_plain(command)
        result = run_preloaded(command, mode=mode, fakecuda=fakecuda)
        assert (result.status, result.stdout, result.stderr) == (
            plain.status, plain.stdout, plain.stderr), f"{command}\n{plain}\n{result}"
        assert "C[" not in result.stdout, f"{command}\n{result}"
        assert result.gpu_calls() == 0 and result.counts == {}, f"{command}\n{result}"


def test_illegal_calls_say_something():
    """At least OpenBLAS does, or the comparison above would compare nothing."""
    messages = [run_plain([program("illegal"), interface, str(number)])
                for interface, number in itertools.islice(ILLEGAL, 8)]
    assert all("parameter number" in result.stdout + result.stderr for result in messages)
