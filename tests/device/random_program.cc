#include "tests/device/random_program.h"

#include <random>
#include <vector>

namespace collage {
namespace {

constexpr const char* kTensor = "Tensor[(3, 2), float32]";

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  std::string Run(size_t statements) {
    statements_ = statements;
    std::string text = "def @f(" + Parameter("fx") + ") -> " + kTensor + Result() + " {\n" + Block({"%fx"}, {}, "") + "}\n";
    text += std::string("def @twice(%g: fn (") + kTensor + ") -> " + kTensor + ", " + Parameter("tx") + ") -> " + kTensor +
            " {\n  %g(%g(%tx))\n}\n";
    text += "def @main(%c: bool, " + Parameter("x") + ", " + Parameter("y");
    const bool tuple = Chance(3);
    if (tuple)
      text +=
          std::string(", %t") + (Chance(2) ? " {virtual_device=\"" + TupleDevice() + "\"}" : "") + ": (" + kTensor + ", " + kTensor + ")";
    text += Chance(4) ? ", virtual_device=\"" + Device() + "\"" : "";
    text += std::string(") -> ") + kTensor + " {\n" +
            Block({"%x", "%y"}, tuple ? std::vector<std::string>{"%t"} : std::vector<std::string>{}, "%c");
    return text + "}\n";
  }

 private:
  size_t Below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  bool Chance(size_t one_in) { return Below(one_in) == 0; }
  const std::string& Any(const std::vector<std::string>& names) { return names[Below(names.size())]; }
  std::string Fresh() { return "%" + std::to_string(next_++); }

  std::string Device() {
    static const std::vector<std::string> kDevices = {"cpu",
                                                      "cuda",
                                                      "cuda:1",
                                                      "cuda:0",
                                                      "cpu:0",
                                                      "cpu:1",
                                                      ":1",
                                                      "cuda:1@local",
                                                      "@local",
                                                      "cuda:0@global",
                                                      "?",
                                                      "cuda -compiler=cudnn",
                                                      "cpu:1 -compiler=dnnl"};
    return kDevices[Below(kDevices.size())];
  }
  std::string TupleDevice() { return Chance(2) ? Device() : "(" + Device() + ", " + Device() + ")"; }
  std::string Result() { return ""; }
  std::string Parameter(const std::string& name) {
    return "%" + name + (Chance(4) ? " {virtual_device=\"" + Device() + "\"}" : "") + ": " + kTensor;
  }

  std::string Flags() {
    std::string flags;
    if (Chance(3)) flags += Chance(2) ? ", constrain_body=False" : ", constrain_body=True";
    if (Chance(3)) flags += Chance(2) ? ", constrain_result=True" : ", constrain_result=False";
    return flags;
  }

  /// Statements, then a tensor. Values of outer blocks can be used; `condition` is empty where there is none.
  std::string Block(std::vector<std::string> tensors, std::vector<std::string> tuples, const std::string& condition) {
    std::vector<std::string> functions;
    std::vector<std::string> shapes;
    std::string text;
    const size_t count = 1 + Below(depth_ == 0 ? statements_ : 3);
    for (size_t i = 0; i < count; ++i) text += Statement(tensors, tuples, shapes, functions, condition);
    return text + "  " + tensors.back() + "\n";
  }

  std::string Statement(std::vector<std::string>& tensors, std::vector<std::string>& tuples, std::vector<std::string>& shapes,
                        std::vector<std::string>& functions, const std::string& condition) {
    const auto bind = [&](std::vector<std::string>& names, const std::string& value) {
      if (Chance(4)) {
        const std::string name = "%v" + std::to_string(next_++);
        names.push_back(name);
        return "  let " + name + " = " + value + ";\n";
      }
      const std::string name = Fresh();
      names.push_back(name);
      return "  " + name + " = " + value + ";\n";
    };
    switch (Below(16)) {
      case 0:
      case 1:
        return bind(tensors, "tanh(" + Any(tensors) + ")");
      case 2:
        return bind(tensors, "add(" + Any(tensors) + ", " + Any(tensors) + ")");
      case 3:
        return bind(tensors, "multiply(" + Any(tensors) + ", meta[relay.Constant][0] /*" + kTensor + "*/)");
      case 4:
      case 5:
      case 6:
        return bind(tensors, "on_device(" + Any(tensors) + ", virtual_device=\"" + Device() + "\"" + Flags() + ")");
      case 7:
        if (Chance(2))
          return bind(tensors, "device_copy(" + Any(tensors) + ", src_virtual_device=\"" + (Chance(2) ? "?" : Device()) +
                                   "\", dst_virtual_device=\"" + Device() + "\")");
        return bind(tensors, "ones(shape=[3, 2])");
      case 8:
        return bind(tuples, "(" + Any(tensors) + ", " + Any(tensors) + ")");
      case 9:
        if (tuples.empty()) return "";
        if (Chance(3)) return bind(tuples, "on_device(" + Any(tuples) + ", virtual_device=\"" + TupleDevice() + "\"" + Flags() + ")");
        return bind(tensors, Any(tuples) + "." + std::to_string(Below(2)));
      case 10:
        return bind(shapes, "shape_of(" + Any(tensors) + ")");
      case 11:
        if (shapes.empty()) return "";
        return bind(tensors, "add(" + Any(tensors) + ", cast(" + Any(shapes) + ", dtype=\"float32\"))");
      case 12:
        return If(tensors, tuples, condition, bind);
      case 13:
        return Closure(tensors, functions, condition);
      case 14:
        return Call(tensors, functions, bind);
      default:
        return CallOfKernel(tensors, bind);
    }
  }

