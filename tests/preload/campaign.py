# SPDX-License-Identifier: Apache-2.0
"""Runs a program again and again, each time with another CUDA call that fails."""
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

from support import WORKERS, program, run_preloaded

# What may be the reason of a call that the device gave up, or of one after it.
FALLBACKS = {"E901", "E902", "E906", "M401", "M402", "L801", "L802", "L803", "L805", "L809"}
# What keeps a call on the CPU whatever the device does.
ALWAYS = {"S103", "U305", "U307"}
RELEASES = ("cuMemFreeAsync", "cuMemPoolTrimTo")
STICKY, OUT_OF_MEMORY = 719, 2


class Campaign:
    """A program of tests/preload that ends with "ok N cases" if its results are right."""

    def __init__(self, name, *options):
        self.command = [program(name), *options]

    @cached_property
    def undisturbed(self):
        """A run in which nothing fails."""
        result = run_preloaded(self.command)
        assert result.status == 0 and result.gpu_calls() > 0 and result.stderr == "", result
        assert set(result.reasons("cpu")) <= ALWAYS, result
        assert result.counts["failures"] == 0 and result.counts["settings.bad"] == 0, result.counts
        assert result.live() == {}, result.counts
        return result

    @property
    def entry_points(self):
        """{entry point: calls}"""
        return {name[len("call."):]: count for name, count in self.undisturbed.counts.items()
                if name.startswith("call.") and count > 0}

    def single_failures(self, suffix="", names=None):
        """Returns the FAKECUDA_FAIL_AT of every call there is, one each."""
        return [f"{name}:{k}{suffix}" for name, count in self.entry_points.items()
                for k in range(1, count + 1) if names is None or name in names]

    def failures_from(self, suffix=""):
        """Returns the FAKECUDA_FAIL_AT for all calls from the k-th on, for every k."""
        return [f"{k}+{suffix}" for k in range(1, sum(self.entry_points.values()) + 1)]

    def objections(self, place):
        """Runs the program with that failure; returns what is wrong with the outcome, or None."""
        # A small audit file: making a large one is much of what so short a run takes.
        result = run_preloaded(self.command, env={"FAKECUDA_FAIL_AT": place,
                                                  "GPUSHIM_AUDIT_LIMIT": "1M"})
        undisturbed = self.undisturbed
        always = undisturbed.reasons("cpu")
        on_cpu = result.reasons("cpu")
        fallen_back = set(on_cpu) - set(always)
        wrong = []
        if (result.status, result.stdout, result.stderr) != (0, undisturbed.stdout, ""):
            wrong.append("the outcome of the program")
        if result.counts.get("failures", 0) < 1 or result.counts["settings.bad"] != 0:
            wrong.append("nothing was made to fail")
        calls = undisturbed.gpu_calls() + undisturbed.cpu_calls()
        if result.gpu_calls() + result.cpu_calls() != calls:
            wrong.append("a call is missing in the report")
        if sum(on_cpu.values()) != result.cpu_calls() or not fallen_back <= FALLBACKS or any(
                on_cpu.get(code) != count for code, count in always.items()):
            wrong.append("the reasons")
        if "+" not in place and "status" not in place and fallen_back & {"E902", "E906"}:
            wrong.append("one error that can be survived put the device out of use")
        # An entry point that releases memory and fails has not released it.
        may_leak = "+" in place or place.startswith(RELEASES) or f"status={STICKY}" in place
        if not may_leak and result.live() != {}:
            wrong.append(f"leak {result.live()}")
        return f"{place}: {', '.join(wrong)}\n{result}" if wrong else None

    def check_all(self, places):
        """Fails with the first few of the places whose outcome is wrong."""
        assert self.undisturbed and places
        with ThreadPoolExecutor(WORKERS) as pool:
            wrong = [text for text in pool.map(self.objections, places) if text]
        assert not wrong, f"{len(wrong)} of {len(places)}:\n" + "\n".join(wrong[:5])
