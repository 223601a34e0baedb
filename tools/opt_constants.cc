#include "tools/opt_constants.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "collage/driver/relay_program.h"
#include "collage/ir/print.h"
#include "collage/op/table.h"
#include "collage/tensor/npy.h"

namespace collage::tools {

Result<TravellingConstants> TravellingConstants::Read(const std::string& path) {
  TravellingConstants constants;
  if (path.empty()) return constants;
  constants.tensors_ = COLLAGE_TRY(ReadNumberedConstants(path));
  return constants;
}

Result<IRModule> TravellingConstants::Parse(const std::string& text) {
  ParseOptions options;
  options.missing_constant = [this](size_t index, const TensorType& type) -> Result<Tensor> {
    if (const auto at = tensors_.find(index); at != tensors_.end()) return at->second;
    ++made_up_;
    return tensors_[index] = COLLAGE_TRY(RandomConstants(1)(index, type));
  };
  Result<ParsedModule> parsed = ParseModule(text, Operators(), options);
  if (!parsed) return Fail(parsed.error());
  for (const auto& [number, tensor] : tensors_) {
    number_of_.emplace(std::pair(tensor.Bytes(), ToString(tensor.type())), number);
    next_ = std::max(next_, number + 1);
  }
  return std::move(parsed->module);
}

size_t TravellingConstants::NumberOf(const Tensor& tensor) {
  const auto [at, is_new] = number_of_.emplace(std::pair(tensor.Bytes(), ToString(tensor.type())), next_);
  if (is_new) tensors_[next_++] = tensor;
  return at->second;
}

std::string TravellingConstants::Print(const IRModule& module) {
  constexpr std::string_view kMeta = "meta[relay.Constant][";
  const PrintedText printed = PrintModule(module);
  const std::string& text = printed.text;
  std::string renumbered;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) quoted = !quoted;
    if (quoted || text.compare(i, kMeta.size(), kMeta) != 0) {
      renumbered += text[i];
      continue;
    }
    const size_t end = text.find(']', i + kMeta.size());
    const size_t printed_number = std::stoul(text.substr(i + kMeta.size(), end - i - kMeta.size()));
    renumbered += std::string(kMeta) + std::to_string(NumberOf(printed.constants[printed_number])) + "]";
    i = end;
  }
  return renumbered;
}

Status TravellingConstants::Write(const std::string& path) const {
  std::vector<NamedTensor> named;
  for (const auto& [number, tensor] : tensors_) named.emplace_back(std::to_string(number), tensor);
  return WriteNpz(path, named);
}

}  // namespace collage::tools
