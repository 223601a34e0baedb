// Equivalent forms of a user's own (collage/form/form.h): a pattern, and a callable that builds what computes the same.

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>

#include "collage/form/form.h"
#include "collage/op/table.h"
#include "collage/pattern/check.h"
#include "python/placement/rules.h"
#include "python/placement/values.h"

namespace collage_python {

using namespace collage;

namespace {

using Array = nb::ndarray<nb::numpy, nb::ro, nb::device::cpu, nb::c_contig>;

DType ElementTypeOf(const Array& array) {
  using Code = nb::dlpack::dtype_code;
  const nb::dlpack::dtype type = array.dtype();
  const auto code = static_cast<Code>(type.code);
  const char* kind = code == Code::Bool ? "bool" : code == Code::Float ? "float" : code == Code::Int ? "int" : "uint";
  const std::string name = code == Code::Bool ? kind : kind + std::to_string(type.bits);
  const std::optional<DType> dtype = DTypeFromName(name);
  if (!dtype) Raise("ArgumentError", "a constant of " + name + " has no element type in a program");
  return *dtype;
}

ExprView ConstantOf(const Array& array) {
  Tensor tensor(TensorType{Shape(array.shape_ptr(), array.shape_ptr() + array.ndim()), ElementTypeOf(array)});
  std::memcpy(tensor.MutableBytes(), array.data(), array.nbytes());
  return {MakeConstant(std::move(tensor))};
}

std::vector<Expr> ExprsOf(const nb::args& views) {
  std::vector<Expr> exprs;
  for (const nb::handle view : views) exprs.push_back(nb::cast<ExprView>(view).expr);
  return exprs;
}

ExprView CallOf(const std::string& op, const nb::args& arguments, const nb::kwargs& attributes) {
  const OpDef* def = Operators().Find(op);
  if (!def) Raise("ArgumentError", "there is no operator '" + op + "'");
  return {ValueOr(MakeCall(def, ExprsOf(arguments), AttributesFrom(attributes)), "ArgumentError")};
}

FormRule FormOf(std::string name, const Pattern& pattern, nb::object replacement, nb::object check) {
  if (const Status status = CheckPattern(pattern); !status) Raise("ArgumentError", status.error().message);
  std::function<Verdict(const Match&)> condition = CheckOf(std::move(check));
  if (!condition) condition = [](const Match&) { return Verdict::Accept(); };
  const auto build = [kept = Kept(std::move(replacement))](const std::vector<Match>& matches) -> Result<std::vector<Expr>> {
    const nb::gil_scoped_acquire acquire;
    const nb::object built = kept.get()(matches.front());
    if (!nb::isinstance<ExprView>(built))
      Raise("ArgumentError", std::string("a replacement answers with a collage.pattern.Expr, not ") + nb::repr(built).c_str());
    return std::vector<Expr>{nb::cast<ExprView>(built).expr};
  };
  FormRule rule = StatedForm(std::move(name), pattern, std::move(condition), build);
  if (const Status status = CheckNamesOfStated({rule}); !status) Raise("ArgumentError", status.error().message);
  return rule;
}

}  // namespace

void BindForms(nb::module_& module) {
  nb::class_<FormRule>(module, "Form", "Another way to compute what a pattern matches. Built by collage.forms.form.")
      .def_prop_ro("name", [](const FormRule& rule) { return rule.name; });
  module.def("form", &FormOf, nb::arg("name"), nb::arg("pattern"), nb::arg("replacement"), nb::arg("check").none() = nb::none(),
             nb::sig("def form(name: str, pattern: Pattern, replacement: collections.abc.Callable[[Match], Expr], check: "
                     "collections.abc.Callable[[Match], bool | str | None] | None = None) -> Form"),
             "Every match of a pattern that `check` accepts may be computed as `replacement` builds it from the match");
  module.def("call", &CallOf, nb::sig("def call(op: str, *args: Expr, **attributes: typing.Any) -> Expr"),
             "A call of an operator, with the attributes that the program's text has");
  module.def("constant", &ConstantOf, nb::arg("value"), nb::sig("def constant(value: numpy.ndarray) -> Expr"), "A copy of the array");
  module.def(
      "tuple_of", [](const nb::args& fields) { return ExprView{MakeTuple(ExprsOf(fields))}; },
      nb::sig("def tuple_of(*fields: Expr) -> Expr"));
  module.def(
      "field", [](const ExprView& tuple, size_t index) { return ExprView{ValueOr(MakeTupleGetItem(tuple.expr, index), "ArgumentError")}; },
      nb::arg("tuple"), nb::arg("index"), "A field of a tuple, such as one of the results of split");
}

}  // namespace collage_python
