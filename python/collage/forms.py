"""Other ways to compute parts of a model, beside those that Collage knows.

    from collage import forms
    from collage.pattern import is_constant, is_op, wildcard

    dense = is_op("nn.dense")(wildcard().named("data"), is_constant().named("weight"))

    def halves(match):
        weight = match["weight"].value
        parts = [forms.call("nn.dense", match["data"], forms.constant(half)) for half in numpy.split(weight, 2)]
        return forms.call("concatenate", forms.tuple_of(*parts), axis=1)

    collage.compile(model, forms=[forms.form("halves", dense, halves, lambda match: match["weight"].shape[0] % 2 == 0)])

A form is a choice like any other: its operators are offered to every backend and timed, and the plan holds it where it is faster. At each
place it is first run on the reference executor beside what it stands for. Where it computes something else, cannot be built, or gives
another type, the place is refused, and the report says why. The same in JSON is in docs/query.md, for `collage compile --forms FILE`."""

from collage._placement import Form, call, constant, field, form, tuple_of

__all__ = ["Form", "call", "constant", "field", "form", "tuple_of"]
