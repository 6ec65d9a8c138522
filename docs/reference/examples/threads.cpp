// The examples of threads.py in C++.

// --- get_thread_binding
Program example() {
  Tensor X("X", {4, 128}, f32), Y("Y", {4, 128}, f32);
  return prim_func("reversed_rows", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(4, {.threads = 128})) {
      Value tx = get_thread_binding(0);
      Value row = get_block_binding(0);
      Y(row, tx) = X(row, 127 - tx);
    }
  });
}

// --- get_block_binding = get_thread_binding

// --- get_lane_idx
Program example() {
  Tensor Y("Y", {256}, i32);
  return prim_func("of_each_thread", {Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 256})) {
      Value tx = get_thread_binding();
      Y(tx) = get_lane_idx();
    }
  });
}

// --- get_warp_idx = get_lane_idx: get_lane_idx -> get_warp_idx
// --- activemask = get_lane_idx: get_lane_idx() -> cast(popcount(activemask()), i32)

// --- shfl_sync
Program example() {
  Tensor X("X", {64}, f32), Y("Y", {64}, f32);
  return prim_func("exchanged", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 64})) {
      Value tx = get_thread_binding();
      Value mine = X(tx);
      Y(tx) = shfl_sync(mine, 5);
    }
  });
}

// --- shfl_up = shfl_sync: shfl_sync(mine, 5) -> shfl_up(mine, 1)
// --- shfl_down = shfl_sync: shfl_sync(mine, 5) -> shfl_down(mine, 1)
// --- shfl_xor = shfl_sync: shfl_sync(mine, 5) -> shfl_xor(mine, 1)

// --- warp_reduce_sum
Program example() {
  Tensor X("X", {64}, i32), Y("Y", {64}, i32);
  return prim_func("over_warps", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 64})) {
      Value tx = get_thread_binding();
      Value mine = X(tx);
      Y(tx) = warp_reduce_sum(mine);
    }
  });
}

// --- warp_reduce_max = warp_reduce_sum: warp_reduce_sum -> warp_reduce_max
// --- warp_reduce_min = warp_reduce_sum: warp_reduce_sum -> warp_reduce_min

// --- any_sync
Program example() {
  Tensor X("X", {64}, i32), Y("Y", {64}, i32);
  return prim_func("asked", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 64})) {
      Value tx = get_thread_binding();
      Value mine = X(tx);
      Y(tx) = cast(any_sync(mine > 98), i32);
    }
  });
}

// --- all_sync = any_sync: any_sync -> all_sync
// --- syncthreads_and = any_sync: any_sync -> syncthreads_and
// --- syncthreads_or = any_sync: any_sync -> syncthreads_or
// --- syncthreads_count = any_sync: any_sync -> syncthreads_count
// --- ballot_sync = any_sync: any_sync(mine > 98) -> popcount(ballot_sync(mine > 98))
// --- ballot = any_sync: any_sync(mine > 98) -> popcount(ballot_sync(mine > 98))
// --- match_any_sync = any_sync: any_sync(mine > 98) -> match_any_sync(mine - mine)
// --- match_all_sync = any_sync: any_sync(mine > 98) -> match_all_sync(mine - mine)

// --- use_swizzle
Program example() {
  Tensor X("X", {4, 1024}, f32), Y("Y", {4, 1024}, f32);
  return prim_func("hinted", {X, Y}, [&] {
    for (auto [bx, by] : Kernel({8, 4}, {.threads = 128})) {
      use_swizzle(2);
      for (auto i : Parallel(128)) Y(by, bx * 128 + i) = X(by, bx * 128 + i) + 1;
    }
  });
}

// --- assume = use_swizzle: use_swizzle(2) -> assume(bx < 8)
// --- device_assert = use_swizzle: use_swizzle(2) -> device_assert(bx < 8, "eight blocks")
// --- print = use_swizzle: use_swizzle(2) -> If(bx + by + get_thread_binding() == 0, [] { print("here"); })
// --- thread_return = use_swizzle: use_swizzle(2) -> If(by > 3, [] { thread_return(); })

