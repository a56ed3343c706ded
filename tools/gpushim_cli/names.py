# SPDX-License-Identifier: Apache-2.0
"""Suggestions for misspelt names."""


def edit_distance(a, b):
    """Returns how many letters must be added, removed or replaced to turn a into b."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            best = min(diagonal + (letter != other), row[j] + 1, row[j - 1] + 1)
            diagonal, row[j] = row[j], best
    return row[-1]


def nearest(word, candidates, limit=3):
    """Returns the candidate at most limit edits away from word, the nearest one, else None."""
    distances = [(edit_distance(word.upper(), name.upper()), name) for name in candidates]
    close = [pair for pair in distances if pair[0] <= limit]
    return min(close, key=lambda pair: pair[0])[1] if close else None


def maybe(word, candidates, limit=3):
    """Returns "; maybe NAME?" for the nearest candidate, or "" when none is near."""
    name = nearest(word, candidates, limit)
    return f"; maybe {name}?" if name else ""
