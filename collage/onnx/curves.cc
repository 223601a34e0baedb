#include "collage/onnx/curves.h"

#include <cmath>
#include <numbers>

namespace collage::onnx_io {

Expr Gelu(Formula& formula, const Expr& x) {
  const Expr curve = formula.Call("erf", formula.Call("divide", x, std::numbers::sqrt2));
  return formula.Call("multiply", formula.Call("multiply", x, 0.5), formula.Call("add", curve, 1.0));
}

Expr FastGelu(Formula& formula, const Expr& x) {
  const Expr cube = formula.Call("multiply", formula.Call("multiply", x, x), x);
  const Expr inner = formula.Call("add", x, formula.Call("multiply", cube, 0.044715));
  const Expr curve = formula.Call("tanh", formula.Call("multiply", inner, std::sqrt(2 / std::numbers::pi)));
  return formula.Call("multiply", formula.Call("multiply", x, 0.5), formula.Call("add", curve, 1.0));
}

Expr Silu(Formula& formula, const Expr& x) { return formula.Call("multiply", x, formula.Call("sigmoid", x)); }

Expr Softplus(Formula& formula, const Expr& x) {
  const Expr decay = formula.Call("exp", formula.Call("negative", formula.Call("abs", x)));
  return formula.Call("add", formula.Call("maximum", x, 0.0), formula.Call("log", formula.Call("add", decay, 1.0)));
}

}  // namespace collage::onnx_io
