/* BATCH_MATMUL of int16: sums of 64 bits, rounded once. Zero points are 0. */
#ifndef TINYFUSE_BATCH_MATMUL_S16_H
#define TINYFUSE_BATCH_MATMUL_S16_H

#include "tinyfuse_batch_matmul.h"
#include "tinyfuse_requantize_s16.h"

/* Computes one product of matrices; multiplier and shift are for tinyfuse_requantize_s64. */
TINYFUSE_SHARED void tinyfuse_matrix_product_s16(const tinyfuse_batch_matmul *p, const int16_t *left,
                                                 const int16_t *right, int16_t *out)
{
    int32_t row, column, i;
    for (row = 0; row < p->rows; ++row) {
        for (column = 0; column < p->columns; ++column) {
            const int16_t *a = left + row * p->left_row;
            const int16_t *b = right + column * p->right_column;
            int64_t sum = 0;
            for (i = 0; i < p->depth; ++i) {
                sum += *a * *b;
                a += p->left_depth;
                b += p->right_depth;
            }
            *out++ = (int16_t)tinyfuse_clamp(tinyfuse_requantize_s64(sum, p->multiplier, p->shift), INT16_MIN,
                                             INT16_MAX);
        }
    }
}

TINYFUSE_BATCH_MATMUL(tinyfuse_batch_matmul_s16, int16_t, tinyfuse_matrix_product_s16)

#endif
