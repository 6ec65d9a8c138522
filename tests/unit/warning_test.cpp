#include "support/warning.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Warning, TheDefaultSinkSaysEachOnce) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    warn(make_diagnostic(Code::CacheNotWritable, {}, "a test's warning"));
    warn(make_diagnostic(Code::CacheNotWritable, {}, "another"));
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning TW5512 cpu: a test's warning\nwarning TW5512 cpu: another\n");
}

TEST(Warning, AnotherSinkTakesAll) {
  int count = 0;
  const WarningSink before =
      replace_warning_sink([&](const Diagnostic& d) { count += d.severity == Diagnostic::Severity::Warning; });
  for (int i = 0; i < 3; ++i) warn(make_diagnostic(Code::CacheNotWritable, {}, "again"));
  replace_warning_sink(before);
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace tilewright
