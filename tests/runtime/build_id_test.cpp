#include "runtime/build_id.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace tilewright::runtime {
namespace {

TEST(BuildId, IsThatOfTheFileAroundAnAddress) {
  EXPECT_EQ(own_build_id().size(), 40u) << "linked without --build-id: programs are lowered at each start";
  EXPECT_EQ(own_build_id().find_first_not_of("0123456789abcdef"), std::string::npos) << own_build_id();
  const std::string of_libc = build_id_around(dlsym(RTLD_DEFAULT, "fopen"));
  EXPECT_NE(of_libc, "");
  EXPECT_NE(of_libc, own_build_id());
  const int on_the_stack = 0;
  EXPECT_EQ(build_id_around(&on_the_stack), "");
  EXPECT_EQ(build_id_around(nullptr), "");
}

}  // namespace
}  // namespace tilewright::runtime
