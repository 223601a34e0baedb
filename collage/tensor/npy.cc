#include "collage/tensor/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "collage/support/file.h"
#include "collage/tensor/narrow.h"
#include "collage/tensor/strings.h"

// The format: "NumPy Enhancement Proposal 1: A Simple File Format for NumPy Arrays", and numpy.lib.format for versions 2 and 3.

namespace collage {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Code {
  std::string_view code;  // of the type descriptor, without the byte order
  DType dtype;
};
constexpr std::array<Code, 23> kCodes = {{{"f4", DType::kFloat32},
                                          {"f8", DType::kFloat64},
                                          {"f2", DType::kFloat16},
                                          {"V2", DType::kBFloat16},
                                          {"i1", DType::kInt8},
                                          {"i2", DType::kInt16},
                                          {"i4", DType::kInt32},
                                          {"i8", DType::kInt64},
                                          {"u1", DType::kUInt8},
                                          {"u2", DType::kUInt16},
                                          {"u4", DType::kUInt32},
                                          {"u8", DType::kUInt64},
                                          {"b1", DType::kBool},
                                          // NumPy finds these by name once ml_dtypes is imported.
                                          {"float8_e4m3fn", DType::kFloat8E4M3FN},
                                          {"float8_e4m3fnuz", DType::kFloat8E4M3FNUZ},
                                          {"float8_e5m2", DType::kFloat8E5M2},
                                          {"float8_e5m2fnuz", DType::kFloat8E5M2FNUZ},
                                          {"float8_e8m0fnu", DType::kFloat8E8M0},
                                          {"float4_e2m1fn", DType::kFloat4E2M1},
                                          {"int4", DType::kInt4},
                                          {"uint4", DType::kUInt4},
                                          {"int2", DType::kInt2},
                                          {"uint2", DType::kUInt2}}};

struct Header {
  TensorType type;
  size_t characters = 0;  // of a string, each of 4 bytes; shorter ones end in zeros
  bool big_endian = false;
  bool fortran_order = false;
};

/// Reads the header, a Python dictionary literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<Header> Parse() {
    if (!Take("{")) return Malformed("'{'");
    while (!Take("}")) {
      const std::optional<std::string> key = TakeString();
      if (!key || !Take(":")) return Malformed("a key in quotes and ':'");
      COLLAGE_TRY_STATUS(ParseEntry(*key));
      if (!Take(",") && !At("}")) return Malformed("',' or '}'");
    }
    if (!has_descr_ || !has_order_ || !has_shape_) return Fail("the .npy header lacks 'descr', 'fortran_order' or 'shape'");
    return header_;
  }

 private:
  Status ParseEntry(const std::string& key) {
    if (key == "descr") return ParseDescriptor();
    if (key == "fortran_order") {
      has_order_ = true;
      header_.fortran_order = Take("True");
      if (!header_.fortran_order && !Take("False")) return Malformed("True or False");
      return {};
    }
    if (key == "shape") return ParseShape();
    return Fail("the .npy header has an unknown key '" + key + "'");
  }

  Status ParseDescriptor() {
    const std::optional<std::string> text = TakeString();
    if (!text || text->empty()) return Fail("the array has no simple element type (structured arrays are not tensors)");
    has_descr_ = true;
    header_.big_endian = text->front() == '>';
    const std::string_view code = std::string_view(*text).substr(std::string_view("<>|=").find(text->front()) != std::string_view::npos);
    if (code.starts_with('U')) {
      const auto [end, error] = std::from_chars(code.data() + 1, code.data() + code.size(), header_.characters);
      constexpr size_t kMostCharacters = size_t{1} << 30;
      if (error != std::errc() || end != code.data() + code.size() || header_.characters < 1 || header_.characters > kMostCharacters)
        return Fail("element type '" + *text + "' has no right number of characters");
      header_.type.dtype = DType::kString;
      return {};
    }
    for (const Code& known : kCodes) {
      if (known.code != code) continue;
      header_.type.dtype = known.dtype;
      return {};
    }
    return Fail("element type '" + *text + "' is none that a tensor can have");
  }

  Status ParseShape() {
    if (!Take("(")) return Malformed("'('");
    has_shape_ = true;
    while (!Take(")")) {
      SkipSpace();
      int64_t extent = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0) return Malformed("an extent");
      at_ = static_cast<size_t>(end - text_.data());
      Take("L");  // written by Python 2
      header_.type.shape.push_back(extent);
      if (!Take(",") && !At(")")) return Malformed("',' or ')'");
    }
    return {};
  }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool At(std::string_view token) {
    SkipSpace();
    return text_.substr(at_).starts_with(token);
  }
  bool Take(std::string_view token) {
    if (!At(token)) return false;
    at_ += token.size();
    return true;
  }
  std::optional<std::string> TakeString() {
    const char quote = At("'") ? '\'' : '"';
    if (!At(std::string_view(&quote, 1))) return std::nullopt;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string content(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return content;
  }
  [[nodiscard]] tl::unexpected<Error> Malformed(const char* expected) const {
    return Fail("the .npy header is malformed at its character " + std::to_string(at_) + ": expected " + expected);
  }

  std::string_view text_;
  size_t at_ = 0;
  Header header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

/// Bytes of the elements; nothing when they do not fit into 63 bits (empty dimensions counted as one: strides must fit too).
std::optional<size_t> CheckedByteCount(const TensorType& type, size_t element) {
  auto count = static_cast<int64_t>(std::max<size_t>(element, 1));
  for (const int64_t extent : type.shape) {
    if (__builtin_mul_overflow(count, std::max<int64_t>(extent, 1), &count)) return std::nullopt;
  }
  return static_cast<size_t>(type.ElementCount()) * element;
}

/// Copies elements that are stored with the first dimension running fastest.
void CopyFromFortranOrder(const char* source, const Shape& shape, size_t element, std::byte* target) {
  std::vector<int64_t> index(shape.size(), 0);
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  const int64_t count = ElementCount(shape);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(target + static_cast<size_t>(offset) * element, source + static_cast<size_t>(i) * element, element);
    for (size_t d = 0; d < shape.size(); ++d) {
      offset += strides[d];
      if (++index[d] < shape[d]) break;
      offset -= shape[d] * strides[d];
      index[d] = 0;
    }
  }
}

