#include "python/placement/values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "collage/ir/print.h"
#include "collage/ir/visit.h"

namespace collage_python {

using namespace collage;

namespace {

nb::dlpack::dtype TypeOf(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  const std::string_view name = Name(dtype);
  const bool is_float = name == "float16" || name == "float32" || name == "float64";
  const bool is_signed = name == "int8" || name == "int16" || name == "int32" || name == "int64";
  const Code code = dtype == DType::kBool ? Code::Bool : is_float ? Code::Float : is_signed ? Code::Int : Code::UInt;
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(8 * ByteSize(dtype)), 1};
}

std::vector<size_t> ExtentsOf(const Shape& shape) { return {shape.begin(), shape.end()}; }

nb::object ShapeOf(const Type& type) {
  const TensorType* tensor = type.AsTensor();
  if (!tensor) return nb::none();
  nb::list shape;
  for (const int64_t extent : tensor->shape) shape.append(extent);
  return nb::tuple(shape);
}

nb::object DTypeOf(const Type& type) {
  const TensorType* tensor = type.AsTensor();
  return tensor ? nb::object(nb::cast(std::string(Name(tensor->dtype)))) : nb::none();
}

const char* KindOf(const Expr& expr) {
  static constexpr const char* kKinds[] = {"variable", "global",     "constant", "operator", "call",
                                           "tuple",    "projection", "let",      "if",       "function"};
  static_assert(std::variant_size_v<ExprNode::Value> == std::size(kKinds));
  return kKinds[expr->value().index()];
}

nb::object OperatorOf(const Expr& expr) {
  const OpDef* op = CalledOp(expr);
  return op ? nb::object(nb::cast(op->name)) : nb::none();
}

std::vector<ExprView> ArgumentsOf(const Expr& expr) {
  std::vector<Expr> arguments = Children(expr);
  if (expr->As<Call>()) arguments.erase(arguments.begin());
  std::vector<ExprView> views;
  for (Expr& argument : arguments) views.push_back({std::move(argument)});
  return views;
}

nb::dict AttributesOf(const Expr& expr) {
  if (const Call* call = expr->As<Call>()) return ToPython(call->attributes);
  if (const Function* function = expr->As<Function>()) return ToPython(function->attributes);
  return nb::dict();
}

nb::object NameOf(const Expr& expr) {
  if (const Var* variable = expr->As<Var>()) return nb::cast(variable->name);
  if (const GlobalVar* global = expr->As<GlobalVar>()) return nb::cast(global->name);
  return nb::none();
}

/// A number among the values of a function, so that steps can be followed.
struct OperatorView {
  OpSequence::Step step;
};

struct ValueView {
  OpSequence::Value value;
};

}  // namespace

void Raise(const char* name, const std::string& message) {
  const nb::object type = nb::module_::import_("collage._errors").attr(name);
  PyErr_SetString(type.ptr(), message.c_str());
  throw nb::python_error();
}

nb::object ToPython(const AttributeValue& value) {
  if (const bool* truth = value.AsBool()) return nb::bool_(*truth);
  if (const int64_t* number = value.AsInt()) return nb::int_(*number);
  if (const double* number = value.AsDouble()) return nb::float_(*number);
  if (const std::string* text = value.AsString()) return nb::cast(*text);
  const AttributeValue::List* list = value.AsList();
  if (!list) return nb::none();
  nb::list values;
  for (const AttributeValue& item : *list) values.append(ToPython(item));
  return values;
}

nb::dict ToPython(const Attributes& attributes) {
  nb::dict values;
  for (const auto& [name, value] : attributes.entries()) values[name.c_str()] = ToPython(value);
  return values;
}

AttributeValue AttributeFrom(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (!nb::isinstance<nb::list>(value) && !nb::isinstance<nb::tuple>(value))
    Raise("ArgumentError",
          std::string("an attribute is None, a bool, a number, a string or a list of these, not ") + nb::repr(value).c_str());
  AttributeValue::List list;
  for (const nb::handle item : value) list.push_back(AttributeFrom(item));
  return list;
}

Attributes AttributesFrom(const nb::dict& values) {
  Attributes attributes;
  for (const auto& [name, value] : values) attributes.Set(nb::cast<std::string>(name), AttributeFrom(value));
  return attributes;
}

