/* From the small images in flash to the model's input. */
#ifndef UPSCALE_H
#define UPSCALE_H

#include <stdint.h>

#include "test_images.h"

enum { IMAGE_SIDE = 29 }; /* pixels a side of the model's input */

/* Row y of a small image that is enlarged to IMAGE_SIDE x IMAGE_SIDE by bilinear interpolation, as digit_images.py does.
   The model's input has scale 1/255 and zero point -128: a pixel of 0..255 becomes its value - 128. */
void upscale_row(const uint32_t image[TEST_IMAGE_SIDE], int y, int8_t row[IMAGE_SIDE]);

#endif
