/* MEAN, SUM, REDUCE_MAX and REDUCE_MIN over any dimensions. */
#ifndef TINYFUSE_REDUCE_H
#define TINYFUSE_REDUCE_H

#include "tinyfuse_requantize.h"

/* Adjacent dimensions that are both kept or both reduced are merged, so at most two of each kind are left, the
   outer one first. Strides are in elements. */
typedef struct {
    int32_t kept[2], kept_stride[2];
    int32_t reduced[2], reduced_stride[2];
} tinyfuse_reduction;

/* Rescales a sum of stored values to an output. `offset` is the number of reduced elements times the input's zero
   point; the multiplier of a mean includes the division. */
typedef struct {
    int32_t offset, multiplier, shift, out_zero_point;
} tinyfuse_sum_scaling;

/* Runs `add` once for each element of the sum that begins at `origin`; `from` is the element's address. */
#define TINYFUSE_FOR_REDUCED(add)                                     \
    for (k = 0; k < p->reduced[0]; ++k) {                             \
        const int8_t *from = origin + k * p->reduced_stride[0];       \
        for (l = 0; l < p->reduced[1]; ++l) {                         \
            add;                                                      \
            from += p->reduced_stride[1];                             \
        }                                                             \
    }

#if TINYFUSE_MVE
/* Computes adjacent sums, four at a time, while at least four are left. */
#define TINYFUSE_FOURS_OF_SUMS(output_of)                                                         \
    for (; p->kept_stride[1] == 1 && j + 4 <= p->kept[1]; j += 4) {                               \
        int32x4_t sums = vdupq_n_s32(-scaling->offset);                                           \
        TINYFUSE_FOR_REDUCED(sums = vaddq_s32(sums, vldrbq_s32(from)))                            \
        out[0] = output_of(scaling, vgetq_lane_s32(sums, 0));                                     \
        out[1] = output_of(scaling, vgetq_lane_s32(sums, 1));                                     \
        out[2] = output_of(scaling, vgetq_lane_s32(sums, 2));                                     \
        out[3] = output_of(scaling, vgetq_lane_s32(sums, 3));                                     \
        origin += 4;                                                                              \
        out += 4;                                                                                 \
    }
#else
#define TINYFUSE_FOURS_OF_SUMS(output_of)
#endif

/* Defines a function that computes sums and stores output_of(scaling, sum) for each. `out`: the outputs, in the order of
   the kept dimensions. */
#define TINYFUSE_DEFINE_REDUCE_SUM(name, scaling_type, output_of)                                 \
    TINYFUSE_INLINE void name(const tinyfuse_reduction *p, const scaling_type *scaling,           \
                              const int8_t *in, int8_t *out)                                      \
    {                                                                                             \
        int32_t i, j, k, l;                                                                       \
        for (i = 0; i < p->kept[0]; ++i) {                                                        \
            const int8_t *origin = in + i * p->kept_stride[0];                                    \
            j = 0;                                                                                \
            TINYFUSE_FOURS_OF_SUMS(output_of)                                                     \
            for (; j < p->kept[1]; ++j) {                                                         \
                int32_t sum = -scaling->offset;                                                   \
                TINYFUSE_FOR_REDUCED(sum += *from)                                                \
                *out++ = output_of(scaling, sum);                                                 \
                origin += p->kept_stride[1];                                                      \
            }                                                                                     \
        }                                                                                         \
    }

/* Rescales a sum with two roundings. */
TINYFUSE_INLINE int8_t tinyfuse_rescaled_sum(const tinyfuse_sum_scaling *s, int32_t sum)
{
    return (int8_t)tinyfuse_clamp(tinyfuse_requantize(sum, s->multiplier, s->shift) + s->out_zero_point, -128, 127);
}

TINYFUSE_DEFINE_REDUCE_SUM(tinyfuse_reduce_sum_s8, tinyfuse_sum_scaling, tinyfuse_rescaled_sum)

/* Computes the greatest stored values, or the least ones if `flip` is -1: the exclusive or with -1 reverses the
   order. */
TINYFUSE_INLINE void tinyfuse_reduce_extreme_s8(const tinyfuse_reduction *p, int32_t flip, const int8_t *in,
                                                int8_t *out)
{
    int32_t i, j, k, l;
    for (i = 0; i < p->kept[0]; ++i) {
        for (j = 0; j < p->kept[1]; ++j) {
            const int8_t *const origin = in + i * p->kept_stride[0] + j * p->kept_stride[1];
            int32_t most = -128;
            TINYFUSE_FOR_REDUCED(most = tinyfuse_max(most, *from ^ flip))
            *out++ = (int8_t)(most ^ flip);
        }
    }
}

#endif
