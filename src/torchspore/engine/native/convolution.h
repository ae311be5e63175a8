// Convolutions of float32 images on the CPU with packed weights, as operators of torch.
//
// `pack_convolution` arranges the weights of a convolution; `convolve_packed` computes it with a bias, the addition of an image and relu. A
// convolution is a product of rows of the image with panels of weights (convolution_kernels.h). With `tile` 2 or 4, Winograd's algorithm
// computes 3 x 3 convolutions with stride 1 in tiles of 2 x 2 or 4 x 4 pixels, with 2.25 or 4 times fewer multiplications. With tile 4
// the rounding error is larger, and a large pixel or one that is not finite affects all results of its tile.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

// The OpenMP runtime of torch, whose threads then compute all operators. A library that names a runtime itself could get another one.
extern "C" __attribute__((weak)) void GOMP_parallel(void (*run)(void*), void* data, unsigned threads, unsigned flags);

namespace convolution {

constexpr int64_t kLanes = 8, kPanel = 16, kTile = 6;
constexpr int64_t kRows = 192;          // rows of a product whose sums of one panel fit in the first cache
constexpr int64_t kDepth = 256;         // products of a sum for which a panel's weights fit in the first cache
constexpr int64_t kChunk = 1 << 20;     // floats of Winograd's transformed images that are computed at a time
constexpr int64_t kLeast = 48;          // tiles for which it is worthwhile to read all weights
constexpr int64_t kKept = 1 << 22;      // floats of memory that a thread keeps

struct Piece {
  int64_t offset, length;
};

// The places of a row's factors, and ranges of at most about kDepth of them. `starts` are the weights' rows at which the ranges begin.
struct Reduction {
  std::vector<Piece> pieces;
  std::vector<int64_t> blocks{0}, starts{0};
  int64_t depth = 0, open = 0;

  void add(int64_t offset, int64_t length) {
    while (length > 0) {
      if (open > 0 && open + std::min(length, kDepth) > kDepth) close();
      const int64_t size = std::min(length, kDepth);
      pieces.push_back({offset, size});
      offset += size, length -= size, open += size, depth += size;
    }
  }
  void close() {
    if (open > 0) blocks.push_back(static_cast<int64_t>(pieces.size())), starts.push_back(depth), open = 0;
  }
};

struct Finish {
  const float* bias;
  const float* other;
  bool relu;
};

// `columns` columns from `column` on of rows of `stride` floats.
struct Target {
  float* out;
  int64_t stride, column, columns;
  Finish with;
};

// Calls `compute(first, end)` for ranges of `grain` of the numbers below `count`, in torch's threads, each when a thread becomes free.
template <class Compute>
void in_parallel(int64_t count, int64_t grain, const Compute& compute) {
  const int64_t ranges = (count + grain - 1) / grain, threads = std::min<int64_t>(at::get_num_threads(), ranges);
  if (threads < 2 || !GOMP_parallel || at::in_parallel_region()) {
    if (count > 0) compute(int64_t{0}, count);
    return;
  }
  struct Work {
    const Compute& compute;
    int64_t count, grain;
    std::atomic<int64_t> next{0};
  } work{compute, count, grain};
  const auto run = [](void* data) {
    Work& work = *static_cast<Work*>(data);
    for (int64_t first; (first = work.next.fetch_add(work.grain)) < work.count;) {
      work.compute(first, std::min(first + work.grain, work.count));
    }
  };
  GOMP_parallel(run, &work, static_cast<unsigned>(threads), 0);
}

namespace portable {
#include "convolution_kernels.h"
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HAS_AVX2_KERNELS
#pragma GCC push_options
#pragma GCC target("avx2,fma")
namespace avx2 {
#include "convolution_kernels.h"
}
#pragma GCC pop_options
#endif

struct Kernels {
  decltype(&portable::product) product;
  std::array<decltype(&portable::transform_input<2>), 2> transform_input;
  std::array<decltype(&portable::transform_output<2>), 2> transform_output;
};

#define KERNELS(name)                                                                                   \
  Kernels{name::product, {name::transform_input<2>, name::transform_input<4>},       \
          {name::transform_output<2>, name::transform_output<4>}}

inline const Kernels& kernels() {
#ifdef HAS_AVX2_KERNELS
  static const Kernels best = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? KERNELS(avx2) : KERNELS(portable);
#else
  static const Kernels best = KERNELS(portable);
#endif
  return best;
}

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// ---- packed weights

// Row-major factors [depth][columns] as panels [columns / 16][depth][16].
inline void pack_panels(const float* from, int64_t depth_step, int64_t column_step, int64_t depth, int64_t columns, float* to) {
  for (int64_t column = 0; column < columns; ++column) {
    float* panel = to + column / kPanel * depth * kPanel + column % kPanel;
    for (int64_t k = 0; k < depth; ++k) panel[k * kPanel] = from[k * depth_step + column * column_step];
  }
}

// G g G^T of Winograd's algorithm for one 3 x 3 filter, in double.
inline void transform_filter(const float* filter, int64_t row_step, int64_t column_step, int64_t tile, double* to) {
  static const double g2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  static const double g4[6][3] = {{1.0 / 4, 0, 0},           {-1.0 / 6, -1.0 / 6, -1.0 / 6}, {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                  {1.0 / 24, 1.0 / 12, 1.0 / 6}, {1.0 / 24, -1.0 / 12, 1.0 / 6}, {0, 0, 1}};
  const double(*g)[3] = tile == 2 ? g2 : g4;
  const int64_t width = tile + 2;
  double half[6][3];
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t x = 0; x < 3; ++x) {
      half[i][x] = 0;
      for (int64_t y = 0; y < 3; ++y) half[i][x] += g[i][y] * filter[y * row_step + x * column_step];
    }
  }
  for (int64_t i = 0; i < width; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      to[i * width + j] = half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
    }
  }
}

