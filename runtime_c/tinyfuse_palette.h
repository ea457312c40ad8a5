/* Palettized weights: flash holds indexes of 1 to 4 bits into tables of values (palettes), which are expanded into
   scratch, some channels at a time, for all pixels of a call.

   A layer's weights are in groups of equal size, of a channel or of channels that are packed together.

   indices  [groups][index_bytes]: eight weights in `bits` bytes, the first one's in the lowest bits; for Helium
            sixteen weights in 2 * bits bytes, with 1, 2 or 4 bits
   tables   [groups][1 << bits], or one for all groups */
#ifndef TINYFUSE_PALETTE_H
#define TINYFUSE_PALETTE_H

#include "tinyfuse_common.h"

/* Expands `count` weights: four, for Helium sixteen, to each `step` bytes from `to` on, which is aligned to 4.
   `count` is a multiple of four; for Helium the last sixteen are expanded whole. */
typedef void (*tinyfuse_expand_palette)(const uint8_t *indices, const int8_t *table, int32_t count, int8_t *to, int32_t step);

/* A layer's weights. table_bytes: from a group's table to the next one's, 0 where one serves all. strip: channels
   that are expanded together, at most all. */
typedef struct {
    const uint8_t *indices;
    const int8_t *tables;
    tinyfuse_expand_palette look_up;
    int32_t index_bytes, table_bytes, strip;
} tinyfuse_palettized;

/* Expands `count` weights of a group, as tinyfuse_expand_palette has them. */
TINYFUSE_INLINE void tinyfuse_expand_palette_group(const tinyfuse_palettized *w, int32_t group, int32_t count,
                                                   int8_t *to, int32_t step)
{
    w->look_up(w->indices + group * w->index_bytes, w->tables + group * w->table_bytes, count, to, step);
}

/* Expands all `groups`, of group_bytes weights each, one after the other. Returns the place after them, aligned to
   16. */
TINYFUSE_SHARED void *tinyfuse_expand_palette_groups(const tinyfuse_palettized *w, int32_t groups, int32_t group_bytes,
                                                     int32_t step, void *scratch)
{
    int8_t *const to = (int8_t *)scratch;
    int32_t group;
    for (group = 0; group < groups; ++group) {
        tinyfuse_expand_palette_group(w, group, group_bytes, to + group * group_bytes, step);
    }
    return to + ((groups * group_bytes + 15) & ~15);
}

/* Returns the indexes of eight weights. */
TINYFUSE_INLINE uint32_t tinyfuse_eight_indices(const uint8_t *from, int bits)
{
    uint32_t word = from[0];
#if !defined(__arm__) || defined(__ARM_FEATURE_UNALIGNED)
    if (bits == 4) {
        return tinyfuse_load_u32(from);
    }
#endif
    if (bits > 1) {
        word |= (uint32_t)from[1] << 8;
    }
    if (bits > 2) {
        word |= (uint32_t)from[2] << 16;
    }
    if (bits > 3) {
        word |= (uint32_t)from[3] << 24;
    }
    return word;
}

/* Returns four weights, as bytes or two to a lane (tinyfuse_matmul.h). */
TINYFUSE_INLINE uint32_t tinyfuse_expand_quad(const int8_t *table, uint32_t indices, int bits, int lanes)
{
    const uint32_t mask = (1u << bits) - 1;
    const int32_t a = table[indices & mask], b = table[indices >> bits & mask];
    const int32_t c = table[indices >> 2 * bits & mask], d = table[indices >> 3 * bits & mask];
    if (lanes != 0) {
        return (uint32_t)(uint16_t)(b - 256 * a) | (uint32_t)(d - 256 * c) << 16;
    }
    return (uint32_t)(uint8_t)a | (uint32_t)(uint8_t)b << 8 | (uint32_t)(uint8_t)c << 16 | (uint32_t)d << 24;
}

