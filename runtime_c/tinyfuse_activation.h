/* Functions of one int8 value: a clamp, one table of all 256 results, or one such table for each channel. */
#ifndef TINYFUSE_ACTIVATION_H
#define TINYFUSE_ACTIVATION_H

#include "tinyfuse_requantize.h"

/* All functions go forward, element by element. The output may be the input or lie below it. If output elements are
   larger, it must lie so far below that no input is overwritten before it is read. A table is indexed by the value's
   byte as an unsigned number: the results of 0 to 127 come first, then those of -128 to -1. */

TINYFUSE_INLINE void tinyfuse_activation_clamp_s8(const int8_t *in, int8_t *out, int32_t count,
                                                  int32_t low, int32_t high)
{
#if TINYFUSE_MVE
    const int8x16_t least = vdupq_n_s8((int8_t)low), most = vdupq_n_s8((int8_t)high);
    for (; count >= 16; count -= 16) {
        vstrbq_s8(out, vminq_s8(vmaxq_s8(vldrbq_s8(in), least), most));
        in += 16;
        out += 16;
    }
    if (count > 0) {
        const mve_pred16_t lanes = vctp8q((uint32_t)count);
        vstrbq_p_s8(out, vminq_s8(vmaxq_s8(vldrbq_z_s8(in, lanes), least), most), lanes);
    }
#else
#if TINYFUSE_DSP
    const uint32_t least = 0x01010101u * (uint8_t)low, most = 0x01010101u * (uint8_t)high;
    for (; count >= 4; count -= 4) {
        uint32_t four = tinyfuse_load_u32(in), difference;
        __asm("ssub8 %1, %0, %2\n\tsel %0, %0, %2\n\tssub8 %1, %0, %3\n\tsel %0, %3, %0"
              : "+&r"(four), "=&r"(difference)
              : "r"(least), "r"(most)
              : "cc");
        memcpy(out, &four, sizeof four);
        in += 4;
        out += 4;
    }
#endif
    for (; count > 0; --count) {
        *out++ = (int8_t)tinyfuse_clamp(*in++, low, high);
    }
#endif
}

TINYFUSE_INLINE void tinyfuse_activation_lookup_s8(const int8_t *table, const int8_t *in, int8_t *out,
                                                   int32_t count)
{
    const uint8_t *bytes = (const uint8_t *)in;
#if TINYFUSE_MVE
    for (; count >= 16; count -= 16) {
        vstrbq_s8(out, vldrbq_gather_offset_s8(table, vldrbq_u8(bytes)));
        bytes += 16;
        out += 16;
    }
    if (count > 0) {
        const mve_pred16_t lanes = vctp8q((uint32_t)count);
        vstrbq_p_s8(out, vldrbq_gather_offset_z_s8(table, vldrbq_z_u8(bytes, lanes), lanes), lanes);
    }
#else
    for (; count >= 8; count -= 8) {
        out[0] = table[bytes[0]];
        out[1] = table[bytes[1]];
        out[2] = table[bytes[2]];
        out[3] = table[bytes[3]];
        out[4] = table[bytes[4]];
        out[5] = table[bytes[5]];
        out[6] = table[bytes[6]];
        out[7] = table[bytes[7]];
        bytes += 8;
        out += 8;
    }
    for (; count > 0; --count) {
        *out++ = table[*bytes++];
    }
#endif
}

TINYFUSE_INLINE void tinyfuse_activation_lookup_s8_s16(const int16_t *table, const int8_t *in, int16_t *out,
                                                       int32_t count)
{
    const uint8_t *bytes = (const uint8_t *)in;
#if TINYFUSE_MVE
    for (; count >= 8; count -= 8) {
        vstrhq_s16(out, vldrhq_gather_shifted_offset_s16(table, vldrbq_u16(bytes)));
        bytes += 8;
        out += 8;
    }
    if (count > 0) {
        const mve_pred16_t lanes = vctp16q((uint32_t)count);
        const uint16x8_t places = vldrbq_z_u16(bytes, lanes);
        vstrhq_p_s16(out, vldrhq_gather_shifted_offset_z_s16(table, places, lanes), lanes);
    }
#else
    for (; count >= 4; count -= 4) {
        out[0] = table[bytes[0]];
        out[1] = table[bytes[1]];
        out[2] = table[bytes[2]];
        out[3] = table[bytes[3]];
        bytes += 4;
        out += 4;
    }
    for (; count > 0; --count) {
        *out++ = table[*bytes++];
    }
#endif
}

#if TINYFUSE_DSP && !TINYFUSE_MVE
/* Looks up four channels. The address of table 0 is added to all four bytes at once, and the distance of each table
   is an offset in its load: computing an index would take two additions an element. */
TINYFUSE_INLINE void tinyfuse_channel_lookup_four(const int8_t *tables, const uint8_t *bytes, int8_t *out)
{
    const uint32_t four = tinyfuse_load_u32((const int8_t *)bytes);
    const int8_t *a, *b, *c, *d;
    __asm("uxtab %0, %1, %2" : "=r"(a) : "r"(tables), "r"(four));
    __asm("uxtab %0, %1, %2, ror #8" : "=r"(b) : "r"(tables), "r"(four));
    __asm("uxtab %0, %1, %2, ror #16" : "=r"(c) : "r"(tables), "r"(four));
    __asm("uxtab %0, %1, %2, ror #24" : "=r"(d) : "r"(tables), "r"(four));
    out[0] = a[0];
    out[1] = b[256];
    out[2] = c[512];
    out[3] = d[768];
}
#endif