nb::object ArrayAt(const TensorType& type, const void* data) {
  const std::vector<size_t> shape = ExtentsOf(type.shape);
  nb::ndarray<nb::numpy, nb::ro> array(data, shape.size(), shape.data(), nb::handle(), nullptr, TypeOf(type.dtype));
  return nb::cast(array, nb::rv_policy::reference);
}

nb::object WritableArrayAt(const TensorType& type, void* data) {
  const std::vector<size_t> shape = ExtentsOf(type.shape);
  nb::ndarray<nb::numpy> array(data, shape.size(), shape.data(), nb::handle(), nullptr, TypeOf(type.dtype));
  return nb::cast(array, nb::rv_policy::reference);
}

nb::object ToArray(const Tensor& tensor) {
  auto owned = std::make_unique<Tensor>(tensor);
  const std::vector<size_t> shape = ExtentsOf(tensor.shape());
  const nb::capsule owner(owned.release(), [](void* pointer) noexcept { delete static_cast<Tensor*>(pointer); });
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(tensor.Bytes(), shape.size(), shape.data(), owner, nullptr, TypeOf(tensor.dtype())));
}

std::string LabelOf(const Function& function) {
  const Call* call = function.body->As<Call>();
  const Function* composite = call ? call->callee->As<Function>() : nullptr;
  const AttributeValue* label = composite ? composite->attributes.Find("Composite") : nullptr;
  if (!label || !label->AsString()) return {};
  bool is_all = true;
  for (const Expr& argument : call->args) PostOrder(argument, [&](const Expr& expr) { is_all = is_all && !expr->As<Call>(); });
  return is_all ? *label->AsString() : std::string();
}

Result<FunctionView> ViewOf(const Expr& function) {
  const Function& of = *function->As<Function>();
  return FunctionView{function, COLLAGE_TRY(ToOpSequence(of)), LabelOf(of)};
}

Verdict VerdictFrom(nb::handle answer) {
  if (answer.is_none() || answer.is(nb::handle(Py_True))) return Verdict::Accept();
  if (nb::isinstance<nb::str>(answer)) return Verdict::Reject(nb::cast<std::string>(answer));
  // NumPy's truth values are no bools.
  return nb::cast<bool>(nb::bool_(nb::borrow(answer))) ? Verdict::Accept() : Verdict::Reject("its check refuses it");
}