TINYFUSE_INLINE void tinyfuse_expand_palette_quads(const uint8_t *indices, const int8_t *table, int32_t count,
                                                   int8_t *to, int32_t step, int bits, int lanes)
{
    uint32_t *put = (uint32_t *)(void *)to;
    step >>= 2;
    for (; count > 4; count -= 8) {
        const uint32_t eight = tinyfuse_eight_indices(indices, bits);
        put[0] = tinyfuse_expand_quad(table, eight, bits, lanes);
        put[step] = tinyfuse_expand_quad(table, eight >> 4 * bits, bits, lanes);
        put += 2 * step;
        indices += bits;
    }
    if (count > 0) {
        put[0] = tinyfuse_expand_quad(table, tinyfuse_eight_indices(indices, bits), bits, lanes);
    }
}

#define TINYFUSE_LOOK_UP(name, bits, lanes)                                                                       \
    TINYFUSE_SHARED void name(const uint8_t *indices, const int8_t *table, int32_t count, int8_t *to, int32_t step) \
    {                                                                                                             \
        tinyfuse_expand_palette_quads(indices, table, count, to, step, bits, lanes);                              \
    }
TINYFUSE_LOOK_UP(tinyfuse_expand_palette_1, 1, 0)
TINYFUSE_LOOK_UP(tinyfuse_expand_palette_2, 2, 0)
TINYFUSE_LOOK_UP(tinyfuse_expand_palette_3, 3, 0)
TINYFUSE_LOOK_UP(tinyfuse_expand_palette_4, 4, 0)
TINYFUSE_LOOK_UP(tinyfuse_expand_palette_lanes_1, 1, 1)
TINYFUSE_LOOK_UP(tinyfuse_expand_palette_lanes_2, 2, 1)
TINYFUSE_LOOK_UP(tinyfuse_expand_palette_lanes_3, 3, 1)
TINYFUSE_LOOK_UP(tinyfuse_expand_palette_lanes_4, 4, 1)

/* Expands weights for Helium, whose loads take an offset for each byte: indexes, shifted right, are offsets in the
   table. */
TINYFUSE_INLINE void tinyfuse_expand_palette_vectors(const uint8_t *indices, const int8_t *table, int32_t count,
                                                     int8_t *to, int32_t step, int bits)
{
#if TINYFUSE_MVE
    const uint8x16_t first_bits = vmulq_n_u8(vidupq_n_u8(0, 1), (uint8_t)bits);
    const uint8x16_t places = vshrq_n_u8(first_bits, 3);
    const int8x16_t shifts = vnegq_s8(vreinterpretq_s8_u8(vandq_u8(first_bits, vdupq_n_u8(7))));
    const uint8x16_t mask = vdupq_n_u8((uint8_t)((1 << bits) - 1));
    for (; count > 0; count -= 16) {
        const uint8x16_t index = vandq_u8(vshlq_u8(vldrbq_gather_offset_u8(indices, places), shifts), mask);
        vstrbq_s8(to, vldrbq_gather_offset_s8(table, index));
        to += step;
        indices += 2 * bits;
    }
#else
    const uint32_t mask = (1u << bits) - 1;
    int32_t i;
    for (; count > 0; count -= 16) {
        for (i = 0; i < 16; ++i) {
            to[i] = table[(uint32_t)indices[i * bits >> 3] >> (i * bits & 7) & mask];
        }
        to += step;
        indices += 2 * bits;
    }
#endif
}

#define TINYFUSE_LOOK_UP_VECTORS(name, bits)                                                                      \
    TINYFUSE_SHARED void name(const uint8_t *indices, const int8_t *table, int32_t count, int8_t *to, int32_t step) \
    {                                                                                                             \
        tinyfuse_expand_palette_vectors(indices, table, count, to, step, bits);                                   \
    }
TINYFUSE_LOOK_UP_VECTORS(tinyfuse_expand_palette_vectors_1, 1)
TINYFUSE_LOOK_UP_VECTORS(tinyfuse_expand_palette_vectors_2, 2)
TINYFUSE_LOOK_UP_VECTORS(tinyfuse_expand_palette_vectors_4, 4)

#endif
