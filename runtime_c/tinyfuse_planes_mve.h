/* Planar and interleaved images (tinyfuse_planes.h) for Helium: scatters and gathers a vector of elements at a
   time. */
#ifndef TINYFUSE_PLANES_MVE_H
#define TINYFUSE_PLANES_MVE_H

#include "tinyfuse_planes.h"

#if TINYFUSE_MVE

/* Functions for vectors of `lanes` elements of `type`, whose offsets are numbers of `width` bits, `step` elements
   apart. `load` and `store` access contiguous elements, `gather` and `scatter` strided ones. The FEW macros process
   only the lanes of a predicate. */
#define TINYFUSE_PLANES_VECTORS(name, type, lanes, width, some, load, store, gather, scatter)                          \
    TINYFUSE_INLINE void tinyfuse_planes_scatter_##name(const type *in, type *out, int32_t step, int32_t count)        \
    {                                                                                                                  \
        const uint##width##x##lanes##_t places = vmulq_n_u##width(vidupq_n_u##width(0u, 1), (uint##width##_t)step);    \
        int32_t left;                                                                                                  \
        for (left = count; left >= lanes; left -= lanes) {                                                             \
            scatter(out, places, load(in));                                                                            \
            in += lanes;                                                                                               \
            out += lanes * step;                                                                                       \
        }                                                                                                              \
        if (left > 0) {                                                                                                \
            const mve_pred16_t few = some((uint32_t)left);                                                             \
            TINYFUSE_PLANES_FEW_##name##_SCATTER(out, places, in, few);                                                \
        }                                                                                                              \
    }                                                                                                                  \
    TINYFUSE_INLINE void tinyfuse_planes_gather_##name(const type *in, type *out, int32_t step, int32_t count)         \
    {                                                                                                                  \
        const uint##width##x##lanes##_t places = vmulq_n_u##width(vidupq_n_u##width(0u, 1), (uint##width##_t)step);    \
        int32_t left;                                                                                                  \
        for (left = count; left >= lanes; left -= lanes) {                                                             \
            store(out, gather(in, places));                                                                            \
            in += lanes * step;                                                                                        \
            out += lanes;                                                                                              \
        }                                                                                                              \
        if (left > 0) {                                                                                                \
            const mve_pred16_t few = some((uint32_t)left);                                                             \
            TINYFUSE_PLANES_FEW_##name##_GATHER(in, places, out, few);                                                 \
        }                                                                                                              \
    }

#define TINYFUSE_PLANES_FEW_8_SCATTER(out, places, in, few)                                                            \
    vstrbq_scatter_offset_p_u8(out, places, vldrbq_z_u8(in, few), few)
#define TINYFUSE_PLANES_FEW_8_GATHER(in, places, out, few)                                                             \
    vstrbq_p_u8(out, vldrbq_gather_offset_z_u8(in, places, few), few)
#define TINYFUSE_PLANES_FEW_8_WIDE_SCATTER(out, places, in, few)                                                       \
    vstrbq_scatter_offset_p_u16(out, places, vldrbq_z_u16(in, few), few)
#define TINYFUSE_PLANES_FEW_8_WIDE_GATHER(in, places, out, few)                                                        \
    vstrbq_p_u16(out, vldrbq_gather_offset_z_u16(in, places, few), few)
#define TINYFUSE_PLANES_FEW_16_SCATTER(out, places, in, few)                                                           \
    vstrhq_scatter_shifted_offset_p_u16(out, places, vldrhq_z_u16(in, few), few)
#define TINYFUSE_PLANES_FEW_16_GATHER(in, places, out, few)                                                            \
    vstrhq_p_u16(out, vldrhq_gather_shifted_offset_z_u16(in, places, few), few)
#define TINYFUSE_PLANES_FEW_32_SCATTER(out, places, in, few)                                                           \
    vstrwq_scatter_shifted_offset_p_f32(out, places, vldrwq_z_f32(in, few), few)
