/* SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND with a block shape that is computed at run time. */
#ifndef TINYFUSE_BATCH_SPACE_AT_H
#define TINYFUSE_BATCH_SPACE_AT_H

#include "tinyfuse_batch_space.h"

/* Limit of padding rows and columns around an image. */
#define TINYFUSE_MOST_AROUND (1 << 24)

/* Sets the block's shape in `p`, and the padding before the image from each pair of `around`; without `columns` those
   of rows only. Returns not 0 if the block doesn't make a batch of `batch` images or a number is out of range. */
TINYFUSE_INLINE int32_t tinyfuse_blocks_at(tinyfuse_blocks *p, int32_t columns, int32_t batch, const int32_t *block,
                                           const int32_t *around)
{
    int32_t d;
    for (d = 0; d < 2; ++d) {
        const int there = d == 0 || columns;
        p->block[d] = there ? block[d] : 1;
        p->before[d] = there ? around[2 * d] : 0;
        if (p->block[d] < 1 || p->block[d] > batch || p->before[d] < 0 || p->before[d] > TINYFUSE_MOST_AROUND) {
            return 1;
        }
    }
    return (int64_t)p->images * p->block[0] * p->block[1] != batch;
}

/* Returns not 0 if the blocks don't make this batch. */
TINYFUSE_INLINE int32_t tinyfuse_space_to_batch_at(const tinyfuse_blocks *p, int32_t columns, int32_t batch,
                                                   const void *in, const int32_t *block, const int32_t *around,
                                                   void *out)
{
    tinyfuse_blocks blocks = *p;
    if (tinyfuse_blocks_at(&blocks, columns, batch, block, around) != 0) {
        return 1;
    }
    tinyfuse_space_to_batch(&blocks, in, out);
    return 0;
}

/* Returns not 0 if the blocks don't make this image, or leave out a part of it. */
TINYFUSE_INLINE int32_t tinyfuse_batch_to_space_at(const tinyfuse_blocks *p, int32_t columns, int32_t batch,
                                                   const void *in, const int32_t *block, const int32_t *around,
                                                   void *out)
{
    tinyfuse_blocks blocks = *p;
    int32_t d;
    if (tinyfuse_blocks_at(&blocks, columns, batch, block, around) != 0) {
        return 1;
    }
    for (d = 0; d < 2; ++d) {
        if (blocks.before[d] + blocks.dim[d] > blocks.count[d] * blocks.block[d]) {
            return 1;
        }
    }
    tinyfuse_batch_to_space(&blocks, in, out);
    return 0;
}

#endif
