#include "collage/tensor/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "collage/support/file.h"
#include "collage/tensor/strings.h"

namespace collage {
namespace {

class NpyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "npy_test.XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Runs Python statements with numpy as np and the folder as `folder`.
  [[nodiscard]] bool RunNumPy(const std::string& statements) const {
    const std::filesystem::path script = folder_ / "script.py";
    std::ofstream(script) << "import numpy as np\nfolder = '" << folder_.string() << "/'\n" << statements;
    return std::system((".venv/bin/python " + script.string()).c_str()) == 0;
  }

  std::filesystem::path folder_;
};

bool HasNumPy() { return std::system(".venv/bin/python -c 'import numpy' 2>/dev/null") == 0; }

const std::vector<DType> kDTypes = {DType::kFloat32, DType::kFloat64, DType::kInt8,   DType::kInt16,  DType::kInt32, DType::kInt64,
                                    DType::kUInt8,   DType::kUInt16,  DType::kUInt32, DType::kUInt64, DType::kBool};

TEST_F(NpyTest, RoundTripsEveryTypeAndRank) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt8, DType::kInt16, DType::kInt32,
                            DType::kInt64, DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64, DType::kBool,
                            DType::kFloat8E4M3FN, DType::kFloat8E8M0, DType::kFloat4E2M1, DType::kInt4, DType::kUInt2}) {
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3}, Shape{2, 0, 3}, Shape{2, 1, 3, 2, 1, 2, 2, 1, 3}}) {
      const bool has_all_bytes = dtype != DType::kBool && BitWidth(dtype) >= 8;
      Tensor tensor(TensorType{shape, dtype});
      for (size_t i = 0; i < tensor.ByteCount(); ++i) tensor.MutableBytes()[i] = static_cast<std::byte>(has_all_bytes ? i : i & 1);
      const Result<Tensor> back = ParseNpy(ToNpy(tensor));
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_TRUE(BitwiseEqual(*back, tensor)) << ToString(tensor.type());
    }
  }
}

TEST_F(NpyTest, StringsAreThoseOfNumPy) {
  if (!HasNumPy()) GTEST_SKIP() << ".venv with numpy is not there";
  const std::string array = "np.array([['a', 'z\\u00fcrich'], ['', 'two words']])";
  ASSERT_TRUE(RunNumPy("np.save(folder + 'c.npy', " + array + ")\nnp.save(folder + 'f.npy', np.asfortranarray(" + array +
                       "))\nnp.save(folder + 'b.npy', " + array + ".astype('>U9'))\n"));
  for (const char* name : {"c.npy", "f.npy", "b.npy"}) {
    const Result<Tensor> tensor = ReadNpy(folder_ / name);
    ASSERT_TRUE(tensor) << tensor.error().message;
    EXPECT_EQ(StringsOf(*tensor), (std::vector<std::string>{"a", "z\xc3\xbcrich", "", "two words"})) << name;
    ASSERT_TRUE(WriteNpy(folder_ / "written.npy", *tensor));
    EXPECT_TRUE(RunNumPy("assert np.array_equal(np.load(folder + 'written.npy'), " + array + ")\n")) << name;
  }
}

TEST_F(NpyTest, ReadsWhatNumPyWrites) {
  if (!HasNumPy()) GTEST_SKIP() << ".venv with numpy is not there";
  std::string names;
  for (const DType dtype : kDTypes) names.append("'").append(Name(dtype)).append("', ");
  ASSERT_TRUE(
      RunNumPy("a = np.arange(24).reshape(2, 3, 4)\n"
               "for t in [" +
               names +
               "'float16']:\n"
               "  np.save(folder + t + '.npy', a.astype(t))\n"
               "  np.save(folder + t + '_fortran.npy', np.asfortranarray(a.astype(t)))\n"
               "  np.save(folder + t + '_big.npy', a.astype(np.dtype(t).newbyteorder('>')))\n"
               "np.save(folder + 'scalar.npy', np.float32(2.5))\n"
               "np.save(folder + 'vector.npy', np.array([1.5, 2.5]))\n"));
  std::vector<DType> dtypes = kDTypes;
  dtypes.push_back(DType::kFloat16);
  for (const DType dtype : dtypes) {
    for (const char* form : {"", "_fortran", "_big"}) {
      const Result<Tensor> tensor = ReadNpy(folder_ / (std::string(Name(dtype)) + form + ".npy"));
      ASSERT_TRUE(tensor) << tensor.error().message;
      ASSERT_EQ(tensor->type(), (TensorType{{2, 3, 4}, dtype}));
      const std::vector<double> values = tensor->ToDouble();
      for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], dtype == DType::kBool ? (i > 0) : static_cast<double>(i)) << form;
    }
  }
  EXPECT_EQ(ReadNpy(folder_ / "scalar.npy")->ToDouble(), std::vector<double>{2.5});
  EXPECT_EQ(ReadNpy(folder_ / "scalar.npy")->shape(), Shape{});
  EXPECT_EQ(ReadNpy(folder_ / "vector.npy")->shape(), Shape{2});
}

