/* Palettized weights: flash holds indexes of 1 to 4 bits into tables of values (palettes), which are expanded into
   scratch, some channels at a time, for all pixels of a call.

   A layer's weights are in groups of equal size, of a channel each.

   indices  [groups][index_bytes]: eight weights in `bits` bytes, the first one's in the lowest bits
   tables   [groups][1 << bits], or one for all groups */
#ifndef TINYFUSE_PALETTE_H
#define TINYFUSE_PALETTE_H

#include "tinyfuse_common.h"

/* Expands `count` weights, a multiple of four: four to each `step` bytes from `to` on, which is aligned to 4. */
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

#endif