// --- annotate_plan
Program example() {
  Tensor A("A", {128, 128}, f16), B("B", {128, 128}, f16), C("C", {128, 128}, f32);
  return prim_func("planned", {A, B, C}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      annotate_plan("ring a, b slots=2");
      auto a = alloc_shared({128, 32}, f16);
      auto b = alloc_shared({32, 128}, f16);
      auto c = alloc_fragment({128, 128}, f32);
      clear(c);
      for (auto k : Pipelined(4, {.num_stages = 3})) {
        copy(A(0, k * 32), a);
        copy(B(k * 32, 0), b);
        gemm(a, b, c);
      }
      copy(c, C);
    }
  });
}

// --- atomic_add
Program example() {
  Tensor X("X", {1024}, i32), Y("Y", {8}, i32);
  return prim_func("counted", {X, Y}, [&] {
    for (auto bx : Kernel(8, {.threads = 128}))
      for (auto i : Parallel(128)) atomic_add(Y(X(bx * 128 + i)), 1);
  });
}

// --- atomic_max
Program example() {
  Tensor X("X", {1024}, i32), Y("Y", {8}, i32);
  return prim_func("joined", {X, Y}, [&] {
    for (auto bx : Kernel(8, {.threads = 128}))
      for (auto i : Parallel(128)) atomic_max(Y(bx), X(bx * 128 + i));
  });
}

// --- atomic_min = atomic_max: atomic_max -> atomic_min
// --- atomic_and = atomic_max: atomic_max -> atomic_and
// --- atomic_or = atomic_max: atomic_max -> atomic_or
// --- atomic_xor = atomic_max: atomic_max -> atomic_xor

// --- atomic_exchange
Program example() {
  Tensor X("X", {64}, i32), Y("Y", {64}, i32);
  return prim_func("taken", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 64}))
      for (auto i : Parallel(64)) Y(i) = atomic_exchange(X(i), 0);
  });
}

// --- atomic_cas
Program example() {
  Tensor X("X", {1}, i32), Y("Y", {64}, i32);
  return prim_func("first_comes", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 64}))
      for (auto i : Parallel(64)) Y(i) = atomic_cas(X(0), 0, i + 1);
  });
}

// --- loop_break
Program example() {
  Tensor X("X", {128, 16}, i32), Y("Y", {128}, i32);
  return prim_func("found", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      Value tx = get_thread_binding();
      Y(tx) = 16;
      for (auto j : serial(16))
        If(X(tx, j) == 0, [&] {
          Y(tx) = j;
          break_loop();
        });
    }
  });
}

// --- loop_continue
Program example() {
  Tensor X("X", {128, 16}, i32), Y("Y", {128}, i32);
  return prim_func("skipped", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      Value tx = get_thread_binding();
      auto total = alloc_var(i32, 0);
      for (auto j : serial(16)) {
        If(X(tx, j) < 0, [] { continue_loop(); });
        total += X(tx, j);
      }
      Y(tx) = total;
    }
  });
}

// --- sync_threads
Program example() {
  Tensor X("X", {128}, f32), Y("Y", {128}, f32);
  return prim_func("shared_by_all", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto x = alloc_shared({128}, f32);
      Value tx = get_thread_binding();
      x(tx) = X(tx);
      sync_threads();
      Y(tx) = x(127 - tx);
    }
  });
}

// --- sync_warp = sync_threads: sync_threads() -> sync_warp(); sync_threads()

// --- cluster_arrive
Program example() {
  Tensor X("X", {2, 128}, f32), Y("Y", {2, 128}, f32);
  return prim_func("swapped", {X, Y}, [&] {
    for (auto bx : Kernel(2, {.threads = 128, .cluster_dims = {2}})) {
      auto mine = alloc_shared({128}, f32);
      auto other = alloc_shared({128}, f32);
      copy(X(bx, 0), mine);
      copy_cluster(mine, other, 1 - bx);
      cluster_arrive();
      cluster_wait();
      copy(other, Y(bx, 0));
    }
  });
}

// --- cluster_wait = cluster_arrive