inline at::Tensor pack(const at::Tensor& weight, int64_t tile) {
  TORCH_CHECK(weight.dim() == 4 && weight.scalar_type() == at::kFloat, "pack_convolution: expected a weight of four axes and float32");
  TORCH_CHECK(tile == 0 || ((tile == 2 || tile == 4) && weight.size(2) == 3 && weight.size(3) == 3), "pack_convolution: no tiles of ", tile);
  const at::Tensor w = weight.contiguous();
  const int64_t columns = w.size(0), channels = w.size(1), taps = w.size(2) * w.size(3);
  const int64_t panels = divide_up(columns, kPanel), positions = (tile + 2) * (tile + 2);
  if (tile == 0) {
    const at::Tensor taps_first = w.permute({0, 2, 3, 1}).contiguous();
    at::Tensor packed = at::zeros({panels, taps * channels, kPanel}, w.options());
    pack_panels(taps_first.data_ptr<float>(), 1, taps * channels, taps * channels, columns, packed.data_ptr<float>());
    return packed;
  }
  at::Tensor packed = at::zeros({positions, panels, channels, kPanel}, w.options());
  float* to = packed.data_ptr<float>();
  const float* from = w.data_ptr<float>();
  in_parallel(columns, 1, [&](int64_t begin, int64_t end) {
    double values[36];
    for (int64_t column = begin; column < end; ++column) {
      for (int64_t channel = 0; channel < channels; ++channel) {
        transform_filter(from + (column * channels + channel) * 9, 3, 1, tile, values);
        for (int64_t i = 0; i < positions; ++i) {
          to[((i * panels + column / kPanel) * channels + channel) * kPanel + column % kPanel] = static_cast<float>(values[i]);
        }
      }
    }
  });
  return packed;
}

// ---- convolutions

struct alignas(64) Line {
  float values[16];
};

struct Shape {
  int64_t images, height, width, channels;
  int64_t size() const { return images * height * width * channels; }
};

struct Geometry {
  Shape in, out;
  std::array<int64_t, 2> kernel, stride, padding, dilation;
};

