# SPDX-License-Identifier: Apache-2.0
"""gpushim doctor: is the library active here, will it be for this program, what is missing."""
import sys
import sysconfig
import textwrap

from . import doctor_blas, doctor_device, doctor_here, doctor_links, doctor_program, doctor_python
from . import settings, tables
from .doctor_findings import FAIL, OK, WARN
from .output import WIDTH, plural, print_json, printable, use_colour
from .parser import Parser
from .run import split_command

FAILURE_STATUS = 1
USAGE = """gpushim doctor [--json | --plain] [[--] COMMAND [ARGUMENT ...]]
       gpushim doctor [--json | --plain] SCRIPT.py [ARGUMENT ...]
       gpushim doctor [--json | --plain] -m MODULE [ARGUMENT ...]"""
SUMMARY = """Says whether the library works here, and with a command whether it will for that
program, which is not run: of a Python program only the interpreter is, with a product of NumPy,
SciPy and scikit-learn each.

Exit status: 0 without a FAIL, else 1."""
EXAMPLE = "  gpushim doctor\n  gpushim doctor -- python app.py"
COLOURS = {OK: 32, WARN: 33, FAIL: 31}
INDENT = 20


def make_parser():
    """Returns the parser of everything before the command."""
    parser = Parser("doctor", SUMMARY, EXAMPLE, usage=USAGE)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document")
    form.add_argument("--plain", action="store_true", help="no colours")
    return parser


def own_packages():
    """Returns a path below the site-packages of this Python."""
    return sysconfig.get_path("platlib") + "/x"


def check_command(command, library, ours, facts):
    """Returns (findings about a command, the words that start its Python, a module's path)."""
    try:
        program = doctor_program.identify(command)
    except doctor_program.Unusable as unusable:
        return [unusable.finding], None, ""
    if program.python:
        findings, probe = doctor_python.check_python(program, library, ours, facts)
        known = probe is not None and probe.answer is not None
        if not known and program.elf:
            findings = doctor_program.check_program(program, ours) + findings
        rows, python = (probe.libraries(), program.python) if known else ([], None)
        module = probe.module() if known else ""
    else:
        findings = doctor_program.check_program(program, ours)
        python, module, rows = None, "", []
        if not any(finding.status == FAIL for finding in findings):
            linked, rows = doctor_links.check_links(program, facts)
            findings += linked + doctor_blas.check_width(rows)
    findings += doctor_blas.check_threads(rows, doctor_blas.allowed_cores())
    return findings, python, module


def examine(command, facts):
    """Returns all findings."""
    chosen = settings.effective(facts.settings)
    library, ours, findings = doctor_here.check_library(facts)
    findings += doctor_here.check_exported_preload(library)
    findings += doctor_here.check_settings(chosen)
    python, module = None, own_packages()
    if command:
        about, python, module = check_command(command, library, ours, facts)
        findings += about
    findings += doctor_device.check_cuda(facts, chosen, python or [sys.executable], module)
    findings += doctor_here.check_audit(chosen)
    findings += doctor_here.check_limits(chosen)
    return findings


def wrap(text):
    """Returns the rows of a text in the last column."""
    return textwrap.wrap(printable(text), WIDTH - INDENT, break_long_words=False,
                         break_on_hyphens=False) or [""]


def print_finding(finding, colour):
    """Prints one finding."""
    status = finding.status.ljust(4)
    if colour and finding.status in COLOURS:
        status = f"\033[{COLOURS[finding.status]}m{status}\033[0m"
    code = f"  [{finding.code}]" if finding.code else ""
    rows = wrap(finding.text + code)
    print(f"  {status}  {finding.area:<12}{rows[0]}")
    rows = rows[1:]
    if finding.remedy and finding.remedy != "nothing":
        first, *more = wrap("-> " + finding.remedy)
        rows += [first, *("   " + row for row in more)]
    for row in rows:
        print(" " * INDENT + row)


def summary(findings):
    """Returns the last line of doctor: how many problems and warnings there are."""
    problems = sum(finding.status == FAIL for finding in findings)
    warnings = sum(finding.status == WARN for finding in findings)
    if problems == 0 and warnings == 0:
        return "no problem"
    return (f"{plural(problems, 'problem') if problems else 'no problem'}, "
            f"{plural(warnings, 'warning')}")


def print_text(findings, facts, colour):
    """Prints everything as text."""
    print(f"gpushim {facts.version}")
    for finding in findings:
        print_finding(finding, colour)
    print(summary(findings))


def main(arguments):
    """Runs the verb; returns the exit status."""
    before, command = split_command(arguments)
    options = make_parser().parse_args(before)
    facts = tables.load()
    findings = examine(command, facts)
    if options.json:
        print_json([finding._asdict() for finding in findings])
    else:
        print_text(findings, facts, not options.plain and use_colour())
    return 1 if any(finding.status == FAIL for finding in findings) else 0