// --- named_barrier_arrive
Program example() {
  Tensor X("X", {128}, f32), Y("Y", {128}, f32);
  return prim_func("named", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 256})) {
      auto x = alloc_shared({128}, f32);
      ws({0}, [&] {
        for (auto i : Parallel(128)) x(i) = X(i);
        named_barrier_arrive(3, 256);
      });
      ws({1}, [&] {
        sync_threads(3, 256);
        for (auto i : Parallel(128)) Y(i) = x(127 - i);
      });
    }
  });
}

// --- sync_grid
Program example() {
  Tensor X("X", {4, 128}, f32), Y("Y", {4, 128}, f32);
  return prim_func("over_all_blocks", {X, Y}, [&] {
    auto scratch = alloc_global({4, 128}, f32);
    for (auto bx : Kernel(4, {.threads = 128})) {
      for (auto i : Parallel(128)) scratch(bx, i) = X(bx, i);
      sync_grid();
      for (auto i : Parallel(128)) Y(bx, i) = scratch(3 - bx, i);
    }
  });
}

// --- sync_global = sync_grid

// --- pdl_sync
Program example() {
  Tensor X("X", {512}, f32), Y("Y", {512}, f32);
  return prim_func("two_kernels", {X, Y}, [&] {
    auto half = alloc_global({512}, f32);
    for (auto bx : Kernel(4, {.threads = 128})) {
      for (auto i : Parallel(128)) half(bx * 128 + i) = X(bx * 128 + i) / 2;
      pdl_trigger();
    }
    for (auto bx : Kernel(4, {.threads = 128})) {
      pdl_sync();
      for (auto i : Parallel(128)) Y(bx * 128 + i) = half(511 - (bx * 128 + i));
    }
  });
}

// --- pdl_trigger = pdl_sync

// --- set_max_nreg
Program example() {
  Tensor X("X", {64}, f32), Y("Y", {64}, f32);
  return prim_func("fewer_registers", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 256})) {
      auto x = alloc_shared({64}, f32);
      auto full = alloc_barrier({128});
      ws({0}, [&] {
        set_max_nreg(40);
        for (auto i : Parallel(64)) x(i) = X(i) * 2;
        barrier_arrive(full);
      });
      ws({1}, [&] {
        set_max_nreg(232);
        barrier_wait(full, 0);
        for (auto i : Parallel(64)) Y(i) = x(i);
      });
    }
  });
}

// --- dec_max_nreg = set_max_nreg
// --- inc_max_nreg = set_max_nreg

// --- fence_proxy_async
Program example() {
  Tensor X("X", {64, 64}, f16), Y("Y", {64, 64}, f16);
  return prim_func("written_by_threads", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto tile = alloc_shared({64, 64}, f16);
      for (auto [i, j] : Parallel(64, 64)) tile(i, j) = X(j, i);
      fence_proxy_async();
      sync_threads();
      tma_store(tile, Y(slice(0, 64), slice(0, 64)));
      tma_store_wait(0);
    }
  });
}

// --- atomic_load
Program example() {
  Tensor X("X", {64}, i32), Y("Y", {64}, i32);
  return prim_func("through_memory", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 64}))
      for (auto i : Parallel(64)) atomic_store(Y(i), atomic_load(X(i)));
  });
}

// --- atomic_store = atomic_load

// --- mbarrier_expect_tx
Program example() {
  Tensor X("X", {64, 64}, f16), Y("Y", {64, 64}, f16);
  return prim_func("by_bytes", {X, Y}, [&] {
    for ([[maybe_unused]] auto bx : Kernel(1, {.threads = 128})) {
      auto tile = alloc_shared({64, 64}, f16);
      auto arrived = alloc_barrier({1});
      If(get_thread_binding() == 0, [&] {
        mbarrier_expect_tx(arrived, 8192);
        barrier_arrive(arrived);
      });
      tma_copy(X(slice(0, 64), slice(0, 64)), tile, arrived);
      barrier_wait(arrived, 0);
      copy(tile, Y);
    }
  });
}

// --- mbarrier_arrive_expect_tx = mbarrier_expect_tx: mbarrier_expect_tx(arrived, 8192); barrier_arrive(arrived);
//     -> mbarrier_arrive_expect_tx(arrived, 8192);
