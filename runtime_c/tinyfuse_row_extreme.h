/* Running maximum or minimum over an image's rows, NHWC. `flip` is 0 for the maximum and -1 for the minimum: the
   exclusive or with -1 reverses the order of stored values. `previous`, the result of the row before, may be `out`;
   NULL means that there is none. */
#ifndef TINYFUSE_ROW_EXTREME_H
#define TINYFUSE_ROW_EXTREME_H

#include "tinyfuse_pool.h"
#include "tinyfuse_real.h"

#if TINYFUSE_MVE

TINYFUSE_INLINE void tinyfuse_row_extreme_s8(const int8_t *in, const int32_t *previous, int32_t *out, int32_t width,
                                             int32_t channels, int32_t flip)
{
    const int32x4_t flips = vdupq_n_s32(flip);
    int32_t c, x;
    for (c = 0; c < channels; c += 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)(channels - c));
        const int8_t *from = in + c;
        int32x4_t most = vdupq_n_s32(-128);
        if (previous != NULL) {
            most = veorq_s32(vldrwq_z_s32(previous + c, lanes), flips);
        }
        for (x = 0; x < width; ++x) {
            most = vmaxq_s32(most, veorq_s32(vldrbq_z_s32(from, lanes), flips));
            from += channels;
        }
        vstrwq_p_s32(out + c, veorq_s32(most, flips), lanes);
    }
}

#else

TINYFUSE_INLINE void tinyfuse_row_extreme_s8(const int8_t *in, const int32_t *previous, int32_t *out, int32_t width,
                                             int32_t channels, int32_t flip)
{
    int32_t c = 0, i, x;
    for (; c + 4 <= channels; c += 4) {
        /* four channels a word */
        const int8_t *from = in + c;
        uint32_t word = 0x80808080u;
        for (x = 0; x < width; ++x) {
            word = tinyfuse_max_bytes(word, tinyfuse_load_u32(from) ^ (uint32_t)flip);
            from += channels;
        }
        for (i = 0; i < 4; ++i) {
            const int32_t most = (int8_t)(word >> 8 * i);
            out[c + i] = (previous != NULL ? tinyfuse_max(most, previous[c + i] ^ flip) : most) ^ flip;
        }
    }
    for (; c < channels; ++c) {
        int32_t most = previous != NULL ? previous[c] ^ flip : -128;
        for (x = 0; x < width; ++x) {
            most = tinyfuse_max(most, in[x * channels + c] ^ flip);
        }
        out[c] = most ^ flip;
    }
}

#endif

TINYFUSE_INLINE void tinyfuse_row_extreme_s16(const int16_t *in, const int32_t *previous, int32_t *out, int32_t width,
                                              int32_t channels, int32_t flip)
{
    int32_t c, x;
    for (c = 0; c < channels; ++c) {
        int32_t most = previous != NULL ? previous[c] ^ flip : -32768;
        for (x = 0; x < width; ++x) {
            most = tinyfuse_max(most, in[x * channels + c] ^ flip);
        }
        out[c] = most ^ flip;
    }
}

/* Keeps the first of two equal values (zeros). NaN is neither greater nor less than anything. */
TINYFUSE_INLINE void tinyfuse_row_extreme_f32(const float *in, const float *previous, float *out, int32_t width,
                                              int32_t channels, int32_t flip)
{
    int32_t c, x;
    for (c = 0; c < channels; ++c) {
        float most = previous != NULL ? previous[c] : flip == 0 ? -FLT_MAX : FLT_MAX;
        for (x = 0; x < width; ++x) {
            const float value = in[x * channels + c];
            most = flip == 0 ? tinyfuse_greater_f32(most, value) : tinyfuse_lesser_f32(most, value);
        }
        out[c] = most;
    }
}

#endif
