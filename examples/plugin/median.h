/* The median of three values, element by element; `out` may be any of the inputs. */
#ifndef MEDIAN_H
#define MEDIAN_H

#include <stdint.h>

static inline void median_of_three_s8(const int8_t *a, const int8_t *b, const int8_t *c, int8_t *out, int32_t count)
{
    int32_t i;
    for (i = 0; i < count; ++i) {
        const int8_t lower = a[i] < b[i] ? a[i] : b[i], upper = a[i] < b[i] ? b[i] : a[i];
        const int8_t middle = upper < c[i] ? upper : c[i];
        out[i] = lower > middle ? lower : middle;
    }
}

#endif