void BindValues(nb::module_& module) {
  nb::class_<ExprView>(module, "Expr", "An expression of a program.")
      .def_prop_ro(
          "kind", [](const ExprView& view) { return KindOf(view.expr); },
          "'call', 'constant', 'variable', 'tuple', 'projection', 'function', 'operator', 'global', 'let' or 'if'")
      .def_prop_ro(
          "op", [](const ExprView& view) { return OperatorOf(view.expr); }, nb::sig("def op(self) -> str | None"),
          "The operator that it calls: 'nn.conv2d'")
      .def_prop_ro(
          "args", [](const ExprView& view) { return ArgumentsOf(view.expr); }, "Of a call its arguments, of others their parts")
      .def_prop_ro(
          "attributes", [](const ExprView& view) { return AttributesOf(view.expr); },
          nb::sig("def attributes(self) -> dict[str, typing.Any]"), "Of a call or a function, as the program's text states them")
      .def_prop_ro(
          "shape", [](const ExprView& view) { return ShapeOf(view.expr->type()); }, nb::sig("def shape(self) -> tuple[int, ...] | None"),
          "Of a tensor")
      .def_prop_ro(
          "dtype", [](const ExprView& view) { return DTypeOf(view.expr->type()); }, nb::sig("def dtype(self) -> str | None"), "Of a tensor")
      .def_prop_ro(
          "type", [](const ExprView& view) { return ToString(view.expr->type()); }, "Relay text: 'Tensor[(1, 8), float32]'")
      .def_prop_ro(
          "name", [](const ExprView& view) { return NameOf(view.expr); }, nb::sig("def name(self) -> str | None"), "Of a variable")
      .def_prop_ro(
          "nodes", [](const ExprView& view) { return view.expr->origin().OnnxNodes(); }, "ONNX nodes that a call comes from")
      .def_prop_ro(
          "value",
          [](const ExprView& view) -> nb::object {
            const Constant* constant = view.expr->As<Constant>();
            return constant ? ToArray(constant->value) : nb::none();
          },
          nb::sig("def value(self) -> numpy.ndarray | None"), "Of a constant")
      .def_prop_ro(
          "text", [](const ExprView& view) { return Print(view.expr); }, "Relay text")
      .def(
          "__eq__", [](const ExprView& a, const ExprView& b) { return a.expr == b.expr; }, nb::is_operator())
      .def("__hash__", [](const ExprView& view) { return std::hash<Expr>()(view.expr); })
      .def("__repr__", [](const ExprView& view) {
        const OpDef* op = CalledOp(view.expr);
        return std::string("<collage.Expr ") + (op ? op->name : KindOf(view.expr)) + ": " + ToString(view.expr->type()) + ">";
      });
  nb::class_<ProgramView>(module, "Program", "A program, as backends see it.")
      .def_prop_ro(
          "text", [](const ProgramView& view) { return Print(view.model.module); }, "Relay text")
      .def_prop_ro("main", [](const ProgramView& view) { return ExprView{view.model.module.MainExpr()}; });
  nb::class_<ValueView>(module, "Value", "A tensor of a function.")
      .def_prop_ro(
          "shape", [](const ValueView& view) { return ShapeOf(view.value.type); }, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("dtype", [](const ValueView& view) { return std::string(Name(view.value.type.dtype)); })
      .def_prop_ro(
          "constant", [](const ValueView& view) { return view.value.constant ? ToArray(*view.value.constant) : nb::none(); },
          nb::sig("def constant(self) -> numpy.ndarray | None"));
  nb::class_<OperatorView>(module, "Operator", "A call of an operator in a function.")
      .def_prop_ro("name", [](const OperatorView& view) { return view.step.op->name; })
      .def_prop_ro(
          "attributes", [](const OperatorView& view) { return ToPython(view.step.attributes); },
          nb::sig("def attributes(self) -> dict[str, typing.Any]"))
      .def_prop_ro(
          "inputs", [](const OperatorView& view) { return view.step.inputs; }, "Numbers of values")
      .def_prop_ro(
          "outputs", [](const OperatorView& view) { return view.step.outputs; }, "Numbers of values");
  nb::class_<FunctionView>(module, "Function", "A function that is to become a kernel, or to be priced: operators over numbered tensors.")
      .def_prop_ro(
          "text", [](const FunctionView& view) { return Print(view.function); }, "Relay text")
      .def_prop_ro(
          "label", [](const FunctionView& view) { return view.label; },
          "'backend.kernel' of the pattern that matched; empty where none did")
      .def_prop_ro("operators",
                   [](const FunctionView& view) {
                     std::vector<OperatorView> operators;
                     for (const OpSequence::Step& step : view.sequence.steps) operators.push_back({step});
                     return operators;
                   })
      .def_prop_ro(
          "values",
          [](const FunctionView& view) {
            std::vector<ValueView> values;
            for (const OpSequence::Value& value : view.sequence.values) values.push_back({value});
            return values;
          },
          "All tensors, in the order of their numbers")
      .def_prop_ro(
          "inputs",
          [](const FunctionView& view) {
            std::vector<ValueView> values;
            for (const size_t number : view.sequence.parameters) values.push_back({view.sequence.values[number]});
            return values;
          },
          "What a kernel is called with, in this order")
      .def_prop_ro(
          "outputs",
          [](const FunctionView& view) {
            std::vector<ValueView> values;
            for (const size_t number : view.sequence.results) values.push_back({view.sequence.values[number]});
            return values;
          },
          "What it gives")
      .def_prop_ro(
          "parameters", [](const FunctionView& view) { return view.sequence.parameters; }, "Numbers of the inputs")
      .def_prop_ro(
          "results", [](const FunctionView& view) { return view.sequence.results; }, "Numbers of the outputs")
      .def_prop_ro(
          "constants",
          [](const FunctionView& view) {
            nb::list constants;
            for (const OpSequence::Value& value : view.sequence.values) {
              if (value.constant) constants.append(ToArray(*value.constant));
            }
            return constants;
          },
          nb::sig("def constants(self) -> list[numpy.ndarray]"), "Weights, in the order in which operators use them")
      .def("__repr__", [](const FunctionView& view) { return Print(view.function); });
}

}  // namespace collage_python
