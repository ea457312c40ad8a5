/* SELECT_V2: one of two values by a condition, in a nest of five loops; a stride of 0 repeats. Goes forward: the
   output may be x or y, or lie below it, if that input is not repeated. */
#ifndef TINYFUSE_SELECT_H
#define TINYFUSE_SELECT_H

#include "tinyfuse_common.h"

typedef struct {
    int32_t dim[5];
    int32_t condition_stride[5], x_stride[5], y_stride[5];
} tinyfuse_select;

TINYFUSE_INLINE int32_t tinyfuse_select_place(const int32_t *stride, int32_t i, int32_t j, int32_t k, int32_t l)
{
    return i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3];
}

#define TINYFUSE_DEFINE_SELECT(suffix, type)                                                                  \
    TINYFUSE_INLINE void tinyfuse_select_##suffix(const tinyfuse_select *s, const uint8_t *condition,         \
                                                  const type *x, const type *y, type *out)                    \
    {                                                                                                         \
        int32_t i, j, k, l, m;                                                                                \
        for (i = 0; i < s->dim[0]; ++i) {                                                                     \
            for (j = 0; j < s->dim[1]; ++j) {                                                                 \
                for (k = 0; k < s->dim[2]; ++k) {                                                             \
                    for (l = 0; l < s->dim[3]; ++l) {                                                         \
                        const uint8_t *chosen = condition + tinyfuse_select_place(s->condition_stride, i, j, k, l);  \
                        const type *row_x = x + tinyfuse_select_place(s->x_stride, i, j, k, l);                      \
                        const type *row_y = y + tinyfuse_select_place(s->y_stride, i, j, k, l);                      \
                        for (m = 0; m < s->dim[4]; ++m) {                                                     \
                            *out++ = chosen[m * s->condition_stride[4]] ? row_x[m * s->x_stride[4]]           \
                                                                        : row_y[m * s->y_stride[4]];          \
                        }                                                                                     \
                    }                                                                                         \
                }                                                                                             \
            }                                                                                                 \
        }                                                                                                     \
    }

TINYFUSE_DEFINE_SELECT(s8, int8_t)
TINYFUSE_DEFINE_SELECT(s16, int16_t)
TINYFUSE_DEFINE_SELECT(f32, float)

#endif
