// Memory of arrays on CUDA devices.
#pragma once
#include <memory>

#include "tilewright/tensor.h"

namespace tilewright::runtime::cuda {

// LaunchError ArrayInvalid for a device that is not CUDA's.
std::shared_ptr<void> allocate_array(const Device& device, int64_t bytes);
// On the stream of the calling thread, and done on return.
void clear_array(const Device& device, void* memory, int64_t bytes);

NDArray clone_array(const NDArray& array);                // row-major, on its own device
NDArray copy_array(const NDArray& array, Device device);  // row-major, on another

}  // namespace tilewright::runtime::cuda
