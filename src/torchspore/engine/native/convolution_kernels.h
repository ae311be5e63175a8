// The inner loops of convolution.h. It includes this file once for each set of instructions, each time in another namespace.
//
// Images are channels-last. A product multiplies rows of `channels` floats, which may lie anywhere, by weights that are packed in panels of
// 16 columns: each weight is read in the order of memory, and a tile of up to 6 x 16 sums stays in registers.

typedef float Lanes __attribute__((vector_size(32), aligned(4), may_alias));

inline Lanes load(const float* from) { return *reinterpret_cast<const Lanes*>(from); }
inline void store(float* to, Lanes values) { *reinterpret_cast<Lanes*>(to) = values; }

inline Lanes load_some(const float* from, int64_t count) {
  if (count >= kLanes) return load(from);
  Lanes values = {};
  for (int64_t i = 0; i < count; ++i) values[i] = from[i];
  return values;
}

inline void store_some(float* to, Lanes values, int64_t count) {
  if (count >= kLanes) return store(to, values);
  for (int64_t i = 0; i < count; ++i) to[i] = values[i];
}

inline Lanes positive(Lanes values) { return Lanes{} > values ? Lanes{} : values; }      // as torch, NaN for NaN

inline Lanes finish(Lanes sum, const Finish& with, int64_t at, int64_t column, int64_t count) {
  if (with.bias) sum += load_some(with.bias + column, count);
  if (with.other) sum += load_some(with.other + at, count);
  return with.relu ? positive(sum) : sum;
}

// Finishes and writes the sums of a panel that has all columns.
template <int rows>
inline void write(Lanes (&sum)[rows][2], const Target& target, int64_t start) {
  const int64_t at = start * target.stride + target.column;
  if (target.with.bias) {
    const Lanes low = load(target.with.bias + target.column), high = load(target.with.bias + target.column + kLanes);
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) sum[row][0] += low, sum[row][1] += high;
  }
  if (target.with.other) {
    const float* other = target.with.other + at;
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row, other += target.stride) sum[row][0] += load(other), sum[row][1] += load(other + kLanes);
  }
  if (target.with.relu) {
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) sum[row][0] = positive(sum[row][0]), sum[row][1] = positive(sum[row][1]);
  }
  float* to = target.out + at;
#pragma GCC unroll 8
  for (int row = 0; row < rows; ++row, to += target.stride) store(to, sum[row][0]), store(to + kLanes, sum[row][1]);
}

// Sums of `rows` x 16 products over some pieces of the rows. `sums` contains those of earlier pieces, except for the first, and of these
// pieces, except for the last, whose sums are finished and written.
template <int rows>
void tile(const float* const* a, const Piece* pieces, int64_t count, const float* b, float* sums, const Target& target, int64_t start,
          bool is_first, bool is_last) {
  Lanes sum[rows][2];
#pragma GCC unroll 8
  for (int row = 0; row < rows; ++row) sum[row][0] = sum[row][1] = Lanes{};
  for (int64_t piece = 0; piece < count; ++piece) {
    const float* from[rows];
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) from[row] = a[row] + pieces[piece].offset;
    const int64_t length = pieces[piece].length;
#pragma GCC unroll 2
    for (int64_t k = 0; k < length; ++k, b += kPanel) {
      const Lanes low = load(b), high = load(b + kLanes);
#pragma GCC unroll 8
      for (int row = 0; row < rows; ++row) {
        sum[row][0] += from[row][k] * low;
        sum[row][1] += from[row][k] * high;
      }
    }
  }
  if (!is_first) {
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
      sum[row][0] += load(sums + row * kPanel);
      sum[row][1] += load(sums + row * kPanel + kLanes);
    }
  }
  if (!is_last) {
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
      store(sums + row * kPanel, sum[row][0]);
      store(sums + row * kPanel + kLanes, sum[row][1]);
    }
    return;
  }
  if (target.columns == kPanel) return write<rows>(sum, target, start);
#pragma GCC unroll 8
  for (int row = 0; row < rows; ++row) {
    const int64_t at = (start + row) * target.stride + target.column, some = target.columns - kLanes;
    store_some(target.out + at, finish(sum[row][0], target.with, at, target.column, target.columns), target.columns);
    if (some > 0) store_some(target.out + at + kLanes, finish(sum[row][1], target.with, at + kLanes, target.column + kLanes, some), some);
  }
}

