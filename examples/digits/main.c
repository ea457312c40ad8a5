/* Reads the embedded test images with the generated digits module and prints the accuracy.

   The program ends with status 0 when every inference ran, whatever it read; run.py compares what
   was read with the interpreter. With DIGITS_PRINT_SCORES it also prints, for every image, the digit
   read and the ten int8 scores. */
#include <stdint.h>
#include <stdio.h>

#include "digits.h"
#include "test_images.h"

enum {
    SIDE = 29,                                  /* pixels a side of the model's input */
    STEPS = (SIDE - 1) / (TEST_IMAGE_SIDE - 1), /* between two neighbours of a small image */
    CLASSES = 10
};

static DIGITS_DEFINE_ARENA(arena);

/* A pixel of a small image, 0..15. */
static int pixel(const uint32_t image[TEST_IMAGE_SIDE], int y, int x)
{
    return (int)(image[y] >> (4 * (TEST_IMAGE_SIDE - 1 - x)) & 15u);
}

/* Enlarges a small image to SIDE x SIDE by bilinear interpolation, as digit_images.py does. The
   model's input has scale 1/255 and zero point -128: a pixel of 0..255 becomes its value - 128. */
static void upscale(const uint32_t image[TEST_IMAGE_SIDE], int8_t *input)
{
    for (int y = 0; y < SIDE; ++y) {
        const int top = y / STEPS, down = y % STEPS;
        const int bottom = down == 0 ? top : top + 1;

        for (int x = 0; x < SIDE; ++x) {
            const int left = x / STEPS, across = x % STEPS;
            const int right = across == 0 ? left : left + 1;
            const int upper = (STEPS - across) * pixel(image, top, left) + across * pixel(image, top, right);
            const int lower = (STEPS - across) * pixel(image, bottom, left) + across * pixel(image, bottom, right);
            const int sum = (STEPS - down) * upper + down * lower; /* 0..15 * STEPS * STEPS */

            *input++ = (int8_t)(sum * 17 / (STEPS * STEPS) - 128);
        }
    }
}

/* The class with the highest score, the first of equals. */
static unsigned argmax(const int8_t scores[CLASSES])
{
    unsigned best = 0;

    for (unsigned i = 1; i < CLASSES; ++i) {
        if (scores[i] > scores[best]) {
            best = i;
        }
    }
    return best;
}

#ifdef DIGITS_PRINT_SCORES
static void print_scores(unsigned index, unsigned read, const int8_t scores[CLASSES])
{
    printf("scores %u %u", index, read);
    for (int i = 0; i < CLASSES; ++i) {
        printf(" %d", scores[i]);
    }
    printf("\n");
}
#endif

int main(void)
{
    unsigned correct = 0;
    int error = digits_init(arena, sizeof arena);

    for (unsigned i = 0; i < TEST_IMAGE_COUNT && error == DIGITS_OK; ++i) {
        upscale(test_images[i], digits_input(arena, 0));
        error = digits_run(arena);
        if (error == DIGITS_OK) {
            const int8_t *scores = digits_output(arena, 0);
            const unsigned read = argmax(scores);

            if (read == test_labels[i]) {
                ++correct;
            } else {
                printf("image %3u shows %u, read as %u\n", i, (unsigned)test_labels[i], read);
            }
#ifdef DIGITS_PRINT_SCORES
            print_scores(i, read, scores);
#endif
        }
    }
    if (error != DIGITS_OK) {
        printf("digits: %s\n", digits_strerror(error));
        return 1;
    }
    const unsigned hundredths = (correct * 10000u + TEST_IMAGE_COUNT / 2u) / TEST_IMAGE_COUNT; /* of a percent */

    printf("accuracy %u.%02u %% (%u of %u images), arena %u bytes\n", hundredths / 100u, hundredths % 100u, correct,
           (unsigned)TEST_IMAGE_COUNT, (unsigned)sizeof arena);
    return 0;
}
