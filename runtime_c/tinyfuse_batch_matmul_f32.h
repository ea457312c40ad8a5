/* BATCH_MATMUL of float32: each product and each sum is rounded, in the order of the depth. */
#ifndef TINYFUSE_BATCH_MATMUL_F32_H
#define TINYFUSE_BATCH_MATMUL_F32_H

#include "tinyfuse_batch_matmul.h"
#include "tinyfuse_float.h"

/* Computes one product of matrices, two columns at a time, because each sum waits for the one before it. */
TINYFUSE_SHARED void tinyfuse_matrix_product_f32(const tinyfuse_batch_matmul *p, const float *left,
                                                 const float *right, float *out)
{
    int32_t row, column, i;
    for (row = 0; row < p->rows; ++row) {
        for (column = 0; column < p->columns; ++column) {
            const int32_t pair = column + 1 < p->columns;
            const float *a = left + row * p->left_row;
            const float *b = right + column * p->right_column;
            const float *c = pair ? b + p->right_column : b;
            float first = 0.0f, second = 0.0f;
            for (i = 0; i < p->depth; ++i) {
                first = tinyfuse_add_product_f32(first, *a, *b);
                second = tinyfuse_add_product_f32(second, *a, *c);
                a += p->left_depth;
                b += p->right_depth;
                c += p->right_depth;
            }
            *out++ = first;
            if (pair != 0) {
                *out++ = second;
                ++column;
            }
        }
    }
}

TINYFUSE_BATCH_MATMUL(tinyfuse_batch_matmul_f32, float, tinyfuse_matrix_product_f32)

#endif