size_t LittleEndian(std::string_view bytes) {
  size_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string StringAt(std::string_view characters, bool big_endian) {
  std::u32string text;
  for (; !characters.empty(); characters.remove_prefix(4)) {
    std::string bytes(characters.substr(0, 4));
    if (big_endian) std::reverse(bytes.begin(), bytes.end());
    text += static_cast<char32_t>(LittleEndian(bytes));
  }
  text.erase(text.find_last_not_of(U'\0') + 1);
  return ToUtf8(text);
}

Tensor MakeStrings(const Header& header, std::string_view data) {
  const size_t size = 4 * header.characters;
  const int64_t count = header.type.ElementCount();
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) texts.push_back(StringAt(data.substr(static_cast<size_t>(i) * size, size), header.big_endian));
  Tensor tensor = StringTensor(header.type.shape, texts);
  if (!header.fortran_order) return tensor;
  Tensor ordered(header.type);
  CopyFromFortranOrder(reinterpret_cast<const char*>(tensor.Bytes()), header.type.shape, ByteSize(DType::kString), ordered.MutableBytes());
  return ordered;
}

/// All as long as the longest, which NumPy wants to be one character at least.
std::string StringData(const std::vector<std::u32string>& texts, size_t characters) {
  std::string data;
  for (std::u32string text : texts) {
    text.resize(characters);
    for (const char32_t character : text) {
      for (int shift = 0; shift < 32; shift += 8) data += static_cast<char>(character >> shift & 0xff);
    }
  }
  return data;
}

/// What is no UTF-8 is taken byte by byte.
std::vector<std::u32string> CharactersOfAll(const Tensor& tensor) {
  std::vector<std::u32string> texts;
  for (const std::string& text : StringsOf(tensor)) {
    const std::u32string bytes(reinterpret_cast<const unsigned char*>(text.data()),
                               reinterpret_cast<const unsigned char*>(text.data()) + text.size());
    texts.push_back(CharactersOf(text).value_or(bytes));
  }
  return texts;
}

