// The pattern language (collage/pattern): Python builds the very values that the matcher reads.

#include "collage/pattern/pattern.h"

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "collage/ir/parse.h"
#include "collage/pattern/check.h"
#include "collage/pattern/matcher.h"
#include "python/placement/values.h"

namespace collage_python {

using namespace collage;

namespace {

Pattern Checked(Pattern pattern) {
  if (const Status status = CheckPattern(pattern); !status) Raise("ArgumentError", status.error().message);
  return pattern;
}

Pattern Called(const Pattern& callee, const nb::args& arguments) {
  if (arguments.size() == 1 && arguments[0].is(nb::ellipsis())) return pattern::CallOf(callee);
  std::vector<Pattern> patterns;
  for (const nb::handle argument : arguments) patterns.push_back(nb::cast<Pattern>(argument));
  return pattern::CallOf(callee, std::move(patterns));
}

DType DTypeNamed(const std::string& name) {
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype) Raise("ArgumentError", "there is no element type '" + name + "'");
  return *dtype;
}

/// A match that was looked for.
struct Found {
  Match match;
  std::vector<ExprView> inside;
};

std::vector<Found> Matches(const Pattern& pattern, const ProgramView& program) {
  Checked(pattern);
  std::vector<Found> all;
  for (const auto& [name, function] : program.model.module.functions()) {
    const DataflowGraph graph(function);
    ForEachMatch(graph, pattern, [&](PatternMatch found) {
      std::vector<ExprView> inside;
      found.inside.ForEach([&](PostDfsIndex node) { inside.push_back({graph[node].expr}); });
      all.push_back({std::move(found.match), std::move(inside)});
    });
  }
  return all;
}

}  // namespace

void BindPatterns(nb::module_& module) {
  nb::class_<Pattern>(module, "Pattern", "A pattern over expressions. Built by the functions of collage.pattern.")
      .def("__call__", &Called, nb::sig("def __call__(self, *args: Pattern | types.EllipsisType) -> Pattern"),
           "A call of what this matches with such arguments; `...` alone: with any")
      .def(
          "__or__",
          [](const Pattern& a, const Pattern& b) {
            return pattern::Or({a, b});
          },
          nb::is_operator(), "Either")
      .def(
          "optional",
          [](const Pattern& inner, const nb::callable& outer) {
            return pattern::Optional(inner, [&](const Pattern& data) {
              const nb::object made = outer(data);
              Pattern result = inner;
              if (!nb::try_cast(made, result))
                Raise("ArgumentError", std::string("optional: a pattern is expected of what is given, not ") + nb::repr(made).c_str());
              return result;
            });
          },
          nb::arg("outer"), "What `outer` makes of it, or it alone: conv.optional(lambda p: is_op('nn.relu')(p))")
      .def(
          "has_attr", [](const Pattern& of, const nb::dict& attributes) { return pattern::HasAttributes(of, AttributesFrom(attributes)); },
          nb::arg("attributes"), nb::sig("def has_attr(self, attributes: dict[str, typing.Any]) -> Pattern"),
          "And its attributes include these; 'kind' is the operator's fusion kind")
      .def(
          "has_type",
          [](const Pattern& of, const std::string& type) { return pattern::HasType(of, ValueOr(ParseTypeText(type), "ArgumentError")); },
          nb::arg("type"), "And it is of this type, as Relay text: 'Tensor[(1, 8), float32]'")
      .def(
          "has_dtype", [](const Pattern& of, const std::string& dtype) { return pattern::HasDType(of, DTypeNamed(dtype)); },
          nb::arg("dtype"))
      .def(
          "has_shape", [](const Pattern& of, Shape shape) { return pattern::HasShape(of, std::move(shape)); }, nb::arg("shape"))
      .def(
          "dominates",
          [](const Pattern& child, const Pattern& parent, const Pattern& path) { return pattern::Dominator(parent, path, child); },
          nb::arg("parent"), nb::arg("path"),
          "And it dominates a `parent`: every way from that to the result leads through it, and all between the two matches `path`")
      .def("named", &Pattern::As, nb::arg("name"), "And what it matches is to be found in the match under this name");
  module.def(
      "is_op", [](std::string name) { return Checked(pattern::IsOp(std::move(name))); }, nb::arg("name"), "An operator, to be called");
  module.def("wildcard", &pattern::Wildcard, "Anything; it stays outside of the match");
  module.def("is_constant", &pattern::IsConstant, "A constant, inside of the match");
  module.def("is_scalar", &pattern::IsScalar, nb::arg("value"), "A constant of one element equal to this");
  module.def("is_var", &pattern::IsVariable, nb::arg("name") = "", "A variable, outside of the match; of any name where that is empty");
  module.def(
      "is_tuple",
      [](std::optional<std::vector<Pattern>> fields) { return fields ? pattern::IsTuple(std::move(*fields)) : pattern::AnyTuple(); },
      nb::arg("fields") = nb::none(), "A tuple of these fields; None: of any");
  module.def("tuple_get_item", &pattern::Projection, nb::arg("tuple"), nb::arg("index"), "A field of a tuple");
  module.def("same", &pattern::Same, nb::arg("name"), "The expression that another part of the pattern has matched under this name");
  module.def("is_if", &pattern::IsIf, nb::arg("condition"), nb::arg("then"), nb::arg("otherwise"));
  module.def("is_let", &pattern::IsLet, nb::arg("variable"), nb::arg("value"), nb::arg("body"));
  module.def(
      "is_function",
      [](std::optional<std::vector<Pattern>> parameters, const Pattern& body) {
        return parameters ? pattern::IsFunction(std::move(*parameters), body) : pattern::IsFunction(body);
      },
      nb::arg("parameters").none(), nb::arg("body"), "A function literal; None: of any parameters");
  nb::class_<Match>(module, "Match", "A match of a pattern: what a check looks at.")
      .def_prop_ro("root", [](const Match& match) { return ExprView{match.root}; })
      .def(
          "__getitem__",
          [](const Match& match, const std::string& name) {
            const Expr found = match.Find(name);
            if (!found) throw nb::key_error(name.c_str());
            return ExprView{found};
          },
          nb::arg("name"), "What a part of the pattern has matched under this name")
      .def("__contains__", [](const Match& match, const std::string& name) { return match.Find(name) != nullptr; });
  nb::class_<Found>(module, "Found", "A match that was looked for.")
      .def_prop_ro("match", [](const Found& found) { return found.match; })
      .def_prop_ro("root", [](const Found& found) { return ExprView{found.match.root}; })
      .def_prop_ro(
          "inside", [](const Found& found) { return found.inside; }, "What the pattern speaks of, in dataflow order");
  module.def("find_matches", &Matches, nb::arg("pattern"), nb::arg("program"));
}

}  // namespace collage_python