TEST_F(NpyTest, ArchivesRoundTripThroughNumPy) {
  if (!HasNumPy()) GTEST_SKIP() << ".venv with numpy is not there";
  ASSERT_TRUE(
      RunNumPy("arrays = {'input': np.arange(60000, dtype='float32').reshape(3, 200, 100), 'mask': np.array([True, False]),\n"
               "          'a/b c': np.int64(-7)}\n"
               "np.savez(folder + 'stored.npz', **arrays)\n"
               "np.savez_compressed(folder + 'deflated.npz', **arrays)\n"));
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const Result<std::vector<NamedTensor>> tensors = ReadNpz(folder_ / name);
    ASSERT_TRUE(tensors) << tensors.error().message;
    ASSERT_EQ(tensors->size(), 3u);
    EXPECT_EQ((*tensors)[0].first, "input");
    EXPECT_EQ((*tensors)[0].second.type(), (TensorType{{3, 200, 100}, DType::kFloat32}));
    EXPECT_EQ((*tensors)[0].second.Data<float>()[59999], 59999.0f);
    EXPECT_EQ((*tensors)[1].second.dtype(), DType::kBool);
    EXPECT_EQ((*tensors)[2].first, "a/b c");
    EXPECT_EQ((*tensors)[2].second.ToInt64(), std::vector<int64_t>{-7});
    ASSERT_TRUE(WriteNpz(folder_ / "ours.npz", *tensors));
    EXPECT_TRUE(RunNumPy("ours, theirs = np.load(folder + 'ours.npz'), np.load(folder + '" + std::string(name) +
                         "')\n"
                         "assert ours.files == theirs.files\n"
                         "for n in ours.files:\n"
                         "  assert ours[n].dtype == theirs[n].dtype and np.array_equal(ours[n], theirs[n]), n\n"));
  }
  ASSERT_TRUE(WriteNpz(folder_ / "none.npz", {}));
  EXPECT_TRUE(ReadNpz(folder_ / "none.npz")->empty());
}

TEST_F(NpyTest, MalformedContentIsAnError) {
  const std::string good = ToNpy(Tensor::FromVector<float>({{2, 2}, DType::kFloat32}, {1, 2, 3, 4}));
  ASSERT_TRUE(ParseNpy(good));
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(ParseNpy(good.substr(0, size))) << size;
  EXPECT_FALSE(ParseNpy(good + "x"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_THAT(ParseNpy(with("<f4", "<c8")).error().message, ::testing::HasSubstr("'<c8'"));
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{{"False", "Fasle"},
                                                                                 {"(2, 2)", "(2, 3)"},
                                                                                 {"(2, 2)", "(2,-2)"},
                                                                                 {"(2, 2)", "(2; 2)"},
                                                                                 {"shape", "shave"},
                                                                                 {"{", "("},
                                                                                 {"NUMPY", "NUMPI"},
                                                                                 {"NUMPY\x01", "NUMPY\x04"}}) {
    EXPECT_FALSE(ParseNpy(with(from, to))) << from << " -> " << to;
  }
  // A flipped byte may leave a legal array, but nothing may crash.
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      (void)ParseNpy(damaged);
    }
  }
  // 2^32 * 2^32 elements wrap around to zero bytes.
  std::string huge = with("(2, 2), }" + std::string(18, ' '), "(4294967296, 4294967296), }");
  EXPECT_FALSE(ParseNpy(huge));
}

TEST_F(NpyTest, DamagedArchivesAndMissingFilesAreErrors) {
  const std::filesystem::path path = folder_ / "a.npz";
  EXPECT_THAT(ReadNpy(folder_ / "none.npy").error().message, ::testing::HasSubstr("none.npy"));
  EXPECT_THAT(ReadNpz(path).error().message, ::testing::HasSubstr("a.npz"));
  Tensor tensor(TensorType{{100}, DType::kFloat32});
  FillRandom(tensor, 1);
  ASSERT_TRUE(WriteNpz(path, {{"x", tensor}}));
  const std::string good = *ReadFile(path);
  for (size_t size = 0; size < good.size(); size += 7) {
    ASSERT_TRUE(WriteFileAtomically(path, good.substr(0, size)));
    EXPECT_FALSE(ReadNpz(path)) << size;
  }
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(damaged[good.size() / 2] ^ 1);  // inside the data: the checksum must notice
  ASSERT_TRUE(WriteFileAtomically(path, damaged));
  EXPECT_FALSE(ReadNpz(path));
  EXPECT_THAT(WriteNpz(folder_ / "no" / "such" / "a.npz", {{"x", tensor}}).error().message, ::testing::HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace collage