Tensor MakeTensor(const Header& header, std::string_view data) {
  if (header.type.dtype == DType::kString) return MakeStrings(header, data);
  Tensor tensor(header.type);
  std::byte* bytes = tensor.MutableBytes();
  const size_t element = ByteSize(header.type.dtype);
  if (header.fortran_order) {
    CopyFromFortranOrder(data.data(), header.type.shape, element, bytes);
  } else {
    std::memcpy(bytes, data.data(), data.size());
  }
  for (size_t i = 0; header.big_endian && i < data.size(); i += element) std::reverse(bytes + i, bytes + i + element);
  // Any other byte than 0 and 1 is no value of a C++ bool.
  for (size_t i = 0; header.type.dtype == DType::kBool && i < data.size(); ++i) bytes[i] = std::byte{bytes[i] != std::byte{0}};
  if (BitWidth(header.type.dtype) < 8) Narrow(Widened(tensor), tensor);  // the same for bits that the type does not have
  return tensor;
}

}  // namespace

Result<Tensor> ParseNpy(std::string_view content) {
  if (!content.starts_with(kMagic)) return Fail("not a .npy file: it does not start with \\x93NUMPY");
  if (content.size() < kMagic.size() + 4) return Fail("truncated .npy header");
  const int version = static_cast<unsigned char>(content[kMagic.size()]);
  if (version < 1 || version > 3) return Fail(".npy format version " + std::to_string(version) + ", expected 1, 2 or 3");
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t header_begin = kMagic.size() + 2 + length_bytes;
  if (content.size() < header_begin) return Fail("truncated .npy header");
  const size_t header_bytes = LittleEndian(content.substr(kMagic.size() + 2, length_bytes));
  if (content.size() - header_begin < header_bytes) return Fail("truncated .npy header");
  const Header header = COLLAGE_TRY(HeaderParser(content.substr(header_begin, header_bytes)).Parse());
  const std::string_view data = content.substr(header_begin + header_bytes);
  const size_t element = header.type.dtype == DType::kString ? 4 * header.characters : ByteSize(header.type.dtype);
  const std::optional<size_t> expected = CheckedByteCount(header.type, element);
  if (!expected || *expected != data.size()) {
    return Fail("has " + std::to_string(data.size()) + " bytes of data, expected " +
                (expected ? std::to_string(*expected) + " for " : "the too many of ") + ToString(header.type));
  }
  return MakeTensor(header, data);
}

std::string ToNpy(const Tensor& tensor) {
  std::string header = "{'descr': '";
  std::string strings;
  if (tensor.dtype() == DType::kString) {
    const std::vector<std::u32string> texts = CharactersOfAll(tensor);
    size_t characters = 1;
    for (const std::u32string& text : texts) characters = std::max(characters, text.size());
    strings = StringData(texts, characters);
    header += "<U" + std::to_string(characters);
  } else {
    const auto code = std::find_if(kCodes.begin(), kCodes.end(), [&](const Code& known) { return known.dtype == tensor.dtype(); });
    if (code->code.size() == 2) header += ByteSize(tensor.dtype()) == 1 ? '|' : '<';
    header += code->code;
  }
  header += "', 'fortran_order': False, 'shape': " + ToString(tensor.shape()) + ", }";
  // Padded so that the data starts at a multiple of 64 bytes.
  const size_t before = kMagic.size() + 4;
  header.append(63 - (before + header.size()) % 64, ' ');
  header += '\n';
  std::string content(kMagic);
  content += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  content += header;
  if (tensor.dtype() == DType::kString) return content + strings;
  content.append(reinterpret_cast<const char*>(tensor.Bytes()), tensor.ByteCount());
  return content;
}

Result<Tensor> ReadNpy(const std::filesystem::path& path) {
  const std::string content = COLLAGE_TRY(ReadFile(path));
  Result<Tensor> tensor = ParseNpy(content);
  return tensor ? std::move(tensor) : Fail(std::move(tensor).error().At(path.string()));
}

Status WriteNpy(const std::filesystem::path& path, const Tensor& tensor) { return WriteFileAtomically(path, ToNpy(tensor)); }

}  // namespace collage
