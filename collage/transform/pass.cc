#include "collage/transform/pass.h"

#include <algorithm>

#include "collage/ir/verify.h"
#include "collage/support/clock.h"
#include "collage/transform/cancel_movement.h"
#include "collage/transform/dequantize_after_movement.h"
#include "collage/transform/eliminate_common_subexpressions.h"
#include "collage/transform/eliminate_dead_code.h"
#include "collage/transform/fold_batch_norm.h"
#include "collage/transform/fold_constants.h"
#include "collage/transform/recognise_operators.h"
#include "collage/transform/separate_dequantize.h"
#include "collage/transform/simplify_expressions.h"

namespace collage {

std::vector<Pass> SafeGlobalPasses() {
  return {
      {"fold_constants", [](const IRModule& module) { return FoldConstants(module); }, "multiply(%x, add(1f, 2f))", "multiply(%x, 3f)"},
      {"dequantize_after_movement", DequantizeAfterMovement,
       "%0 = cast(%x, dtype=\"int8\"); squeeze(qnn.dequantize(expand_dims(%0, axis=0), 0.5f, 3i8), axis=[0])",
       "%0 = cast(%x, dtype=\"int8\"); qnn.dequantize(squeeze(expand_dims(%0, axis=0), axis=[0]), 0.5f, 3i8)"},
      {"cancel_movement", CancelMovement, "transpose(nn.relu(transpose(%x, axes=[0, 2, 3, 1])), axes=[0, 3, 1, 2])", "nn.relu(%x)"},
      {"simplify_expressions", [](const IRModule& module) { return SimplifyExpressions(module); }, "power(add(%x, 0f), 2f)",
       "multiply(%x, %x)"},
      {"fold_batch_norm", FoldBatchNorm, "nn.batch_norm(nn.conv2d(%x, W), gamma, beta, mean, var).0", "nn.bias_add(nn.conv2d(%x, W'), b')"},
      {"eliminate_common_subexpressions", EliminateCommonSubexpressions, "add(exp(%x), exp(%x))", "%0 = exp(%x); add(%0, %0)"},
      {"recognise_operators", RecogniseOperators, "%0 = exp(%x); divide(%0, sum(%0, axis=[1], keepdims=True))", "nn.softmax(%x, axis=1)"},
      {"separate_dequantize", SeparateDequantize, "%0 = cast(%x, dtype=\"int8\"); %1 = cast(%0, dtype=\"int32\"); (%1, abs(%1))",
       "%0 = cast(%x, dtype=\"int8\"); (cast(%0, dtype=\"int32\"), abs(cast(%0, dtype=\"int32\")))"},
      {"eliminate_dead_code", EliminateDeadCode, "let %y = exp(%x); %x", "%x"},
  };
}

Result<IRModule> RunPasses(IRModule module, const std::vector<Pass>& passes, const PassOptions& options) {
  const auto named = [&](const std::string& name) {
    return std::any_of(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
  };
  for (const std::string& name : options.disabled) {
    if (!named(name)) return Fail("there is no pass '" + name + "' to switch off");
  }
  for (const Pass& pass : passes) {
    if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) != options.disabled.end()) continue;
    const Clock::time_point start = Clock::now();
    Result<IRModule> result = pass.run(module);
    if (!result) return Fail(std::move(result).error().At("pass " + pass.name));
    module = *std::move(result);
    if (Status status = Verify(module); !status) return Fail(std::move(status).error().At("after pass " + pass.name));
    if (options.on_pass) options.on_pass(pass, module, Clock::SecondsSince(start));
  }
  return module;
}

}  // namespace collage
