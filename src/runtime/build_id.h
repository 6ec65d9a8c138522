// Which build of this library runs: what is kept on disk must never outlive the code that made it.
#pragma once
#include <string>

namespace tilewright::runtime {

// The linker's build id, in hexadecimal, of the program or shared object that `address` lies in: a hash of all its
// bytes. Empty if it was linked without one.
std::string build_id_around(const void* address);
// Of whatever holds this library.
const std::string& own_build_id();

}  // namespace tilewright::runtime
