#include "collage/backend/cuda_device/transpose.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "collage/backend/cuda_device/driver.h"

namespace collage::cuda {
namespace {

// A block of threads moves a square of elements through shared memory, so that it reads rows and writes rows.
constexpr size_t kSide = 32;          // threads of a warp, which reads or writes a row
constexpr size_t kThreadRows = 8;     // with these a block has 256 threads, as those of generated code
constexpr size_t kPitch = kSide + 1;  // of rows in shared memory: a column is spread over all banks
constexpr size_t kLogOfSide = std::countr_zero(kSide);

struct Element {
  size_t bytes;
  const char* type;  ///< of loads and stores
  const char* held;  ///< of a register
};
constexpr std::array<Element, 4> kElements = {{{1, "u8", "b16"}, {2, "b16", "b16"}, {4, "b32", "b32"}, {8, "b64", "b64"}}};

std::string NameOf(size_t bytes) { return "transpose_" + std::to_string(bytes); }

void Replace(std::string& text, const std::string& name, const std::string& by) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + by.size())) text.replace(at, name.size(), by);
}

// Registers: r1 rows, r2 columns, r3 and r4 this thread's place, r8 and r10 the square's column and row among squares, d1 and d2 the matrix
// of this batch in the target and in the source.
constexpr const char* kBegin = R"(
.visible .entry NAME(.param .u64 target, .param .u64 source, .param .u32 rows, .param .u32 columns) {
  .reg .pred %p<3>;
  .reg .b32 %r<24>;
  .reg .b64 %d<8>;
  .reg .HELD %v;
  .shared .align 8 .b8 square[SQUARE];
  ld.param.u64 %d1, [target];
  ld.param.u64 %d2, [source];
  cvta.to.global.u64 %d1, %d1;
  cvta.to.global.u64 %d2, %d2;
  ld.param.u32 %r1, [rows];
  ld.param.u32 %r2, [columns];
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %tid.y;
  mov.u32 %r5, %ctaid.x;
  add.u32 %r6, %r2, LAST;
  shr.u32 %r6, %r6, LOG;
  add.u32 %r7, %r1, LAST;
  shr.u32 %r7, %r7, LOG;
  rem.u32 %r8, %r5, %r6;
  div.u32 %r9, %r5, %r6;
  rem.u32 %r10, %r9, %r7;
  div.u32 %r11, %r9, %r7;
  mul.wide.u32 %d3, %r1, %r2;
  cvt.u64.u32 %d4, %r11;
  mul.lo.u64 %d3, %d3, %d4;
  mul.lo.u64 %d3, %d3, BYTES;
  add.u64 %d1, %d1, %d3;
  add.u64 %d2, %d2, %d3;
  mov.u32 %r14, square;
  shl.b32 %r12, %r8, LOG;
  add.u32 %r12, %r12, %r3;
  shl.b32 %r13, %r10, LOG;
  add.u32 %r13, %r13, %r4;
  mad.lo.u32 %r15, %r4, PITCH, %r3;
  mad.lo.u32 %r15, %r15, BYTES, %r14;
  setp.ge.u32 %p1, %r12, %r2;
)";
// FIRST is a row of the square beside this thread's.
constexpr const char* kRead = R"(
  add.u32 %r16, %r13, FIRST;
  setp.ge.u32 %p2, %r16, %r1;
  or.pred %p2, %p2, %p1;
  @%p2 bra read_FIRST;
  mul.wide.u32 %d5, %r16, %r2;
  cvt.u64.u32 %d6, %r12;
  add.u64 %d5, %d5, %d6;
  mul.lo.u64 %d5, %d5, BYTES;
  add.u64 %d5, %d5, %d2;
  ld.global.TYPE %v, [%d5];
  st.shared.TYPE [%r15 + ROW_OFFSET], %v;
