#pragma once

// The variants of graph compilers that take ONNX models. A function that carries the model it came from (ir/original_model.h) is offered
// to every graph compiler for all that a model computes; one that takes ONNX models states this by the variant kOriginalVariant of such a
// function. Which of the two forms is compiled is a choice like any other: measured, and compared with the reference.

#include <string>
#include <string_view>
#include <vector>

#include "collage/backend/backend.h"

namespace collage {

/// Our form of the program, written as ONNX again.
inline constexpr std::string_view kRewrittenVariant = "rewritten";
/// The model that the function carries.
inline constexpr std::string_view kOriginalVariant = "original";

/// Whether a variant of that name compiles the model that the function carries, in whatever precision.
bool IsOriginal(std::string_view variant);
/// Behind the variants, each once more for a compiler that computes with fewer bits where the function permits that: "original/bf16". As
/// they are where it does not.
std::vector<Variant> WithPermitted(std::vector<Variant> variants, const Function& function);

/// The one variant of a function for a compiler of ONNX models: kOriginalVariant where it carries a model, else kRewrittenVariant if
/// `supports` accepts every call. All tensors are row-major.
std::vector<Variant> OnnxVariants(const Function& function, const std::function<Verdict(const Expr& call)>& supports);

}  // namespace collage
