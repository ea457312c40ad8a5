#include "upscale.h"

enum { STEPS = (IMAGE_SIDE - 1) / (TEST_IMAGE_SIDE - 1) }; /* between two neighbours of a small image */

/* A pixel of a small image, 0..15. */
static int pixel(const uint32_t image[TEST_IMAGE_SIDE], int y, int x)
{
    return (int)(image[y] >> (4 * (TEST_IMAGE_SIDE - 1 - x)) & 15u);
}

void upscale_row(const uint32_t image[TEST_IMAGE_SIDE], int y, int8_t row[IMAGE_SIDE])
{
    const int top = y / STEPS, down = y % STEPS;
    const int bottom = down == 0 ? top : top + 1;

    for (int x = 0; x < IMAGE_SIDE; ++x) {
        const int left = x / STEPS, across = x % STEPS;
        const int right = across == 0 ? left : left + 1;
        const int upper = (STEPS - across) * pixel(image, top, left) + across * pixel(image, top, right);
        const int lower = (STEPS - across) * pixel(image, bottom, left) + across * pixel(image, bottom, right);
        const int sum = (STEPS - down) * upper + down * lower; /* 0..15 * STEPS * STEPS */

        row[x] = (int8_t)(sum * 17 / (STEPS * STEPS) - 128);
    }
}
