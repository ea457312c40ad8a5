/* BATCH_MATMUL: products of matrices, of one batch or of several that broadcast. */
#ifndef TINYFUSE_BATCH_MATMUL_H
#define TINYFUSE_BATCH_MATMUL_H

#include "tinyfuse_half_even.h"

/* The output is [batches][rows][columns]. Strides in elements: between batches in three dimensions (0: the same matrix
   for all), between rows or columns of the output, and along the sum. If outputs are rounded half to even, `multiplier`
   holds the bits of a float32 scale (tinyfuse_half_even.h). */
typedef struct {
    int32_t batches[3], rows, columns, depth;
    int32_t left_batch[3], left_row, left_depth;
    int32_t right_batch[3], right_column, right_depth;
    int32_t left_zero_point, right_zero_point, out_zero_point;
    int32_t multiplier, shift;
} tinyfuse_batch_matmul;

/* Computes one product of matrices. `half_even` is a constant. */
TINYFUSE_INLINE void tinyfuse_matrix_product(const tinyfuse_batch_matmul *p, const int8_t *left, const int8_t *right,
                                             int8_t *out, int half_even)
{
    int32_t row, column, i;
    for (row = 0; row < p->rows; ++row) {
        for (column = 0; column < p->columns; ++column) {
            const int8_t *a = left + row * p->left_row;
            const int8_t *b = right + column * p->right_column;
            uint32_t sum = 0; /* wraps around */
            int32_t scaled;
            for (i = 0; i < p->depth; ++i) {
                sum += (uint32_t)((*a - p->left_zero_point) * (*b - p->right_zero_point));
                a += p->left_depth;
                b += p->right_depth;
            }
            scaled = half_even ? tinyfuse_scale_half_even((int32_t)sum, p->multiplier)
                               : tinyfuse_requantize((int32_t)sum, p->multiplier, p->shift);
            scaled += p->out_zero_point;
            *out++ = (int8_t)tinyfuse_clamp(scaled, -128, 127);
        }
    }
}

TINYFUSE_SHARED void tinyfuse_matrix_product_s8(const tinyfuse_batch_matmul *p, const int8_t *left,
                                                const int8_t *right, int8_t *out)
{
    tinyfuse_matrix_product(p, left, right, out, 0);
}

TINYFUSE_SHARED void tinyfuse_matrix_product_half_even_s8(const tinyfuse_batch_matmul *p, const int8_t *left,
                                                          const int8_t *right, int8_t *out)
{
    tinyfuse_matrix_product(p, left, right, out, 1);
}

/* Defines a function that computes all products of matrices of an element type. */
#define TINYFUSE_BATCH_MATMUL(name, element, product)                                                       \
    TINYFUSE_INLINE void name(const tinyfuse_batch_matmul *p, const element *left, const element *right,   \
                              element *out)                                                                 \
    {                                                                                                       \
        int32_t i, j, k;                                                                                    \
        for (i = 0; i < p->batches[0]; ++i) {                                                               \
            for (j = 0; j < p->batches[1]; ++j) {                                                           \
                for (k = 0; k < p->batches[2]; ++k) {                                                       \
                    const element *const a =                                                                \
                        left + i * p->left_batch[0] + j * p->left_batch[1] + k * p->left_batch[2];          \
                    const element *const b =                                                                \
                        right + i * p->right_batch[0] + j * p->right_batch[1] + k * p->right_batch[2];      \
                    product(p, a, b, out);                                                                  \
                    out += p->rows * p->columns;                                                            \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }
TINYFUSE_BATCH_MATMUL(tinyfuse_batch_matmul_s8, int8_t, tinyfuse_matrix_product_s8)
TINYFUSE_BATCH_MATMUL(tinyfuse_batch_matmul_half_even_s8, int8_t, tinyfuse_matrix_product_half_even_s8)

#endif
