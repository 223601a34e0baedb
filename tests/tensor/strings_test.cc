#include "collage/tensor/strings.h"

#include <gtest/gtest.h>

#include <thread>

#include "collage/tensor/npy.h"

namespace collage {
namespace {

TEST(Strings, EqualTextsAreTheSameNumber) {
  EXPECT_EQ(NumberOfString(""), 0U);
  EXPECT_EQ(NumberOfString("one"), NumberOfString("one"));
  EXPECT_NE(NumberOfString("one"), NumberOfString("two"));
  EXPECT_EQ(StringOfNumber(NumberOfString("two")), "two");
  EXPECT_EQ(StringOfNumber(~uint64_t{0}), "") << "memory that nobody wrote";
}

TEST(Strings, AZeroFilledTensorIsOfEmptyStrings) {
  EXPECT_EQ(StringsOf(Tensor(TensorType{{2}, DType::kString})), (std::vector<std::string>{"", ""}));
  EXPECT_EQ(StringsOf(StringTensor({2, 1}, {"a", ""})), (std::vector<std::string>{"a", ""}));
}

TEST(Strings, ThreadsGetTheSameNumbers) {
  constexpr uint64_t kTexts = 2000;
  std::vector<std::vector<uint64_t>> numbers(4, std::vector<uint64_t>(kTexts));
  std::vector<std::thread> threads;
  for (std::vector<uint64_t>& own : numbers) {
    threads.emplace_back([&own] {
      for (uint64_t i = 0; i < kTexts; ++i) own[i] = NumberOfString("thread " + std::to_string(i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<uint64_t>& own : numbers) EXPECT_EQ(own, numbers[0]);
  EXPECT_EQ(StringOfNumber(numbers[0][7]), "thread 7");
}

TEST(Strings, Utf8GoesBothWays) {
  const std::string text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
  ASSERT_TRUE(CharactersOf(text));
  EXPECT_EQ(*CharactersOf(text), (std::u32string{U'a', 0xe4, 0x20ac, 0x1f600}));
  EXPECT_EQ(ToUtf8(*CharactersOf(text)), text);
  for (const char* broken : {"\xc3", "\xc3(", "\x80", "\xe2\x82", "\xff"}) EXPECT_FALSE(CharactersOf(broken)) << broken;
}

TEST(Strings, NpyRoundTrip) {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 0}, Shape{2, 2}}) {
    std::vector<std::string> texts = {"", "z\xc3\xbcrich", "b", "longer than the others"};
    texts.resize(static_cast<size_t>(ElementCount(shape)));
    const Tensor tensor = StringTensor(shape, texts);
    const Result<Tensor> back = ParseNpy(ToNpy(tensor));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->type(), tensor.type());
    EXPECT_EQ(StringsOf(*back), texts);
  }
}

TEST(Strings, AreReadAsTheyWereWritten) {
  const std::vector<std::string> texts = {"", "z\xc3\xbcrich", std::string("a\0b", 3), "\xff raw"};
  const std::string written = WriteStrings(StringTensor({2, 2}, texts));
  const Result<Tensor> back = ReadStrings({2, 2}, written);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->type(), (TensorType{{2, 2}, DType::kString}));
  EXPECT_EQ(StringsOf(*back), texts);
  EXPECT_TRUE(ReadStrings({0, 3}, WriteStrings(StringTensor({0, 3}, {}))));
}

TEST(Strings, WhatWasNotWrittenSoIsAnError) {
  const std::string written = WriteStrings(StringTensor({2}, {"one", "two"}));
  for (size_t length = 0; length < written.size(); ++length) EXPECT_FALSE(ReadStrings({2}, written.substr(0, length))) << length;
  EXPECT_EQ(ReadStrings({2}, written + "x").error().message, "expected 2 strings, found 1 bytes behind them");
  EXPECT_EQ(ReadStrings({int64_t{1} << 60}, written).error().message, "expected 1152921504606846976 strings, found 14 bytes");
  EXPECT_EQ(ReadStrings({2}, "\xff\xff\xff\xff one").error().message, "expected 2 strings, found 0");
}

}  // namespace
}  // namespace collage
