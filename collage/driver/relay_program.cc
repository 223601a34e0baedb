#include "collage/driver/relay_program.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <vector>

#include "collage/ir/lexer.h"
#include "collage/ir/parse.h"
#include "collage/ir/verify.h"
#include "collage/op/table.h"
#include "collage/support/mapped_file.h"
#include "collage/tensor/npy.h"

namespace collage {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExtension = ".relay";

/// Parses with the constants of an archive, each of which must be one of the program's.
Result<IRModule> Parse(std::string_view text, const fs::path& path, const fs::path& archive) {
  ParseOptions options;
  options.table_name = archive.string();
  if (archive.empty())
    options.table_name = fs::path(path).replace_extension(".npz").string() +
                         ", which is not there: put it beside the program, or name another archive with --constants";
  std::map<size_t, Tensor> tensors;
  if (!archive.empty()) tensors = COLLAGE_TRY(ReadNumberedConstants(archive));
  if (!tensors.empty()) options.constants.resize(tensors.rbegin()->first + 1);
  for (auto& [number, tensor] : tensors) options.constants[number] = tensor;
  Result<ParsedModule> parsed = ParseModule(text, Operators(), options);
  if (!parsed) return Fail(parsed.error().At(path.string()));
  std::set<size_t> used;
  for (const auto& [expr, number] : parsed->constants) used.insert(number);
  for (const auto& [number, tensor] : tensors) {
    if (used.contains(number)) continue;
    const std::string name = std::to_string(number);
    return Fail(archive.string() + ": array \"" + name + "\" is of no use: " + path.string() + " has no meta[relay.Constant][" + name +
                "]");
  }
  return std::move(parsed->module);
}

/// With a result that is one tensor or a tuple of them.
Result<Expr> WithFlatResult(const Expr& function) {
  const Function& literal = *function->As<Function>();
  const TupleType* fields = literal.result_type.AsTuple();
  const auto is_tensor = [](const Type& type) { return type.AsTensor() != nullptr; };
  if (!fields || std::all_of(fields->fields.begin(), fields->fields.end(), is_tensor)) return function;
  std::vector<Expr> tensors;
  std::vector<Expr> pending{literal.body};
  while (!pending.empty()) {
    const Expr expr = pending.back();
    pending.pop_back();
    const TupleType* tuple = expr->type().AsTuple();
    if (!tuple) tensors.push_back(expr);
    for (size_t i = tuple ? tuple->fields.size() : 0; i-- > 0;) pending.push_back(COLLAGE_TRY(MakeTupleGetItem(expr, i)));
  }
  return MakeFunction(literal.parameters, MakeTuple(std::move(tensors)), literal.attributes);
}

Result<OnnxModel> AsModel(IRModule module) {
  OnnxModel model;
  module.Set("main", COLLAGE_TRY(WithFlatResult(module.MainExpr())));
  const Function& main = module.Main();
  for (const Expr& parameter : main.parameters) {
    const std::string& name = parameter->As<Var>()->name;
    if (!parameter->type().AsTensor())
      return Fail("@main: parameter %" + name + " is of type " + ToString(parameter->type()) + "; inputs of a program must be tensors");
    if (std::find(model.input_names.begin(), model.input_names.end(), name) != model.input_names.end())
      return Fail("@main: two parameters are called %" + name + "; inputs of a program go by their names");
    model.input_names.push_back(name);
  }
  const size_t outputs = FlattenTensors(main.result_type).size();
  if (outputs == 0 || outputs != ValueCount(main.result_type))
    return Fail("@main: its result is of type " + ToString(main.result_type) + "; outputs of a program must be tensors");
  for (size_t i = 0; i < outputs; ++i) model.output_names.push_back(outputs == 1 ? "output" : "output" + std::to_string(i));
  model.module = std::move(module);
  return model;
}

}  // namespace

bool IsRelayProgram(const fs::path& path, std::string_view content) {
  if (path.extension() == kExtension) return true;
  const Token first = Lexer(content).Next();
  return first.kind == Token::Kind::kIdentifier && (first.text == "fn" || first.text == "def" || first.text == "v0");
}

fs::path ConstantsBeside(const fs::path& program, const fs::path& given) {
  if (!given.empty()) return given;
  const fs::path beside = fs::path(program).replace_extension(".npz");
  std::error_code error;
  return fs::exists(beside, error) ? beside : fs::path();
}

Result<std::map<size_t, Tensor>> ReadNumberedConstants(const fs::path& archive) {
  constexpr size_t kMostConstants = 100'000;  // a table is as long as its largest number, which must not cost memory
  std::map<size_t, Tensor> tensors;
  for (auto& [name, tensor] : COLLAGE_TRY(ReadNpz(archive))) {
    size_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || std::to_string(number) != name || number > kMostConstants)
      return Fail(archive.string() + ": array \"" + name + "\" is not named by the number of a constant");
    tensors[number] = std::move(tensor);
  }
  return tensors;
}

Result<OnnxModel> ReadRelayProgram(const fs::path& path, const fs::path& constants) {
  const MappedFile file = COLLAGE_TRY(MappedFile::Open(path));
  IRModule module = COLLAGE_TRY(Parse(file.content(), path, ConstantsBeside(path, constants)));
  if (Status verified = Verify(module); !verified) return Fail(verified.error().At(path.string()));
  Result<OnnxModel> model = AsModel(std::move(module));
  if (!model) return Fail(model.error().At(path.string()));
  return model;
}

}  // namespace collage