#if TINYFUSE_MVE
/* Looks up sixteen values `rounds` times. `even` and `odd` hold the offsets of the tables of even and odd
   elements: multiples of 256 whose low bytes are replaced by the values. `next` is assembly that advances `table`. */
#define TINYFUSE_LOOK_UP_SIXTEENS(sixteens, next)                                                  \
    __asm volatile("wls lr, %[count], 2f\n\t"                                                      \
                   "1:\n\t"                                                                        \
                   "vldrb.8 q0, [%[bytes]], #16\n\t"                                               \
                   "vmovnb.i16 %q[even], q0\n\t"                                                   \
                   "vshrnb.i16 %q[odd], q0, #8\n\t"                                                \
                   "vldrb.u16 q0, [%[table], %q[even]]\n\t"                                        \
                   "vldrb.u16 q1, [%[table], %q[odd]]\n\t" next                                    \
                   "vmovnt.i16 q0, q1\n\t"                                                         \
                   "vstrb.8 q0, [%[out]], #16\n\t"                                                 \
                   "le lr, 1b\n\t"                                                                 \
                   "2:\n\t"                                                                        \
                   : [bytes] "+r"(bytes), [out] "+r"(out), [table] "+r"(table), [even] "+w"(even),  \
                     [odd] "+w"(odd)                                                               \
                   : [count] "r"(sixteens)                                                         \
                   : "lr", "cc", "memory", "q0", "q1")

/* Pixels of a multiple of sixteen channels, or of 8, 4, 2 or 1 channels, whose tables are repeated to sixteen. */
TINYFUSE_INLINE void tinyfuse_channel_lookup_sixteens(const int8_t *tables, const uint8_t *bytes, int8_t *out,
                                                      int32_t pixels, int32_t channels)
{
    const uint16x8_t last = vdupq_n_u16((uint16_t)(tinyfuse_min(channels, 16) - 1)), first = vidupq_n_u16(0, 2);
    uint16x8_t even = vshlq_n_u16(vandq_u16(first, last), 8);
    uint16x8_t odd = vshlq_n_u16(vandq_u16(vaddq_n_u16(first, 1), last), 8);
    const int8_t *table = tables;
    if (channels <= 16) {
        TINYFUSE_LOOK_UP_SIXTEENS(pixels * channels / 16, "");
        return;
    }
    for (; pixels > 0; --pixels) {
        TINYFUSE_LOOK_UP_SIXTEENS(channels / 16, "add %[table], %[table], #4096\n\t");
        table = tables;
    }
}
#endif

/* `tables` has one table for each channel, in order. */
TINYFUSE_INLINE void tinyfuse_channel_lookup_s8(const int8_t *tables, const int8_t *in, int8_t *out,
                                                int32_t pixels, int32_t channels)
{
    const uint8_t *bytes = (const uint8_t *)in;
#if TINYFUSE_MVE
    if (channels % 16 == 0 || (channels < 16 && 16 % channels == 0 && pixels * channels % 16 == 0)) {
        tinyfuse_channel_lookup_sixteens(tables, bytes, out, pixels, channels);
        return;
    }
#endif
    for (; pixels > 0; --pixels) {
        const int8_t *table = tables;
        int32_t left = channels;
#if TINYFUSE_MVE
        const uint16x8_t starts = vshlq_n_u16(vidupq_n_u16(0, 1), 8);
        for (; left >= 8; left -= 8) {
            vstrbq_s16(out, vldrbq_gather_offset_s16(table, vaddq_u16(vldrbq_u16(bytes), starts)));
            table += 8 * 256;
            bytes += 8;
            out += 8;
        }
        if (left > 0) {
            const mve_pred16_t lanes = vctp16q((uint32_t)left);
            const uint16x8_t places = vaddq_u16(vldrbq_z_u16(bytes, lanes), starts);
            vstrbq_p_s16(out, vldrbq_gather_offset_z_s16(table, places, lanes), lanes);
            bytes += left;
            out += left;
        }
#else
#if TINYFUSE_DSP
        for (; left >= 8; left -= 8) {
            tinyfuse_channel_lookup_four(table, bytes, out);
            tinyfuse_channel_lookup_four(table + 4 * 256, bytes + 4, out + 4);
            table += 8 * 256;
            bytes += 8;
            out += 8;
        }
#endif
        for (; left >= 4; left -= 4) {
            out[0] = table[bytes[0]];
            out[1] = table[bytes[1] + 256];
            out[2] = table[bytes[2] + 512];
            out[3] = table[bytes[3] + 768];
            table += 4 * 256;
            bytes += 4;
            out += 4;
        }
        for (; left > 0; --left) {
            *out++ = table[*bytes++];
            table += 256;
        }
#endif
    }
}

TINYFUSE_INLINE void tinyfuse_channel_lookup_s8_s16(const int16_t *tables, const int8_t *in, int16_t *out,
                                                    int32_t pixels, int32_t channels)
{
    const uint8_t *bytes = (const uint8_t *)in;
    for (; pixels > 0; --pixels) {
        const int16_t *table = tables;
        int32_t left = channels;
        for (; left > 0; --left) {
            *out++ = table[*bytes++];
            table += 256;
        }
    }
}

#endif
