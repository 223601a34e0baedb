#include "collage/tensor/strings.h"

#include <array>
#include <deque>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

namespace collage {
namespace {

class KeptStrings {
 public:
  uint64_t NumberOf(const std::string& text) {
    {
      const std::shared_lock reading(mutex_);
      const auto known = numbers_.find(text);
      if (known != numbers_.end()) return known->second;
    }
    const std::unique_lock writing(mutex_);
    const auto known = numbers_.find(text);  // another thread may have been faster
    if (known != numbers_.end()) return known->second;
    strings_.push_back(text);
    numbers_.emplace(strings_.back(), strings_.size() - 1);
    return strings_.size() - 1;
  }

  const std::string& Of(uint64_t number) {
    const std::shared_lock reading(mutex_);
    return strings_[number < strings_.size() ? number : 0];
  }

 private:
  std::shared_mutex mutex_;
  std::deque<std::string> strings_{""};  // its elements stay where they are
  std::unordered_map<std::string_view, uint64_t> numbers_{{"", 0}};
};

constexpr size_t kLengthBytes = sizeof(uint32_t);  // as is written before each text

KeptStrings& Kept() {
  static auto* const kept = new KeptStrings();  // never destroyed: tensors may outlive it
  return *kept;
}

/// How many bytes follow the first one of a character; nothing where it begins none.
std::optional<size_t> FollowingBytes(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xc2 && first < 0xe0) return 1;
  if (first >= 0xe0 && first < 0xf0) return 2;
  if (first >= 0xf0 && first < 0xf5) return 3;
  return std::nullopt;
}

}  // namespace

uint64_t NumberOfString(const std::string& text) { return Kept().NumberOf(text); }

const std::string& StringOfNumber(uint64_t number) { return Kept().Of(number); }

std::vector<std::string> StringsOf(const Tensor& tensor) {
  std::vector<std::string> values;
  for (const uint64_t number : NumbersOfStrings(tensor).Values<uint64_t>()) values.push_back(StringOfNumber(number));
  return values;
}

Tensor StringTensor(Shape shape, const std::vector<std::string>& values) {
  Tensor tensor(TensorType{std::move(shape), DType::kString});
  COLLAGE_CHECK(static_cast<int64_t>(values.size()) == tensor.ElementCount());
  auto* numbers = tensor.MutableData<uint64_t>();
  for (size_t i = 0; i < values.size(); ++i) numbers[i] = NumberOfString(values[i]);
  return tensor;
}

Tensor NumbersOfStrings(const Tensor& tensor) {
  COLLAGE_CHECK(tensor.dtype() == DType::kString);
  return Tensor::View(TensorType{tensor.shape(), DType::kUInt64}, tensor.Bytes(), std::make_shared<const Tensor>(tensor));
}

std::string WriteStrings(const Tensor& tensor) {
  std::string written;
  for (const std::string& text : StringsOf(tensor)) {
    COLLAGE_CHECK(text.size() <= std::numeric_limits<uint32_t>::max());
    for (size_t byte = 0; byte < kLengthBytes; ++byte) written += static_cast<char>(text.size() >> (8 * byte) & 0xff);
    written += text;
  }
  return written;
}

Result<Tensor> ReadStrings(Shape shape, std::string_view written) {
  const auto count = static_cast<size_t>(ElementCount(shape));
  const std::string expected = "expected " + std::to_string(count) + " strings";
  // What is said of their number holds memory only when they are there.
  if (written.size() / kLengthBytes < count) return Fail(expected + ", found " + std::to_string(written.size()) + " bytes");
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    size_t length = 0;
    if (written.size() < kLengthBytes) return Fail(expected + ", found " + std::to_string(i));
    for (size_t byte = 0; byte < kLengthBytes; ++byte)
      length |= static_cast<size_t>(static_cast<unsigned char>(written[byte])) << (8 * byte);
    written.remove_prefix(kLengthBytes);
    if (written.size() < length) return Fail(expected + ", found " + std::to_string(i));
    texts.emplace_back(written.substr(0, length));
    written.remove_prefix(length);
  }
  if (!written.empty()) return Fail(expected + ", found " + std::to_string(written.size()) + " bytes behind them");
  return StringTensor(std::move(shape), texts);
}

std::optional<std::u32string> CharactersOf(std::string_view text) {
  std::u32string characters;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::optional<size_t> following = FollowingBytes(first);
    if (!following || text.size() - i <= *following) return std::nullopt;
    char32_t character = *following == 0 ? first : first & (0x3fU >> *following);
    for (size_t k = 1; k <= *following; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if ((byte & 0xc0) != 0x80) return std::nullopt;
      character = character << 6 | (byte & 0x3fU);
    }
    characters += character;
    i += *following + 1;
  }
  return characters;
}

std::string ToUtf8(std::u32string_view characters) {
  std::string text;
  const auto add = [&](char32_t bits) { text += static_cast<char>(bits); };
  for (const char32_t character : characters) {
    if (character < 0x80) {
      add(character);
      continue;
    }
    const int following = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    constexpr std::array<char32_t, 4> kMarks = {0, 0xc0, 0xe0, 0xf0};
    add(kMarks[static_cast<size_t>(following)] | character >> (6 * following));
    for (int k = following; k-- > 0;) add(0x80 | (character >> (6 * k) & 0x3f));
  }
  return text;
}

}  // namespace collage