  /// Bound to a number, or to a variable, through which it is the same kernel.
  template <class Bind>
  std::string CallOfKernel(std::vector<std::string>& tensors, Bind&& bind) {
    const bool let = Chance(2);
    const std::string name = let ? "%k" + std::to_string(next_++) : Fresh();
    const std::string text = std::string("  ") + (let ? "let " : "") + name + " = " + Kernel() + ";\n";
    return text + bind(tensors, name + "(" + Any(tensors) + ", " + Any(tensors) + ")");
  }

  std::string Kernel() {
    const std::string scope = Chance(2) ? " {virtual_device=\"@local\"}" : "";
    const std::string compiler =
        Chance(3) ? ", Primitive=1, Compiler=\"cudnn\", global_symbol=\"k" + std::to_string(next_++) + "\"" : ", Primitive=1";
    const std::string result = Chance(3) ? ", virtual_device=\"@global\"" : "";
    return std::string("fn (%one") + scope + ": " + kTensor + ", %two: " + kTensor + compiler + result + ") -> " + kTensor +
           " { add(%one, %two) }";
  }

  template <class Bind>
  std::string If(std::vector<std::string>& tensors, const std::vector<std::string>& tuples, const std::string& condition, Bind&& bind) {
    if (condition.empty() || depth_ > 1) return "";
    ++depth_;
    const std::string then_branch = Block(tensors, tuples, condition);
    const std::string else_branch = Block(tensors, tuples, condition);
    --depth_;
    return bind(tensors, "if (" + condition + ") {\n" + then_branch + "  } else {\n" + else_branch + "  }");
  }

  std::string Closure(const std::vector<std::string>& tensors, std::vector<std::string>& functions, const std::string& condition) {
    if (depth_ > 1) return "";
    ++depth_;
    const std::string name = "%g" + std::to_string(next_++);
    const std::string parameter = "p" + std::to_string(next_++);
    std::vector<std::string> inside = tensors;
    inside.push_back("%" + parameter);
    std::string body;
    if (!condition.empty() && Chance(3)) {
      body = "  if (" + condition + ") {\n  " + name + "(tanh(%" + parameter + "))\n  } else {\n" + Block(inside, {}, condition) + "  }\n";
      recursive_ = true;
    } else {
      body = Block(inside, {}, condition);
    }
    --depth_;
    functions.push_back(name);
    const std::string result = Chance(4) ? ", virtual_device=\"" + Device() + "\"" : "";
    return "  let " + name + " = fn (" + Parameter(parameter) + result + ") -> " + kTensor + " {\n" + body + "  };\n";
  }

  template <class Bind>
  std::string Call(std::vector<std::string>& tensors, const std::vector<std::string>& functions, Bind&& bind) {
    if (!functions.empty() && Chance(2)) {
      if (Chance(2)) return bind(tensors, "@twice(" + Any(functions) + ", " + Any(tensors) + ")");
      return bind(tensors, Any(functions) + "(" + Any(tensors) + ")");
    }
    if (Chance(4)) return bind(tensors, "@twice(@f, " + Any(tensors) + ")");
    return bind(tensors, "@f(" + Any(tensors) + ")");
  }

  std::mt19937_64 random_;
  size_t statements_ = 0;
  size_t next_ = 0;
  size_t depth_ = 0;
  bool recursive_ = false;
};

}  // namespace

std::string RandomDeviceProgram(uint64_t seed, size_t statements) { return Generator(seed).Run(statements); }

}  // namespace collage
