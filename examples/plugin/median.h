/* The median of three values, element by element; `out` may be any of the inputs. */
#ifndef MEDIAN_H
#define MEDIAN_H

#include <stdint.h>

/* Of one element. */
static inline int32_t median_of_three(int32_t a, int32_t b, int32_t c)
{
    const int32_t lower = a < b ? a : b, upper = a < b ? b : a;
    const int32_t middle = upper < c ? upper : c;
    return lower > middle ? lower : middle;
}

static inline void median_of_three_s8(const int8_t *a, const int8_t *b, const int8_t *c, int8_t *out, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        out[i] = (int8_t)median_of_three(a[i], b[i], c[i]);
    }
}

#endif
