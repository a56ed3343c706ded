# SPDX-License-Identifier: Apache-2.0
"""The price of a call that is not looked at: counted instructions are held, times are shown."""
import os
import shutil
import subprocess
import sys

import pytest
from preloaded import BUILD, ROOT, runner  # noqa: F401

sys.path.insert(0, os.path.join(ROOT, "bench"))
import overhead  # noqa: E402  (needs the line above)


def is_instrumented():
    """Returns whether the library under test is a sanitizer build."""
    return "-" in os.path.basename(BUILD)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The benchmark's program beside its empty BLAS."""
    if shutil.which(os.environ.get("CC", "cc")) is None:
        pytest.skip("no C compiler")
    return overhead.compile_programs(str(tmp_path_factory.mktemp("overhead")))


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.skipif(is_instrumented(), reason="a sanitizer build has other instructions")
def test_instructions_of_no(program):
    """At most a tenth more than stored (bench/overhead.py --store after a deliberate change)."""
    stored = overhead.expected()
    counts = overhead.instructions(program, os.path.dirname(program), BUILD)
    expected = stored["extra_instructions_per_call"]
    assert counts.keys() == expected.keys()
    for key, count in counts.items():
        assert count > 5, f"{key}: the preload was not in the way"
        assert count <= overhead.TOLERANCE * expected[key], (
            f"{key}: {count} instructions beyond the bare call, {expected[key]} stored "
            f"({overhead.compiler()}; stored with {stored['compiler']})")


def test_times_of_no(program, record_property):
    """Only shown (pytest -s): a busy machine must not fail a build. The ways are checked."""
    folder = os.path.dirname(program)
    for entry in overhead.ENTRIES:
        found = {mode: min(overhead.time_once(program, folder, mode, BUILD, entry, 2, 300000, 1)
                           for _ in range(3)) for mode in (None, *overhead.MODES)}
        for mode in overhead.MODES:
            record_property(f"{entry} {mode} extra ns", round(found[mode] - found[None], 2))
            print(f"{entry} {mode}: {found[mode] - found[None]:.2f} ns beyond {found[None]:.2f} ns")
        assert 0 < found[None] < found["auto"] < 1000


def test_small_calls_are_counted_exactly(runner, program):  # noqa: F811
    """What the cheap way counts arrives in the audit, from several threads too."""
    environment = {"LD_LIBRARY_PATH": os.path.dirname(program)}
    outcome = runner.command([program, "dgemm_", "2", "150000", "3", "1"], mode="auto",
                             env=environment)
    assert outcome.calls("cpu", "dgemm", "S101") == 3 * (150000 + 1000)
    assert outcome.calls() == 3 * (150000 + 1000) and not outcome.records
    plain = subprocess.run([program, "dgemm_", "2", "10", "1", "1"], check=True,
                           stdout=subprocess.PIPE, encoding="utf-8",
                           env=overhead.environment(os.path.dirname(program), None, BUILD))
    assert "libgpushim" not in plain.stdout and "libgpushim" in outcome.stdout