// The product of `count` rows, at most kRows, with one panel. The rows of `target` begin at `start`.
inline void product(const Reduction& reduction, const float* const* rows, int64_t count, const float* panel, const Target& target, int64_t start) {
  alignas(64) float sums[kRows * kPanel];
  const int64_t tiles = (count + kTile - 1) / kTile, blocks = static_cast<int64_t>(reduction.blocks.size()) - 1;
  for (int64_t block = 0; block < blocks; ++block) {
    const Piece* pieces = reduction.pieces.data() + reduction.blocks[block];
    const int64_t length = reduction.blocks[block + 1] - reduction.blocks[block];
    const float* b = panel + reduction.starts[block] * kPanel;
    // The weights of a deep net are in no cache: the processor fetches those of the next range while it computes this one.
    const float* next = panel + reduction.starts[block + 1] * kPanel;
    const int64_t fetched = std::min<int64_t>((reduction.starts[block + 1] - reduction.starts[block] + tiles - 1) / tiles, 24);
    const bool is_first = block == 0, is_last = block == blocks - 1;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t from = count * t / tiles, size = count * (t + 1) / tiles - from;
      const float* const* a = rows + from;
      for (int64_t i = 0; i < fetched; ++i, next += kPanel) __builtin_prefetch(next, 0, 2);
      float* to = sums + from * kPanel;
      switch (size) {
        case 6: tile<6>(a, pieces, length, b, to, target, start + from, is_first, is_last); break;
        case 5: tile<5>(a, pieces, length, b, to, target, start + from, is_first, is_last); break;
        case 4: tile<4>(a, pieces, length, b, to, target, start + from, is_first, is_last); break;
        case 3: tile<3>(a, pieces, length, b, to, target, start + from, is_first, is_last); break;
        case 2: tile<2>(a, pieces, length, b, to, target, start + from, is_first, is_last); break;
        default: tile<1>(a, pieces, length, b, to, target, start + from, is_first, is_last);
      }
    }
  }
}

// ---- Winograd's transforms (Lavin and Gray 2016) of tiles of 2 x 2 and 4 x 4 results

template <int size>
inline void input_line(const Lanes* d, int step, Lanes* to, int to_step) {
  if constexpr (size == 2) {
    to[0] = d[0] - d[2 * step];
    to[to_step] = d[step] + d[2 * step];
    to[2 * to_step] = d[2 * step] - d[step];
    to[3 * to_step] = d[step] - d[3 * step];
  } else {
    const Lanes d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
    const Lanes even = d4 - 4.0f * d2, odd = d3 - 4.0f * d1, near = d4 - d2, far = 2.0f * (d3 - d1);
    to[0] = 4.0f * d0 - 5.0f * d2 + d4;
    to[to_step] = even + odd;
    to[2 * to_step] = even - odd;
    to[3 * to_step] = near + far;
    to[4 * to_step] = near - far;
    to[5 * to_step] = 4.0f * d1 - 5.0f * d3 + d5;
  }
}

template <int size>
inline void output_line(const Lanes* m, int step, Lanes* to, int to_step) {
  if constexpr (size == 2) {
    to[0] = m[0] + m[step] + m[2 * step];
    to[to_step] = m[step] - m[2 * step] - m[3 * step];
  } else {
    const Lanes sum = m[step] + m[2 * step], difference = m[step] - m[2 * step];
    const Lanes far_sum = m[3 * step] + m[4 * step], far_difference = m[3 * step] - m[4 * step];
    to[0] = m[0] + sum + far_sum;
    to[to_step] = difference + 2.0f * far_difference;
    to[2 * to_step] = sum + 4.0f * far_sum;
    to[3 * to_step] = difference + 8.0f * far_difference + m[5 * step];
  }
}

// Transforms the (size + 2)^2 pixels of one tile; `step` is the distance of the positions in `to`.
template <int size>
void transform_input(const float* const* pixels, int64_t channels, float* to, int64_t step) {
  constexpr int width = size + 2;
  for (int64_t c = 0; c < channels; c += kLanes) {
    Lanes d[width * width], half[width * width];
#pragma GCC unroll 36
    for (int i = 0; i < width * width; ++i) d[i] = load_some(pixels[i] + c, channels - c);
#pragma GCC unroll 6
    for (int i = 0; i < width; ++i) input_line<size>(d + i, width, half + i, width);
#pragma GCC unroll 6
    for (int i = 0; i < width; ++i) input_line<size>(half + i * width, 1, d + i * width, 1);
#pragma GCC unroll 36
    for (int i = 0; i < width * width; ++i) store(to + i * step + c, d[i]);
  }
}

// Transforms the sums of one tile into size^2 pixels, of which `height` x `width` are in the image at `start`.
template <int size>
void transform_output(const float* from, int64_t step, float* out, int64_t start, int64_t row_step, int64_t channels, int64_t height,
                      int64_t width, const Finish& with) {
  constexpr int sums = size + 2;
  for (int64_t c = 0; c < channels; c += kLanes) {
    Lanes m[sums * sums], half[sums * sums];
#pragma GCC unroll 36
    for (int i = 0; i < sums * sums; ++i) m[i] = load(from + i * step + c);
#pragma GCC unroll 6
    for (int i = 0; i < sums; ++i) output_line<size>(m + i, sums, half + i, sums);
#pragma GCC unroll 6
    for (int i = 0; i < size; ++i) output_line<size>(half + i * sums, 1, m + i * size, 1);
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const int64_t at = start + y * row_step + x * channels + c;
        store_some(out + at, finish(m[y * size + x], with, at, c, channels - c), channels - c);
      }
    }
  }
}
