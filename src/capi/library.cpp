// The functions of tilewright/c_api.h on the kernel library.
#include <nlohmann/json.hpp>

#include "capi/handles.h"
#include "tilewright/kernels.h"

using namespace tilewright;
using capi::guarded;

namespace {

kernels::Options options_of(const char* const* names, const char* const* texts, size_t count) {
  kernels::Options out;
  for (size_t i = 0; i < count; ++i) out[names[i]] = texts[i];
  return out;
}

}  // namespace

extern "C" {

tw_error* tw_library_program(const char* family, const char* const* names, const char* const* texts, size_t count,
                             tw_program** out) {
  return guarded([&] {
    *out = new tw_program{kernels::library_program(family, options_of(names, texts, count)), {}};
    (*out)->text = (*out)->program.text();
  });
}

tw_error* tw_library_choose(const char* family, const char* const* names, const char* const* texts, size_t count,
                            const char* arch, const char* const* symbols, const int64_t* values, size_t symbol_count,
                            tw_text** out) {
  return guarded([&] {
    std::map<std::string, int64_t> shape;
    for (size_t i = 0; i < symbol_count; ++i) shape[symbols[i]] = values[i];
    const kernels::Choice choice = kernels::choose(family, options_of(names, texts, count), arch, shape);
    const nlohmann::json found = {{"options", choice.options},
                                  {"microseconds", choice.microseconds},
                                  {"parts", choice.parts},
                                  {"considered", choice.considered}};
    *out = new tw_text{found.dump()};
  });
}

}  // extern "C"
