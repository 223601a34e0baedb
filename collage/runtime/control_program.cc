#include "collage/runtime/control_program.h"

namespace collage {
namespace {

class Checker {
 public:
  Checker(const ControlProgram& program, const std::vector<Signature>& blocks) : program_(program), blocks_(blocks) {
    signatures_.resize(program.functions.size());
  }

  Status Check() {
    if (program_.functions.empty()) return Fail("there is no function to enter");
    if (program_.entries == 0 || program_.entries > program_.functions.size())
      return Fail("enters " + std::to_string(program_.entries) + " of " + std::to_string(program_.functions.size()) + " functions");
    for (size_t i = 0; i < program_.functions.size(); ++i) {
      const ControlProgram::Function& function = program_.functions[i];
      if (function.parameters > function.types.size()) return At(function, "has more parameters than tensors");
      for (const size_t result : function.results) {
        if (result >= function.types.size()) return At(function, "gives tensor " + std::to_string(result) + ", which is not there");
      }
      signatures_[i] = SignatureOf(function);
    }
    for (const ControlProgram::Function& function : program_.functions) {
      if (Status status = CheckFunction(function); !status) return At(function, status.error().message);
    }
    return CheckEntries();
  }

 private:
  static tl::unexpected<Error> At(const ControlProgram::Function& function, const std::string& message) {
    return Fail("function '" + function.name + "': " + message);
  }

  /// A run is told by its inputs which profile it is of.
  Status CheckEntries() const {
    for (size_t i = 0; i < program_.entries; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (signatures_[i].inputs == signatures_[j].inputs)
          return At(program_.functions[i], "is entered with the same types as function number " + std::to_string(j));
      }
    }
    return {};
  }

  Status CheckFunction(const ControlProgram::Function& function) {
    types_ = &function.types;
    given_.assign(function.types.size(), false);
    for (size_t i = 0; i < function.parameters; ++i) given_[i] = true;
    for (const auto& [tensor, value] : function.constants) {
      COLLAGE_TRY_STATUS(Give(tensor));
      if (!value.Defined() || !(value.type() == function.types[tensor])) return Fail("a constant is not of the type of its tensor");
    }
    for (const ControlProgram::Step& step : function.steps) COLLAGE_TRY_STATUS(CheckStep(step));
    for (const size_t result : function.results) COLLAGE_TRY_STATUS(Use(result));
    return {};
  }

  Status CheckStep(const ControlProgram::Step& step) {
    using Kind = ControlProgram::Step::Kind;
    const std::vector<Signature>& callees = step.kind == Kind::kBlock ? blocks_ : signatures_;
    if (step.callee >= callees.size()) return Fail("runs number " + std::to_string(step.callee) + ", which is not there");
    COLLAGE_TRY_STATUS(CheckCall(callees[step.callee], step.inputs, step.outputs));
    if (step.kind == Kind::kBranch) {
      if (step.otherwise >= callees.size()) return Fail("runs number " + std::to_string(step.otherwise) + ", which is not there");
      COLLAGE_TRY_STATUS(Use(step.condition));
      if (!((*types_)[step.condition] == TensorType{{}, DType::kBool}))
        return Fail("a condition is " + ToString((*types_)[step.condition]) + ", expected bool");
      COLLAGE_TRY_STATUS(CheckCall(callees[step.otherwise], step.otherwise_inputs, step.outputs));
    }
    for (const size_t output : step.outputs) COLLAGE_TRY_STATUS(Give(output));
    return {};
  }

  Status CheckCall(const Signature& callee, const std::vector<size_t>& inputs, const std::vector<size_t>& outputs) {
    for (const size_t input : inputs) COLLAGE_TRY_STATUS(Use(input));
    COLLAGE_TRY_STATUS(CheckTypes("inputs", callee.inputs, inputs));
    return CheckTypes("outputs", callee.outputs, outputs);
  }

  Status CheckTypes(const std::string& what, const std::vector<TensorType>& expected, const std::vector<size_t>& found) {
    if (expected.size() != found.size())
      return Fail("gives " + std::to_string(found.size()) + " " + what + " where " + std::to_string(expected.size()) + " are right");
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] >= types_->size()) return Fail("names tensor " + std::to_string(found[i]) + " of " + std::to_string(types_->size()));
      if (!((*types_)[found[i]] == expected[i]))
        return Fail(what + ": number " + std::to_string(i) + " is " + ToString((*types_)[found[i]]) + ", expected " +
                    ToString(expected[i]));
    }
    return {};
  }

  Status Use(size_t tensor) {
    if (tensor < given_.size() && given_[tensor]) return {};
    return Fail("uses tensor " + std::to_string(tensor) + " before it is there");
  }

  Status Give(size_t tensor) {
    if (tensor >= given_.size()) return Fail("names tensor " + std::to_string(tensor) + " of " + std::to_string(given_.size()));
    if (given_[tensor]) return Fail("gives tensor " + std::to_string(tensor) + " twice");
    given_[tensor] = true;
    return {};
  }

  const ControlProgram& program_;
  const std::vector<Signature>& blocks_;
  std::vector<Signature> signatures_;
  const std::vector<TensorType>* types_ = nullptr;
  std::vector<bool> given_;
};

}  // namespace

Signature SignatureOf(const ControlProgram::Function& function) {
  Signature signature;
  signature.inputs.assign(function.types.begin(), function.types.begin() + static_cast<std::ptrdiff_t>(function.parameters));
  for (const size_t result : function.results) signature.outputs.push_back(function.types[result]);
  return signature;
}

std::optional<size_t> OnlyBlockOf(const ControlProgram::Function& function) {
  if (function.steps.size() != 1 || function.steps[0].kind != ControlProgram::Step::Kind::kBlock) return std::nullopt;
  const ControlProgram::Step& step = function.steps[0];
  if (step.outputs != function.results || step.inputs.size() != function.parameters) return std::nullopt;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i] != i) return std::nullopt;
  }
  return step.callee;
}

Status CheckControlProgram(const ControlProgram& program, const std::vector<Signature>& blocks) { return Checker(program, blocks).Check(); }

Result<std::vector<ShapeProfile>> ShapeProfilesOf(const ControlProgram& program, const std::vector<std::string>& inputs,
                                                  const std::vector<std::string>& outputs) {
  std::vector<ShapeProfile> profiles(program.entries);
  for (size_t entry = 0; entry < program.entries; ++entry) {
    const Signature types = SignatureOf(program.functions[entry]);
    const std::vector<std::string>& own = program.functions[entry].result_names;
    const std::vector<std::string>& results = own.empty() ? outputs : own;
    if (types.inputs.size() != inputs.size() || types.outputs.size() != results.size()) {
      return Fail("has " + std::to_string(types.inputs.size()) + " inputs and " + std::to_string(types.outputs.size()) +
                  " outputs, and names for " + std::to_string(inputs.size()) + " and " + std::to_string(results.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) profiles[entry].inputs.push_back({inputs[i], types.inputs[i]});
    for (size_t i = 0; i < results.size(); ++i) profiles[entry].outputs.push_back({results[i], types.outputs[i]});
  }
  return profiles;
}

}  // namespace collage
