#include "support/diagnostic.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Diagnostic, TextHasCodePlaceNotesAndHelp) {
  Diagnostic d = make_diagnostic(Code::Internal, {"nowhere.cpp", 41, 9}, "what happened", "do this",
                                 {{"seen here", {"nowhere.cpp", 33, 0}}});
  EXPECT_EQ(d.to_string(),
            "error TW0001 internal: what happened\n  --> nowhere.cpp:41:9\nnote: seen here\n  --> "
            "nowhere.cpp:33\nhelp: do this");
}

TEST(Diagnostic, FailedInternalCheckSaysItIsOurs) {
  try {
    check_internal(1 == 2, "one is not {}", 2);
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_EQ(e.diagnostic().message, "one is not 2");
    EXPECT_EQ(e.diagnostic().code, 1);
  }
}

}  // namespace
}  // namespace tilewright
