// What the handles of the C ABI are, and how exceptions become errors.
#pragma once
#include <mutex>

#include "capi/last_call.h"
#include "capi/operations.h"
#include "runtime/executable.h"
#include "support/diagnostic.h"
#include "tilewright/executable.h"
#include "tilewright/program.h"

struct tw_error {
  tilewright::Diagnostic diagnostic;
  const char* kind;
  std::string code, text;
};
struct tw_program {
  tilewright::Program program;
  std::string text;
};

struct tw_text {
  std::string text;
};

namespace tilewright::capi {

// What the last call did, which another may replace at any time.
struct Counts {
  std::mutex mutex;
  std::string json, trace;
};

}  // namespace tilewright::capi

struct tw_kernel {
  tilewright::Executable executable;
  tilewright::Program program;
  std::string arch;                                       // that was asked for
  std::shared_ptr<tilewright::capi::Counts> counts = {};  // of a kernel that counts
  tilewright::capi::LastCall last = {};
  const tilewright::runtime::LaunchPlan& plan() const { return executable.program().plan(); }
};

namespace tilewright::capi {

tw_error* error_of(const Diagnostic& d, const char* kind);

// Nothing may be thrown to a caller in C.
template <class F>
tw_error* guarded(F&& body) {
  try {
    body();
    return nullptr;
  } catch (const CompileError& e) {
    return error_of(e.diagnostic(), "CompileError");
  } catch (const LaunchError& e) {
    return error_of(e.diagnostic(), "LaunchError");
  } catch (const Error& e) {
    return error_of(e.diagnostic(), "InternalError");
  } catch (const std::bad_alloc&) {
    return error_of(make_diagnostic(Code::OutOfMemory, {}, "no memory left"), "LaunchError");
  } catch (const std::exception& e) {
    return error_of(make_diagnostic(Code::Internal, {}, e.what()), "InternalError");
  }
}

// The names of dtypes are handed out for good: there are few.
const char* lasting_name(DType type);

}  // namespace tilewright::capi
