#include "collage/support/base64.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(Base64, WritesTheTestVectorsOfItsStandard) {
  EXPECT_EQ(ToBase64(""), "");
  EXPECT_EQ(ToBase64("f"), "Zg==");
  EXPECT_EQ(ToBase64("fo"), "Zm8=");
  EXPECT_EQ(ToBase64("foo"), "Zm9v");
  EXPECT_EQ(ToBase64("foobar"), "Zm9vYmFy");
}

TEST(Base64, ReadsBackWhateverItWrites) {
  std::string bytes;
  for (int i = 0; i < 600; ++i) {
    EXPECT_EQ(FromBase64(ToBase64(bytes)).value(), bytes);
    bytes += static_cast<char>(i * 37);
  }
}

TEST(Base64, RefusesWhatItNeverWrites) {
  EXPECT_FALSE(FromBase64("Zg="));
  EXPECT_THAT(FromBase64("Zm!v").error().message, testing::HasSubstr("'!' at 2"));
  EXPECT_FALSE(FromBase64("Zg==Zm9v"));
  EXPECT_FALSE(FromBase64("Z==="));
  EXPECT_FALSE(FromBase64("Zg=v"));
}

}  // namespace
}  // namespace collage
