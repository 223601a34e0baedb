#include "tests/conformance/corpus.h"

namespace collage::conformance {
namespace {

using B = ProgramBuilder;

ProgramCase Reduce(const std::string& op, const std::string& suffix, const Shape& data, const Attributes& attributes) {
  return {op + suffix, [=] {
            B b;
            return b.Finish(B::Call(op, {b.Input(data, 0.5, 1.5)}, attributes));
          }};
}

}  // namespace

std::vector<ProgramCase> ReductionCases() {
  std::vector<ProgramCase> cases;
  for (const char* op : {"sum", "mean", "max", "min", "prod"}) {
    cases.push_back(Reduce(op, "_last", {4, 6, 17}, {{"axis", Ints{-1}}}));
    cases.push_back(Reduce(op, "_last_kept", {4, 6, 17}, {{"axis", Ints{-1}}, {"keepdims", true}}));
    cases.push_back(Reduce(op, "_spatial", {2, 5, 4, 6}, {{"axis", Ints{2, 3}}, {"keepdims", true}}));
    cases.push_back(Reduce(op, "_channels", {2, 5, 4, 6}, {{"axis", 1}}));
    cases.push_back(Reduce(op, "_first", {7, 9}, {{"axis", Ints{0}}}));
    cases.push_back(Reduce(op, "_all", {3, 4, 5}, {}));
    cases.push_back(Reduce(op, "_exclude", {3, 4, 5}, {{"axis", Ints{1}}, {"exclude", true}}));
  }
  for (const char* op : {"argmax", "argmin"}) {
    cases.push_back(Reduce(op, "_last", {4, 17}, {{"axis", Ints{-1}}}));
    cases.push_back(Reduce(op, "_channels_kept", {2, 7, 3}, {{"axis", Ints{1}}, {"keepdims", true}}));
  }
  cases.push_back({"variance", [] {
                     B b;
                     const Expr x = b.Input({4, 32});
                     const Attributes last{{"axis", Ints{-1}}, {"keepdims", true}};
                     const Expr centred = B::Call("subtract", {x, B::Call("mean", {x}, last)});
                     return b.Finish(B::Call("mean", {B::Multiply(centred, centred)}, last));
                   }});
  cases.push_back({"softmax_decomposed", [] {
                     B b;
                     const Expr x = b.Input({4, 32}, -3, 3);
                     const Attributes last{{"axis", Ints{-1}}, {"keepdims", true}};
                     const Expr e = B::Call("exp", {B::Call("subtract", {x, B::Call("max", {x}, last)})});
                     return b.Finish(B::Call("divide", {e, B::Call("sum", {e}, last)}));
                   }});
  return cases;
}

}  // namespace collage::conformance
