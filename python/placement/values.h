#pragma once

// What crosses the border between Python and the compiler: expressions as they are, attributes and tensors as Python's own values.

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>

#include "collage/ir/expr.h"
#include "collage/ir/module.h"
#include "collage/ir/op_sequence.h"
#include "collage/onnx/reader.h"
#include "collage/pattern/rule.h"

namespace collage_python {

namespace nb = nanobind;

/// Raises collage.NAME.
[[noreturn]] void Raise(const char* name, const std::string& message);

/// The value, or the exception of that name.
template <class T>
T ValueOr(collage::Result<T> result, const char* name) {
  if (!result) Raise(name, result.error().message);
  return std::move(*result);
}

/// A Python object in a value of C++, which may be copied and dropped in any thread.
class Kept {
 public:
  explicit Kept(nb::object object) : object_(new nb::object(std::move(object)), Drop) {}
  [[nodiscard]] const nb::object& get() const { return *object_; }

 private:
  static void Drop(nb::object* object) {
    const nb::gil_scoped_acquire acquire;
    delete object;
  }
  std::shared_ptr<nb::object> object_;
};

nb::object ToPython(const collage::AttributeValue& value);
nb::dict ToPython(const collage::Attributes& attributes);
/// None, bools, numbers, strings and sequences of them; raises ArgumentError for others.
collage::AttributeValue AttributeFrom(nb::handle value);
collage::Attributes AttributesFrom(const nb::dict& values);

/// A read-only NumPy array of the tensor's memory, which it keeps alive. Types that NumPy lacks come as unsigned integers of their size.
nb::object ToArray(const collage::Tensor& tensor);
/// An array of somebody's memory, valid as long as that.
nb::object ArrayAt(const collage::TensorType& type, const void* data);
nb::object WritableArrayAt(const collage::TensorType& type, void* data);

/// An expression of a program.
struct ExprView {
  collage::Expr expr;
};

/// A whole program, as backends see it.
struct ProgramView {
  collage::OnnxModel model;
};

/// A function that is to become a kernel, or to be priced.
struct FunctionView {
  collage::Expr function;
  collage::OpSequence sequence;
  std::string label;  ///< of its Composite; empty where it has none
};
/// The label of the Composite that a function is; empty where it is none, or several.
std::string LabelOf(const collage::Function& function);
/// Errors on what is not straight-line.
collage::Result<FunctionView> ViewOf(const collage::Expr& function);

/// What a check of Python's says of a match or a call: nothing or True accepts, False or a reason refuses.
collage::Verdict VerdictFrom(nb::handle answer);

void BindValues(nb::module_& module);
void BindPatterns(nb::module_& module);
void BindRules(nb::module_& module);
void BindForms(nb::module_& module);
void BindBackends(nb::module_& module);
void BindCompiling(nb::module_& module);
void BindConformance(nb::module_& module);

}  // namespace collage_python