read_FIRST:
)";
constexpr const char* kBetween = R"(
  bar.sync 0;
  shl.b32 %r17, %r10, LOG;
  add.u32 %r17, %r17, %r3;
  shl.b32 %r18, %r8, LOG;
  add.u32 %r18, %r18, %r4;
  mad.lo.u32 %r19, %r3, PITCH, %r4;
  mad.lo.u32 %r19, %r19, BYTES, %r14;
  setp.ge.u32 %p1, %r17, %r1;
)";
constexpr const char* kWrite = R"(
  add.u32 %r20, %r18, FIRST;
  setp.ge.u32 %p2, %r20, %r2;
  or.pred %p2, %p2, %p1;
  @%p2 bra written_FIRST;
  ld.shared.TYPE %v, [%r19 + COLUMN_OFFSET];
  mul.wide.u32 %d5, %r20, %r1;
  cvt.u64.u32 %d6, %r17;
  add.u64 %d5, %d5, %d6;
  mul.lo.u64 %d5, %d5, BYTES;
  add.u64 %d5, %d5, %d1;
  st.global.TYPE [%d5], %v;
written_FIRST:
)";

std::string ForEachRowOfThreads(const char* part, size_t bytes) {
  std::string text;
  for (size_t first = 0; first < kSide; first += kThreadRows) {
    std::string one = part;
    Replace(one, "FIRST", std::to_string(first));
    Replace(one, "ROW_OFFSET", std::to_string(first * kPitch * bytes));
    Replace(one, "COLUMN_OFFSET", std::to_string(first * bytes));
    text += one;
  }
  return text;
}

std::string KernelText(const Element& element) {
  std::string text =
      kBegin + ForEachRowOfThreads(kRead, element.bytes) + kBetween + ForEachRowOfThreads(kWrite, element.bytes) + "  ret;\n}\n";
  Replace(text, "LAST", std::to_string(kSide - 1));
  Replace(text, "LOG", std::to_string(kLogOfSide));
  Replace(text, "PITCH", std::to_string(kPitch));
  Replace(text, "SQUARE", std::to_string(kSide * kPitch * element.bytes));
  Replace(text, "NAME", NameOf(element.bytes));
  Replace(text, "BYTES", std::to_string(element.bytes));
  Replace(text, "TYPE", element.type);
  Replace(text, "HELD", element.held);
  return text;
}

int64_t SquaresAlong(int64_t extent) { return (extent - 1) / static_cast<int64_t>(kSide) + 1; }

int64_t SquaresOf(const Transposition& t) { return t.batches * SquaresAlong(t.rows) * SquaresAlong(t.columns); }

}  // namespace

bool HasTransposeKernel(const Transposition& transposition) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // of blocks in a launch; kernels count in 32 bits
  const auto has_bytes = [&](const Element& element) { return element.bytes == transposition.element_bytes; };
  return std::any_of(kElements.begin(), kElements.end(), has_bytes) && transposition.rows <= kMost && transposition.columns <= kMost &&
         transposition.batches <= kMost && SquaresOf(transposition) <= kMost;
}

std::string TransposeSource() {
  // The oldest devices that CUDA 13 serves: the driver compiles it for the one that there is.
  std::string text = ".version 6.3\n.target sm_75\n.address_size 64\n";
  for (const Element& element : kElements) text += KernelText(element);
  return text;
}

Status TransposeKernels::Load() {
  if (module_) return {};
  COLLAGE_CUDA_CALL(cuModuleLoadData, &module_, TransposeSource().c_str());
  for (const Element& element : kElements)
    COLLAGE_CUDA_CALL(cuModuleGetFunction, &functions_[element.bytes], module_, NameOf(element.bytes).c_str());
  return {};
}

void TransposeKernels::Unload() {
  if (module_) Driver::Use().cuModuleUnload(module_);
  module_ = nullptr;
}

Status TransposeKernels::Give(const Transposition& transposition, CUdeviceptr to, CUdeviceptr from, CUstream stream) const {
  auto rows = static_cast<unsigned>(transposition.rows);
  auto columns = static_cast<unsigned>(transposition.columns);
  std::array<void*, 4> arguments = {&to, &from, &rows, &columns};
  COLLAGE_CUDA_CALL(cuLaunchKernel, functions_.at(transposition.element_bytes), static_cast<unsigned>(SquaresOf(transposition)), 1, 1,
                    static_cast<unsigned>(kSide), kThreadRows, 1, 0, stream, arguments.data(), nullptr);
  return {};
}

}  // namespace collage::cuda