// Memory for intermediate results. A thread keeps up to kKept floats for its next call: new pages cost as much as a small convolution.
class Workspace {
 public:
  explicit Workspace(int64_t floats) {
    static thread_local std::vector<Line> lines;
    const size_t count = static_cast<size_t>(divide_up(floats, 16));
    if (floats > kKept) {
      temporary_ = at::empty({floats}, at::TensorOptions().dtype(at::kFloat));
    } else if (lines.size() < count) {
      std::vector<Line>().swap(lines);
      lines.resize(count);
    }
    memory_ = floats > kKept ? temporary_.data_ptr<float>() : lines.data()->values;
  }
  float* memory() const { return memory_; }

 private:
  at::Tensor temporary_;
  float* memory_;
};

inline void convolve_directly(const Geometry& g, const float* x, const float* packed, float* out, const Finish& with) {
  const Kernels& use = kernels();
  Reduction reduction;
  const bool has_long_rows = g.dilation[1] == 1;
  for (int64_t i = 0; i < g.kernel[0]; ++i) {
    const int64_t row = i * g.dilation[0] * g.in.width * g.in.channels;
    if (has_long_rows) reduction.add(row, g.kernel[1] * g.in.channels);
    for (int64_t j = 0; j < g.kernel[1] && !has_long_rows; ++j) reduction.add(row + j * g.dilation[1] * g.in.channels, g.in.channels);
  }
  reduction.close();
  const int64_t rows = g.out.images * g.out.height * g.out.width, columns = g.out.channels, panels = divide_up(columns, kPanel);
  const int64_t row_blocks = divide_up(rows, kRows);
  in_parallel(row_blocks * panels, 1, [&](int64_t begin, int64_t end) {
    const float* from[kRows];
    int64_t ready = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t block = item / panels, panel = item % panels;
      const int64_t first = rows * block / row_blocks, count = rows * (block + 1) / row_blocks - first;
      if (block != ready) {
        int64_t column = first % g.out.width, row = first / g.out.width % g.out.height, image = first / g.out.width / g.out.height;
        for (int64_t i = 0; i < count; ++i) {
          from[i] = x + ((image * g.in.height + row * g.stride[0]) * g.in.width + column * g.stride[1]) * g.in.channels;
          if (++column == g.out.width) {
            column = 0;
            if (++row == g.out.height) row = 0, ++image;
          }
        }
        ready = block;
      }
      const int64_t column = panel * kPanel, some = std::min(kPanel, columns - column);
      use.product(reduction, from, count, packed + panel * reduction.depth * kPanel, {out, columns, column, some, with}, first);
    }
  });
}