#define TINYFUSE_PLANES_FEW_32_GATHER(in, places, out, few)                                                            \
    vstrwq_p_f32(out, vldrwq_gather_shifted_offset_z_f32(in, places, few), few)

TINYFUSE_PLANES_VECTORS(8, uint8_t, 16, 8, vctp8q, vldrbq_u8, vstrbq_u8, vldrbq_gather_offset_u8,
                        vstrbq_scatter_offset_u8)
TINYFUSE_PLANES_VECTORS(8_WIDE, uint8_t, 8, 16, vctp16q, vldrbq_u16, vstrbq_u16, vldrbq_gather_offset_u16,
                        vstrbq_scatter_offset_u16)
TINYFUSE_PLANES_VECTORS(16, uint16_t, 8, 16, vctp16q, vldrhq_u16, vstrhq_u16, vldrhq_gather_shifted_offset_u16,
                        vstrhq_scatter_shifted_offset_u16)
TINYFUSE_PLANES_VECTORS(32, float, 4, 32, vctp32q, vldrwq_f32, vstrwq_f32, vldrwq_gather_shifted_offset_f32,
                        vstrwq_scatter_shifted_offset_f32)

/* `wide`: name of the functions to use if a vector's offsets exceed the width of its own lanes. */
#define TINYFUSE_PLANES_OF_VECTORS(bits, wide, type)                                                                   \
    TINYFUSE_INLINE void tinyfuse_planes_to_rows_mve_##bits(const void *in, int32_t plane, int32_t channels,           \
                                                            int32_t count, void *out)                                  \
    {                                                                                                                  \
        int32_t c;                                                                                                     \
        for (c = 0; c < channels; ++c) {                                                                               \
            const type *const from = (const type *)in + c * plane;                                                     \
            type *const to = (type *)out + c;                                                                          \
            if (channels <= 17) {                                                                                      \
                tinyfuse_planes_scatter_##bits(from, to, channels, count);                                             \
            } else {                                                                                                   \
                tinyfuse_planes_scatter_##wide(from, to, channels, count);                                             \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    TINYFUSE_INLINE void tinyfuse_rows_to_planes_mve_##bits(const void *in, int32_t plane, int32_t channels,           \
                                                            int32_t count, void *out)                                  \
    {                                                                                                                  \
        int32_t c;                                                                                                     \
        for (c = 0; c < channels; ++c) {                                                                               \
            const type *const from = (const type *)in + c;                                                             \
            type *const to = (type *)out + c * plane;                                                                  \
            if (channels <= 17) {                                                                                      \
                tinyfuse_planes_gather_##bits(from, to, channels, count);                                              \
            } else {                                                                                                   \
                tinyfuse_planes_gather_##wide(from, to, channels, count);                                              \
            }                                                                                                          \
        }                                                                                                              \
    }

#else

#define TINYFUSE_PLANES_OF_VECTORS(bits, wide, type)                                                                   \
    TINYFUSE_INLINE void tinyfuse_planes_to_rows_mve_##bits(const void *in, int32_t plane, int32_t channels,           \
                                                            int32_t count, void *out)                                  \
    {                                                                                                                  \
        tinyfuse_planes_to_rows_##bits(in, plane, channels, count, out);                                               \
    }                                                                                                                  \
    TINYFUSE_INLINE void tinyfuse_rows_to_planes_mve_##bits(const void *in, int32_t plane, int32_t channels,           \
                                                            int32_t count, void *out)                                  \
    {                                                                                                                  \
        tinyfuse_rows_to_planes_##bits(in, plane, channels, count, out);                                               \
    }

#endif

TINYFUSE_PLANES_OF_VECTORS(8, 8_WIDE, uint8_t)
TINYFUSE_PLANES_OF_VECTORS(16, 16, uint16_t)
TINYFUSE_PLANES_OF_VECTORS(32, 32, float)

#endif
