// Users' layout functions: what fits is found exactly, what does not is refused at the first index that deviates.
#include <gtest/gtest.h>

#include "layout/fit.h"
#include "layout/standard.h"
#include "unit/layout_samples.h"

namespace tilewright {
namespace {

TEST(FitFragment, FindsEveryLayout) {
  LayoutSamples samples(31);
  int fitted = 0;
  for (int round = 0; round < 300; ++round) {
    const FragmentLayout layout = samples.fragment();
    if (layout.ctas() > 1 || layout.is_partial()) continue;
    const auto function = [&](std::span<const int64_t> index, int64_t copy) {
      const Place place = layout.place(index, copy);
      return UserPlace{place.thread, place.reg};
    };
    const FragmentLayout got = fit_fragment(layout.shape(), layout.threads(), layout.copy_count(), function);
    for_each_index(layout.shape(), [&](const Index& index) {
      for (int64_t copy = 0; copy < layout.copy_count(); ++copy)
        EXPECT_EQ(got.held_at(layout.place(index, copy)).index, index) << layout.text();
    });
    ++fitted;
  }
  EXPECT_GT(fitted, 50);
  const auto c = [](std::span<const int64_t> i, int64_t) {
    const int64_t lane = i[0] % 8 * 4 + i[1] % 8 / 2;
    return UserPlace{i[0] / 16 * 32 + lane, i[1] / 8 * 4 + i[0] % 16 / 8 * 2 + i[1] % 2};
  };
  EXPECT_EQ(fit_fragment({64, 128}, 128, 1, c), wgmma_c(64, 128));
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.diagnostic().code_text(), "TW1085");
    return error.diagnostic().message;
  }
  return "no error";
}

TEST(FitFragment, NamesTheFirstIndexThatDeviates) {
  const auto refused = [](std::function<UserPlace(std::span<const int64_t>, int64_t)> f, int64_t copies = 1) {
    return message_of([&] { fit_fragment({8, 16}, 32, copies, f); });
  };
  EXPECT_NE(refused([](auto i, int64_t) {
              return UserPlace{i[1], i[0] == 5 && i[1] == 7 ? 9 : i[0]};
            }).find("index (5, 7) gives thread 7, register 9"),
            std::string::npos);
  EXPECT_NE(refused([](auto i, int64_t) {
              return UserPlace{i[1] ^ i[0], i[0]};
            }).find("index (1, 0)"),
            std::string::npos);
  EXPECT_NE(refused([](auto, int64_t) {
              return UserPlace{0, 0};
            }).find("moves 0 registers and 0 threads"),
            std::string::npos);
  EXPECT_NE(refused([](auto i, int64_t) {
              return UserPlace{i[1] + 1, i[0]};
            }).find("does not begin"),
            std::string::npos);
  EXPECT_NE(refused([](auto i, int64_t) { return UserPlace{i[1] * 4, i[0]}; }).find("of 32"), std::string::npos);
  EXPECT_NE(refused([](auto i, int64_t) { return UserPlace{i[1], i[0] / 2}; }).find("index (1, 0)"), std::string::npos);
  EXPECT_NE(refused([](auto i, int64_t copy) { return UserPlace{i[1], i[0] + copy}; }, 2), "no error");
  EXPECT_EQ(refused([](auto i, int64_t copy) { return UserPlace{i[1] + 16 * copy, i[0]}; }, 2), "no error");
}

TEST(FitMemory, FindsStridesPanelsAndSwizzles) {
  LayoutSamples samples(32);
  for (int round = 0; round < 200; ++round) {
    const MemoryLayout layout = samples.memory({samples.upto(40), samples.upto(40)}, false);
    const MemoryLayout got = fit_memory(layout.shape(), layout.element_bits(), [&](std::span<const int64_t> index) {
      return Index{layout.bit_offset(index) / layout.element_bits()};
    });
    EXPECT_EQ(got, layout);
  }
  for (int bits : {8, 16, 32})
    for (int64_t span : {16, 32, 64, 128})
      for (int64_t rows : {8, 24, 64}) {
        const MemoryLayout layout = MemoryLayout::panels({rows, 3 * span * 8 / bits}, bits, span);
        const MemoryLayout got = fit_memory(layout.shape(), bits, [&](std::span<const int64_t> index) {
          return Index{layout.bit_offset(index) / bits};
        });
        EXPECT_EQ(got, layout) << layout.text();
      }
  // As users write it: several numbers, the chunk XOR the row.
  const MemoryLayout got = fit_memory({64, 64}, 16, [](std::span<const int64_t> i) {
    return Index{i[0], i[1] / 8 ^ i[0] % 8, i[1] % 8};
  });
  EXPECT_EQ(got, MemoryLayout::panels({64, 64}, 16, 128));
  // Rows of 192 elements, which are no power of two.
  const MemoryLayout wide({64, 192}, {192, 1}, 16, Swizzle{2, 4, 3});
  EXPECT_EQ(fit_memory({64, 192}, 16, [&](std::span<const int64_t> i) { return Index{wide.bit_offset(i) / 16}; }),
            wide);
}

TEST(FitMemory, NamesTheFirstIndexThatDeviates) {
  const auto refused = [](std::function<Index(std::span<const int64_t>)> f) {
    return message_of([&] { fit_memory({8, 16}, 16, f); });
  };
  EXPECT_EQ(refused([](auto i) { return Index{i[0], i[1]}; }), "no error");
  EXPECT_NE(refused([](auto i) {
              return Index{i[0], i[0] == 3 ? 15 - i[1] : i[1]};
            }).find("index (3, 1) gives 62: the indices before it lead to 64"),
            std::string::npos);
  EXPECT_NE(refused([](auto i) { return Index{i[0], (i[1] + i[0]) % 16}; }).find("index ("), std::string::npos);
  EXPECT_NE(refused([](auto i) { return Index{i[0] / 2 * 2, i[1]}; }), "no error");
  EXPECT_NE(refused([](auto i) { return Index{i[0] * 24 + (i[1] ^ i[0] / 2 % 2)}; }), "no error");  // of no address bit
  EXPECT_NE(refused([](auto i) { return Index{i[0] - 1, i[1]}; }).find("gives -1"), std::string::npos);
  EXPECT_NE(refused([](auto i) { return Index{1 + i[0], i[1]}; }).find("does not begin at 0"), std::string::npos);
  EXPECT_NE(refused([](auto i) {
              return i[0] == 2 ? Index{} : Index{i[0], i[1]};
            }).find("gives 0 numbers"),
            std::string::npos);
}

}  // namespace
}  // namespace tilewright