inline void convolve_in_tiles(const Geometry& g, int64_t tile, const float* x, const float* packed, float* out, const Finish& with) {
  const Kernels& use = kernels();
  const int64_t width = tile + 2, positions = width * width, kind = tile == 2 ? 0 : 1;
  const int64_t channels = divide_up(g.in.channels, kLanes) * kLanes, panels = divide_up(g.out.channels, kPanel), columns = panels * kPanel;
  const int64_t down = divide_up(g.out.height, tile), across = divide_up(g.out.width, tile), tiles = g.out.images * down * across;
  const int64_t most = std::clamp<int64_t>(kChunk / (positions * (channels + columns)), std::min(tiles, kLeast), tiles);
  const int64_t chunks = divide_up(tiles, most), chunk_tiles = divide_up(tiles, chunks);
  Reduction reduction;
  reduction.add(0, g.in.channels);
  reduction.close();
  const Workspace workspace(positions * chunk_tiles * (channels + columns) + channels);
  float* images = workspace.memory();
  float* sums = images + positions * chunk_tiles * channels;
  float* zeros = sums + positions * chunk_tiles * columns;
  std::fill(zeros, zeros + channels, 0.0f);
  for (int64_t start = 0; start < tiles; start += chunk_tiles) {
    const int64_t count = std::min(chunk_tiles, tiles - start);
    in_parallel(count, 4, [&](int64_t begin, int64_t end) {
      const float* pixels[36];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t at = start + t, image = at / (down * across);
        const int64_t top = at / across % down * tile - g.padding[0], left = at % across * tile - g.padding[1];
        for (int64_t i = 0; i < positions; ++i) {
          const int64_t y = top + i / width, z = left + i % width;
          const bool is_inside = y >= 0 && y < g.in.height && z >= 0 && z < g.in.width;
          pixels[i] = is_inside ? x + ((image * g.in.height + y) * g.in.width + z) * g.in.channels : zeros;
        }
        use.transform_input[kind](pixels, g.in.channels, images + t * channels, chunk_tiles * channels);
      }
    });
    const int64_t row_blocks = divide_up(count, kRows);
    in_parallel(positions * row_blocks * panels, 1, [&](int64_t begin, int64_t end) {
      const float* from[kRows];
      for (int64_t item = begin; item < end; ++item) {
        const int64_t position = item / (row_blocks * panels), block = item / panels % row_blocks, panel = item % panels;
        const int64_t first = count * block / row_blocks, some = count * (block + 1) / row_blocks - first;
        for (int64_t i = 0; i < some; ++i) from[i] = images + (position * chunk_tiles + first + i) * channels;
        use.product(reduction, from, some, packed + (position * panels + panel) * g.in.channels * kPanel,
                    {sums, columns, panel * kPanel, kPanel, {}}, position * chunk_tiles + first);
      }
    });
    in_parallel(count, 4, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const int64_t at = start + t, image = at / (down * across), y = at / across % down * tile, z = at % across * tile;
        use.transform_output[kind](
            sums + t * columns, chunk_tiles * columns, out, ((image * g.out.height + y) * g.out.width + z) * g.out.channels,
            g.out.width * g.out.channels, g.out.channels, std::min(tile, g.out.height - y), std::min(tile, g.out.width - z), with);
      }
    });
  }
}

inline Shape padded_shape(const Geometry& g) {
  return {g.in.images, g.in.height + 2 * g.padding[0], g.in.width + 2 * g.padding[1], g.in.channels};
}

// Writes the image with zeros around it, and changes `g.in` to its shape.
inline void pad(const float* x, Geometry& g, float* to) {
  const Shape in = g.in, out = padded_shape(g);
  const int64_t side = g.padding[1] * in.channels, length = in.width * in.channels;
  in_parallel(out.images * out.height, 4, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t y = row % out.height - g.padding[0];
      float* line = to + row * out.width * out.channels;
      if (y < 0 || y >= in.height) {
        std::fill_n(line, out.width * out.channels, 0.0f);
        continue;
      }
      std::fill_n(line, side, 0.0f);
      std::copy_n(x + (row / out.height * in.height + y) * length, length, line + side);
      std::fill_n(line + side + length, side, 0.0f);
    }
  });
  g.in = out;
}

inline void check_operands(const Geometry& g, const at::Tensor& packed, const std::optional<at::Tensor>& bias,
                           const std::optional<at::Tensor>& other, int64_t tile) {
  const int64_t taps = tile == 0 ? g.kernel[0] * g.kernel[1] : (tile + 2) * (tile + 2);
  const bool is_3x3 = g.kernel[0] == 3 && g.kernel[1] == 3 && g.stride[0] * g.stride[1] * g.dilation[0] * g.dilation[1] == 1;
  TORCH_CHECK(tile == 0 || ((tile == 2 || tile == 4) && is_3x3), "convolve_packed: no tiles of ", tile, " for this convolution");
  TORCH_CHECK(g.in.channels > 0 && g.out.channels > 0, "convolve_packed: expected channels");
  TORCH_CHECK(g.out.height > 0 && g.out.width > 0, "convolve_packed: the image is smaller than the kernel");
  const int64_t count = taps * g.in.channels * divide_up(g.out.channels, kPanel) * kPanel;
  TORCH_CHECK(packed.is_contiguous() && packed.scalar_type() == at::kFloat && packed.numel() == count,
              "convolve_packed: expected the result of pack_convolution for this convolution");
  TORCH_CHECK(!bias || (bias->scalar_type() == at::kFloat && bias->numel() == g.out.channels), "convolve_packed: expected a bias per channel");
  TORCH_CHECK(!other || (other->scalar_type() == at::kFloat && other->dim() == 4 && other->size(0) == g.out.images &&
                         other->size(1) == g.out.channels && other->size(2) == g.out.height && other->size(3) == g.out.width),
              "convolve_packed: expected an added image of the result's shape");
}

