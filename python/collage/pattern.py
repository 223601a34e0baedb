"""Patterns over the operators of a model, in the words of Relay's pattern language.

    from collage.pattern import is_constant, is_op, wildcard

    dense = is_op("nn.dense")(wildcard(), is_constant().named("weight"))
    dense_relu = dense.optional(lambda inner: is_op("nn.relu")(inner))

A pattern of an operator is called with patterns of its arguments, or with `...` for any. `|` is either; `has_attr`, `has_type`,
`has_shape`, `has_dtype`, `dominates` and `named` say more. Commutative operators match either way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from collage._compile import Model, read
from collage._placement import (
    Expr,
    Found,
    Match,
    Pattern,
    Program,
    find_matches,
    is_constant,
    is_function,
    is_if,
    is_let,
    is_op,
    is_scalar,
    is_tuple,
    is_var,
    same,
    tuple_get_item,
    wildcard,
)

__all__ = [
    "Expr",
    "Found",
    "Match",
    "Pattern",
    "is_constant",
    "is_function",
    "is_if",
    "is_let",
    "is_op",
    "is_scalar",
    "is_tuple",
    "is_var",
    "match",
    "same",
    "tuple_get_item",
    "wildcard",
]


def match(pattern: Pattern, model: Model | Program, *, shapes: Mapping[str, Sequence[int]] | None = None) -> list[Found]:
    """Every match in a model, overlapping ones too, as a backend's rule would find it: in the program that `collage.read` gives."""
    return find_matches(pattern, read(model, shapes=shapes))
