"""Rule trees: how candidates for a target are found that says `-partition_rule=NAME`.

    from collage import rules

    mine = rules.Primitive(rules.Composite("numpy.relu", rules.DFPattern(is_op("nn.relu")(wildcard()))))
    collage.compile(model, targets=["cpu -compiler=numpy -partition_rule=mine", "cpu"], partition_rules={"mine": mine})

They have the names and the meaning that they have in JSON (docs/query.md), for `collage compile --partition-rules FILE`. A tree is taken as
it is: nothing is added to what it finds."""

from collage._placement import (
    Combine,
    Composite,
    DFPattern,
    Host,
    MaxCoalesce,
    Maximal,
    OnlyValid,
    OpCallByKind,
    OpPredicate,
    Primitive,
    Rule,
    Union,
)

__all__ = [
    "Combine",
    "Composite",
    "DFPattern",
    "Host",
    "MaxCoalesce",
    "Maximal",
    "OnlyValid",
    "OpCallByKind",
    "OpPredicate",
    "Primitive",
    "Rule",
    "Union",
]