// The convolution of `x` with packed weights, plus `bias` and `other`, in channels-last format.
inline at::Tensor convolve(const at::Tensor& x, const at::Tensor& packed, const std::optional<at::Tensor>& bias,
                    const std::optional<at::Tensor>& other, int64_t channels, at::IntArrayRef kernel, at::IntArrayRef stride,
                    at::IntArrayRef padding, at::IntArrayRef dilation, int64_t tile, bool relu) {
  TORCH_CHECK(x.dim() == 4 && x.scalar_type() == at::kFloat && x.device().is_cpu(), "convolve_packed: expected images of float32 on the CPU");
  const at::Tensor image = x.contiguous(at::MemoryFormat::ChannelsLast);
  Geometry g;
  TORCH_CHECK(kernel.size() == 2 && stride.size() == 2 && padding.size() == 2 && dilation.size() == 2,
              "convolve_packed: expected two numbers for each of kernel, stride, padding and dilation");
  for (int axis = 0; axis < 2; ++axis) {
    g.kernel[axis] = kernel[axis], g.stride[axis] = stride[axis], g.padding[axis] = padding[axis], g.dilation[axis] = dilation[axis];
    TORCH_CHECK(g.kernel[axis] > 0 && g.stride[axis] > 0 && g.padding[axis] >= 0 && g.dilation[axis] > 0,
                "convolve_packed: expected a positive kernel, stride and dilation, and no negative padding");
  }
  const auto length = [&](int axis) {       // C++ rounds a negative quotient up
    const int64_t room = x.size(2 + axis) + 2 * g.padding[axis] - g.dilation[axis] * (g.kernel[axis] - 1) - 1;
    return room < 0 ? 0 : room / g.stride[axis] + 1;
  };
  g.out = {x.size(0), length(0), length(1), channels};
  g.in = {image.size(0), image.size(2), image.size(3), image.size(1)};
  check_operands(g, packed, bias, other, tile);
  const at::Tensor added = other ? other->contiguous(at::MemoryFormat::ChannelsLast) : at::Tensor();
  const at::Tensor vector = bias ? bias->contiguous() : at::Tensor();
  at::Tensor out = at::empty({g.out.images, g.out.channels, g.out.height, g.out.width}, x.options(), at::MemoryFormat::ChannelsLast);
  if (out.numel() == 0) return out;
  const Finish with{bias ? vector.data_ptr<float>() : nullptr, other ? added.data_ptr<float>() : nullptr, relu};
  const float* from = image.data_ptr<float>();
  const float* weights = packed.data_ptr<float>();
  if (tile != 0) {
    convolve_in_tiles(g, tile, from, weights, out.data_ptr<float>(), with);
  } else if (g.padding[0] || g.padding[1]) {
    const Workspace workspace(padded_shape(g).size());
    pad(from, g, workspace.memory());
    convolve_directly(g, workspace.memory(), weights, out.data_ptr<float>(), with);
  } else {
    convolve_directly(g, from, weights, out.data_ptr<float>(), with);
  }
  return out;
}

// Registers the operators of this file in torch's dispatcher.
inline void register_operators() {
  static torch::Library library(torch::Library::FRAGMENT, "torchspore", std::nullopt, __FILE__, __LINE__);
  library.def("pack_convolution(Tensor weight, int tile) -> Tensor");
  library.def("convolve_packed(Tensor x, Tensor packed, Tensor? bias, Tensor? other, int channels, int[2] kernel, int[2] stride, "
              "int[2] padding, int[2] dilation, int tile, bool relu) -> Tensor");
  library.impl("pack_convolution", c10::DispatchKey::CPU, pack);
  library.impl("convolve_packed", c10::DispatchKey::CPU, convolve);
}

}  // namespace convolution
