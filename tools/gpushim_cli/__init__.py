# SPDX-License-Identifier: Apache-2.0
"""The command line tool of libgpushim: one module per verb, standard library only.

main.py chooses the verb; run, doctor, report, symbols, env and runs are the verbs, doctor_* the
parts of doctor. The others are what they share: places (where files are), tables (facts of the C
tables), settings (layers of settings), gsl (one audit file), rundir (one run), merge (the numbers
of a run), output (text).
"""
